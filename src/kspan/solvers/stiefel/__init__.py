"""Sparse loadings with orthonormal columns: splitting methods on the Stiefel manifold."""

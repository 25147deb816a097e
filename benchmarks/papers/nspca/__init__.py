"""Nonnegative Sparse PCA with Provable Guarantees, its section 7 run again."""

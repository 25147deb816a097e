"""Learning Sparse PCA with Stabilized ADMM Method on Stiefel Manifold, its section 5 run again."""

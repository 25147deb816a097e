"""Learning Feature Sparse Principal Subspace (NeurIPS 2020), its section 6 run again."""

"""The data of the SADMM paper: what could be had, and data of the same shape where it could not."""

from typing import Any

import numpy as np

from kspan.datasets import load_dataset

RELEVANT = 20  # features of the two sparse components, ten each
VARIANCES = (400.0, 300.0)

# The five sets of Table 2: the paper's shape, and what ours is.
REAL = {
    "colon": ((62, 2000), "the same"),
    "prostate": ((102, 2135), "all 12600 genes, the paper a cut to 2135"),
    "dlbcl": ((77, 2647), "all 7129 genes, the paper a cut to 2647"),
    "duke": ((42, 7129), "49 samples, the paper 42 of them"),
    "leukemia": ((72, 7129), "the same"),
}
# These the paper has from LIBSVM, whose files are normalised, first samples and then features.
NORMALISED = ("colon", "duke", "leukemia")

# What stands for the larger sets of Figures 5 to 7.
LARGE = {
    "gcm": "synthetic, of GCM's shape, 198 by 11370",
    "breast": "synthetic, of Breast's shape, 128 by 47293",
    "tdt2": "TDT2, sparse, 9394 by 36771, in place of News20, 15935 by 62061",
}
SHAPES = {"gcm": (198, 11370), "breast": (128, 47293)}


def synthetic(n: int, d: int, noise: float = 1.0, seed: Any = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return data X (n, d) and the two true loadings (d, 2) of the paper's section 5.1.

    The covariance is I + 399 v₁v₁' + 299 v₂v₂': v₁ has ten equal loadings on features 0 to 9, v₂
    on features 10 to 19. Then the other features are multiplied by `noise`. The paper draws the
    other eigenvectors "from a uniform distribution", as they are not orthogonal then; taken at its
    word, their eigenvalues of one would add up to more than d²/4, far more than 400, so here
    they are an orthonormal completion, which need not be drawn.
    """
    V = np.zeros((d, 2))
    V[:10, 0] = V[10:RELEVANT, 1] = 1 / np.sqrt(10)
    Z = np.random.default_rng(seed).standard_normal((n, d))
    X = Z + ((Z @ V) * (np.sqrt(VARIANCES) - 1)) @ V.T
    X[:, RELEVANT:] *= noise
    return X, V


def factor_data(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Return data like gene expression: sparse factors of falling strength, and noise.

    Ten factors, each on three percent of the features with normal loadings; factor j has the
    standard deviation 2/√j. The noise has its own level for each feature, lognormal with σ = 1/2.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.exp(0.5 * rng.standard_normal(d))
    for j in range(10):
        genes = rng.choice(d, size=max(1, round(0.03 * d)), replace=False)
        loadings = 2 / np.sqrt(j + 1) * rng.standard_normal(genes.size)
        X[:, genes] += np.outer(rng.standard_normal(n), loadings)
    return X


def real(name: str, *, normalised: bool = False) -> np.ndarray:
    """Return a data set in float64; normalised as LIBSVM does: samples, then features."""
    X = load_dataset(name).X.astype(np.float64)
    if normalised:
        for axis in (1, 0):
            X = X - X.mean(axis=axis, keepdims=True)
            X /= X.std(axis=axis, keepdims=True)
    return X


def large(name: str) -> Any:
    """Return one of the sets of Figures 5 to 7."""
    if name == "tdt2":
        return load_dataset("tdt2").X
    return factor_data(*SHAPES[name])

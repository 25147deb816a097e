"""Where people wait: what is timed.

Every row is a function that returns what was reached, the larger the better, computed here in
float64 from the data where it can be: what principal components of the chosen features explain,
``tr(V'AV)`` of orthonormal components, the sum of adjusted variances of others, and of resamples
the mean of what their supports explain of all rows. Of a certificate the gap, the smaller the
better. Run by `waiting.py`, each in a process of its own; kspan may be that of another checkout.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import zoom
from sklearn.model_selection import GridSearchCV

import kspan
from kspan import (
    ElementSparsePCA,
    FeatureSparsePCA,
    NonnegativeSparsePCA,
    RowSparseProblem,
    StiefelSparsePCA,
    as_covariance,
    certify,
    selection_stability,
    solve,
    sparsity_path,
    suggest_k,
)
from kspan.datasets import load_dataset

FACE, LARGER_FACE, N_FACES = 19, 32, 400


@cache
def table(name: str) -> Any:
    """Return a table; "faces" are 400 of those of CBCL, drawn larger: 32 by 32."""
    if name != "faces":
        return load_dataset(name).X
    X = load_dataset("cbcl_faces").X
    some = X[np.random.default_rng(0).choice(len(X), N_FACES, replace=False)]
    larger = [zoom(x.reshape(FACE, FACE), LARGER_FACE / FACE, order=1) for x in some]
    return np.array(larger).reshape(N_FACES, -1)


def variance(X: Any, V: np.ndarray) -> float:
    """Return tr(V'AV) from the data."""
    scores = (X - X.mean(axis=0)) @ V
    return float((scores**2).sum() / (len(X) - 1))


def orthonormal(name: str, m: int, k: int, **options: Any) -> float:
    X = table(name)
    pca = StiefelSparsePCA(m, n_nonzero_coefs=k, random_state=0, **options).fit(X)
    return variance(X, pca.components_.T)


def nonnegative(name: str, m: int, k: int) -> float:
    return float(NonnegativeSparsePCA(m, k, random_state=0).fit(table(name)).objective_)


def element(name: str, m: int, k: int) -> float:
    return float(ElementSparsePCA(m, k, random_state=0).fit(table(name)).objective_)


def resamples(name: str, m: int, k: int, n_resamples: int, solver: str) -> float:
    X = table(name)
    found = selection_stability(
        X, m, k, n_resamples=n_resamples, solver=solver, random_state=0
    )  # fmt: skip
    centred = X - X.mean(axis=0)
    values = [
        (np.linalg.svd(centred[:, support], compute_uv=False)[:m] ** 2).sum()
        for support in found.supports
    ]
    return float(np.mean(values) / (len(X) - 1))


def explained(X: np.ndarray, support: np.ndarray, m: int) -> float:
    """Return what m principal components of some features explain, from the data."""
    values = np.linalg.svd(X[:, support] - X[:, support].mean(axis=0), compute_uv=False)
    return float((values[:m] ** 2).sum() / (len(X) - 1))


def features(name: str, m: int, k: int | None, **options: Any) -> dict[str, float]:
    """Fit shared features; with a certificate, its gap must not grow either."""
    X = np.asarray(table(name), dtype=np.float64)
    pca = FeatureSparsePCA(m, k, random_state=0, **options).fit(X)
    used = X / X.std(axis=0, ddof=1) if options.get("scale") else X
    found = {"objective": explained(used, pca.get_support(indices=True), m)}
    if "certify" in options:
        found["gap"] = float(pca.certificate_.gap)
    return found


def without_k(name: str, m: int) -> dict[str, float]:
    """Fit without a number of features: another question than before, so only time is compared."""
    pca = FeatureSparsePCA(m, random_state=0).fit(np.asarray(table(name), dtype=np.float64))
    return {"features": float(pca.get_support().sum())}


def share(name: str, m: int) -> dict[str, float]:
    """Fit the fewest features that keep nine tenths."""
    X = np.asarray(table(name), dtype=np.float64)
    pca = FeatureSparsePCA(m, explained_share=0.9, random_state=0).fit(X)
    return {"features": float(pca.get_support().sum()), "fewest": -float(pca.get_support().sum())}


def path(name: str, m: int) -> dict[str, float]:
    """Walk the default path; compare at the k that paths of before had too, up to 200."""
    found = sparsity_path(np.asarray(table(name), dtype=np.float64), m, random_state=0)
    k = suggest_k(found).k
    few = found.k <= 200
    place = int(np.flatnonzero(found.k == k)[0])
    return {
        "objective": float(found.objective[few].sum()), "numbers of k": float(found.k.size),
        "suggested": float(k), "gap there": float(found.gap[place]),
        "largest gap": float(found.gap.max()),
    }  # fmt: skip


def certificate(name: str, m: int, k: int) -> dict[str, float]:
    """Prove what IPU finds, which is quick: the proof is what takes the time."""
    problem = RowSparseProblem(as_covariance(np.asarray(table(name), dtype=np.float64)), m, k)
    proof = certify(problem, solve(problem, "ipu", random_state=0), "tight")
    return {"objective": proof.lower, "gap": float(proof.gap)}


def grid(name: str, m: int) -> dict[str, float]:
    """Search over ten k in three folds; with a memory where there is one."""
    X = np.asarray(table(name), dtype=np.float64)
    options = {"memory": kspan.Memory()} if hasattr(kspan, "Memory") else {}
    ks = [k for k in (4, 6, 8, 10, 12, 15, 20, 25, 30, 40) if k < X.shape[1]]
    pca = FeatureSparsePCA(m, random_state=0, **options)
    search = GridSearchCV(pca, {"n_features_to_select": ks}, cv=3).fit(X)
    return {"objective": float(search.best_score_)}


def command(name: str) -> dict[str, float]:
    """Fit a CSV file by the command, with a certificate and a report."""
    X = table(name)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        names = ",".join(f"g{j}" for j in range(X.shape[1]))
        np.savetxt(file, X, delimiter=",", header=names, comments="", fmt="%.17g")
        options = ["-m", "3", "-k", "50", "--certify", "--report", f"{folder}/fit.html", "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "kspan", "fit", str(file), *options],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    return {"objective": float(sum(json.loads(done.stdout)["explained_variance"]))}


# What is run, and by how much it is to be faster.
ROWS: dict[str, tuple[Callable[[], Any], float]] = {
    "auto, wine, m=2 k=5": (partial(features, "wine", 2, 5), 2),
    "auto, breast cancer standardised, m=3 k=12": (
        partial(features, "breast_cancer", 3, 12, scale=True), 2,
    ),
    "auto, digits, m=3 k=16": (partial(features, "digits", 3, 16), 2),
    "auto, leukemia, m=3 k=50": (partial(features, "leukemia", 3, 50), 2),
    "certified, breast cancer standardised, m=3 k=12": (
        partial(features, "breast_cancer", 3, 12, scale=True, certify=True), 2,
    ),
    "certified, digits, m=3 k=16": (partial(features, "digits", 3, 16, certify=True), 2),
    "certificate, leukemia, m=3 k=50": (partial(certificate, "leukemia", 3, 50), 2),
    "certificate, dlbcl, m=3 k=50": (partial(certificate, "dlbcl", 3, 50), 2),
    "path, digits, m=3": (partial(path, "digits", 3), 1),
    "path, colon, m=3": (partial(path, "colon", 3), 5),
    "path, leukemia, m=3": (partial(path, "leukemia", 3), 5),
    "no k, colon": (partial(without_k, "colon", 2), 5),
    "nine tenths, colon": (partial(share, "colon", 2), 5),
    "grid search, digits, m=3": (partial(grid, "digits", 3), 5),
    "grid search, leukemia, m=3": (partial(grid, "leukemia", 3), 5),
    "command, dlbcl 77 x 7129, certificate and report": (partial(command, "dlbcl"), 2),
    "orthonormal, faces 400 x 1024, m=3 k=50": (partial(orthonormal, "faces", 3, 50), 2),
    "orthonormal, colon, m=3 k=50": (partial(orthonormal, "colon", 3, 50), 2),
    "orthonormal, leukemia, m=3 k=50": (partial(orthonormal, "leukemia", 3, 50), 2),
    "orthonormal, disjoint, cbcl faces, m=3 k=30": (
        partial(orthonormal, "cbcl_faces", 3, 30, disjoint=True), 2,
    ),
    "nonnegative, cbcl faces, m=3 k=40": (partial(nonnegative, "cbcl_faces", 3, 40), 2),
    "nonnegative, cbcl faces, m=3 k=180": (partial(nonnegative, "cbcl_faces", 3, 180), 2),
    "nonnegative, leukemia, m=3 k=50": (partial(nonnegative, "leukemia", 3, 50), 2),
    "element, colon, m=3 k=50": (partial(element, "colon", 3, 50), 2),
    "element, leukemia, m=3 k=50": (partial(element, "leukemia", 3, 50), 2),
    "100 resamples, leukemia, m=3 k=30": (partial(resamples, "leukemia", 3, 30, 100, "ipu"), 2),
    "10 resamples by auto, leukemia, m=3 k=30": (
        partial(resamples, "leukemia", 3, 30, 10, "auto"), 2,
    ),
}  # fmt: skip

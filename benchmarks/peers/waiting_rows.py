"""Where people wait for features of their own, and for resamples: what is timed.

Every row is a function that fits and returns the objective, the larger the better, computed here in
float64 from the data: ``tr(V'AV)`` of orthonormal components, the sum of adjusted variances of
others, and of resamples the mean of what their supports explain of all rows. The seconds are those
of processor time (all threads together) before the work on waiting, measured in turns with the code
after it, on a machine that had other things to do: ratios say more than seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.ndimage import zoom

from kspan import (
    ElementSparsePCA,
    NonnegativeSparsePCA,
    StiefelSparsePCA,
    selection_stability,
)
from kspan.datasets import load_dataset

FACE, LARGER_FACE, N_FACES = 19, 32, 400


@dataclass(frozen=True)
class Waiting:
    """A row.

    Attributes
    ----------
    name : str
    run : fits, and returns the objective
    old_seconds : of processor time, before
    old_objective : before
    """

    name: str
    run: Callable[[], float]
    old_seconds: float
    old_objective: float


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


def faces_50() -> float:
    return orthonormal("faces", 3, 50)


def colon_50() -> float:
    return orthonormal("colon", 3, 50)


def leukemia_50() -> float:
    return orthonormal("leukemia", 3, 50)


def faces_disjoint() -> float:
    return orthonormal("cbcl_faces", 3, 30, disjoint=True)


def nonnegative_faces_40() -> float:
    return nonnegative("cbcl_faces", 3, 40)


def nonnegative_faces_180() -> float:
    return nonnegative("cbcl_faces", 3, 180)


def nonnegative_leukemia_50() -> float:
    return nonnegative("leukemia", 3, 50)


def nonnegative_lrs_20() -> float:
    return nonnegative("lrs", 3, 20)


def element_colon_50() -> float:
    return element("colon", 3, 50)


def element_leukemia_50() -> float:
    return element("leukemia", 3, 50)


def resamples_leukemia() -> float:
    return resamples("leukemia", 3, 30, 100, "ipu")


def resamples_colon() -> float:
    return resamples("colon", 3, 30, 100, "ipu")


def resamples_leukemia_auto() -> float:
    return resamples("leukemia", 3, 30, 10, "auto")


ROWS = [
    Waiting("orthonormal, faces 400x1024, m=3 k=50", faces_50, 15.2, 246194.7411850471),
    Waiting("orthonormal, colon, m=3 k=50", colon_50, 9.79, 150872124.59469193),
    Waiting("orthonormal, leukemia, m=3 k=50", leukemia_50, 15.9, 1379565110.2004833),
    Waiting(
        "orthonormal, disjoint, cbcl faces, m=3 k=30", faces_disjoint, 5.31, 117988.63623754363
    ),
    Waiting("nonnegative, cbcl faces, m=3 k=40", nonnegative_faces_40, 1.4, 116089.60949579829),
    Waiting("nonnegative, cbcl faces, m=3 k=180", nonnegative_faces_180, 4.79, 116858.54632656202),
    Waiting("nonnegative, leukemia, m=3 k=50", nonnegative_leukemia_50, 4.28, 1081517984.3940878),
    Waiting("nonnegative, lrs, m=3 k=20", nonnegative_lrs_20, 0.0993, 188586997.12232083),
    Waiting("element, colon, m=3 k=50", element_colon_50, 2.2, 137757545.09142375),
    Waiting("element, leukemia, m=3 k=50", element_leukemia_50, 11.7, 1375787559.4118414),
    Waiting("100 resamples, leukemia, m=3 k=30", resamples_leukemia, 1.07, 1002786773.0661077),
    Waiting("100 resamples, colon, m=3 k=30", resamples_colon, 0.688, 100505942.29093887),
    Waiting(
        "10 resamples by auto, leukemia, m=3 k=30",
        resamples_leukemia_auto,
        4.01,
        1021947791.2204871,
    ),
]

"""Loadings as columns that need not share features: unit length, none empty, what they explain."""

from dataclasses import replace

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance import Covariance, UnitCovariance
from kspan.problem import LoadingsSolution, RowSparseProblem, adjusted_variances
from kspan.progress import Status


def fill_empty(loadings: FloatArray, variances: FloatArray) -> FloatArray:
    """Return the loadings with a unit vector in every zero column.

    They are the features of largest variance that no column uses or, when all are used, of
    largest variance.
    """
    empty = np.flatnonzero(~loadings.any(axis=0))
    order = np.lexsort((-variances, loadings.any(axis=1)))
    filled = loadings.copy()
    filled[order[: empty.size], empty] = 1.0
    return filled


def largest_variance(covariance: Covariance) -> FloatArray:
    """Return the unit vector of the feature of largest variance, as a column."""
    x = np.zeros((covariance.n_features, 1))
    x[np.argmax(covariance.diagonal())] = 1.0
    return x


def refit_one(covariance: Covariance, support: Index) -> tuple[FloatArray, float]:
    """Return the leading eigenvector on a support, as a (d,) vector, and its variance."""
    best = RowSparseProblem(covariance, 1, support.size).refit(support)
    return best.loadings(covariance.n_features)[:, 0], best.objective


def unit_columns(Z: FloatArray) -> FloatArray:
    """Return the columns divided by their lengths; zero columns stay."""
    lengths = np.linalg.norm(Z, axis=0)
    return Z / np.where(lengths > 0, lengths, 1.0)


def joint_variance(covariance: Covariance, loadings: FloatArray) -> float:
    """Return the sum of the adjusted variances of sparse loadings."""
    used = np.flatnonzero(loadings.any(axis=1))
    if used.size == 0:
        return 0.0
    product = covariance.matmat(loadings[used], used)
    return float(adjusted_variances(loadings[used].T @ product[used]).sum())


def unit_solution(
    loadings: FloatArray, covariance: UnitCovariance, *, solver: str, status: Status,
    history: list[float], n_iter: int,
) -> LoadingsSolution:  # fmt: skip
    """Return the answer in the user's scale."""
    solution = LoadingsSolution.from_loadings(
        loadings, loadings.T @ covariance.matmat(loadings), solver=solver, status=status,
        history=history, n_iter=n_iter,
    )  # fmt: skip
    return replace(
        solution,
        explained_variance=solution.explained_variance * covariance.unit,
        history=solution.history * covariance.unit,
    )

"""What every path begins with: the data, the level of its proofs, and who watches the time."""

from dataclasses import dataclass
from typing import Any

from kspan.arrays import Index
from kspan.choosing_k.features import Features, feature_indices, named_covariance
from kspan.covariance import Covariance
from kspan.covariance.matrix import Psd
from kspan.progress import Callback, Monitor, combine, log_progress
from kspan.proofs.search.prover import level_of
from kspan.solvers.method import AnyMethod


@dataclass(frozen=True)
class Beginning:
    """What a path is made from.

    Attributes
    ----------
    covariance : of the data
    names : of its features, if there are any
    level : of the proofs; None for no proofs
    monitor : with the deadline of all
    """

    covariance: Covariance
    names: list[str] | None
    level: str | None
    monitor: Monitor

    def indices(self, parameter: str, features: Features | None) -> Index:
        """Return features that the user has named, as numbers."""
        return feature_indices(parameter, features, self.covariance.n_features, self.names)


def begin(
    X: Any, title: str, method: AnyMethod, certify: bool | str, *, scale: bool,
    covariance: str | None, sample_weight: Any, missing: str, psd: Psd, callback: Callback | None,
    time_limit: float | None, verbose: int | bool,
) -> Beginning:  # fmt: skip
    """Start the clock, and measure the data; complains before that about what is wrong.

    Parameters
    ----------
    X : the data
    title : what reports call the work
    method : that will be run; one that proves its answers says at which level
    certify, scale, covariance, sample_weight, missing, psd : see `kspan.sparsity_path`
    callback, time_limit, verbose : see `kspan.sparsity_path`
    """
    if covariance not in (None, "precomputed"):
        raise ValueError(f"covariance must be None or 'precomputed', got {covariance!r}.")
    level = method.proof_level or _path_level(certify, method)
    monitor = Monitor(title, combine(callback, log_progress if verbose else None), time_limit)
    A, names = named_covariance(
        X, scale=scale, precomputed=covariance == "precomputed", missing=missing, psd=psd,
        sample_weight=sample_weight,
    )  # fmt: skip
    return Beginning(A, names, level, monitor)


def _path_level(certify: bool | str, method: AnyMethod) -> str | None:
    """Return the level of the proofs; a band takes those that hold for certain."""
    level = level_of(certify, method.solves)
    if level == "net":
        raise ValueError("certify='net' holds with a probability; a path needs what is certain.")
    return level

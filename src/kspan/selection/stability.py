"""`selection_stability`: how often a feature is chosen again when the rows are drawn again.

The features are chosen for many resamples of the rows: drawn with replacement, as many as there
are (bootstrap), or a share of them without.

The two summaries of how much the choices agree are in `kspan.selection.agreement`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.covariance import Covariance, as_source
from kspan.covariance.data import DataCovariance
from kspan.linalg.threads import one_blas_thread
from kspan.methods import ROW_SPARSE, RandomState, generator, solve
from kspan.problem import RowSparseProblem, require_count
from kspan.progress import Callback, Monitor, Status
from kspan.selection.agreement import mean_jaccard, nogueira
from kspan.selection.features import Features, feature_indices, named_covariance
from kspan.selection.resampling import draw


@dataclass(frozen=True)
class Stability:
    """How often each feature was chosen, and how much the choices agree.

    Attributes
    ----------
    frequencies : (d,) share of the resamples in which a feature was chosen
    supports : (n_resamples, k) sorted feature numbers
    jaccard : float
        Mean over all pairs of resamples of features in both over features in either.
    nogueira : float
        The same agreement corrected for chance; 1 when k is d and there is nothing to choose.
    n_resamples, n_components, n_features_to_select, n_features : int
    sample_share : float or None
        Share of the rows in a resample; None for the bootstrap.
    seed : int
        What the resamples were drawn from.
    solver, status : str
    feature_names : list of str, or None
    """

    frequencies: FloatArray
    supports: Index = field(repr=False)
    jaccard: float
    nogueira: float
    n_resamples: int
    n_components: int
    n_features_to_select: int
    n_features: int
    sample_share: float | None
    seed: int
    solver: str
    status: str
    feature_names: list[str] | None = field(repr=False)

    def most_chosen(self, count: int = 10) -> list[tuple[int | str, float]]:
        """Return the features that were chosen most often, with their frequencies."""
        order = np.argsort(-self.frequencies, kind="stable")[:count]
        names = self.feature_names
        return [(int(j) if names is None else names[j], float(self.frequencies[j])) for j in order]


def selection_stability(
    X: Any,
    n_components: int,
    n_features_to_select: int,
    *,
    n_resamples: int = 50,
    sample_share: float | None = None,
    include: Features | None = None,
    exclude: Features | None = None,
    scale: bool = False,
    covariance: str | None = None,
    solver: str = "ipu",
    n_jobs: int | None = None,
    random_state: RandomState = None,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> Stability:
    """Choose features on many resamples of the rows, and say how much the choices agree.

    Parameters
    ----------
    X : array, DataFrame or sparse array of shape (n_samples, n_features)
        In memory.
    n_components, n_features_to_select : int
        m and k.
    n_resamples : int, default=50
        At least 2.
    sample_share : float in (0, 1), optional
        Draw this share of the rows without replacement. By default the bootstrap: as many rows
        as there are, with replacement.
    include, exclude : names, indices or masks, optional
    scale : bool, default=False
        Work on correlations: every resample is standardised by itself.
    covariance : None
        A covariance has no rows to draw from: "precomputed" is an error.
    solver : str, default="ipu"
        A method of `kspan.solve`. "ipu" takes milliseconds and draws no random numbers, so that
        all that differs is the data.
    n_jobs : int, optional
        Processes, as joblib counts them. The answer does not depend on it.
    random_state : int, generator or None
    callback : callable, optional
        Called with a `kspan.progress.Progress` after every resample, whose `objective` is the
        share of them that is done; returning True stops.
    time_limit : float, optional
        Seconds after which the resamples done so far are summed up: at least two.

    Returns
    -------
    Stability

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kspan import selection_stability
    >>> stability = selection_stability(
    ...     load_wine().data, 2, 5, scale=True, n_resamples=20, random_state=0
    ... )
    >>> stability.frequencies.shape, 0 < stability.nogueira <= 1
    ((13,), True)
    """
    if covariance is not None:
        raise ValueError("Stability needs the rows of the data, not a covariance matrix.")
    require_count("n_resamples", n_resamples, 2)
    if sample_share is not None and not 0 < sample_share < 1:
        raise ValueError(f"sample_share must be between 0 and 1, got {sample_share!r}.")
    if solver not in ROW_SPARSE:
        raise ValueError(f"solver must be one of {sorted(ROW_SPARSE)}, got {solver!r}.")
    data, names = _in_memory(X, scale)
    d = data.n_features
    inside = feature_indices("include", include, d, names)
    outside = feature_indices("exclude", exclude, d, names)
    RowSparseProblem(data, n_components, n_features_to_select, inside, outside)  # checks them
    seed = int(generator(random_state).integers(2**63))
    task = _Task(
        data, scale, int(n_components), int(n_features_to_select), inside, outside, sample_share,
        solver,
    )  # fmt: skip
    # Up front, one for each resample: whoever computes it, it is the same.
    rng = np.random.default_rng(seed)
    seeds = [int(number) for number in rng.integers(2**63, size=n_resamples)]
    monitor = Monitor("stability", callback, time_limit)
    supports = _run(task, seeds, n_jobs, monitor)
    return _summary(task, supports, seed, names, monitor.stopped or Status.COMPLETED)


@dataclass(frozen=True)
class _Task:
    """What every resample shares."""

    data: DataCovariance
    scale: bool
    n_components: int
    n_features_to_select: int
    include: Index
    exclude: Index
    sample_share: float | None
    solver: str

    def __call__(self, seed: int) -> Index:
        """Choose the features of one resample."""
        rng = np.random.default_rng(seed)
        # One thread, here as in every process: more would add in another order.
        with one_blas_thread():
            drawn = draw(self.data, self.sample_share, self.scale, rng)
            problem = RowSparseProblem(
                drawn, self.n_components, self.n_features_to_select, self.include, self.exclude
            )
            solution = solve(problem, self.solver, random_state=rng)
        return np.sort(solution.support)


def _in_memory(X: Any, scale: bool) -> tuple[DataCovariance, list[str] | None]:
    if isinstance(X, Covariance):
        raise ValueError("Stability needs the rows of the data, not a covariance.")
    if as_source(X) is not None:
        raise ValueError(
            "Stability draws rows again and again, so it needs data in memory: load the file, or "
            "a sample of its rows, into an array."
        )
    data, names = named_covariance(X, scale=scale, precomputed=False)
    assert isinstance(data, DataCovariance)
    return data, names


def _run(task: _Task, seeds: Sequence[int], n_jobs: int | None, monitor: Monitor) -> list[Index]:
    """Return the supports in order, as many as there is time for."""
    from joblib import Parallel, delayed  # comes with scikit-learn; slow to import

    supports: list[Index] = []
    results = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(task)(seed) for seed in seeds)
    try:
        for support in results:
            supports.append(support)
            if monitor.report(len(supports) / len(seeds)) and len(supports) >= 2:
                break
    except KeyboardInterrupt:
        monitor.stopped = Status.INTERRUPTED
    finally:
        results.close()  # what runs still is not waited for
    for seed in seeds[len(supports) : 2]:
        supports.append(task(seed))
    return supports


def _summary(
    task: _Task, supports: list[Index], seed: int, names: list[str] | None, status: Status
) -> Stability:
    d, k, M = task.data.n_features, task.n_features_to_select, len(supports)
    counts = np.bincount(np.concatenate(supports), minlength=d)
    frequencies = counts / M
    return Stability(
        frequencies=frequencies, supports=np.stack(supports), jaccard=mean_jaccard(supports, d),
        nogueira=nogueira(frequencies, k, M), n_resamples=M, n_components=task.n_components,
        n_features_to_select=k, n_features=d, sample_share=task.sample_share, seed=seed,
        solver=task.solver, status=status.value, feature_names=names,
    )  # fmt: skip

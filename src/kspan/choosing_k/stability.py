r"""`selection_stability`: how often a feature is chosen again when the rows are drawn again.

The features are chosen for many resamples of the rows: drawn with replacement, as many as there
are (bootstrap), or a share of them without.

Two numbers say how much the choices agree. The mean Jaccard index of all pairs of supports is easy
to read, but grows with k by chance alone. The measure of Nogueira, Sechidis and Brown is corrected
for that: with M resamples, p_f the share of them that chose feature f, and k of d features chosen
each time,

.. math:: Φ = 1 - \frac{\frac1d \sum_f s_f^2}{\frac kd (1 - \frac kd)}, \qquad
          s_f^2 = \frac{M}{M-1} p_f (1 - p_f)

It is 1 when all supports agree, 0 on average for random ones. They call below 0.4 poor and above
0.75 excellent.

Reference: Nogueira, Sechidis, Brown, On the Stability of Feature Selection Algorithms, JMLR
18(174), 2018.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.choosing_k.features import Features, feature_indices, named_covariance
from kspan.choosing_k.panel import Panel
from kspan.covariance import Covariance, DenseCovariance, InMemoryCovariance
from kspan.covariance.block_kernels import block_slices
from kspan.covariance.data_covariance import DENSE_PIECE_BYTES, GRAM_LIMIT
from kspan.covariance.dense_data import DenseDataCovariance
from kspan.covariance.weights import NOTHING_LEFT, Weights
from kspan.io import open_data
from kspan.io.read import LOAD_BYTES
from kspan.io.results import data_frame, json_ready
from kspan.linalg.machine import one_blas_thread
from kspan.parallel import in_order
from kspan.problem import Choice, RowSparseProblem, require_count
from kspan.progress import Callback, Monitor, Status
from kspan.solvers.method import AnyMethod
from kspan.solvers.registry import as_method
from kspan.solving import RandomState, generator, run_method


def nogueira(frequencies: FloatArray, k: float, n_resamples: int) -> float:
    """Return Nogueira's measure of M supports of k features, from how often each was chosen.

    If they differ in size, k is the mean.

    Examples
    --------
    >>> import numpy as np
    >>> nogueira(np.array([1.0, 1.0, 0.0, 0.0]), 2, 10)
    1.0
    >>> round(nogueira(np.array([0.5, 0.5, 0.5, 0.5]), 2, 2), 6)
    -1.0
    """
    d = frequencies.size
    if k == d:
        return 1.0
    spread = n_resamples / (n_resamples - 1) * float((frequencies * (1 - frequencies)).mean())
    return 1.0 - spread / (k / d * (1 - k / d))


def mean_jaccard(supports: Sequence[Index], n_features: int) -> float:
    """Return the mean Jaccard index over all pairs of supports of equal size.

    Examples
    --------
    >>> import numpy as np
    >>> round(mean_jaccard([np.array([0, 1]), np.array([1, 2])], 4), 6)
    0.333333
    """
    chosen = np.zeros((len(supports), n_features))
    for row, support in zip(chosen, supports, strict=True):
        row[support] = 1.0
    shared = chosen @ chosen.T
    sizes = chosen.sum(axis=1)
    index = shared / (sizes[:, None] + sizes - shared)
    return float(index[np.triu_indices(len(supports), 1)].mean())


# Draws of rows that are all alike, in a row, before giving up.
MAX_DRAWS = 1000


def draw(
    data: InMemoryCovariance, sample_share: float | None, scale: bool, rng: np.random.Generator
) -> Covariance:
    """Draw rows and return their covariance. Rows without any variance are drawn again.

    Parameters
    ----------
    data : the covariance of all rows
    sample_share : share of the rows, drawn without replacement; None for the bootstrap
    scale : divide every feature by its standard deviation among the drawn rows
    rng : numpy.random.Generator
    """
    n = data.n_samples
    for _ in range(MAX_DRAWS):
        if sample_share is None:
            counts = np.bincount(rng.integers(n, size=n), minlength=n)
        else:
            size = round(sample_share * n)
            if size < 2:
                raise ValueError(f"sample_share={sample_share} of {n} rows is fewer than 2 rows.")
            counts = np.bincount(rng.choice(n, size, replace=False), minlength=n)
        covariance = resampled(data, counts, scale)
        if covariance is not None:
            return covariance
    raise ValueError(f"{MAX_DRAWS} resamples without any variance: too few rows differ.")


def resampled(data: InMemoryCovariance, counts: Index, scale: bool) -> Covariance | None:
    """Return the covariance with row i taken ``counts[i]`` times; None if nothing varies.

    Few features: A is summed up with the counts as weights, and no row is copied. Else the rows
    that were drawn are taken once each and weighted by how often: of the bootstrap a third is left
    out, so that a third of the work is not done. Sparse ones stay sparse.
    """
    if isinstance(data, DenseDataCovariance) and data.n_features <= min(GRAM_LIMIT, data.n_samples):
        A = _weighted(data, counts, scale)
        return None if A is None else DenseCovariance(A, data.dtype)
    drawn = np.flatnonzero(counts)
    each = counts[drawn] if data.weights is None else counts[drawn] * data.weights.values[drawn]
    try:
        once = data.weights is None and each.max(initial=1) == 1
        weights = None if once else Weights.of(each, drawn.size, data.ddof)
    except ValueError:  # those that were drawn count for too little
        return None
    covariance = type(data).measure(data.X[drawn], scale=scale, ddof=data.ddof, weights=weights)
    return covariance if covariance.trace() > 0 else None


def _weighted(data: DenseDataCovariance, counts: Index, scale: bool) -> FloatArray | None:
    """Return ``Σ c_i (x_i - μ)(x_i - μ)' / (n - ddof)``, μ the mean of the drawn rows.

    A weight of a row is counted as often as the row.
    """
    each = counts if data.weights is None else counts * data.weights.values
    n, d = float(each.sum()), data.n_features
    if not n - data.ddof > NOTHING_LEFT * n:
        return None
    gram, total = np.zeros((d, d)), np.zeros(d)
    for block in block_slices(data.n_samples, 8 * d, DENSE_PIECE_BYTES):
        # Measured from the mean of all rows, which is close to μ: large means cost no digits.
        centred = data.X[block] - data.mean  # float64, whatever X is
        weighted = centred * each[block, None]
        gram += weighted.T @ centred
        total += weighted.sum(axis=0)
    squares = np.diagonal(gram).copy()
    gram -= np.outer(total, total / n)
    # What is left of a feature that the drawn rows have in common is rounding.
    variances = np.diagonal(gram)
    constant = variances <= counts.sum() * np.finfo(float).eps * squares
    gram[constant] = 0.0
    gram[:, constant] = 0.0
    if constant.all():
        return None
    gram /= n - data.ddof
    if scale:
        divisors = np.where(constant, 1.0, np.sqrt(np.diagonal(gram)))
        gram /= np.outer(divisors, divisors)
    return (gram + gram.T) / 2


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

    def to_frame(self) -> Any:
        """Return a pandas DataFrame of all features, the most often chosen first."""
        features, frequencies = zip(*self.most_chosen(self.n_features), strict=True)
        return data_frame({"feature": features, "frequency": frequencies})

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, texts and lists, ready for JSON, without the single resamples."""
        names = (
            "jaccard", "nogueira", "n_resamples", "n_components", "n_features_to_select",
            "n_features", "sample_share", "seed", "solver", "status",
        )  # fmt: skip
        found = {name: getattr(self, name) for name in names}
        chosen = self.most_chosen(self.n_features)
        rows = [{"feature": name, "frequency": share} for name, share in chosen]
        ready: dict[str, Any] = json_ready({**found, "frequencies": rows})
        return ready


def selection_stability(
    X: Any,
    n_components: int,
    n_features_to_select: int,
    *,
    n_resamples: int = 50,
    sample_share: float | None = None,
    include: Features | None = None,
    exclude: Features | None = None,
    panel: Panel | None = None,
    scale: bool = False,
    covariance: str | None = None,
    sample_weight: Any = None,
    missing: str = "raise",
    solver: str | AnyMethod = "ipu",
    n_jobs: int | None = None,
    random_state: RandomState = None,
    callback: Callback | None = None,
    time_limit: float | None = None,
) -> Stability:
    """Choose features on many resamples of the rows, and say how much the choices agree.

    Parameters
    ----------
    X : array, DataFrame, sparse array or path, of shape (n_samples, n_features), or its covariance
        In memory, or in a file of up to 1 GiB of numbers, which is loaded.
    n_components, n_features_to_select : int
        m and k.
    n_resamples : int, default=50
        At least 2.
    sample_share : float in (0, 1), optional
        Draw this share of the rows without replacement. By default the bootstrap: as many rows
        as there are, with replacement.
    include, exclude : names, indices or masks, optional
    panel : Panel, optional
        Rules that every choice has to keep; which features are too alike is said by all rows.
    scale : bool, default=False
        Work on correlations: every resample is standardised by itself.
    covariance : None
        A covariance has no rows to draw from: "precomputed" is an error.
    sample_weight : array of shape (n_samples,), optional
        What each row counts, as often as it is drawn. Rows are drawn all alike.
    missing : {"raise", "mean"}, default="raise"
        With "mean", missing values are filled with the mean of their column before rows are drawn.
    solver : str or method, default="ipu"
        A method of `kspan.solve`, by name or as an object. "ipu" takes milliseconds and draws no
        random numbers, so that all that differs is the data.
    n_jobs : int, optional
        Resamples at a time, as in `kspan.certify`. The answer does not depend on it.
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
    method = as_method(RowSparseProblem, solver, {})
    data, names = _in_memory(X, scale, missing, sample_weight)
    d = data.n_features
    inside = feature_indices("include", include, d, names)
    outside = feature_indices("exclude", exclude, d, names)
    rules = (Panel() if panel is None else panel).resolved(d, names)
    whole = rules.problem(data, n_components, n_features_to_select, include=inside, exclude=outside)
    seed = int(generator(random_state).integers(2**63))
    task = _Task(
        data, scale, int(n_components), int(n_features_to_select), whole.choice, sample_share,
        method,
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

    data: InMemoryCovariance
    scale: bool
    n_components: int
    n_features_to_select: int
    choice: Choice
    sample_share: float | None
    method: AnyMethod

    def __call__(self, seed: int) -> Index:
        """Choose the features of one resample."""
        rng = np.random.default_rng(seed)
        # One thread, here as in every process: more would add in another order.
        with one_blas_thread():
            drawn = draw(self.data, self.sample_share, self.scale, rng)
            problem = RowSparseProblem(drawn, self.n_components, self.choice)
            solution = run_method(problem, self.method, Monitor(self.method.name), rng)
        if solution.status is Status.INTERRUPTED:  # the method has caught it
            raise KeyboardInterrupt
        return np.sort(solution.support)


def _in_memory(
    X: Any, scale: bool, missing: str, sample_weight: Any
) -> tuple[InMemoryCovariance, list[str] | None]:
    how = {"scale": scale, "precomputed": False, "sample_weight": sample_weight}
    if isinstance(X, Covariance):
        if not isinstance(X, InMemoryCovariance):
            raise ValueError("Stability needs the rows of the data, in memory, to draw from.")
        named_covariance(X, missing=missing, **how)  # checks the scale
        return X, None
    if missing == "pairwise":
        raise ValueError("Stability needs whole rows to draw from: use missing='mean'.")
    opened = open_data(X, load_bytes=LOAD_BYTES, allow_missing=missing != "raise")
    if opened.rows is not None:
        raise ValueError(
            "Stability draws rows again and again, so it needs data in memory: load the file, or "
            "a sample of its rows, into an array."
        )
    data, names = named_covariance(opened, missing=missing, **how)
    if not isinstance(data, InMemoryCovariance):  # large, with what is missing filled as it is read
        data = data.densified()
    assert isinstance(data, InMemoryCovariance)
    return data, names


def _run(task: _Task, seeds: Sequence[int], n_jobs: int | None, monitor: Monitor) -> list[Index]:
    """Return the supports in order, as many as there is time for."""
    supports: list[Index] = []
    results = in_order(task, seeds, n_jobs)
    with closing(results), monitor.interruptible():  # what runs still is not waited for
        for support in results:
            supports.append(support)
            if monitor.report(len(supports) / len(seeds)) and len(supports) >= 2:
                break
    for seed in seeds[len(supports) : 2]:
        supports.append(task(seed))
    return supports


def _summary(
    task: _Task, supports: list[Index], seed: int, names: list[str] | None, status: Status
) -> Stability:
    d, k, M = task.data.n_features, task.n_features_to_select, len(supports)
    counts = np.bincount(np.concatenate(supports), minlength=d)
    frequencies = counts / M
    size = sum(support.size for support in supports) / M  # k, but for rules
    return Stability(
        frequencies=frequencies, supports=_rows(supports), jaccard=mean_jaccard(supports, d),
        nogueira=nogueira(frequencies, size, M), n_resamples=M, n_components=task.n_components,
        n_features_to_select=k, n_features=d, sample_share=task.sample_share, seed=seed,
        solver=task.method.name, status=status.value, feature_names=names,
    )  # fmt: skip


def _rows(supports: Sequence[Index]) -> Index:
    """Return supports as rows; those with fewer features end with -1."""
    rows = np.full((len(supports), max(support.size for support in supports)), -1, dtype=np.intp)
    for row, support in zip(rows, supports, strict=True):
        row[: support.size] = support
    return rows

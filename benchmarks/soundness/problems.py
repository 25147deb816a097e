"""Problems of all kinds that have broken proofs before, or might."""

import itertools
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.soundness import oracle
from kspan import NonnegativeProblem, RowSparseProblem, as_covariance
from kspan.covariance import streamed

Generator = np.random.Generator

# Bytes of a block of rows: a few rows, so that there are many blocks.
BLOCK_BYTES = 400

# Rows of a sketch that loses something even of few features.
SKETCH_ROWS = 3


@dataclass(frozen=True, eq=False)
class Case:
    """A problem as a user would state it: plain numbers and nothing of kspan.

    Parameters
    ----------
    kind : one of `KINDS`
    data : (n, d) samples, dense or sparse, or a (d, d) covariance
    m, k : number of components and of features
    scale : work on correlations
    given : data is a covariance
    include, exclude : features
    form : {"array", "npy", "memmap", "dask", "stream", "sketch", "measured"}
        How the data reaches kspan; "measured" is as a covariance that kspan made of it.
    weights : what each row counts; () for once
        With weights, or NaN in the data, the form is "measured".
    """

    kind: str
    data: Any
    m: int
    k: int
    scale: bool = False
    given: bool = False
    include: tuple[int, ...] = ()
    exclude: tuple[int, ...] = ()
    form: str = "array"
    weights: tuple[float, ...] = ()

    @property
    def d(self) -> int:
        """The number of features."""
        return int(self.data.shape[1])

    @property
    def may_refuse(self) -> bool:
        """Whether an honest "no" is an answer: numbers at the ends of the range, sketches."""
        return self.form == "sketch" or self.kind in MAY_REFUSE

    def truth(self) -> oracle.Truth:
        """Return all supports and what they explain."""
        if self.given:
            return oracle.Truth(oracle.given_covariance(self.data))
        data = self.data
        if self.form == "measured" and not scipy.sparse.issparse(data):
            data = oracle.filled(data, self.weights)
        return oracle.Truth(oracle.covariance(data, scale=self.scale, weights=self.weights))

    # --- as kspan sees it

    def source(self) -> Any:
        """Return the data as it is given to kspan."""
        if self.form == "measured":
            return self.covariance()
        if self.form in ("npy", "memmap"):
            path = scratch_file(".npy")
            np.save(path, self.data)
            return path if self.form == "npy" else np.load(path, mmap_mode="r")
        if self.form == "dask":
            import dask.array

            return dask.array.from_array(self.data, chunks=(max(len(self.data) // 3, 1), self.d))
        return self.data

    def covariance(self) -> Any:
        """Return kspan's covariance of the data."""
        if self.given:
            return as_covariance(self.data, kind="covariance")
        if self.form in ("stream", "sketch"):
            stream = self.stream()
            for block in self.blocks():
                stream.add(streamed.as_rows(block))
            return stream.covariance(scale=self.scale)
        if self.form == "measured":
            return as_covariance(
                self.data, scale=self.scale, sample_weight=self.weights or None, missing="mean"
            )
        return as_covariance(self.source(), scale=self.scale, block_bytes=BLOCK_BYTES)

    def blocks(self) -> list[Any]:
        """Return the rows in three blocks of different sizes."""
        n = self.data.shape[0]
        edges = [0, max(n // 5, 1), max(n // 2, 1), n]
        return [self.data[a:b] for a, b in itertools.pairwise(edges) if b > a]

    def stream(self) -> Any:
        """Return what takes in blocks of rows, exact or as a sketch."""
        limit = streamed.EXACT_LIMIT
        if self.form == "sketch":
            streamed.EXACT_LIMIT = 2
        try:
            return streamed.RowStream(self.d, SKETCH_ROWS)
        finally:
            streamed.EXACT_LIMIT = limit

    def problem(self) -> RowSparseProblem:
        """Return the problem of shared features."""
        return RowSparseProblem(self.covariance(), self.m, self.k, self.include, self.exclude)

    def nonnegative(self) -> NonnegativeProblem:
        """Return the problem of one nonnegative component, on all features."""
        return NonnegativeProblem(self.covariance(), 1, self.k)


_folder: tempfile.TemporaryDirectory[str] | None = None


def scratch_file(ending: str) -> Path:
    """Return the path of a file that no other process uses, and that goes away at the end."""
    global _folder
    if _folder is None or not _folder.name.endswith(f".{os.getpid()}"):
        _folder = tempfile.TemporaryDirectory(prefix="soundness.", suffix=f".{os.getpid()}")
    return Path(_folder.name) / f"scratch{ending}"


# --- questions about data


def asked(rng: Generator, kind: str, data: Any, **more: Any) -> Case:
    """Ask something about data: how many components and features, which in and which out."""
    d = data.shape[1]
    m = int(rng.integers(1, min(3, d) + 1))
    k = int(rng.integers(m, d + 1))
    if rng.random() < 0.12:
        k = m
    exclude = set(more.pop("exclude", ()))
    if rng.random() < 0.3 and d - k - len(exclude) > 0:
        most = d - k - len(exclude)
        exclude |= set(rng.permutation(d)[: rng.integers(0, most + 1)].tolist())
    k = min(k, d - len(exclude))
    m = min(m, k)
    include: list[int] = []
    if rng.random() < 0.3:
        rest = [j for j in rng.permutation(d).tolist() if j not in exclude]
        include = rest[: rng.integers(0, min(k, 2) + 1)]
    scale = bool(rng.random() < 0.35) and not more.get("given", False)
    more = {"scale": scale, **more}
    return Case(kind, data, m, k, include=tuple(sorted(include)), exclude=tuple(sorted(exclude)),
                **more)  # fmt: skip


def samples(rng: Generator, n: int | None = None, d: int | None = None) -> np.ndarray:
    """Return plain samples with some correlation and unequal variances."""
    d = int(rng.integers(3, 9)) if d is None else d
    n = int(rng.integers(d + 1, 40)) if n is None else n
    X = rng.standard_normal((n, d))
    if rng.random() < 0.6:
        X += rng.standard_normal((n, 2)) @ rng.standard_normal((2, d)) * rng.uniform(0, 2)
    return X * rng.uniform(0.3, 2, d)


# --- kinds


def dense(rng: Generator, kind: str) -> Case:
    """More samples than features."""
    return asked(rng, kind, samples(rng) + rng.standard_normal() * 3)


def wide(rng: Generator, kind: str) -> Case:
    """Fewer samples than features; at times standardised noise, where all features are alike."""
    d = int(rng.integers(5, 10))
    n = int(rng.integers(2, d))
    if rng.random() < 0.25:
        return asked(rng, kind, rng.standard_normal((n, d)), scale=True)
    return asked(rng, kind, samples(rng, n, d))


def sparse(rng: Generator, kind: str) -> Case:
    """A sparse array; at times with columns that are not, and have a large mean."""
    n, d = int(rng.choice([8, 20, 60, 300])), int(rng.integers(3, 9))
    X = np.where(rng.random((n, d)) < 0.3, rng.standard_normal((n, d)), 0.0)
    X[0] += 1.0  # no column is constant
    if rng.random() < 0.5:
        columns = rng.random(d) < 0.6
        X[:, columns] = 10 ** rng.uniform(1, 4) + rng.standard_normal((n, int(columns.sum())))
    make = scipy.sparse.csr_array if rng.random() < 0.8 else scipy.sparse.csc_array
    return asked(rng, kind, make(X))


def float32(rng: Generator, kind: str) -> Case:
    """Single precision; what is said must hold for the numbers as they are."""
    X = samples(rng) + rng.choice([0.0, 1.0, 30.0])
    X = X.astype(np.float32)
    return asked(rng, kind, scipy.sparse.csr_array(X) if rng.random() < 0.15 else X)


def integers(rng: Generator, kind: str) -> Case:
    """Counts, of several integer types."""
    n, d = int(rng.integers(5, 40)), int(rng.integers(3, 9))
    X = rng.poisson(rng.uniform(0.5, 40, d), (n, d))
    X[0] += np.arange(d) + 1
    return asked(rng, kind, X.astype(rng.choice(["int64", "int32", "uint16", "int16"])))


def huge_means(rng: Generator, kind: str) -> Case:
    """Means many times the deviations."""
    n = int(rng.choice([10, 60, 400, 2000], p=[0.4, 0.3, 0.25, 0.05]))
    mean, deviation = 10 ** rng.uniform(2, 9), 10 ** rng.uniform(-4, 1)
    X = samples(rng, n) * deviation
    return asked(rng, kind, X + mean * rng.choice([-1.0, 0.0, 1.0, 1.0], X.shape[1]))


def near_constant(rng: Generator, kind: str) -> Case:
    """Columns whose deviations are a few to some thousand units in the last place."""
    X = samples(rng, int(rng.choice([10, 60, 400, 2000], p=[0.4, 0.3, 0.25, 0.05])))
    n, d = X.shape
    few = rng.permutation(d)[: rng.integers(1, d)]
    mean = 10 ** rng.uniform(0, 12)
    common = rng.standard_normal((n, 1)) * rng.choice([0.0, 1.0, 1.0])
    noise = common + 10 ** rng.uniform(-2, 0) * rng.standard_normal((n, few.size))
    X[:, few] = mean + np.spacing(mean) * 10 ** rng.uniform(0.3, 4) * noise
    # In such units only scaled columns can matter.
    return asked(rng, kind, X, scale=bool(rng.random() < 0.7))


def identical_columns(rng: Generator, kind: str) -> Case:
    """Columns that are there twice, also with another sign."""
    X = samples(rng)
    d = X.shape[1]
    X = X[:, rng.integers(0, max(d // 2, 1), d)]
    return asked(rng, kind, X * rng.choice([1.0, 1.0, -1.0], d))


def near_ties(rng: Generator, kind: str) -> Case:
    """Supports whose values differ by 1e-10 to 1e-15 of themselves."""
    X = samples(rng)
    d = X.shape[1]
    X = X[:, rng.integers(0, max(d // 2, 1), d)]
    return asked(rng, kind, X * (1 + 10 ** rng.uniform(-15, -9) * rng.standard_normal(d)))


def exact_ties(rng: Generator, kind: str) -> Case:
    """Matrices of small integers, whose optima are reached by many supports."""
    d = int(rng.integers(3, 8))
    if rng.random() < 0.4:
        A = rng.integers(1, 4) * np.eye(d) + rng.choice([0.0, 0.5, 1.0])
        return asked(rng, kind, A, given=True)
    F = rng.integers(-1, 2, (d, int(rng.integers(1, d + 1)))).astype(float)
    F[0, 0] = 1.0
    return asked(rng, kind, F @ F.T, given=True)


def dynamic_range(rng: Generator, kind: str) -> Case:
    """Columns from 1e-100 to 1e100, or from 1e-8 to 1e8."""
    X = samples(rng)
    most = rng.choice([3, 8, 30, 100])
    return asked(rng, kind, X * 10 ** rng.uniform(-most, most, X.shape[1]))


def huge_excluded(rng: Generator, kind: str) -> Case:
    """A column that dwarfs the others, and may not be chosen."""
    X = samples(rng, d=int(rng.integers(4, 9)))
    sizes = np.ones(X.shape[1])
    sizes[0] = 10 ** rng.uniform(3, rng.choice([7, 12, 100, 150]))
    if rng.random() < 0.3:  # up to the ends of the range of doubles
        sizes[1:] = 10 ** rng.uniform(-150, 0)
    if rng.random() < 0.3:
        return asked(rng, kind, np.cov(X.T) * np.outer(sizes, sizes), given=True, exclude=[0])
    return asked(rng, kind, X * sizes, exclude=[0], scale=False)


def rank_deficient(rng: Generator, kind: str) -> Case:
    """Few directions, down to one, and constant columns."""
    n, d = int(rng.integers(4, 30)), int(rng.integers(3, 9))
    rank = int(rng.choice([1, 1, 2, 3]))
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    X[:, rng.random(d) < 0.15] = rng.choice([0.0, 0.1, 7.3])
    if np.ptp(X, axis=0).max() == 0:
        X[0] = np.arange(d) + 1.0
    return asked(rng, kind, X)


def given(rng: Generator, kind: str) -> Case:
    """A covariance or correlation matrix, as other programs compute it."""
    X = samples(rng)
    d = X.shape[1]
    A = np.cov(X.T) if rng.random() < 0.5 else np.corrcoef(X.T)
    if rng.random() < 0.3:  # of low rank: its smallest eigenvalues are negative, by rounding
        F = rng.standard_normal((d, 2))
        A = F @ F.T
    return asked(rng, kind, (A + A.T) / 2, given=True)


def asymmetric(rng: Generator, kind: str) -> Case:
    """A matrix whose triangles differ by what is called rounding: half the digits of its type."""
    X = samples(rng)
    A = np.cov(X.T)
    A += np.eye(len(A)) * 0.01 * np.trace(A)
    dtype = np.dtype(rng.choice(["float32", "float64"]))
    size = np.sqrt(np.finfo(dtype).eps) * np.diagonal(A).max() * rng.uniform(0.01, 0.9)
    A += np.triu(rng.uniform(-1, 1, A.shape), 1) * size
    return asked(rng, kind, A.astype(dtype), given=True)


def indefinite(rng: Generator, kind: str) -> Case:
    """A matrix with negative eigenvalues within what is called rounding."""
    F = rng.standard_normal((int(rng.integers(3, 8)), 2))
    A = F @ F.T
    dtype = np.dtype(rng.choice(["float32", "float64"]))
    E = rng.standard_normal(A.shape)
    A += (E + E.T) / 20 * np.sqrt(np.finfo(dtype).eps) * np.diagonal(A).max()
    A = A.astype(dtype)
    return asked(rng, kind, (A + A.T) / 2, given=True)


def few_digits(rng: Generator, kind: str) -> Case:
    """Correlations, or covariances, of few directions, printed with so few digits that it shows.

    The smallest eigenvalue is below zero by up to 5% of the largest, in size.
    """
    for _ in range(1000):
        d = int(rng.integers(3, 9))
        F = rng.standard_normal((d, int(rng.integers(1, d)))) * rng.uniform(0.3, 2, (d, 1))
        A = F @ F.T
        if rng.random() < 0.6:
            A = A / np.sqrt(np.outer(np.diagonal(A), np.diagonal(A)))
        A = np.round((A + A.T) / 2, int(rng.integers(1, 5)))
        if rng.random() < 0.2:  # as pairs may leave it
            E = rng.standard_normal(A.shape) * 10 ** rng.uniform(-6, -1)
            A = A + np.triu(E, 1) + np.triu(E, 1).T
        if rng.random() < 0.2:
            A = A * 10 ** rng.uniform(-30, 30)
        values = np.linalg.eigvalsh(A)
        if (np.diagonal(A) > 0).all() and -0.049 * values[-1] < values[0] < -1e-6 * values[-1]:
            return asked(rng, kind, A, given=True)
    raise ArithmeticError("no matrix of few digits lacks what it should")


def any_scale(rng: Generator, kind: str) -> Case:
    """Tiny and huge numbers, all of one size; at times with variances that are denormal."""
    size = rng.uniform(-162, -153) if rng.random() < 0.2 else rng.uniform(-155, 152)
    return asked(rng, kind, samples(rng) * 10**size)


def variance_ratios(rng: Generator, kind: str) -> Case:
    """One direction of huge variance in correlated columns: what deflations have to take out."""
    n, d = int(rng.integers(10, 40)), int(rng.integers(3, 8))
    X = rng.standard_normal((n, d))
    direction = np.abs(rng.standard_normal(d))
    X += 10 ** rng.uniform(1, 5) * rng.standard_normal((n, 1)) * direction
    return asked(rng, kind, X, scale=False)


def blocks(rng: Generator, kind: str) -> Case:
    """Data that is read in blocks, from files and elsewhere."""
    X = samples(rng) + rng.choice([0.0, 0.0, 1e3])
    form = rng.choice(["npy", "memmap", "npy", "memmap", "dask"], p=[0.3, 0.3, 0.19, 0.19, 0.02])
    return asked(rng, kind, X.astype(rng.choice(["float64", "float64", "float32"])), form=str(form))


def stream(rng: Generator, kind: str) -> Case:
    """Rows that come in blocks and do not stay."""
    X = samples(rng) + rng.choice([0.0, 0.0, 1e3])
    return asked(rng, kind, X, form="stream")


def sketch(rng: Generator, kind: str) -> Case:
    """Rows of which a sketch stays."""
    X = samples(rng, int(rng.integers(8, 60)), int(rng.integers(4, 9)))
    return asked(rng, kind, X, form="sketch")


def weighted(rng: Generator, kind: str) -> Case:
    """Rows that count more or less than once, or not at all; at times with a large mean."""
    X = samples(rng, n=int(rng.integers(4, 40))) + rng.choice([0.0, 1.0, 1e5])
    if rng.random() < 0.5:
        w = rng.integers(0, 5, len(X)).astype(float)
    else:
        w = 10 ** rng.uniform(-6, 6) * rng.random(len(X)) ** rng.choice([1, 8])
    w[:3] += 1.0  # something varies, and there is more than one
    if rng.random() < 0.3:  # a row that does not count, far from the others
        X[-1], w[-1] = 10 ** rng.uniform(0, 12), 0.0
    if rng.random() < 0.3:
        zeros = rng.random(X.shape) < 0.5
        zeros[0] = False
        X = scipy.sparse.csr_array(np.where(zeros, 0.0, X))
    return asked(rng, kind, X, form="measured", weights=tuple(w.tolist()))


def holes(rng: Generator, kind: str) -> Case:
    """Missing values, for which the mean of the others stands; at times with weights."""
    X = samples(rng, n=int(rng.integers(6, 40))) + rng.choice([0.0, 1.0, 1e5])
    gone = rng.random(X.shape) < rng.uniform(0, 0.3)
    gone[:3] = False
    X[gone] = np.nan
    w = rng.integers(1, 4, len(X)).astype(float) if rng.random() < 0.3 else ()
    return asked(rng, kind, X, form="measured", weights=tuple(w))


# name -> how it is made, and how often
KINDS: dict[str, tuple[Callable[[Generator, str], Case], float]] = {
    "dense": (dense, 4),
    "wide": (wide, 4),
    "sparse": (sparse, 2),
    "float32": (float32, 2),
    "integers": (integers, 2),
    "huge means": (huge_means, 2),
    "near-constant": (near_constant, 2),
    "identical columns": (identical_columns, 2),
    "near-ties": (near_ties, 2),
    "exact ties": (exact_ties, 2),
    "dynamic range": (dynamic_range, 2),
    "huge excluded": (huge_excluded, 1),
    "rank deficient": (rank_deficient, 2),
    "given": (given, 3),
    "asymmetric": (asymmetric, 1),
    "indefinite": (indefinite, 1),
    "few digits": (few_digits, 2),
    "weighted": (weighted, 2),
    "holes": (holes, 1),
    "any scale": (any_scale, 2),
    "variance ratios": (variance_ratios, 1),
    "blocks": (blocks, 1.5),
    "stream": (stream, 1),
    "sketch": (sketch, 1),
}
MAY_REFUSE = ("dynamic range", "huge excluded", "any scale")


def draw(rng: Generator, kinds: tuple[str, ...] = tuple(KINDS)) -> Case:
    """Draw a kind, then a problem of it."""
    weights = np.array([KINDS[kind][1] for kind in kinds])
    kind = str(rng.choice(kinds, p=weights / weights.sum()))
    return KINDS[kind][0](rng, kind)


def with_data(case: Case, data: Any, **changes: Any) -> Case:
    """Return the same question about other numbers."""
    return replace(case, data=data, **changes)

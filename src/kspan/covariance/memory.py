"""What was found out about data, kept for the next fit of the same data.

Fits of the same rows, with another number of features or of components, begin alike: the moments
of the columns, A or XX', the leading eigenpairs. Those are kept (never the data), under a digest of
the data and of all that they depend on. What is found again are the very numbers that would be
computed, so answers do not depend on a memory.

A `Recall` is what a covariance holds: the memory, and the digest. What it asks for by name comes
from a `Memory` in this process, from files of a folder, or from a `joblib.Memory`.
"""

import copy
import hashlib
import os
import platform
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy

from kspan.arrays import FloatArray
from kspan.covariance.block_kernels import Moments
from kspan.linalg.eigen import EigenPairs
from kspan.storage import FORMAT, load_file, save_file, size_in_bytes

# Raised when moments, A, XX' or eigenpairs are computed in another way.
SUMS = 1

# Multiplications below which a file is not worth opening: some milliseconds.
FILE_WORK = 5e7

# Enough for A of some folds, with 2048 features each.
MAX_BYTES = 1 << 28


@dataclass(frozen=True)
class Columns:
    """Of the columns: means, what those lack as doubles, and sums of squared deviations.

    Of data in files also a product of all squared deviations with some columns.
    """

    mean: FloatArray
    rest: FloatArray
    squares: FloatArray
    product: FloatArray | None = None

    @classmethod
    def of(
        cls, origin: FloatArray, moments: Moments, product: FloatArray | None = None
    ) -> "Columns":
        """Take moments from an origin, which is a row of the data and not kept."""
        mean, rest = moments.centre(origin)
        return cls(mean, rest, moments.squares, product)


@dataclass(frozen=True)
class Holes:
    """How many values are missing, and the means of those that are there."""

    count: int
    mean: FloatArray


@dataclass(frozen=True)
class Gram:
    """A, or XX' over the divisor."""

    products: FloatArray


@dataclass(frozen=True)
class Leading:
    """Leading eigenpairs, and whether the covariance became another one on the way to them.

    Of data: whether A is formed now. Of a given matrix: whether it was found out about.
    """

    pairs: EigenPairs
    changed: bool


Summary = Columns | Holes | Gram | Leading
Kind = TypeVar("Kind", Columns, Holes, Gram, Leading)


class Store(Protocol):
    """Where summaries are kept, by keys that say all."""

    least_work: float  # multiplications, below which it is not worth asking

    def find(self, key: str) -> Any:
        """Return what was kept, as an object of its own; None for nothing."""

    def keep(self, key: str, summary: Summary) -> None:
        """Keep a summary."""


class Memory:
    """What fits found out about their data, kept in this process for fits to come.

    For ``memory=`` of the estimators and of `as_covariance`. Copies that scikit-learn makes of an
    estimator share it. In another process it begins empty: there a folder is what to use.

    Parameters
    ----------
    max_bytes : int
        What it may hold, by default 256 MiB. What was not asked for the longest goes first. A of d
        features takes 8d² bytes, and that of every fold is one.

    Attributes
    ----------
    hits, misses : int
        How often something was found, and was not.
    n_bytes : int
        What it holds now.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kspan import FeatureSparsePCA, Memory
    >>> X, memory = load_wine().data, Memory()
    >>> for k in (3, 4, 5):
    ...     pca = FeatureSparsePCA(2, k, scale=True, solver="ipu", memory=memory).fit(X)
    >>> memory.misses, memory.hits  # moments, A, eigenpairs: computed once, found twice
    (3, 6)
    """

    least_work = 0.0

    def __init__(self, max_bytes: int = MAX_BYTES):
        self.max_bytes = max_bytes
        self.hits = self.misses = self.n_bytes = 0
        self._kept: OrderedDict[str, tuple[Summary, int]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: str) -> Any:
        """Return a copy of what was kept under a key; None for nothing."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                self.misses += 1
                return None
            self.hits += 1
            self._kept.move_to_end(key)
        return copy.deepcopy(found[0])

    def keep(self, key: str, summary: Summary) -> None:
        """Keep a copy, unless it is too large."""
        size = size_in_bytes(summary)
        if size > self.max_bytes:
            return
        mine = copy.deepcopy(summary)
        with self._lock:
            _, before = self._kept.pop(key, (None, 0))
            self._kept[key] = mine, size
            self.n_bytes += size - before
            while self.n_bytes > self.max_bytes:
                _, (_, gone) = self._kept.popitem(last=False)
                self.n_bytes -= gone

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self.n_bytes = 0

    def __deepcopy__(self, memo: Any) -> "Memory":
        return self  # what `sklearn.clone` makes of parameters: all clones share one memory

    def __reduce__(self) -> tuple[Any, ...]:
        return Memory, (self.max_bytes,)  # a saved estimator does not take it along

    def __repr__(self) -> str:
        return f"Memory(max_bytes={self.max_bytes})"


@dataclass(frozen=True)
class Entry:
    """What a file holds: a file that was renamed is found out."""

    key: str
    summary: Any


IN_FILES = (Entry, Columns, Holes, Gram, Leading, EigenPairs)


class Folder:
    """One file for each summary; processes may share it, and whoever wants to may delete it.

    Parameters
    ----------
    path : the folder, which is made if it is not there
    """

    least_work = FILE_WORK

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise ValueError(f"memory: {os.fspath(path)} is a file, not a folder.") from None

    def find(self, key: str) -> Any:
        """Return what a file holds; None if there is none, or none of that key that is whole."""
        try:
            entry = load_file(self._file(key), IN_FILES)
        except (OSError, ValueError):
            return None
        return entry.summary if isinstance(entry, Entry) and entry.key == key else None

    def keep(self, key: str, summary: Summary) -> None:
        """Write a file; what cannot be written is told, and no more than that."""
        path = self._file(key)
        try:
            save_file(path, Entry(key, summary), compress=False)
        except OSError as error:
            warnings.warn(f"memory: {path} could not be written: {error}", stacklevel=2)

    def _file(self, key: str) -> Path:
        return self.path / f"{key.replace(' ', '-')}.kspan"


class Cached:
    """A `joblib.Memory`, or what has its `cache`.

    Parameters
    ----------
    memory : the object
    """

    least_work = FILE_WORK

    def __init__(self, memory: Any):
        self.call = memory.cache(_remembered, ignore=["compute"])

    def find(self, key: str) -> Any:
        """Return what the function gave for this key; None if it has to be called for that."""
        try:
            return self.call(key, _unknown)
        except KeyError:
            return None

    def keep(self, key: str, summary: Summary) -> None:
        """Have the function called with this key."""
        self.call(key, lambda: summary)


def _remembered(key: str, compute: Callable[[], Any]) -> Any:
    """Return a summary; the key is all that tells calls apart."""
    return compute()


def _unknown() -> Any:
    raise KeyError


@dataclass(frozen=True)
class Recall:
    """What a covariance asks before it computes.

    Parameters
    ----------
    store : where, None for nowhere
    key : what it is about
    """

    store: Store | None = None
    key: str = ""

    def about(self, *what: Any) -> "Recall":
        """Return that of something more particular."""
        if self.store is None:
            return self
        return Recall(self.store, hashlib.sha256(f"{self.key} {what!r}".encode()).hexdigest())

    def find(self, name: str, kind: type[Kind]) -> Kind | None:
        """Return a summary; None if it is not known."""
        if self.store is None:
            return None
        found = self.store.find(f"{self.key} {name}")
        return found if isinstance(found, kind) else None

    def keep(self, name: str, summary: Summary) -> None:
        """Keep a summary for others."""
        if self.store is not None:
            self.store.keep(f"{self.key} {name}", summary)


NOTHING = Recall()


def store_of(memory: Any) -> Store | None:
    """Turn what people may give into where summaries are kept.

    Parameters
    ----------
    memory : None, a path, a `Memory`, or a `joblib.Memory`
    """
    if memory is None or isinstance(memory, Memory):
        return memory
    if isinstance(memory, str | os.PathLike):
        return Folder(memory)
    if callable(getattr(memory, "cache", None)):
        return Cached(memory)
    raise ValueError(
        "memory must be None, the path of a folder, a kspan.Memory, or an object with the method "
        f"'cache' as joblib.Memory has it, got {memory!r}."
    )


def made_by() -> str:
    """Return what the last digits of a sum depend on, besides the numbers."""
    ours = sys.modules["kspan"].__version__
    return f"{SUMS} {FORMAT} {ours} {np.__version__} {scipy.__version__} {platform.machine()}"

"""`as_covariance`: the only place that looks at what the input is."""

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kspan.covariance.chunked import ChunkedCovariance
from kspan.covariance.data_covariance import DataCovariance, require_variance
from kspan.covariance.dense_data import DenseDataCovariance
from kspan.covariance.digests import data_digest
from kspan.covariance.interface import Covariance, Kind
from kspan.covariance.matrix import DenseCovariance, Psd
from kspan.covariance.memory import NOTHING, Holes, Recall, made_by, store_of
from kspan.covariance.missing import RULES, Incomplete, Missing
from kspan.covariance.sparse_data import SparseDataCovariance
from kspan.covariance.weights import Weights
from kspan.io import RowSource, open_data
from kspan.io.row_files import ArraySource
from kspan.io.rows import FilledRows, filled
from kspan.io.table import not_finite

# Why it is refused.
OVERFLOW = "The variances overflow: the data is too large. Divide it by a constant first."
GIVEN_WITH_WEIGHTS = (
    "sample_weight needs data: a covariance has no rows left to weigh. Weigh them when it is made."
)


# Dense data up to this size is copied to fill what is missing; more is filled block by block.
COPY_BYTES = 1 << 27


def as_covariance(
    X: Any,
    kind: Kind = "data",
    *,
    scale: bool | NDArray[np.float64] = False,
    ddof: int = 1,
    feature_names: Sequence[str] | None = None,
    block_bytes: int | None = None,
    sample_weight: Any = None,
    missing: str = "raise",
    psd: Psd = "mend",
    memory: Any = None,
) -> Covariance:
    """Turn data, or a covariance matrix, into what every kspan method works on.

    Parameters
    ----------
    X : array, DataFrame, scipy sparse array or matrix, path, or `Covariance`
        A `Covariance` is returned as it is; `require_built_as` says whether it is what is wanted.
        Samples in rows and features in columns, or (``kind="covariance"``) a symmetric
        positive semidefinite matrix. Numbers other than float32 are converted to float64.
        A path is that of a file with any of `kspan.io.known_endings`. ``.npy``, ``.parquet``,
        ``.zarr`` and ``.h5`` files, memory maps, zarr arrays, HDF5 datasets and dask arrays are
        read in blocks of rows, and never held in memory as a whole.
    kind : {"data", "covariance"}
    scale : bool or (d,) array
        Divide every feature by its standard deviation, to work on correlations, or by the
        given numbers. Only for data.
    ddof : int
        Divide by ``n_samples - ddof``: 1 gives sample variances, as scikit-learn's PCA does.
    feature_names : sequence of str, optional
        Used in error messages; by default those that X has.
    block_bytes : int, optional
        About how large a block of rows may be, of data that is read in blocks.
    sample_weight : array of shape (n_samples,), or float, optional
        What each row counts: the mean is ``Σ w x / Σ w``, and products are divided by ``Σ w -
        ddof``. Whole numbers are the same as repeating rows, zero as leaving them out. Only for
        data.
    missing : {"raise", "mean", "pairwise"}
        What to do about NaN in data. "mean": take the mean of its column, of the values that are
        there, in its place; sums are divided as if nothing were missing. "pairwise": compute every
        entry from the rows in which both features are there, as `pandas.DataFrame.cov` does; up to
        3000 features, and what comes out may lack positive semidefiniteness: see `psd`. Infinity is
        an error in all, as is a column with fewer than two values.
    psd : {"mend", "raise"}
        What to do about a matrix that is given (or made from pairs) and is not positive
        semidefinite, beyond rounding: printed with three digits, it has an eigenvalue below zero.
        "mend" warns by how much, and takes it as it is: variances are its own, and upper bounds
        make up for what it lacks, so that both hold for it. An eigenvalue below -5% of the largest
        is refused all the same, as that is no covariance (of pairs, below -100%).
    memory : path, `kspan.Memory` or joblib.Memory, optional
        Where moments, A or XX', and leading eigenpairs are kept for the next time that the same
        data is given; the data itself is not. To tell it from other data it is read once. What is
        computed from them is the same to the last digit.

    Returns
    -------
    Covariance
        Data is centred implicitly: neither a centred copy nor, for wide data, a d×d matrix
        is ever made.

    Examples
    --------
    >>> import numpy as np
    >>> A = as_covariance(np.array([[1.0, 2.0], [3.0, 2.0], [5.0, 2.0]]))
    >>> A.diagonal()
    array([4., 0.])
    >>> B = as_covariance(np.array([[1.0, 2.0], [5.0, 2.0]]), sample_weight=[2, 1])
    >>> B.mean.round(3), B.diagonal().round(3)
    (array([2.333, 2.   ]), array([5.333, 0.   ]))
    """
    if isinstance(X, Covariance):
        if sample_weight is not None:
            raise ValueError(GIVEN_WITH_WEIGHTS)
        return X
    if not isinstance(scale, bool | np.bool_):
        scale = _given_scale(scale)
    for name, value, known in (
        ("kind", kind, get_args(Kind)), ("missing", missing, RULES), ("psd", psd, get_args(Psd)),
    ):  # fmt: skip
        if value not in known:
            raise ValueError(f"{name} must be {' or '.join(map(repr, known))}, got {value!r}.")
    # A covariance is held in memory, wherever it comes from.
    data = open_data(
        X, load_bytes=0 if kind == "data" else np.inf,
        allow_missing=kind == "data" and missing != "raise",
    )  # fmt: skip
    if data.rows is not None:
        if block_bytes is not None:
            data.rows.block_bytes = max(int(block_bytes), 1)
        X = data.rows
    else:
        X = _as_floats(data.values)
    feature_names = data.feature_names if feature_names is None else feature_names
    if kind == "covariance":
        if scale is not False:
            raise ValueError("scale=True needs data; divide a covariance by its scales yourself.")
        if sample_weight is not None:
            raise ValueError(GIVEN_WITH_WEIGHTS)
        recall = _recall(memory, X, "covariance", psd)
        return _from_matrix(X, feature_names, psd, recall)
    _require_shape(X.shape, ddof, scale)
    weights = None if sample_weight is None else Weights.of(sample_weight, X.shape[0], ddof)
    recall = _recall(memory, X, "data", None if weights is None else weights.digest())
    covariance = _measured(X, recall, scale=scale, ddof=ddof, weights=weights)
    covariance.n_passes += int(recall is not NOTHING)
    if not np.isfinite(covariance.diagonal()).all():
        given = Incomplete(X, weights, feature_names)
        found = _from_incomplete(given, missing, recall, scale=scale, ddof=ddof, psd=psd)
        found.n_passes += covariance.n_passes  # until the holes were found
        return found
    covariance.require_variance()
    return covariance


def _recall(memory: Any, X: Any, *what: Any) -> Recall:
    """Return what a memory knows of data: nothing if it is small, and computing as quick."""
    store = store_of(memory)
    if store is None or _least_work(X) < store.least_work:
        return NOTHING
    return Recall(store, made_by()).about(*what, data_digest(X))


def _least_work(X: Any) -> float:
    """Return how many multiplications a product of the data with itself takes; of files any."""
    if isinstance(X, RowSource):
        return np.inf
    numbers = X.nnz if scipy.sparse.issparse(X) else X.size
    return float(numbers) * min(X.shape)


def _given_scale(scale: Any) -> NDArray[np.float64]:
    """Return divisors as doubles; what they belong to is not known yet."""
    divisors = np.array(scale, dtype=np.float64)  # a copy, of any type: float32 squares overflow
    if divisors.ndim != 1 or not (np.isfinite(divisors).all() and (divisors > 0).all()):
        raise ValueError("scale must be True, False, or a positive number for every feature.")
    return divisors


def require_built_as(
    covariance: Covariance, *, scale: bool, missing: str = "raise", precomputed: bool | None = None
) -> None:
    """Raise `ValueError` unless a covariance that stands for data was built as asked.

    Parameters
    ----------
    covariance : Covariance
    scale : whether it should be standardised
    missing : what should have been done about missing values
    precomputed : whether it should be a matrix, and not made from data; None for either
    """
    problem = ""
    if precomputed and covariance.kind == "data":
        problem = "covariance='precomputed' is for a matrix, but this one was made from data."
    elif precomputed is False and covariance.kind == "covariance":
        problem = "This is a covariance matrix, not data: say covariance='precomputed'."
    elif scale and not covariance.standardised:
        problem = "scale=True, but the covariance is not standardised: build it with scale=True."
    elif covariance.standardised and not scale:
        problem = "The covariance is standardised, but scale=False: say scale=True."
    elif covariance.missing is not None and covariance.missing.rule != missing:
        problem = (
            f"Values of the data are missing, and the covariance was built with missing="
            f"{covariance.missing.rule!r}: say the same here, not {missing!r}."
        )
    elif isinstance(covariance, DataCovariance) and not covariance.is_plain:
        problem = "The covariance has scales of its own, or ddof other than 1: give the data."
    if problem:
        raise ValueError(problem)


def _as_floats(X: Any) -> Any:
    """Return a 2-d float32 or float64 array or CSR/CSC matrix in native byte order."""
    if scipy.sparse.issparse(X):
        if X.format not in ("csr", "csc"):
            X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    else:
        frame, X = X, np.asarray(X)
        if X.dtype.kind == "O" and hasattr(frame, "iloc"):  # pandas has a NaN of its own
            X = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead.")
    if np.issubdtype(X.dtype, np.complexfloating):
        raise ValueError("Complex data not supported.")
    if X.dtype in (np.float32, np.float64) and X.dtype.isnative:
        return X
    if X.dtype.kind in "biuf":
        wanted = np.float32 if X.dtype == np.dtype(">f4") else np.float64
    elif X.dtype.kind == "O":
        wanted = np.float64
    else:
        raise ValueError(f"The data must be numeric, but its type is {X.dtype}.")
    return X.astype(wanted)


def _from_matrix(
    A: Any, feature_names: Sequence[str] | None, psd: Psd, recall: Recall
) -> DenseCovariance:
    if scipy.sparse.issparse(A):
        raise ValueError("A precomputed covariance must be a dense array.")
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"A covariance must be square, got shape {A.shape}.")
    if A.shape[0] == 0:
        raise ValueError("Found a covariance with 0 feature(s); at least 1 is required.")
    covariance = DenseCovariance(A.astype(np.float64, copy=False), A.dtype, psd=psd)
    if not covariance.is_finite():
        raise ValueError(_describe_not_finite(A, feature_names))
    covariance.validate()
    covariance.recall = recall
    covariance.n_passes += int(recall is not NOTHING)
    require_variance(covariance.diagonal())
    return covariance


def _measured(X: Any, recall: Recall, **how: Any) -> DataCovariance:
    """Return the covariance of data of any kind; what is not finite shows in its variances."""
    if isinstance(X, RowSource):
        return ChunkedCovariance.measure(X, recall, **how)
    if scipy.sparse.issparse(X):
        return SparseDataCovariance.measure(X, recall, **how)
    return DenseDataCovariance.measure(X, recall, **how)


def _from_incomplete(
    given: Incomplete, rule: str, recall: Recall, *, scale: bool | NDArray[np.float64], ddof: int,
    psd: Psd,
) -> Covariance:  # fmt: skip
    """Do what is to be done about data whose variances are not finite."""
    X = given.X
    if rule == "raise":
        raise ValueError(_describe_not_finite(X, given.feature_names))
    holes, n_passes = recall.find("holes", Holes), 0
    if holes is None:
        holes, n_passes = given.holes(), 2
        recall.keep("holes", holes)
    mean = holes.mean
    if not holes.count:
        raise ValueError(OVERFLOW)
    covariance: Covariance
    if rule == "pairwise":
        pairs = given.by_pairs(mean, scale=scale, ddof=ddof, psd=psd)
        own = scale.tobytes() if isinstance(scale, np.ndarray) else bool(scale)
        pairs.recall = recall.about("pairs", own, ddof, psd)
        covariance = pairs
    else:
        if isinstance(X, RowSource):
            X = FilledRows(X, mean)
        elif not scipy.sparse.issparse(X) and X.nbytes > COPY_BYTES:
            X = FilledRows(ArraySource(X, "data"), mean)
        else:
            X = filled(X, mean)
        filled_data = recall.about("filled")
        measured = _measured(X, filled_data, scale=scale, ddof=ddof, weights=given.weights)
        if not np.isfinite(measured.diagonal()).all():
            raise ValueError(OVERFLOW)
        measured.require_variance()
        covariance = measured
    covariance.dtype = np.dtype(given.X.dtype)
    covariance.missing = Missing(rule, holes.count, given.X.shape[0] * given.X.shape[1], given.X)
    covariance.n_passes += n_passes
    return covariance


def _require_shape(
    shape: tuple[int, int], ddof: int, scale: bool | NDArray[np.float64] = False
) -> None:
    n, d = shape
    if isinstance(scale, np.ndarray) and scale.size != d:
        raise ValueError(f"scale has {scale.size} numbers for {d} features.")
    if d == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={shape}); need at least 1.")
    if n <= ddof:
        raise ValueError(
            f"Found array with {n} sample(s) (shape={shape}) while a minimum of {ddof + 1} "
            "is required: one sample has no variance."
        )


def _describe_not_finite(X: Any, feature_names: Sequence[str] | None) -> str:
    """Say what is wrong with data whose variances came out as NaN or infinity."""
    if isinstance(X, RowSource):
        return _describe_rows(X)
    _, places, values = not_finite(X)
    if not values.size:
        return OVERFLOW
    found = []
    if nan := int(np.isnan(values).sum()):
        found.append(f"{nan} NaN")
    if infinite := int(np.isinf(values).sum()):
        found.append(f"{infinite} infinity (inf)")
    columns = np.unique(places)
    first = int(columns[0])
    name = "" if feature_names is None else f" ({str(feature_names[first])!r})"
    return (
        f"Input X contains NaN or infinity: {' and '.join(found)} in {columns.size} column(s), "
        f"the first being column {first}{name}. Fill in or drop them first."
    )


def _describe_rows(X: RowSource) -> str:
    """Name the rows, the first bad column and its name. Reads the data once more."""
    found = X.find_not_finite()
    if found is None:
        return OVERFLOW
    where, column = found
    name = "" if X.feature_names is None else f" ({str(X.feature_names[column])!r})"
    return (
        f"Input X contains NaN or infinity: in {where}, the first in column {column}{name}. "
        "Fill in or drop them first."
    )

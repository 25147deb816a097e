"""Data to try things on: a classic table, the papers' synthetic schemes, loaders by name.

Real sets that are too large to ship are read from the folder that the environment variable
``KSPAN_DATA`` names; see `load_dataset`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kspan.arrays import FloatArray


@dataclass(frozen=True)
class Dataset:
    """Data or a covariance, with names.

    Exactly one of `X` (samples × features, an array or a scipy sparse matrix) and `covariance`
    is set.
    """

    name: str
    X: Any = field(default=None, repr=False)
    covariance: FloatArray | None = field(default=None, repr=False)
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)


# Correlations of 13 measurements on 180 pit props (Jeffers 1967), in thousandths, row by row
# below the diagonal.
_PITPROPS_NAMES = (
    "topdiam", "length", "moist", "testsg", "ovensg", "ringtop", "ringbut", "bowmax",
    "bowdist", "whorls", "clear", "knots", "diaknot",
)  # fmt: skip
_PITPROPS_BELOW = (
    (954,),
    (364, 297),
    (342, 284, 882),
    (-129, -118, -148, 220),
    (313, 291, 153, 381, 364),
    (496, 503, -29, 174, 296, 813),
    (424, 419, -54, -59, 4, 90, 372),
    (592, 648, 125, 137, -39, 211, 465, 482),
    (545, 569, -81, -14, 37, 274, 679, 557, 526),
    (84, 76, 162, 97, -91, -36, -113, 61, 85, -319),
    (-19, -36, 220, 169, -145, 24, -232, -357, -127, -368, 29),
    (134, 144, 126, 15, -208, -329, -424, -202, -76, -291, 7, 184),
)


def load_pitprops() -> Dataset:
    """Return the 13×13 correlation matrix that sparse PCA has been tried on since 2000.

    Examples
    --------
    >>> load_pitprops().covariance.shape
    (13, 13)
    """
    A = np.eye(13)
    for i, row in enumerate(_PITPROPS_BELOW, start=1):
        A[i, :i] = A[:i, i] = np.array(row) / 1000
    return Dataset("pitprops", covariance=A, feature_names=_PITPROPS_NAMES)


_SPECTRA = {
    "A": (100, 100, 4),
    "B": (300, 180, 60),
    "C": (300, 180, 60),
    "D": (160, 80, 40, 20, 10, 5, 2),
}
_FLOOR = {"A": 1.0, "B": 1.0, "C": 0.0, "D": 1.0}


def make_scheme(
    scheme: Literal["A", "B", "C", "D", "E", "F"],
    n_features: int = 20,
    *,
    eigenspace: Literal["uniform-svd", "uniform-qr", "haar"] = "uniform-svd",
    random_state: int | np.random.Generator | None = None,
) -> FloatArray:
    """Draw a covariance by one of the six schemes of the FSPCA paper (its Table 1).

    A to D have fixed eigenvalues and random eigenvectors. E and F are ``XX'`` for a square X of
    uniform or normal numbers.

    Parameters
    ----------
    scheme : {"A", "B", "C", "D", "E", "F"}
    n_features : int
        d; the paper has 20.
    eigenspace : {"uniform-svd", "uniform-qr", "haar"}
        Where the eigenvectors of A to D come from, which the paper does not say: the left
        singular vectors, or the Q factor, of a square matrix of uniform numbers, or a uniformly
        random rotation. The first, whose leading vector is nearly constant, comes closest to the
        paper's results (benchmarks/papers/fspca).
    random_state : int, generator or None

    Examples
    --------
    >>> np.linalg.eigvalsh(make_scheme("B", random_state=0))[-3:].round(6)
    array([ 60., 180., 300.])
    """
    rng = np.random.default_rng(random_state)
    d = n_features
    if scheme in ("E", "F"):
        X = rng.uniform(size=(d, d)) if scheme == "E" else rng.standard_normal((d, d))
        return X @ X.T
    if scheme not in _SPECTRA:
        raise ValueError(f"scheme must be one of A to F, got {scheme!r}.")
    if eigenspace not in _EIGENSPACES:
        raise ValueError(f"eigenspace must be one of {list(_EIGENSPACES)}, got {eigenspace!r}.")
    leading = np.array(_SPECTRA[scheme][:d], dtype=np.float64)
    U = _EIGENSPACES[eigenspace](rng, d, leading.size)
    # All other eigenvalues are equal, so that any basis of the rest gives the same A.
    floor = _FLOOR[scheme]
    A = (U * (leading - floor)) @ U.T
    A[np.diag_indices(d)] += floor
    return (A + A.T) / 2


def _left_singular_vectors(rng: np.random.Generator, d: int, count: int) -> FloatArray:
    X = rng.uniform(size=(d, d))
    if d <= 1000:
        return np.linalg.svd(X)[0][:, :count]
    # A full decomposition takes minutes here, and a few vectors are all that is needed.
    from scipy.sparse.linalg import eigsh

    vectors: FloatArray = eigsh(X @ X.T, count, v0=np.ones(d))[1][:, ::-1]
    return vectors


_EIGENSPACES: dict[str, Callable[[np.random.Generator, int, int], FloatArray]] = {
    "uniform-svd": _left_singular_vectors,
    "uniform-qr": lambda rng, d, count: np.linalg.qr(rng.uniform(size=(d, d)))[0][:, :count],
    "haar": lambda rng, d, count: np.linalg.qr(rng.standard_normal((d, count)))[0],
}


def make_planted(
    n_samples: int,
    n_features: int,
    n_informative: int,
    n_components: int,
    *,
    signal: float = 3.0,
    random_state: int | np.random.Generator | None = None,
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Draw data in which a few features carry all factors and the others are noise.

    Every informative feature loads on m random factors with a total signal variance of about
    ``signal``; all features have unit noise.

    Returns
    -------
    X : (n_samples, n_features) array
    support : (n_informative,) sorted indices of the informative features

    Examples
    --------
    >>> X, support = make_planted(50, 30, 5, 2, random_state=0)
    >>> X.shape, support.size
    ((50, 30), 5)
    """
    rng = np.random.default_rng(random_state)
    support = np.sort(rng.choice(n_features, n_informative, replace=False))
    loadings = rng.standard_normal((n_components, n_informative))
    loadings *= np.sqrt(signal / n_components)
    X = rng.standard_normal((n_samples, n_features))
    X[:, support] += rng.standard_normal((n_samples, n_components)) @ loadings
    return X, support


@dataclass(frozen=True)
class Sensors:
    """What a network of sensors measured, and what each sensor is.

    Attributes
    ----------
    X : (n_samples, n_sensors) array
    names : what is measured, and where: "NO2 harbour"
    kinds, sites : of each sensor
    prices : of each sensor, in thousands, put up and connected
    """

    X: FloatArray = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    kinds: tuple[str, ...] = field(repr=False)
    sites: tuple[str, ...] = field(repr=False)
    prices: tuple[float, ...] = field(repr=False)


_SITES = ("centre", "harbour", "ring road", "school", "park", "suburb", "hill", "station")
# What the air has, at each of the sites: from traffic, and from the ships and works of the harbour.
_TRAFFIC = (0.9, 0.5, 1.3, 0.6, 0.3, 0.4, 0.2, 1.0)
_HARBOUR = (0.5, 1.3, 0.3, 0.4, 0.4, 0.2, 0.6, 0.7)
# Kind of sensor: its price, how it follows traffic, harbour, weather and stale air, and its error.
_KINDS = {
    "NO2": (9.0, (1.0, 0.5, -0.2, 0.4), 0.25),
    "ozone": (6.0, (-0.6, -0.1, 0.9, -0.3), 0.25),
    "PM10": (12.0, (0.5, 0.8, 0.1, 0.8), 0.2),
    "PM10 low-cost": (1.5, (0.5, 0.8, 0.1, 0.8), 0.7),
    "temperature": (1.0, (0.0, 0.0, 1.0, 0.0), 0.1),
    "humidity": (1.2, (0.0, 0.0, -0.9, 0.3), 0.25),
}


def make_sensors(
    n_samples: int = 600, *, random_state: int | np.random.Generator | None = 0
) -> Sensors:
    r"""Draw what 48 sensors of a city's air measured: six kinds at eight sites, with prices.

    Four things happen, :math:`f_1` to :math:`f_4`: traffic, the harbour, the weather, and air that
    does not move. Sensor j, of some kind at some site, measures

    .. math:: x_j = a_1t\,f_1 + a_2h\,f_2 + a_3f_3 + a_4f_4 + b\,g + σe_j,

    where a is how its kind follows them and σ its error, t and h how near the site is to the roads
    and to the harbour, and g is what one kind has in common at one site: b is 0.5 for gases and
    dust, and 0.1 for temperature and humidity, which are nearly the same everywhere. Both sensors
    of PM10 at a site have the same g: the cheap one is a copy with a larger error. All of f, g and
    e are standard normal.

    Parameters
    ----------
    n_samples : int
    random_state : int, generator or None
        By default always the same numbers.

    Returns
    -------
    Sensors

    Examples
    --------
    >>> sensors = make_sensors()
    >>> sensors.X.shape, sensors.names[0], sensors.prices[0]
    ((600, 48), 'NO2 centre', 9.0)
    """
    rng = np.random.default_rng(random_state)
    factors = rng.standard_normal((n_samples, 4))
    own = dict[tuple[str, str], FloatArray]()
    columns, names, kinds, sites, prices = [], [], [], [], []
    for kind, (price, follows, error) in _KINDS.items():
        measured = kind.removesuffix(" low-cost")
        share = 0.1 if measured in ("temperature", "humidity") else 0.5
        for site, roads, harbour in zip(_SITES, _TRAFFIC, _HARBOUR, strict=True):
            place = (measured, site)
            if place not in own:
                own[place] = rng.standard_normal(n_samples)
            weights = np.array(follows) * (roads, harbour, 1.0, 1.0)
            noise = error * rng.standard_normal(n_samples)
            columns.append(factors @ weights + share * own[place] + noise)
            names.append(f"{kind} {site}")
            kinds.append(kind)
            sites.append(site)
            prices.append(price)
    return Sensors(np.stack(columns, axis=1), tuple(names), tuple(kinds), tuple(sites),
                   tuple(prices))  # fmt: skip


@dataclass(frozen=True)
class About:
    """What a data set is, and where it comes from.

    Attributes
    ----------
    what : in a few words
    origin : who made it, and when
    n_samples, n_features : its size; `n_samples` is None for a covariance
    file, key : its name in the folder, and that of its array; "sparse" for a scipy sparse matrix
    sklearn : what loads it, if scikit-learn has it
    openml : what it is called there, if it can be downloaded
    """

    what: str
    origin: str
    n_samples: int | None
    n_features: int
    file: str | None = None
    key: str = "X"
    sklearn: str | None = None
    openml: str | None = None


_SETS = {
    "breast_cancer": About(
        "measurements of cells in breast tumours", "Wolberg, Street and Mangasarian 1993", 569, 30,
        sklearn="load_breast_cancer",
    ),
    "cbcl_faces": About(
        "pixels of faces, 19 x 19", "MIT CBCL", 2429, 361, "cbcl_faces.npz"
    ),
    "colon": About(
        "genes in tissue of colon, with tumours and without", "Alon and others 1999", 62, 2000,
        "colon.npz",
    ),
    "digits": About(
        "pixels of handwritten digits, 8 x 8", "Alpaydin and Kaynak 1998", 1797, 64,
        sklearn="load_digits",
    ),
    "dlbcl": About(
        "genes in lymphomas of two kinds", "Shipp and others 2002", 77, 7129, "dlbcl.npz"
    ),
    "duke": About("genes in breast tumours", "West and others 2001", 49, 7129, "duke.npz"),
    "leukemia": About(
        "genes in leukemias of two kinds", "Golub and others 1999", 72, 7129, "leukemia.npz",
        openml="leukemia",
    ),
    "lrs": About(
        "infrared spectra of sky sources", "IRAS, in the UCI repository 1988", 531, 93, "lrs.npz"
    ),
    "lymphoma": About(
        "covariances of genes in lymphomas", "Alizadeh and others 2000", None, 500,
        "lymphoma_cov.npz", "A",
    ),
    "numerical_numbers": About(
        "profile correlations of handwritten digits", "mfeat-factors, in the UCI repository 1998",
        2000, 216, "numerical_numbers.npz", openml="mfeat-factors",
    ),
    "nus_wide": About(
        "colours of pictures, in blocks of each", "NUS-WIDE, Chua and others 2009", 2400, 225,
        "nus_wide.npz",
    ),
    "pitprops": About("correlations of measurements on timber", "Jeffers 1967", None, 13),
    "prostate": About(
        "genes in tissue of the prostate, with tumours and without", "Singh and others 2002", 102,
        12600, "prostate.npz",
    ),
    "tdt2": About(
        "words of news texts, sparse", "TDT2, Linguistic Data Consortium 1998", 9394, 36771,
        "tdt2_sparse.npz", "sparse",
    ),
    "wine": About(
        "chemical measurements of wines", "Forina and others 1986", 178, 13, sklearn="load_wine"
    ),
}  # fmt: skip


def dataset_names() -> list[str]:
    """Return the names that `load_dataset` knows."""
    return sorted(_SETS)


def about(name: str) -> About:
    """Return what a data set is.

    Examples
    --------
    >>> about("wine").n_samples, about("wine").what
    (178, 'chemical measurements of wines')
    """
    if name not in _SETS:
        raise ValueError(f"Unknown data set {name!r}; known are {', '.join(dataset_names())}.")
    return _SETS[name]


def is_at_hand(name: str) -> bool:
    """Say whether `load_dataset` needs neither a download nor a file that is not there.

    Examples
    --------
    >>> is_at_hand("wine")
    True
    """
    if name not in _SETS:
        return False
    return _SETS[name].file is None or _file_of(name) is not None


def _file_of(name: str) -> Path | None:
    """Return where a data set is that does not ship with kspan; None if it is not there."""
    folder = os.environ.get("KSPAN_DATA")
    file = _SETS[name].file
    if not folder or file is None:
        return None
    path = Path(folder) / file
    return path if path.is_file() else None


def load_dataset(name: str) -> Dataset:
    """Load a data set by name.

    "pitprops" ships with kspan; "digits", "wine" and "breast_cancer" with scikit-learn. The
    others are read from the folder named by the environment variable ``KSPAN_DATA``; without
    it, "leukemia" and "numerical_numbers" are fetched by scikit-learn from OpenML.

    Examples
    --------
    >>> load_dataset("wine").X.shape
    (178, 13)
    """
    if name == "pitprops":
        return load_pitprops()
    its = about(name)
    if its.sklearn is not None:
        return _from_sklearn(name, its.sklearn)
    path = _file_of(name)
    if path is not None:
        if its.key == "sparse":
            from scipy.sparse import load_npz

            return Dataset(name, X=load_npz(path))
        with np.load(path) as arrays:
            values = arrays[its.key]
        return Dataset(name, covariance=values) if its.key == "A" else Dataset(name, X=values)
    if its.openml is not None:
        from sklearn.datasets import fetch_openml

        bunch = fetch_openml(its.openml, version=1, as_frame=False)
        return Dataset(name, X=bunch.data, feature_names=tuple(bunch.feature_names))
    folder = os.environ.get("KSPAN_DATA")
    where = f"is not in {folder}" if folder else "needs KSPAN_DATA to name the folder it is in"
    raise FileNotFoundError(f"The data set {name!r} does not ship with kspan: {its.file} {where}.")


def _from_sklearn(name: str, loader_name: str) -> Dataset:
    import sklearn.datasets

    loader: Callable[[], Any] = getattr(sklearn.datasets, loader_name)
    bunch = loader()
    names = tuple(str(feature) for feature in bunch.feature_names)
    return Dataset(name, X=bunch.data, feature_names=names)

"""The numbers behind ``kspan demo``: a fit on real data, its proof, and its two obvious rivals."""

import math
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kspan.covariance import as_covariance
from kspan.datasets import Dataset, load_dataset
from kspan.estimators import FeatureSparsePCA
from kspan.linalg.selection import top_k
from kspan.problem import RowSparseProblem
from kspan.progress import Status
from kspan.proofs.search.tree_state import Budgets
from kspan.records import FitRecord

DATA, SOURCE, FILE = "digits", "kspan demo", "kspan-demo.kspan"

# Seconds, for who asks for other numbers of components and features.
MOST_SECONDS = 5.0

# Row cones need a compiler, which takes seconds when kspan is new on a machine; here nodes are so
# cheap that splitting them does as well.
WITHOUT_CONES = Budgets(strengthen_gap=2.0)


@dataclass(frozen=True)
class Rival:
    """A way to get m components, how many features it needs and what it explains."""

    name: str
    n_features: int
    explained_variance: float


@dataclass(frozen=True)
class DemoResult:
    """What the demo found, ready to be shown."""

    n_samples: int
    n_features: int
    n_components: int
    selected: list[str]
    loadings: NDArray[np.float64]
    picture: NDArray[np.bool_]
    rivals: list[Rival]
    total_variance: float
    seconds: float
    record: FitRecord

    @property
    def n_choices(self) -> int:
        """In how many ways as many features can be chosen."""
        return math.comb(self.n_features, len(self.selected))

    @property
    def proved(self) -> str:
        """What is proved, in a sentence."""
        k = len(self.selected)
        if not self.record.certificates:
            return f"nothing is proved: the search took all of the {MOST_SECONDS:g} seconds"
        (certificate,) = self.record.certificates
        if certificate.status is Status.OPTIMAL:
            return f"proved: no other {k} pixels explain more"
        more = math.ceil(1e4 * (certificate.upper / certificate.lower - 1)) / 1e4
        return f"proved: other {k} pixels explain at most {more:.2%} more"


def run_demo(n_components: int = 5, n_features_to_select: int = 16) -> DemoResult:
    """Fit the handwritten digits that ship with scikit-learn (1797 pictures of 8×8 pixels)."""
    data = _data()
    d = data.X.shape[1]
    started = time.perf_counter()
    covariance = as_covariance(data.X, feature_names=data.feature_names)
    model = FeatureSparsePCA(
        n_components, n_features_to_select, certify="exact", random_state=0,
        time_limit=MOST_SECONDS, solver_options={"budgets": WITHOUT_CONES},
    ).fit(covariance)  # fmt: skip
    seconds = time.perf_counter() - started

    problem = RowSparseProblem(covariance, n_components, n_features_to_select)
    by_variance = problem.refit(top_k(covariance.diagonal(), n_features_to_select))
    support = model.get_support(indices=True)
    record = FitRecord.from_estimator(
        model, covariance, source=SOURCE, feature_names=data.feature_names, seconds=seconds
    )
    return DemoResult(
        n_samples=data.X.shape[0],
        n_features=d,
        n_components=n_components,
        selected=record.selected_names,
        loadings=model.components_[:, support].T,
        picture=model.get_support().reshape(8, 8),
        rivals=[
            Rival("plain PCA", d, float(covariance.leading(n_components).values.sum())),
            Rival("kspan", n_features_to_select, model.objective_),
            Rival("highest variances", n_features_to_select, by_variance.objective),
        ],
        total_variance=covariance.trace(),
        seconds=seconds,
        record=record,
    )


def save_demo(record: FitRecord) -> Path:
    """Write the record to `FILE` here, or to a new folder for temporary files.

    To the latter where this folder cannot be written to, or has a file of that name that is not
    from an earlier demo.
    """
    here = Path(FILE)
    if not here.is_symlink() and (not here.exists() or _is_own(here)):
        try:
            record.save(here)
        except OSError:
            pass
        else:
            return here
    place = Path(tempfile.mkdtemp(prefix="kspan-")) / FILE
    record.save(place)
    return place


def _is_own(place: Path) -> bool:
    try:
        return FitRecord.load(place).source == SOURCE
    except (ValueError, OSError):
        return False


def verify_demo(place: Path) -> list[str]:
    """Read the record and check it against the data; return what was checked, and what was not."""
    data = _data()
    return FitRecord.load(place).verify(data.X, data.feature_names)


def _data() -> Dataset:
    return load_dataset(DATA)

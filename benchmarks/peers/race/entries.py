"""Who races: the packages, what each one needs installed, and which of its settings decides k."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[3]

# What pip installs in each environment: of kspan a copy of this checkout.
ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    "kspan": (str(ROOT),),
    "numpy": ("numpy", "scipy"),
    "scikit-learn": ("scikit-learn",),
    "abess": ("abess",),
    "sparsepca": ("sparsepca", "scipy"),
    "skmatter": ("skmatter",),  # it asks for an older scikit-learn
    "fastcan": ("fastcan",),
    "xeofs": ("xeofs",),
    "dask-ml": ("dask-ml",),
}

Kind = Literal["exact", "penalty", "cardinality", "reference"]


@dataclass(frozen=True)
class Entry:
    """One method of one package.

    Parameters
    ----------
    name : as tables and figure show it
    environment : key of `ENVIRONMENTS`
    fit : key of `fits.FITS`
    kind : "exact" takes k; "penalty" has a weight that must be searched for; "cardinality" takes
        a number of features for each component; "reference" uses all features
    default : the value its authors set, for "penalty"
    note : what a reader must know about the call
    """

    name: str
    environment: str
    fit: str
    kind: Kind
    default: float | None = None
    note: str = ""

    @property
    def is_ours(self) -> bool:
        return self.environment == "kspan"

    @property
    def lines(self) -> tuple[str, ...]:
        if self.kind == "reference":
            return ("all features",)
        return ("at k",) if self.kind == "exact" else ("as it comes", "at k")


ENTRIES = (
    Entry("kspan auto", "kspan", "kspan_auto", "exact"),
    Entry("kspan ipu", "kspan", "kspan_ipu", "exact"),
    Entry("kspan go", "kspan", "kspan_go", "exact"),
    Entry("variance top-k", "numpy", "variance_top_k", "exact"),
    Entry("SparsePCA", "scikit-learn", "sparse_pca", "penalty", 1.0),
    Entry("MiniBatchSparsePCA", "scikit-learn", "mini_batch_sparse_pca", "penalty", 1.0),
    Entry(
        "abess", "abess", "abess", "cardinality", None,
        "given a covariance if there are fewer samples than features",
    ),
    Entry(
        "sparsepca", "sparsepca", "sparsepca", "penalty", 0.1,
        "columns centred by us: by itself it centres and scales samples",
    ),
    Entry("skmatter CUR", "skmatter", "cur", "exact", None, "after its own scaler"),
    Entry("skmatter FPS", "skmatter", "fps", "exact", None, "after its own scaler"),
    Entry("fastcan", "fastcan", "fastcan", "exact", None, "scores of PCA as target"),
    Entry("xeofs", "xeofs", "xeofs", "penalty", 1e-3),
    Entry("PCA", "scikit-learn", "pca", "reference"),
    Entry("dask-ml PCA", "dask-ml", "dask_pca", "reference"),
)  # fmt: skip

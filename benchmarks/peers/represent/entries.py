"""Who is compared, on what data, with which m and k."""

from benchmarks.peers.race.data import RaceSet, named
from benchmarks.peers.race.entries import Entry

# As `kspan.datasets.load_dataset` gives them, neither scaled nor transformed; centred.
SETS = {
    "leukemia": RaceSet("leukemia, 72 x 7129", 0, named("leukemia")),
    "colon": RaceSet("colon, 62 x 2000", 0, named("colon")),
    "duke": RaceSet("duke, 49 x 7129", 0, named("duke")),
    "digits": RaceSet("digits, 1797 x 64", 0, named("digits")),
    "nus_wide": RaceSet("NUS-WIDE, 2400 x 225", 0, named("nus_wide")),
    "tdt2": RaceSet("TDT2, 9394 x 36771, sparse", 0, named("tdt2")),
}
MS, KS = (3, 10), (20, 50, 200)

REPRESENT, VARIANCE = "kspan represent", "kspan variance"

ENTRIES = (
    Entry(REPRESENT, "kspan", "kspan_represent", "exact"),
    Entry(VARIANCE, "kspan", "kspan_variance", "exact"),
    Entry("largest loadings", "scikit-learn", "largest_loadings", "exact"),
    Entry("largest variances", "numpy", "variance_top_k", "exact"),
    Entry("skmatter CUR", "skmatter", "cur", "exact", None, "after its own scaler"),
    Entry("skmatter FPS", "skmatter", "fps", "exact", None, "after its own scaler"),
    Entry("fastcan", "fastcan", "fastcan", "exact", None, "scores of PCA as target"),
    Entry("forward selection", "numpy", "forward", "exact"),
    Entry("SequentialFeatureSelector", "scikit-learn", "sequential", "exact"),
)

# Those that do not look at m: one run is an answer for every m.
WITHOUT_M = frozenset({"variance_top_k", "cur", "fps", "forward", "sequential"})

"""Figures of docs/sadmm.md."""

from statistics import median

from benchmarks.papers.sadmm import figures12, noise, table2
from benchmarks.papers.sadmm.data import NORMALISED, REAL
from tests.docs.figures.reading import Claim, at_most, percent, result, span

SETS = result("papers/sadmm/table2")["sets"]
PAPER = result("papers/sadmm/paper")["table2"]
GRIDS = result("papers/sadmm/figures12")["sets"]
NOISE = {
    size: noise.mean_errors(part["rows"])
    for size, part in result("papers/sadmm/noise")["sizes"].items()
}
STARTS = result("papers/sadmm/starts")["rows"]
LARGER = result("papers/sadmm/figures567")["sets"]
STEPS = result("papers/sadmm/v_steps")["rows"]
COST = result("papers/sadmm/cost")["sets"]
BESIDE = result("papers/sadmm/baselines")["rows"]

AS_PUBLISHED = tuple(REAL)
AS_LIBSVM = tuple(f"{name}, normalised" for name in NORMALISED)
REAL_GRIDS = [name for name in GRIDS if name != "synthetic"]


def summaries(which):
    return {
        (name, run["share"]): figures12.summary(run, which)
        for name, runs in GRIDS.items()
        for run in runs
    }


def defaults():
    away = [found["defaults"] for found in summaries("(2)").values()]
    return len(away), at_most(100 * max(away), 2)


def below_the_grid():
    assert sum(found["defaults"] < 0 for found in summaries("(2)").values()) == 7
    return []


def in_objective_4():
    found = summaries("(4)")
    (outside,) = (place for place, one in found.items() if one["defaults"] > figures12.WITHIN)
    assert outside == ("colon", 0.2)
    one = found[outside]
    within = sum(other["defaults"] <= figures12.WITHIN for other in found.values())
    return within, len(found), one["nonzero"], percent(one["defaults"])


def on_synthetic():
    found = [one for (name, _), one in summaries("(4)").items() if name == "synthetic"]
    worst = max(one["ADMM worst"] for one in found)
    return at_most(100 * worst, 1), *span([100 * one["SADMM within"] for one in found])


def insensitive():
    found = summaries("(4)")
    return [
        percent(found[name, 0.05][f"{method} within"])
        for method in ("ADMM", "SADMM")
        for name in REAL_GRIDS
    ]


def spans(name, measure="span"):
    return {method: row[measure] for method, row in SETS[name]["methods"].items()}


def joint_ahead():
    claim = "StSPCA ≥ each deflation method"
    ahead = [
        name for name in (*AS_PUBLISHED, *AS_LIBSVM) if not table2.claims(SETS[name], "raw")[claim]
    ]
    assert ahead == ["prostate", "dlbcl"]
    behind = []
    for name in ("colon", "leukemia", "duke"):
        values = spans(name)
        behind.append(percent(max(values[m] for m in table2.ONE_BY_ONE) / values["StSPCA"] - 1))
    return behind


def duke_normalised():
    adjusted = spans("duke, normalised", "adjusted")
    raw = spans("duke, normalised", "raw")
    assert all(adjusted[method] < adjusted["StSPCA"] for method in table2.ONE_BY_ONE)
    assert sum(raw[method] > raw["StSPCA"] for method in table2.ONE_BY_ONE) == 1
    return f"{adjusted['GPower-l1-B']:.0f}", f"{adjusted['StSPCA']:.0f}"


def own_search():
    times = []
    for name in AS_PUBLISHED:
        rows = SETS[name]["methods"]
        each = [row["span"] for row in rows.values() if max(row["in each"]) <= table2.K]
        assert rows["orthonormal auto"]["span"] == max(each)
        times.append(rows["orthonormal auto"]["seconds"] / rows["StSPCA"]["seconds"])
    return span(times)


def best_of_each(name):
    """The most that a method with 50 features in each component explains."""
    rows = SETS[name]["methods"].values()
    return max(row["span"] for row in rows if max(row["in each"]) <= table2.K)


def two_stage():
    two = "StSPCA-2S, K=rk"
    for name in AS_PUBLISHED:
        assert spans(name)[two] > best_of_each(name)
        assert spans(name)["StSPCA-2S, K=k"] < best_of_each(name)
    far = [
        table2.to_bound(SETS[name]["methods"][two], SETS[name]["bound"], "span")
        for name in AS_PUBLISHED
        if name != "duke"
    ]
    behind = [100 * (1 - spans(name)[two] / best_of_each(name)) for name in AS_LIBSVM]
    return at_most(100 * max(far), 1), *span(behind)


def simpler_scores():
    for row in BESIDE:
        if "normalised" in row["data"]:
            assert row["PCA's scores"] >= row["two-stage"]
            assert row["Go"] >= row["two-stage"]
        else:
            assert abs(row["PCA's scores"] / row["two-stage"] - 1) <= 0.02
    better = [row["Go"] >= row["PCA's scores"] for row in BESIDE if "normalised" in row["data"]]
    assert sum(better) == len(better) - 1
    (row,) = (one for one in BESIDE if (one["data"], one["K"]) == ("colon, normalised", 50))
    return f"{row[chr(80) + 'CA' + chr(39) + 's scores']:.0f}", f"{row['two-stage']:.0f}"


def wang():
    theirs = [100 * (1 - PAPER["Wang"][x] / PAPER["StSPCA-2S"][x]) for x in PAPER["Wang"]]
    assert set(PAPER["Wang"]) == {"colon", "prostate"}
    ours = [100 * (row["Wang"] / row["two-stage"] - 1) for row in BESIDE if row["K"] == 50]
    assert min(row["seconds"] for row in BESIDE if row["seconds"]) >= 30
    return *span(theirs), f"{-min(ours):.0f}", f"{max(ours):.0f}"


def bounds():
    below = {
        name: 100
        * table2.to_bound(
            SETS[name]["methods"]["row-sparse auto, K=rk"], SETS[name]["bound"], "span"
        )
        for name in AS_PUBLISHED
    }
    duke = below.pop("duke")
    return *span(below.values(), 1), f"{table2.PROOF_SECONDS:.0f}", f"{duke:.0f}"


def what_is_counted():
    ours = {x: spans(f"{x}, normalised", "raw")["StSPCA-2S, K=k"] for x in NORMALISED}
    theirs = PAPER["StSPCA-2S"]
    return [
        f"{value:.0f}" for name in ("colon", "leukemia") for value in (theirs[name], ours[name])
    ] + [f"{theirs['duke']:.0f}", f"{ours['duke']:.0f}"]


def row_sparse_auto():
    for name in (*AS_PUBLISHED, *AS_LIBSVM):
        values = spans(name)
        for K in ("K=k", "K=rk"):
            assert values[f"row-sparse auto, {K}"] > values[f"StSPCA-2S, {K}"]
    return []


def lost():
    errors = NOISE["100x1000"]
    ours = [name for name in noise.NAMES if name.startswith("StSPCA") and (6, name) in errors]
    exact = [errors[f, x] for f in range(1, 7) for x in ours if x != "StSPCA-2S, K=rk"]
    assert max(exact) < 0.0015
    assert {f"{errors[6, x]:.1f}" for x in ("TPower", "GPower-l0", "GPower-l1")} == {"4.0"}
    return "0.001", "4.0", f"{errors[6, 'IPM']:.1f}", f"{errors[6, 'GRQI']:.1f}"


def random_starts():
    worst, slower = [], []
    for share in {row["share"] for row in STARTS}:
        rows = [row for row in STARTS if row["share"] == share]
        best = min(row["(4)"] for row in rows)
        worst.append(max(row["(4)"] - best for row in rows) / abs(best))
        (svd,) = (row["settled"] for row in rows if row["start"] == "svd")
        slower.append(median(row["settled"] for row in rows if row["start"] == "random") / svd)
    return at_most(100 * max(worst), 1), *span(slower, 1)


def points():
    """The methods at every point of figures 5 to 7 with several components."""
    found = {}
    for name, rows in LARGER.items():
        for row in rows:
            if row["r"] > 1:
                found.setdefault((name, row["r"], row["k"]), {})[row["method"]] = row
    return found


def joint_at_many_points():
    one_by_one = (*table2.DEFLATION, "StSPCA-D")
    blocks = ("GPower-l0-B", "GPower-l1-B")
    ahead, times, level = [], [], []
    for place, rows in points().items():
        joint = rows["StSPCA"]
        if joint["span"] > max(rows[x]["span"] for x in one_by_one) * (1 + 1e-6):
            ahead.append(place)
        best = max(blocks, key=lambda x: rows[x]["span"])
        level.append(joint["span"] >= 0.99 * rows[best]["span"])
        times.append(joint["seconds"] / rows[best]["seconds"])
    assert all(level)
    on_breast = sum(place[0] == "breast" for place in ahead)
    words = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}
    return len(ahead), len(level), words[on_breast], *span(times)


def late():
    here = {place: rows for place, rows in points().items() if place[0] == "breast"}
    assert all(rows["StSPCA-D"]["seconds"] >= 59 for rows in here.values())
    behind = [rows["StSPCA-D"]["span"] < 0.75 * rows["StSPCA"]["span"] for rows in here.values()]
    assert (sum(behind), len(behind)) == (5, 6)
    return []


def polar():
    cases = {(row["data"], row["share"]) for row in STEPS}

    def until(case, variant, target="1%"):
        return next(
            row[f"ms to {target}"]
            for row in STEPS
            if (row["data"], row["share"], row["variant"]) == (*case, variant)
        )

    one = [case for case in cases if until(case, "polar, 1 step") is not None]
    thirty = [case for case in cases if until(case, "cg, 30 steps") is not None]
    faster = [until(case, "cg, 30 steps") / until(case, "polar, 1 step") for case in one]
    nearer = [
        sum(until(case, variant, "0.1%") is not None for case in cases)
        for variant in ("polar, 1 step", "cg, 30 steps")
    ]
    return len(one), len(cases), *span(faster), len(thirty), len(cases), *nearer


def cost(name):
    fit = COST[name]["fits"]["StiefelSparsePCA"]
    return f"{fit['by TruncatedSVD']:.1f}", f"{fit['memory']['peak']:.2f}"


def steadier():
    """Where fewer settings of SADMM than of ADMM end near the best of objective (2), real data."""
    found = figures12.steadier({"sets": GRIDS}, "ADMM", "SADMM")
    return sum(not place.startswith("synthetic") for place in found), 4 * len(REAL_GRIDS)


CLAIMS: list[Claim] = [
    (
        "**Over {} cases (synthetic data, colon, leukemia, duke; λ at 1, 5, 10 and 20% of the "
        "largest useful one) the defaults end at most {}% above the best of the whole grid**",
        defaults,
    ),
    ("in the paper's objective (2), and below it in seven.", below_the_grid),
    (
        "they are within 2% in {} of the {}; the other is colon at 20%, a solution with {} "
        "loadings, {}% above.",
        in_objective_4,
    ),
    (
        "On the synthetic data ADMM ends within {}% of the best everywhere, SADMM in {} to {}% of "
        "its settings.",
        on_synthetic,
    ),
    ("SADMM varies more than ADMM over the grid in {} of the {} cases,", steadier),
    (
        "at λ = 5% of the largest, {}, {} and {}% of ADMM's settings end within 2% of the best "
        "objective (4), and {}, {} and {}% of SADMM's.",
        insensitive,
    ),
    (
        "The joint method is above every deflation method on prostate and dlbcl as published, and "
        "on no other of the eight sets in the paper's own measure. On colon, leukemia and duke it "
        "is below most of them by up to {}, {} and {}%.",
        joint_ahead,
    ),
    ("has {} where the joint method has {}.", duke_normalised),
    ("takes {} to {} times as long as the joint method.", own_search),
    (
        "within {}% of the proven best (duke aside). **On the normalised sets it is not**: there "
        "it is {} to {}% below the best method with 50 features in each component.",
        two_stage,
    ),
    (
        "(colon, K=50: {}, two-stage {}), and Go's better still but for a tie. As published the "
        "two are within 2% of each other.",
        simpler_scores,
    ),
    (
        "{} to {}% below two-stage. Above is where it ends from the principal components: {}% "
        "below two-stage to {}% above it for K=50.",
        wang,
    ),
    (
        "Row-sparse `auto` with 150 features is within {} to {}% of the bound on four of the sets, "
        "so the bound is tight there and 150 shared features are as good as solved. On duke {} "
        "seconds leave {}%.",
        bounds,
    ),
    (
        "ours are some 5% above them (colon {}, ours {}; leukemia {}, ours {}; duke {} with 42 of "
        "our 49 samples, ours {}).",
        what_is_counted,
    ),
    (
        "explains more than two-stage in both readings on every data set, as published and "
        "normalised.",
        row_sparse_auto,
    ),
    (
        "recover both components: error {}, where TPower and GPower have lost both ({}) and IPM "
        "and GRQI most of them ({}, {}).",
        lost,
    ),
    (
        "Random starts end within {}% of the best objective on the paper's synthetic data, and "
        "settle after {} to {} times as many steps as the SVD start",
        random_starts,
    ),
    (
        "two-stage with as many features comes second at 17 of the 20 points",
        list,  # tests/benchmarks/test_sadmm.py counts them
    ),
    (
        "Joint SADMM is ahead of every deflation at {} of these {}, {} of them on `breast`, and "
        "within 1% of the better block form of GPower or above it at all of them, in {} to {} "
        "times its time.",
        joint_at_many_points,
    ),
    (
        "runs out of time at r=3 and 5, and is far behind at five of the six points.",
        late,
    ),
    (
        "and stays there, in {} of {} cases, then {} to {} times sooner than the paper's thirty "
        "conjugate gradient steps; those get there in {} of {}. Within 0.1% it is {} against {}.",
        polar,
    ),
    (
        "128 × 47293 dense, three components: {} times scikit-learn's `TruncatedSVD` of the same "
        "rank, {} GB.",
        lambda: cost("breast"),
    ),
    ("9394 × 36771 sparse (TDT2), five components: {} times, {} GB", lambda: cost("tdt2")),
]

NOT_MEASURED = [
    "It comes within 1% of the best objective that any variant reaches",  # v_steps' first target
    "did not end in half a minute",
]

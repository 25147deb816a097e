"""Figures of docs/nspca.md."""

from statistics import median

from benchmarks.papers.nspca import figures456
from tests.docs.figures.reading import Claim, at_least, at_most, percent, result, span

RECORD = result("papers/nspca/figures456")
ROWS = {name: one["rows"] for name, one in RECORD["sets"].items()}
SIDES = {(one["set"], one["k"]): one["values"] for one in RECORD["sides"]}
ANGLES = result("papers/nspca/figure1")["lrs"]
FACES = result("papers/nspca/figure3")["methods"]
SEEDS = {row["starts"]: row for row in result("papers/nspca/em_seeds")["rows"]}
COST = result("papers/nspca/cost")
A_PRIORI = {row["data"]: row for row in result("papers/fspca/a_priori")["rows"]}


def row(name, k):
    return next(one for one in ROWS[name] if one["k"] == k)


def value(name, k, method):
    return figures456.value(row(name, k), method)


def optimal(name):
    return sum(one["proof"]["status"] == "optimal" for one in ROWS[name])


def on_lrs():
    assert optimal("lrs") == len(ROWS["lrs"])
    return len(ROWS["lrs"]), at_most(max(one["proof"]["seconds"] for one in ROWS["lrs"]), 1)


def on_faces():
    least = min(figures456.share(one) for one in ROWS["cbcl"])
    net = [100 * figures456.net_share(one) for one in ROWS["cbcl"]]
    return at_least(100 * least, 2), len(ROWS["cbcl"]), optimal("cbcl"), *span(net)


def longer():
    found = {one["k"]: one for one in RECORD["long"]["cbcl"]}
    assert found[60]["status"] == "optimal"
    return [at_most(100 * (1 - found[k]["lower"] / found[k]["upper"]), 2) for k in (80, 100, 120)]


def on_leukemia():
    shares = [100 * figures456.share(one) for one in ROWS["leukemia"]]
    return *span(shares), *span([100 * figures456.net_share(one) for one in ROWS["leukemia"]])


def auto_leads():
    assert all(figures456.beaten(rows) == [] for rows in ROWS.values())
    return [sum(map(len, ROWS.values()))]


def net_by_em():
    below = {
        name: [1 - value(name, one["k"], "net") / value(name, one["k"], "EM") for one in ROWS[name]]
        for name in ("cbcl", "lrs")
    }
    assert min(map(min, below.values())) > 0
    return [at_most(100 * max(below[name]), 1) for name in ("cbcl", "lrs")]


def printed_share():
    return [f"{figures456.net_share(row('cbcl', 180)):.3f}"]


def few_genes():
    side = SIDES["leukemia", 10]
    names = ("net, rank 3", "EM, 20 starts", "auto", "spannogram, rank 3")
    ranks = [f"net, rank {rank}" for rank in (2, 4, 5)]
    return [f"{side[name]:.3f}" for name in (*names, *ranks)]


def many_genes():
    side = SIDES["leukemia", 1000]
    best = side["auto"]
    below = {percent(1 - side[f"EM, {n} starts"] / best) for n in (20, 100)}
    (same,) = below
    up_to = [
        100 * (1 - value("leukemia", one["k"], "net") / value("leukemia", one["k"], "EM"))
        for one in ROWS["leukemia"]
        if one["k"] <= 500
    ]
    return (
        same,
        percent(1 - side["net, rank 3"] / best, 1),
        f"{min(up_to):.1f}",
        f"{max(up_to):.0f}",
    )


def flat():
    first, used = figures456.flat_from(ROWS["lrs"])
    assert first == 20
    assert row("lrs", 90)["methods"]["net"]["features"] == 26
    return used, used


def not_centred():
    found = {one["k"]: one for one in RECORD["readings"]["not centred"]["rows"]}
    assert found[90]["features"] == 90
    return [f"{found[90]['net share']:.3f}"]


def seeds():
    five, twenty, one = SEEDS[5], SEEDS[20], SEEDS[1]
    assert twenty["near the optimum"] == twenty["seeds"]
    return (
        f"{five['auto']:.3f}", five["near the optimum"], five["seeds"], f"{five['worst']:.3f}",
        f"{SIDES['cbcl', 40]['EM, 5 starts']:.3f}", twenty["seeds"], one["near the optimum"],
    )  # fmt: skip


def times():
    ratios, seconds = [], {"NSPCA": [], "others": []}
    for rows in ROWS.values():
        for one in rows:
            found = {name: method["seconds"] for name, method in one["methods"].items()}
            ratios.append(found["auto"] / found["EM"])
            for name, spent in found.items():
                seconds["NSPCA" if name == "NSPCA" else "others"].append(spent)
    assert max(seconds["others"]) < 1
    assert max(seconds["NSPCA"]) < 3
    return *span(ratios), f"{median(ratios):.1f}"


def memory():
    ways = ("default", "every vertex")
    peaks = [one[way]["memory"]["peak"] for one in COST["cases"].values() for way in ways]
    return [f"{max(peaks):.2f}"]


def a_priori():
    digits = {"cbcl": 2, "leukemia": 3, "lrs": 2}
    for name, k in (("cbcl", 180), ("leukemia", 50), ("lrs", 20)):
        assert A_PRIORI[name]["k"] == k
    return [at_least(A_PRIORI[name]["ρ"], number) for name, number in digits.items()]


CLAIMS: list[Claim] = [
    (
        "For the two leading eigenvectors of LRS there are {} such points, but the ten largest "
        "change at only {} of them",
        lambda: (ANGLES["n_crossings"], ANGLES["n_intervals"] - 1),
    ),
    (
        "Sum of the six variances: `auto` {}, EM {}, net {}",
        lambda: [f"{sum(FACES[name]['variances']):.3f}" for name in ("auto", "EM", "net")],
    ),
    ("**LRS: the optimum is proved at all {} k, in at most {} seconds each.**", on_lrs),
    (
        "**CBCL: at least {}% of the optimum at all {} k within a minute**, and the optimum itself "
        "at {} of them. The net with the paper's bound proves {} to {}%.",
        on_faces,
    ),
    (
        "With ten minutes k=60 is proved optimal too, and k=80, 100 and 120 to within {}, {} and "
        "{}%.",
        longer,
    ),
    (
        "**Leukemia: {} to {}%**, where the net with the paper's bound proves {} to {}%.",
        on_leukemia,
    ),
    ("**`auto` is at or above every other method at all {} points.**", auto_leads),
    ("within {}% and {}%. EM is above at every k", net_by_em),
    ("{} on CBCL (k=180, rank 3), {} on leukemia (k=50) and {} on LRS (k=20)", a_priori),
    ("The paper's share of 0.58 on CBCL at k=180 is {} here.", printed_share),
    (
        "at k=10 it has {}, EM {} and `auto` {}. More directions would not help, as the exact "
        "spannogram of rank 3 has {} too. It is the cut to a low rank: ranks 2, 4 and 5 give "
        "{}, {} and {}, in no order.",
        few_genes,
    ),
    (
        "**On leukemia at k=1000 EM ends {}% below `auto`**, from 20 random starts and from 100 as "
        "well, and the net {}% below. Up to k=500 net is {} to {}% below EM;",
        many_genes,
    ),
    ("From k={} on the optimum uses {} of the 93 bands,", flat),
    ("but then the share at k=90 is {}.", not_centred),
    (
        "where the optimum is {}, EM from 5 random starts, the default of its authors' package, "
        "comes within 0.1% of it with {} of {} seeds; with others it ends as low as {} ({} with "
        "the seed of the tables). From 20 starts it does with all {}, from a single one with {}",
        seeds,
    ),
    (
        "it takes {} to {} times as long as EM with its 20 starts (median {}).",
        times,
    ),
    ("Peak memory is {} GB with Python and the data.", memory),
    (
        "(rank 3, ε = 0.1) takes {:.1f} times scikit-learn's",
        lambda: [COST["wide"]["fits"]["net"]["by TruncatedSVD"]],
    ),
]

NOT_MEASURED = [
    "its share grows from 0.86 to 0.93",  # the paper's
]

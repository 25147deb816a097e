"""Figures of docs/how_good_is_ipu.md."""

from benchmarks.papers.fspca import how_good
from tests.docs.figures.reading import Claim, result

ROWS = result("papers/fspca/how_good")["rows"]
RAW, SCALED = how_good.split(ROWS)
ABOVE = 1 + how_good.TIE


def best(method):
    """The questions in which nothing better is known than what a method found."""
    return [row for row in ROWS if how_good.is_missing(row, method) <= how_good.TIE]


def much_lost():
    missing = [how_good.is_missing(row, "ipu") for row in ROWS]
    return sum(x > 0.05 for x in missing), len(ROWS), sum(x > 0.1 for x in missing)


def one_component():
    worst = sorted(ROWS, key=lambda row: how_good.is_missing(row, "ipu"))[-7:]
    assert all(row["m"] == 1 for row in worst)
    assert all(how_good.is_missing(row, "ipu, 20 restarts") <= how_good.TIE for row in worst)
    return []


def starts():
    both = [
        row for row in ROWS
        if max(row["values"]["ipu"], row["values"]["ipu, 20 restarts"]) * ABOVE >= row["best"]
    ]  # fmt: skip
    return len(best("ipu, 20 restarts")), len(best("ipu")), len(both)


def beside_go():
    values = [row["values"] for row in ROWS]
    assert all(v["ipu"] * ABOVE >= v["go"] for v in values)
    return [sum(v["ipu"] > v["go"] * ABOVE for v in values)]


def beside_variances():
    values = [row["values"] for row in RAW]
    better = sum(v["variances"] > v["ipu"] * ABOVE for v in values)
    level = sum(v["variances"] * ABOVE >= v["ipu"] for v in values) - better
    return better, len(values), level


def auto():
    short = [how_good.is_missing(row, "auto") for row in ROWS]
    return sum(x <= how_good.TIE for x in short), how_good.share(max(short))


CLAIMS: list[Claim] = [
    (
        "It loses more than 5% for certain in {} of the {} questions, and more than 10% in {}.",
        much_lost,
    ),
    (
        "The seven largest losses are all with one component, and twenty random starts find the "
        "best known value in all seven.",
        one_component,
    ),
    (
        "The best of twenty has the best value known in {} questions, Go's start in {}, one of the "
        "two in {}.",
        starts,
    ),
    ("IPU is never below Go, from which it starts, and above it in {}.", beside_go),
    (
        "the k largest variances are better than IPU in {} of {} questions, and as good in {} "
        "more.",
        beside_variances,
    ),
    (
        "has the best known value in {} of the questions, and is short of it by at most {} in the "
        "others;",
        auto,
    ),
]

NOT_MEASURED = ["*At least 99%* and *at least 95%* are of the proven bound"]  # heads of columns

"""Figures of docs/certificates.md."""

from math import comb, sqrt

from benchmarks.certificates.pages import share
from tests.docs.figures.reading import Claim, at_most, result, span

DENSE = result("certificates/dense")
STANDARDISED = result("certificates/standardised")["rows"]
JOINT = result("certificates/joint")["rows"]


def of(rows, *case):
    return next(row for row in rows if (row["data"], row.get("m", row.get("r")), row["k"]) == case)


def strengthened():
    plain, scaled = (of(rows, "lymphoma", 1, 30) for rows in (DENSE["rows"], STANDARDISED))
    return (
        share(plain["plain relaxation gap"]),
        share(plain["tight gap"]),
        share(scaled["tight gap"]),
    )


def row_sums():
    return [at_most(100 * max(row["fast gap"] for row in STANDARDISED if row["m"] == 1), 1)]


def chord():
    """The largest convex function below the root, on 1 to d, at 50."""
    d, x = 2000, 50
    return f"{1 + (x - 1) * (sqrt(d) - 1) / (d - 1):.1f}", f"{sqrt(x):.1f}"


CLAIMS: list[Claim] = [
    (
        "many ways to choose 12 of 30 features: more than {} million.",
        lambda: [comb(30, 12) // 10**6],
    ),
    (
        "one eigendecomposition a step, {} to {} in all for each relaxation of the first table "
        "below.",
        lambda: span(row["its eigensolves"] for row in DENSE["rows"]),
    ),
    (
        "on the 500 genes of lymphoma, m = 1, k = 30, not standardised, {} become {} at level "
        '"tight", and on their correlations {} are left.',
        strengthened,
    ),
    ("for m = 1 a bound within {}% in all the standardised problems below.", row_sums),
    (
        'three components of ten features: {} at level "tight").',
        lambda: [share(of(JOINT, "lymphoma", 3, 10)["tight gap"])],
    ),
    (
        "With 2000 features and a component with ‖P‖₁ = 50 that is {} in place of {},",
        chord,
    ),
]

NOT_MEASURED = [
    '| 0.02 | "Our panel explains at least 98% of what the best possible panel',  # examples of
    '| 0.5 | "We do not know much."',  # gaps, and how to say them
    "(10n + 100)·1.1·10⁻¹⁶·√(a_ii a_jj)",  # of the code
]

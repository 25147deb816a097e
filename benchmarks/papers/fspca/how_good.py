"""How far from the best are Go and IPU on real data? The paper had no way to tell.

Run: ``python -m benchmarks.papers.fspca.how_good``: five minutes on one core, needs KSPAN_DATA.
Writes how_good.json and how_good.md beside this file, and the tables of docs/how_good_is_ipu.md;
``--draw`` only writes the pages from the JSON. With names of data sets only these are run, and
nothing is written. Tables of up to 500 features get a proof of their own; for wide ones the proofs
of benchmarks/certificates are there.
"""

import argparse
import json
import textwrap
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.certificates import any_width
from benchmarks.certificates.pages import rows_of, share, table
from benchmarks.certificates.run import value_from_data
from benchmarks.measure import fill, machine
from kspan import RowSparseProblem, as_covariance, certify, solve, verify
from kspan.covariance import Covariance
from kspan.datasets import load_dataset
from kspan.linalg.selection import top_k

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "how_good_is_ipu.md"

# Up to 500 features: every m and k, as the data comes and as correlations.
SMALL = {"pitprops": 13, "wine": 13, "breast_cancer": 30, "digits": 64, "lrs": 93,
         "numerical_numbers": 216, "nus_wide": 225, "cbcl_faces": 361, "lymphoma": 500}  # fmt: skip
MS, KS = (1, 2, 3, 5), (5, 10, 20, 50)
SECONDS = 1.5
# Gene tables as they come, without logarithms: one question each.
GENES = ("colon", "duke", "leukemia", "dlbcl", "prostate")
GENE_SECONDS = 25.0
# The best that is known counts as reached from here on.
TIE = 1e-9
OPTIMAL = 1e-6

# {name: what it is called on the page}
METHODS = {
    "auto": "kspan `auto`",
    "ipu, 20 restarts": "IPU, best of 20 random starts",
    "ipu": "IPU, low-rank start",
    "go": "Go",
    "loadings": "largest loadings",
    "variances": "largest variances",
}

AS_IT_COMES, STANDARDISED = "as it comes", "standardised"
LOGARITHMS, WORDS = "logarithms", "covariance of 2000 words"
Case = tuple[str, str, int, int]  # data, preparation, m, k


def covariance_of(name: str, preparation: str) -> Covariance:
    """Return the covariance of a data set, prepared as its row says."""
    if preparation == LOGARITHMS:
        return any_width.load(name, "unscaled")
    if preparation == WORDS:
        return any_width.load(name, "words")
    if name in GENES and preparation == STANDARDISED:
        return any_width.load(name)
    data = load_dataset(name)
    if data.covariance is not None:
        A = np.asarray(data.covariance, dtype=np.float64)
        root = np.sqrt(np.diagonal(A)) if preparation == STANDARDISED else np.ones(len(A))
        return as_covariance(A / root[:, None] / root, kind="covariance")
    return as_covariance(data.X.astype(np.float64), scale=preparation == STANDARDISED)


class Known(NamedTuple):
    """What a proof of benchmarks/certificates says of a question."""

    auto: float
    best: float
    upper: float


def committed() -> dict[Case, Known]:
    """Return what is known from proofs that took up to five minutes each."""
    tables = {"dense": AS_IT_COMES, "unscaled": LOGARITHMS, "words": WORDS,
              "standardised": STANDARDISED}  # fmt: skip
    found = {}
    for name, preparation in tables.items():
        for row in rows_of(name):
            best = row["optimum"] if name == "dense" else row["optimum or best"]
            raw = name == "unscaled" and row["data"] == "duke"  # it is not in logarithms
            case = (row["data"], AS_IT_COMES if raw else preparation, row["m"], row["k"])
            found[case] = Known(row["value"], best, best / (1 - row["exact gap"]))
    return found


def cases() -> list[Case]:
    """Return the questions: those proved here, and then those of wide tables proved before."""
    small = [
        (name, preparation, m, k)
        for name, d in SMALL.items()
        # Pitprops is a correlation matrix.
        for preparation in (AS_IT_COMES, STANDARDISED)[: 1 if name == "pitprops" else 2]
        for m in MS
        for k in KS
        if k < d
    ]
    genes = [(name, AS_IT_COMES, 3, 50) for name in GENES]
    wide = [case for case in committed() if case[0] not in SMALL]
    return list(dict.fromkeys([*small, *genes, *wide]))


def simple(problem: RowSparseProblem) -> dict[str, np.ndarray]:
    """Return the features that each method but `auto` chooses."""
    m, k = problem.n_components, problem.n_features_to_select
    covariance = problem.covariance
    many = solve(problem, "ipu", init="random", n_restarts=20, random_state=0)
    return {
        "ipu, 20 restarts": many.support,
        "ipu": solve(problem, "ipu", random_state=0).support,
        "go": solve(problem, "go", random_state=0).support,
        "loadings": top_k(np.sum(covariance.leading(m).vectors ** 2, axis=1), k),
        "variances": top_k(covariance.diagonal(), k),
    }


def one_case(problem: RowSparseProblem, seconds: float, known: Known | None) -> dict[str, Any]:
    """Return what each method reaches, the best known, and what nothing can exceed."""
    started = time.perf_counter()
    if known is None:
        solution = solve(problem, random_state=0)
        level = "exact" if seconds == SECONDS else "tight"
        certificate = certify(problem, solution, level, time_limit=seconds)
        verify(problem, certificate)
        proved = value_from_data(problem, certificate.support)
        known = Known(value_from_data(problem, solution.support), proved, certificate.upper)
    values = {
        name: value_from_data(problem, np.sort(support))
        for name, support in simple(problem).items()
    }
    values = {"auto": known.auto, **values}
    best = max(known.best, *values.values())
    assert best <= known.upper * (1 + TIE)
    return {"d": problem.n_features, "best": best, "upper": max(known.upper, best),
            "values": values, "seconds": time.perf_counter() - started}  # fmt: skip


def run(names: list[str]) -> list[dict[str, Any]]:
    """Return a row for each question about the data sets that are named, or about all."""
    before, rows = committed(), []
    opened: tuple[str, str, Covariance] | None = None
    for name, preparation, m, k in cases():
        if names and name not in names:
            continue
        if opened is None or opened[:2] != (name, preparation):
            opened = (name, preparation, covariance_of(name, preparation))
        seconds = SECONDS if name in SMALL else GENE_SECONDS
        problem = RowSparseProblem(opened[2], m, k)
        found = one_case(problem, seconds, before.get((name, preparation, m, k)))
        rows.append({"data": name, "preparation": preparation, "m": m, "k": k, **found})
        print(name, preparation, m, k, {x: share(lost(rows[-1], x)) for x in METHODS},
              f"{rows[-1]['seconds']:.1f} s", flush=True)  # fmt: skip
    return rows


# --- what the rows say


def lost(row: dict[str, Any], method: str) -> float:
    """Return what the method may be missing of the best possible, at most."""
    return 1.0 - float(row["values"][method]) / row["upper"]


def is_missing(row: dict[str, Any], method: str) -> float:
    """Return what it does miss of the best that is known, at least."""
    return 1.0 - float(row["values"][method]) / row["best"]


def settled(row: dict[str, Any]) -> bool:
    """Say whether the best that is known is proved to be the best possible."""
    return bool(row["upper"] <= row["best"] * (1 + OPTIMAL))


def is_optimal(row: dict[str, Any], method: str) -> bool:
    return settled(row) and is_missing(row, method) <= TIE


def within(rows: list[dict[str, Any]], method: str, most: float) -> int:
    return sum(lost(row, method) <= most for row in rows)


def worst(rows: list[dict[str, Any]], method: str) -> dict[str, Any]:
    """Return the row in which a method misses most of what is known to be there."""
    return max(rows, key=lambda row: is_missing(row, method))


def place(row: dict[str, Any]) -> str:
    return f"{row['data']}, {row['preparation']}, m={row['m']}, k={row['k']}"


Rows = list[dict[str, Any]]


def split(rows: Rows) -> tuple[Rows, Rows]:
    """Return the rows on variances as they are, and those on correlations."""
    scaled = {STANDARDISED}
    correlations = [r for r in rows if r["preparation"] in scaled or r["data"] == "pitprops"]
    return [row for row in rows if row not in correlations], correlations


def counts(rows: Rows) -> str:
    """Return a table with a line for each method."""
    head = ["", "proved optimal", "at least 99%", "at least 95%", "at most lost, median",
            "lost for certain, worst", "where"]  # fmt: skip
    lines = []
    for method, label in METHODS.items():
        row = worst(rows, method)
        lines.append([
            f"**{label}**" if method == "ipu" else label,
            f"{sum(is_optimal(row, method) for row in rows)} of {len(rows)}",
            within(rows, method, 0.01), within(rows, method, 0.05),
            share(float(np.median([lost(row, method) for row in rows]))),
            share(is_missing(row, method)), place(row) if is_missing(row, method) > TIE else "–",
        ])  # fmt: skip
    return table(head, lines)


def by_data(rows: Rows) -> str:
    """Return a table with a line for each data set: what IPU may lose, and loses."""
    head = ["data (features)", "preparation", "questions", "optimum proved", "IPU proved optimal",
            "IPU lost, at least", "at most", "best of 20, at most", "`auto`, at most"]  # fmt: skip
    groups: dict[tuple[str, str, int], Rows] = {}
    for row in rows:
        groups.setdefault((row["data"], row["preparation"], row["d"]), []).append(row)
    lines = [
        [f"{name} ({d})", preparation, len(own), sum(map(settled, own)),
         sum(is_optimal(row, "ipu") for row in own), share(max(is_missing(r, "ipu") for r in own)),
         *(share(max(lost(row, x) for row in own)) for x in ("ipu", "ipu, 20 restarts", "auto"))]
        for (name, preparation, d), own in groups.items()
    ]  # fmt: skip
    return table(head, lines)


def by_size(rows: Rows) -> str:
    """Return a table of the share of questions that IPU answers best, for each m and k."""
    own = [row for row in rows if row["m"] in MS and row["k"] in KS and row["data"] in SMALL]

    def cell(m: int, k: int) -> str:
        here = [row for row in own if (row["m"], row["k"]) == (m, k)]
        return f"{sum(is_missing(row, 'ipu') <= TIE for row in here)} of {len(here)}"

    return table(["m", *(f"k = {k}" for k in KS)], [[m, *(cell(m, k) for k in KS)] for m in MS])


def outcome(rows: Rows) -> str:
    """Return the answer, in sentences."""
    once, many, short = "ipu", "ipu, 20 restarts", [r for r in rows if is_missing(r, "ipu") > TIE]
    still_open = [row for row in rows if not settled(row)]

    def optimal(method: str) -> int:
        return sum(is_optimal(row, method) for row in rows)

    def at_worst(method: str) -> str:
        row = worst(rows, method)
        return f"{share(is_missing(row, method))} ({place(row)})"

    words = (
        f"**Of {len(rows)} questions IPU's answer (low-rank start) is proved optimal in "
        f"{optimal(once)}, within 1% of the best possible in {within(rows, once, 0.01)}, within 5% "
        f"in {within(rows, once, 0.05)}.** In {len(short)} a better choice is known; the most that "
        f"is lost for certain is {at_worst(once)}. The best of twenty random starts is proved "
        f"optimal in {optimal(many)}, within 1% in {within(rows, many, 0.01)}, within 5% in "
        f"{within(rows, many, 0.05)}, and at worst loses {at_worst(many)}. The optimum is proved "
        f"in {len(rows) - len(still_open)} of the {len(rows)}; in the others what is known and "
        "what nothing can exceed are at most "
        f"{share(max(1 - row['best'] / row['upper'] for row in still_open))} apart."
    )
    return textwrap.fill(words, 100)


def texts(record: dict[str, Any]) -> dict[str, str]:
    """Return what belongs at which mark of the page."""
    raw, scaled = split(record["rows"])
    return {
        "how_good.json: outcome": outcome(record["rows"]),
        "how_good.json: as it comes": counts(raw),
        "how_good.json: standardised": counts(scaled),
        "how_good.json: size": by_size(record["rows"]),
        "how_good.json: data": by_data(record["rows"]),
    }


def markdown(record: dict[str, Any]) -> str:
    """Return every row, with what each method may lose at most."""
    head = ["data", "preparation", "d", "m", "k", "best known", "upper bound", *METHODS]
    lines = [
        [row["data"], row["preparation"], row["d"], row["m"], row["k"], f"{row['best']:.6g}",
         "the same" if settled(row) else f"{row['upper']:.6g}",
         *(share(lost(row, method)) for method in METHODS)]
        for row in record["rows"]
    ]  # fmt: skip
    return "\n".join([
        "# How far from the best possible are Go and IPU?", "",
        "Under each method: the share of the upper bound that it is missing, so the most that it "
        f"can be short of the optimum. Sets of up to 500 features had {SECONDS:g} s for a proof, "
        f"gene tables as they come {GENE_SECONDS:g} s (level tight); the bounds of the other wide "
        "tables are those of benchmarks/certificates, of up to five minutes each. `logarithms`: "
        "log(max(x, 20)), of colon log(x). `standardised`: correlations, of gene tables after "
        "logarithms. Every value is recomputed from the covariance, every new "
        "certificate checked by `verify`. One thread, "
        f"{record['seconds']:.0f} s.", "",
        table(head, lines), "",
    ])  # fmt: skip


def main() -> None:
    """Run it all and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--draw", action="store_true", help="only write the pages from the JSON")
    options = parser.parse_args()
    json_file = HERE / "how_good.json"
    if not options.draw:
        started = time.perf_counter()
        with threadpool_limits(1):
            rows = run(options.names)
        if options.names:
            return
        record = {"machine": machine(), "seconds": time.perf_counter() - started, "rows": rows}
        json_file.write_text(json.dumps(record, indent=1) + "\n")
    record = json.loads(json_file.read_text())
    (HERE / "how_good.md").write_text(markdown(record))
    for mark, text in texts(record).items():
        fill(PAGE, mark, text)


if __name__ == "__main__":
    main()

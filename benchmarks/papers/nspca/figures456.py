"""Figures 4 to 6: variance against the number of features, and how much of the best it is.

Run: ``python -m benchmarks.papers.nspca.figures456``. Needs KSPAN_DATA, and matplotlib for the
picture. Writes figures456.json (after each data set), figures456.md and figures456.png beside this
file; ``--draw`` only draws from the JSON. ``--parts`` runs some of: ``sets``, the figures;
``sides``, other settings of the methods and of the data; ``long``, proofs with ten minutes, which
is not done by default. What the JSON has of other parts stays. ``--sets`` runs some data sets.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import machine
from benchmarks.papers.nspca.data import SETS, load, paper
from benchmarks.papers.nspca.methods import EPSILON, RANK, RESTARTS, Data, is_better, net_upper
from kspan import NonnegativeProblem, as_covariance, certify, solve, verify

HERE = Path(__file__).parent
KS = {
    "cbcl": (10, 20, 40, 60, 80, 100, 120, 140, 160, 180, 220, 260, 300, 340, 361),
    "leukemia": (10, 20, 50, 100, 200, 500, 1000),
    "lrs": (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 93),
}
# Level and seconds of our proofs. 7129 features are too many for a search.
PROOFS = {"cbcl": ("exact", 60.0), "leukemia": ("tight", 20.0), "lrs": ("exact", 10.0)}
NAMES = {"cbcl": "CBCL faces", "leukemia": "leukemia", "lrs": "LRS"}
WITH_NSPCA = ("cbcl",)  # as in the paper
LONG = {"cbcl": (60, 80, 100, 120)}  # those that a minute leaves open
LONG_SECONDS = 600.0
READINGS_KS = (20, 90)
SIDES = (("cbcl", 40), ("leukemia", 10), ("leukemia", 50), ("leukemia", 1000))
SIDE_RANKS, SIDE_STARTS = (2, 3, 4, 5), (1, 5, 20, 100)


def prove(
    problem: NonnegativeProblem, x: np.ndarray, largest: float, level: str, seconds: float
) -> dict[str, Any]:
    """Return how good x is, as a certificate says that `verify` has recomputed."""
    found = solve(problem, "auto", random_state=0)
    assert np.array_equal(found.loadings[:, 0], x)  # the proof is about the vector measured
    certificate = certify(problem, found, level, time_limit=seconds)
    started = time.perf_counter()
    lower, upper = verify(problem, certificate)
    return {
        "level": level, "time limit": seconds, "lower": lower / largest, "upper": upper / largest,
        "status": certificate.status.value, "method": certificate.method,
        "seconds": certificate.seconds, "nodes": certificate.n_nodes,
        "seconds to verify": time.perf_counter() - started,
    }  # fmt: skip


def one_k(data: Data, k: int, level: str, seconds: float, names: tuple[str, ...]) -> dict[str, Any]:
    """Return what each method explains with k features, and both upper bounds, by λ₁."""
    row: dict[str, Any] = {"k": k, "methods": {}}
    for name in names:
        W, spent = data.run(name, k)
        row["methods"][name] = {
            "value": data.variance(W[:, 0]), "features": int(np.count_nonzero(W)),
            "seconds": spent,
        }  # fmt: skip
    row["net upper"] = data.net_upper(k)
    row["proof"] = prove(data.problem(k), W[:, 0], data.largest, level, seconds)
    return row


def run_set(
    X: np.ndarray, ks: tuple[int, ...], level: str, seconds: float, *, nspca: bool
) -> dict[str, Any]:
    """Return one row for each k; `auto` is the last method, and the one that is proved."""
    data = Data(X)
    names = ("net", "EM", *(["NSPCA"] if nspca else []), "auto")
    for name in names:
        data.run(name, ks[0])  # what is compiled at the first call is not timed
    rows = [one_k(data, k, level, seconds, names) for k in ks]
    return {"shape": list(X.shape), "eigenvalues": (data.spectrum[:6] / data.largest).tolist(),
            "rows": rows}  # fmt: skip


def readings(X: np.ndarray, ks: tuple[int, ...] = READINGS_KS) -> dict[str, Any]:
    """Return what other ways to make a covariance of the same file would give."""
    n = len(X)
    spectra = X / np.linalg.norm(X, axis=1, keepdims=True)
    matrices = {
        "centred (used here)": np.cov(X.T),
        "not centred": X.T @ X / n,
        "standardised": np.corrcoef(X.T),
        "spectra of length one, centred": np.cov(spectra.T),
        "spectra of length one, not centred": spectra.T @ spectra / n,
    }
    found: dict[str, Any] = {}
    for name, A in matrices.items():
        covariance = as_covariance(A, kind="covariance")
        values = np.linalg.eigvalsh(A)[::-1]
        rows = []
        for k in ks:
            problem = NonnegativeProblem(covariance, 1, k)
            x = solve(problem, "auto", random_state=0).loadings[:, 0]
            value = float(x @ A @ x / values[0])
            rows.append({
                "k": k, "value": value, "features": int(np.count_nonzero(x)),
                "net share": value / net_upper(problem, float(values[0])),
            })  # fmt: skip
        found[name] = {"eigenvalues": (values[:6] / values[0]).tolist(), "rows": rows}
    return found


def sides(data: Data, k: int) -> dict[str, float]:
    """Return what the net at other ranks, the exact spannogram and EM from other starts have."""
    settings: dict[str, tuple[str, dict[str, Any]]] = {
        f"net, rank {rank}": ("net", {"rank": rank, "epsilon": EPSILON}) for rank in SIDE_RANKS
    }
    settings[f"spannogram, rank {RANK}"] = ("spannogram", {"rank": RANK})
    for starts in SIDE_STARTS:
        settings[f"EM, {starts} start{'s' * (starts > 1)}"] = ("em", {"n_restarts": starts})
    settings["auto"] = ("auto", {})
    return {
        name: data.variance(solve(data.problem(k), solver, random_state=0, **how).loadings[:, 0])
        for name, (solver, how) in settings.items()
    }


# --- what the rows say


def value(row: dict[str, Any], method: str) -> float:
    """Return the variance by λ₁."""
    return row["methods"][method]["value"]


def share(row: dict[str, Any]) -> float:
    """Return the share of the optimum that `auto` is proved to have."""
    return value(row, "auto") / row["proof"]["upper"]


def net_share(row: dict[str, Any]) -> float:
    """Return the share that the net is proved to have by the paper's bound."""
    return value(row, "net") / row["net upper"]


def missed(row: dict[str, Any]) -> bool:
    """Return whether NSPCA found no component with as many features as asked for."""
    methods = row["methods"]
    return methods["NSPCA"]["features"] < min(row["k"], methods["auto"]["features"])


def flat_from(rows: list[dict[str, Any]]) -> tuple[int, int] | None:
    """Return the first k from which on more features do not help, and the number used there."""
    best = value(rows[-1], "auto")
    for row in rows:
        used = row["methods"]["auto"]["features"]
        if used < row["k"] and not is_better(best, value(row, "auto")):
            return row["k"], used
    return None


def beaten(rows: list[dict[str, Any]]) -> list[tuple[int, str]]:
    """Return where some method is above `auto`, by more than rounding."""
    return [
        (row["k"], name)
        for row in rows
        for name in row["methods"]
        if is_better(value(row, name), value(row, "auto"))
    ]


# --- the page


def markdown(record: dict[str, Any]) -> str:
    """Return a table for each data set, and in words what they say."""
    lines = [
        "# Figures 4 to 6 of the nonnegative sparse PCA paper, run again", "",
        "x'Ax of one nonnegative component with at most k features, by the largest eigenvalue of "
        "the covariance (centred, not scaled), recomputed in float64 from the loadings. `net` is "
        f"the paper's Algorithm 3 (rank {RANK}, ε = {EPSILON:g}), EM the best of {RESTARTS} random "
        f"starts, NSPCA too. `used` is the number of features of `auto`.", "",
        "Two upper bounds: the paper's, from the net (its formula is not printed; ours for the "
        "same idea, and at most 1), holds with probability 1 - 1/n. kspan's holds for certain, "
        "and was recomputed by `verify`. A share is what a component has of the best there can "
        "be, at least: by the paper's bound for `net`, by kspan's for `auto`. Seconds and nodes "
        "are those of kspan's proof, on one thread.", "",
    ]  # fmt: skip
    for name, one in record["sets"].items():
        lines += [*_table(name, one), *_in_words(name, one, record), ""]
    if "sides" in record:
        lines += _sides(record["sides"])
    if "readings" in record:
        lines += _readings(record["readings"])
    return "\n".join(lines)


def _table(name: str, one: dict[str, Any]) -> list[str]:
    level, seconds = one["rows"][0]["proof"]["level"], one["rows"][0]["proof"]["time limit"]
    nspca = "NSPCA" in one["rows"][0]["methods"]
    head = [
        "k", "net", "EM", *(["NSPCA"] if nspca else []), "auto", "used", "net's bound",
        "share of net", "kspan's bound", "share of auto", "status", "nodes", "seconds",
    ]  # fmt: skip
    lines = [
        f"## {NAMES[name]}, {one['shape'][0]} by {one['shape'][1]}", "",
        f"Data: {SETS[name][2]}; the paper has {SETS[name][1][0]} by {SETS[name][1][1]}. "
        f"Eigenvalues by the first: {', '.join(f'{v:.3f}' for v in one['eigenvalues'][1:4])}. "
        f"Proofs: level `{level}`, {seconds:g} seconds.", "",
        "| " + " | ".join(head) + " |", "|---" * len(head) + "|",
    ]  # fmt: skip
    for row in one["rows"]:
        proof = row["proof"]
        cells = [str(row["k"]), f"{value(row, 'net'):.5f}", f"{value(row, 'EM'):.5f}"]
        if nspca:
            used = f" ({row['methods']['NSPCA']['features']})" if missed(row) else ""
            cells.append(f"{value(row, 'NSPCA'):.5f}{used}")
        cells += [
            f"{value(row, 'auto'):.5f}", str(row["methods"]["auto"]["features"]),
            f"{row['net upper']:.4f}", f"{net_share(row):.3f}", f"{proof['upper']:.5f}",
            f"**{floored(share(row))}**", proof["status"], str(proof["nodes"]),
            f"{proof['seconds']:.1f}",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def floored(number: float) -> str:
    """Write a share with four digits, rounded down unless it is within 1e-6 of the next."""
    return f"{np.floor(number * 1e4 + 1e-2) / 1e4:.4f}"


def _in_words(name: str, one: dict[str, Any], record: dict[str, Any]) -> list[str]:
    rows = one["rows"]
    n_optimal = sum(row["proof"]["status"] == "optimal" for row in rows)
    worst = min(rows, key=share)
    lines = [f"- Proved optimal (to 1e-6) at {n_optimal} of {len(rows)} k"]
    lines[0] += (
        f"; the smallest share is {floored(share(worst))}, at k={worst['k']}."
        if n_optimal < len(rows)
        else f", each in at most {max(row['proof']['seconds'] for row in rows):.1f} seconds."
    )
    for k, printed in paper()[name].items():
        row = next((row for row in rows if row["k"] == k), None)
        if row is not None:
            lines.append(
                f"- k={k}: the paper proves a share of {printed:g}; its bound here "
                f"{net_share(row):.3f}, kspan {floored(share(row))}."
            )
    where = beaten(rows)
    lines.append(
        "- `auto` is at or above every other method at every k (to 1e-9)." if not where else
        "- **Above `auto`:** " + ", ".join(f"{method} at k={k}" for k, method in where) + "."
    )  # fmt: skip
    lines.append(_difference(rows, "net"))
    lines.append(_difference(rows, "EM"))
    flat = flat_from(rows)
    if flat:
        lines.append(f"- More features do not help from k={flat[0]} on: `auto` uses {flat[1]}.")
    better = [row for row in rows if is_better(row["proof"]["lower"], value(row, "auto"), 1e-7)]
    if better:
        lines.append(
            "- The proof found a better component than `auto` at "
            + ", ".join(f"k={row['k']}" for row in better) + "."
        )  # fmt: skip
    if "NSPCA" in rows[0]["methods"] and any(missed(row) for row in rows):
        lines.append(
            "- NSPCA: in brackets the number of features where no β gave as many as asked for."
        )
    for long in record.get("long", {}).get(name, []):
        lines.append(
            f"- k={long['k']} with {long['time limit']:g} seconds: {long['status']}, share "
            f"{floored(long['value'] / long['upper'])}, {long['nodes']} nodes, "
            f"{long['seconds']:.0f} seconds."
        )
    return lines


def _difference(rows: list[dict[str, Any]], method: str) -> str:
    worst = max(rows, key=lambda row: 1 - value(row, method) / value(row, "auto"))
    short = 1 - value(worst, method) / value(worst, "auto")
    if short < 1e-4:
        return f"- {method} is nowhere more than 0.01% below `auto`."
    return f"- {method} is at most {short:.2%} below `auto`, at k={worst['k']}."


def _sides(found: list[dict[str, Any]]) -> list[str]:
    names = list(found[0]["values"])
    lines = [
        "## Other settings", "",
        "The net at other ranks, the exact spannogram at the same rank, which has no net to lose "
        "anything by, and EM from fewer and more random starts.", "",
        "| | " + " | ".join(f"{NAMES[one['set']]}, k={one['k']}" for one in found) + " |",
        "|---" * (len(found) + 1) + "|",
    ]  # fmt: skip
    for name in names:
        lines.append(f"| {name} | " + " | ".join(f"{o['values'][name]:.5f}" for o in found) + " |")
    return [*lines, ""]


def _readings(found: dict[str, Any]) -> list[str]:
    ks = [row["k"] for row in next(iter(found.values()))["rows"]]
    lines = [
        "## LRS: what else the paper's covariance may have been", "",
        "The paper says that the component with k close to 90 is not sparse, and does not say how "
        "the covariance was made. `auto` by λ₁, the bands it uses, and its share by the paper's "
        "bound:", "",
        "| covariance | " + " | ".join(f"k={k} | used | share" for k in ks) + " |",
        "|---" * (3 * len(ks) + 1) + "|",
    ]  # fmt: skip
    for name, one in found.items():
        cells = [f"{row['value']:.3f} | {row['features']} | {row['net share']:.3f}"
                 for row in one["rows"]]  # fmt: skip
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    wanted = ", ".join(f"{s:g} at k={k}" for k, s in paper()["lrs"].items())
    return [*lines, f"| the paper | {wanted} |" + " |" * (3 * len(ks) - 1), ""]


# --- the picture


def draw(record: dict[str, Any], path: Path) -> None:
    """Draw the variances between their bounds, as in the paper, and below the shares."""
    import matplotlib.pyplot as plt

    sets = record["sets"]
    figure, axes = plt.subplots(
        2, len(sets), figsize=(4.6 * len(sets), 6.6), squeeze=False, constrained_layout=True,
        sharex="col",
    )  # fmt: skip
    styles = {
        "NSPCA": {"color": "#cc79a7", "marker": "x", "ls": "none", "ms": 7, "mew": 1.6},
        "EM": {"color": "#0072b2", "marker": "s", "ls": ":", "ms": 7, "mfc": "none"},
        "net": {"color": "#d55e00", "marker": "^", "ls": "--", "ms": 5},
        "auto": {"color": "k", "marker": "o", "ls": "-", "ms": 3, "lw": 1},
    }
    labels = {"net": "net (Algorithm 3)", "EM": "EM", "NSPCA": "NSPCA", "auto": "auto"}
    for (name, one), (above, below) in zip(sets.items(), axes.T, strict=True):
        rows = one["rows"]
        ks = [row["k"] for row in rows]
        above.fill_between(
            ks, [value(row, "net") for row in rows], [row["net upper"] for row in rows],
            color="0.85", lw=0, label="the paper's bound",
        )  # fmt: skip
        above.fill_between(
            ks, [value(row, "auto") for row in rows], [row["proof"]["upper"] for row in rows],
            color="0.5", lw=0, label="kspan's bound",
        )  # fmt: skip
        for method, style in styles.items():
            points = [
                (row["k"], value(row, method))
                for row in rows
                if method in row["methods"] and not (method == "NSPCA" and missed(row))
            ]
            if points:
                above.plot(*zip(*points, strict=True), label=labels[method], **style)
        above.set(title=f"{NAMES[name]}, {one['shape'][1]} features", ylim=(0, 1.05))
        below.plot(ks, [net_share(row) for row in rows], label="net, the paper's bound",
                   **styles["net"])  # fmt: skip
        below.plot(ks, [share(row) for row in rows], label="auto, kspan's bound", **styles["auto"])
        printed = paper()[name]
        below.plot(list(printed), list(printed.values()), label="printed in the paper",
                   color="#009e73", marker="*", ms=13, ls="none", mec="k")  # fmt: skip
        below.set(xlabel="features k", ylim=(0, 1.05))
        for axis in (above, below):
            axis.grid(alpha=0.3)
        if name == "leukemia":
            below.set_xscale("log")
            below.set_xticks(ks, [str(k) for k in ks])
            below.minorticks_off()
    axes[0, 0].set_ylabel("variance, by the largest eigenvalue")
    axes[1, 0].set_ylabel("share of the optimum, at least")
    axes[0, 0].legend(fontsize=8, loc="lower right")
    axes[1, 0].legend(fontsize=8, loc="lower right")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Run it all and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(KS))
    parser.add_argument("--parts", nargs="+", default=["sets", "sides"])
    parser.add_argument("--draw", action="store_true", help="only draw from the JSON")
    parser.add_argument("--out", type=Path, default=HERE / "figures456")
    options = parser.parse_args()
    json_file = options.out.with_suffix(".json")
    record: dict[str, Any] = {"sets": {}}
    if json_file.exists():
        record = json.loads(json_file.read_text())
    parts = [] if options.draw else options.parts

    def keep() -> None:
        json_file.write_text(json.dumps({**record, "machine": machine()}, indent=1) + "\n")

    for name in options.sets if "sets" in parts else []:
        level, seconds = PROOFS[name]
        with threadpool_limits(1):
            record["sets"][name] = run_set(
                load(name), KS[name], level, seconds, nspca=name in WITH_NSPCA
            )
        keep()
    if "sides" in parts:
        with threadpool_limits(1):
            record["sides"] = [
                {"set": name, "k": k, "values": sides(Data(load(name)), k)} for name, k in SIDES
            ]
            record["readings"] = readings(load("lrs"))
        keep()
    if "long" in parts:
        record["long"] = {name: [] for name in LONG}
        for name, ks in LONG.items():
            data = Data(load(name))
            for k in ks:
                with threadpool_limits(1):
                    x = data.run("auto", k)[0][:, 0]
                    proof = prove(data.problem(k), x, data.largest, "exact", LONG_SECONDS)
                record["long"][name].append({"k": k, "value": data.variance(x), **proof})
                keep()
    options.out.with_suffix(".md").write_text(markdown(record))
    draw(record, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()

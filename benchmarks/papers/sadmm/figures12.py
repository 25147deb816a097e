"""Figures 1 and 2: convergence and sensitivity of ADMM and SADMM over γ, ρ and λ.

Run: ``python -m benchmarks.papers.sadmm.figures12``. Needs KSPAN_DATA, and matplotlib for the
picture. Writes figures12.json, figures12.md and figures12.png beside this file; ``--draw`` only
draws from the JSON. ``--sets``, ``--shares`` and ``--grid`` run a part.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import machine
from benchmarks.papers.sadmm.data import real, synthetic
from benchmarks.papers.sadmm.scores import measures, objective
from kspan import as_covariance, solve
from kspan.problem import StiefelProblem

HERE = Path(__file__).parent
SETS = {"synthetic": 2, "colon": 3, "leukemia": 3, "duke": 3}  # and the number of components
GRID = tuple(10.0**power for power in range(-3, 4))
SHARES = (0.01, 0.05, 0.1, 0.2)  # λ, as shares of the largest useful one
SHOWN = 0.05  # of which the whole grid is shown: kspan's default
BETA, RHO_MAX = 1.05, 1e3  # ρ grows in both algorithms; so far in all runs of the grid
WITHIN = 0.02
ORTHONORMAL = 1e-8  # runs whose loadings are further from it do not count
HISTORY_STEPS = 300


def load(name: str) -> np.ndarray:
    """Return a data set of `SETS`."""
    return synthetic(1000, 1000)[0] if name == "synthetic" else real(name)


def one_lambda(
    X: np.ndarray, r: int, share: float, grid: tuple[float, ...] = GRID, penalty: str = "l1",
    init: str = "svd", histories: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Run both algorithms over the grid from one start, and the defaults."""
    covariance = as_covariance(X)
    alpha = share * StiefelProblem(covariance, r, 0.0, penalty).largest_alpha
    problem = StiefelProblem(covariance, r, alpha, penalty)

    def one(solver: str, **options: Any) -> dict[str, Any]:
        started = time.perf_counter()
        found = solve(problem, solver, random_state=0, **options)
        run: dict[str, Any] = {
            **objective(X, found.loadings, alpha, penalty),
            "nonzero": int(np.count_nonzero(found.loadings)),
            "orthogonality error": measures(X, found.loadings)["orthogonality error"],
            "steps": found.n_iter, "status": found.status.value,
            "seconds": time.perf_counter() - started,
        }  # fmt: skip
        if histories:
            run["history"] = [float(f"{value:.8g}") for value in found.history[:HISTORY_STEPS]]
        return run

    growing = {"beta": BETA, "rho_max": RHO_MAX, "init": init}
    return {
        "share": share, "alpha": alpha, "n_components": r, "penalty": penalty,
        "defaults": one("auto"),
        "defaults, svd start": one("sadmm"),
        "ADMM": [{"rho": rho, **one("admm", rho=rho, **growing)} for rho in grid],
        "SADMM": [
            {"gamma": gamma, "rho": rho, **one("sadmm", gamma=gamma, rho=rho, **growing)}
            for gamma in grid for rho in grid
        ],
    }  # fmt: skip


def run(
    names: list[str], shares: tuple[float, ...], grid: tuple[float, ...], penalty: str = "l1",
    init: str = "svd",
) -> dict[str, Any]:  # fmt: skip
    """Return {data set: one record for each λ}."""
    sets: dict[str, Any] = {}
    for name in names:
        X = load(name)
        sets[name] = [
            one_lambda(X, SETS[name], share, grid, penalty, init, name == "synthetic")
            for share in shares
        ]
    return sets


def value_of(run: dict[str, Any], which: str) -> float:
    """Return the objective of a run, infinite if its loadings are not orthonormal."""
    return run[which] if run["orthogonality error"] <= ORTHONORMAL else np.inf


def shown(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the record with the λ whose grid is shown."""
    return next((one for one in runs if one["share"] == SHOWN), runs[0])


def summary(record: dict[str, Any], which: str) -> dict[str, float]:
    """Return how the defaults and the grids compare in objective (2) or (4).

    Distances are relative to the best of the grid, of both algorithms: positive is worse. Runs
    that are not orthonormal count as infinitely far.
    """
    admm, sadmm = (np.array([value_of(run, which) for run in record[solver]])
                   for solver in ("ADMM", "SADMM"))  # fmt: skip
    best = min(admm.min(), sadmm.min())

    def away(values: Any) -> Any:
        return (values - best) / abs(best)

    def worst(distances: np.ndarray) -> float:
        return float(distances[np.isfinite(distances)].max())

    return {
        "best": float(best),
        "defaults": float(away(record["defaults"][which])),
        "defaults, svd start": float(away(record["defaults, svd start"][which])),
        "ADMM within": float(np.mean(away(admm) <= WITHIN)),
        "ADMM best": float(away(admm).min()), "ADMM worst": worst(away(admm)),
        "SADMM within": float(np.mean(away(sadmm) <= WITHIN)),
        "SADMM best": float(away(sadmm).min()), "SADMM worst": worst(away(sadmm)),
        "not orthonormal": int(np.isinf(admm).sum() + np.isinf(sadmm).sum()),
        "nonzero": record["defaults"]["nonzero"],
    }  # fmt: skip


def steadier(record: dict[str, Any], one: str, other: str) -> list[str]:
    """Return where more of one algorithm's grid than of the other's is near the best in (2)."""
    found = []
    for name, runs in record["sets"].items():
        for run in runs:
            s = summary(run, "(2)")
            if s[f"{one} within"] > s[f"{other} within"]:
                found.append(f"{name} λ={run['share']:g}")
    return found


def markdown(record: dict[str, Any]) -> str:
    """Return the table of summaries, and the grids at one λ."""
    lines = [
        "# Figures 1 and 2 of the SADMM paper, run again", "",
        "ADMM over rho, SADMM over gamma and rho, each from 0.001 to 1000, from the start "
        f"`{record['init']}`. gamma and rho are in kspan's units, multiples of the largest "
        "eigenvalue of the covariance, so that the grid means the same on every data set; λ is a "
        f"share of the largest useful one. rho grows by β={BETA} a step, up to {RHO_MAX:g}; at "
        "most 300 steps. `synthetic` is the paper's, 1000 by 1000.", "",
        "Objective (4) is -½‖XV‖²+λΩ(V), (2) is ½‖X-XVV'‖²+λΩ(V), which adds the constant "
        "½‖X‖²; both divided by n-1 and computed from data and the returned loadings, which are "
        "orthonormal and have zeros. The returned loadings are polished within their pattern, "
        "for both algorithms alike. Distances are relative to the best of the whole grid (both "
        "algorithms); negative is better than all of the grid. `defaults` is what "
        "StiefelSparsePCA does: rho up to 10, and of three starts with gamma=rho=0.3 and 0.1 the "
        "one that does best on the 1000 features of largest variance. "
        f"`within` is the share of the grid within {WITHIN:.0%} of the best; `nonzero` is the "
        "number of loadings of the defaults that are not zero. With few of them (4) is the "
        "difference of two terms of nearly the same size, and small differences look large in "
        "percent; (2) is what the paper minimises. `not orthonormal` counts runs of the grid "
        "whose loadings are not; they do not count.", "",
    ]  # fmt: skip
    for which in ("(4)", "(2)"):
        lines += [
            f"## Objective {which}", "",
            "| data | λ | nonzero | best | defaults | defaults, svd start | ADMM within "
            "| ADMM best … worst | SADMM within | SADMM best … worst | not orthonormal |",
            "|---" * 11 + "|",
        ]  # fmt: skip
        for name, runs in record["sets"].items():
            for one in runs:
                s = summary(one, which)
                lines.append(
                    f"| {name} | {one['share']:g} | {s['nonzero']} | {s['best']:.5g} | "
                    f"{s['defaults']:+.2%} | "
                    f"{s['defaults, svd start']:+.2%} | {s['ADMM within']:.0%} | "
                    f"{s['ADMM best']:.2%} … {s['ADMM worst']:.1%} | {s['SADMM within']:.0%} | "
                    f"{s['SADMM best']:.2%} … {s['SADMM worst']:.1%} | "
                    f"{s['not orthonormal'] or ''} |"
                )
        lines.append("")
    lines += [
        "The paper has SADMM vary less over the grid than ADMM. In these units it is so at: "
        + (", ".join(steadier(record, "SADMM", "ADMM")) or "none of them")
        + ". ADMM varies less (more of its grid is near the best) at: "
        + (", ".join(steadier(record, "ADMM", "SADMM")) or "none of them")
        + ". What spoils SADMM is a small gamma, or a gamma far from rho: its threshold λ/gamma "
        "stays, where that of ADMM, λ/rho, shrinks as rho grows.", "",
    ]  # fmt: skip
    lines += ["## The grids: objective (4), percent above the best", ""]
    for name, runs in record["sets"].items():
        one = shown(runs)
        best = summary(one, "(4)")["best"]
        rhos = [run["rho"] for run in one["ADMM"]]
        table = {(run["gamma"], run["rho"]): value_of(run, "(4)") for run in one["SADMM"]}
        ours = [value_of(run, "(4)") for run in one["ADMM"]]
        cells = " | ".join(f"{(value - best) / abs(best):.1%}" for value in ours)
        lines += [
            f"{name}, λ={one['share']:g}", "",
            "| gamma \\ rho | " + " | ".join(f"{rho:g}" for rho in rhos) + " |",
            "|---" * (len(rhos) + 1) + "|", f"| ADMM | {cells} |",
        ]  # fmt: skip
        for gamma in sorted({pair[0] for pair in table}):
            cells = " | ".join(f"{(table[gamma, rho] - best) / abs(best):.1%}" for rho in rhos)
            lines.append(f"| {gamma:g} | {cells} |")
        lines.append("")
    return "\n".join(lines)


def draw(record: dict[str, Any], path: Path) -> None:
    """Draw the histories on the first set, and the grids of all."""
    import matplotlib.pyplot as plt

    names = list(record["sets"])
    figure, axes = plt.subplots(
        2, max(len(names), 2), figsize=(4 * max(len(names), 2), 7.5), squeeze=False,
        constrained_layout=True,
    )  # fmt: skip
    one = shown(record["sets"][names[0]])
    for axis in axes[1, len(names) :]:
        axis.axis("off")
    for axis, solver in zip(axes[0], ("ADMM", "SADMM"), strict=False):
        for run in one[solver]:
            if "history" in run and (solver == "ADMM" or run["rho"] == 1.0):
                label = f"rho={run['rho']:g}" if solver == "ADMM" else f"gamma={run['gamma']:g}"
                axis.plot(run["history"], label=label)
        default = one["defaults"].get("history", [])
        axis.plot(default, "k--", label="defaults")
        more = "" if solver == "ADMM" else ", rho=1"
        axis.set(title=f"{solver}{more}, {names[0]}, λ={one['share']:g}", xlabel="step")
        axis.legend(fontsize=7)
    axes[0, 0].set_ylabel("objective (4) of V")
    for axis in axes[0, 2:]:
        axis.axis("off")
    for axis, name in zip(axes[1], names, strict=False):
        for one in record["sets"][name]:
            s = summary(one, "(4)")
            for solver, marker in (("ADMM", "o"), ("SADMM", "x")):
                away = [value_of(run, "(4)") / abs(s["best"]) for run in one[solver]]
                away = np.array(away) - np.sign(s["best"])
                where = np.full(len(away), np.log10(one["share"]))
                shift = -0.05 if solver == "ADMM" else 0.05
                color = "#d55e00" if solver == "ADMM" else "#0072b2"
                axis.plot(where + shift, np.maximum(away, 1e-5), marker, c=color, ms=4)
            axis.plot(np.log10(one["share"]), max(s["defaults"], 1e-5), "k*", ms=9)
        axis.axhline(WITHIN, color="k", lw=0.5)
        axis.set(title=name, xlabel="log₁₀ λ (share of the largest)", yscale="log")
    axes[1, 0].set_ylabel("above the best: ADMM o, SADMM x, defaults *")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    """Run it all and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--shares", nargs="+", type=float, default=SHARES)
    parser.add_argument("--grid", nargs="+", type=float, default=GRID)
    parser.add_argument("--penalty", default="l1", choices=("l1", "l21"))
    parser.add_argument("--init", default="svd", help="start of the grid's runs")
    parser.add_argument("--draw", action="store_true", help="only draw from the JSON")
    parser.add_argument("--out", type=Path, default=HERE / "figures12")
    options = parser.parse_args()
    json_file = options.out.with_suffix(".json")
    if not options.draw:
        with threadpool_limits(1):
            sets = run(
                options.sets, tuple(options.shares), tuple(options.grid), options.penalty,
                options.init,
            )  # fmt: skip
        record = {
            "machine": machine(), "penalty": options.penalty, "init": options.init, "sets": sets
        }  # fmt: skip
        json_file.write_text(json.dumps(record) + "\n")
    record = json.loads(json_file.read_text())
    options.out.with_suffix(".md").write_text(markdown(record))
    draw(record, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()

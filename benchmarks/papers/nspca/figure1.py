"""Figure 1: the spannogram of a matrix with four rows, and a real one.

At an angle φ the curves are the entries of Vc, c = (sin φ, cos φ). The k largest positive entries
change only where two curves cross, or one crosses zero. Run:
``python -m benchmarks.papers.nspca.figure1``. Needs KSPAN_DATA, and matplotlib for the picture.
Writes figure1.json and figure1.png beside this file; ``--draw`` only draws from the JSON.
"""

import argparse
import json
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.nspca.data import load
from benchmarks.papers.nspca.methods import Data
from kspan import NonnegativeProblem, as_covariance, solve

HERE = Path(__file__).parent
FOUR_ROWS = ((0.9, 0.35), (-0.25, 1.0), (-0.8, 0.45), (0.35, -0.55))
K = 2
LRS_K = 10


def curves(V: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Return Vc for every angle, in columns."""
    return np.asarray(V) @ np.array([np.sin(angles), np.cos(angles)])


def top_set(entries: np.ndarray, k: int) -> list[int]:
    """Return the k largest positive entries, or as many as there are."""
    order = np.argsort(-entries, kind="stable")[:k]
    return sorted(int(i) for i in order if entries[i] > 0)


def crossings(V: np.ndarray) -> list[dict[str, Any]]:
    """Return where two rows, or a row and zero, have the same value: angles in (-π/2, π/2]."""
    rows = np.vstack([V, np.zeros((1, 2))])
    found = []
    for i, j in combinations(range(len(rows)), 2):
        a, b = rows[i] - rows[j]  # a sin φ + b cos φ = 0
        angle = float(np.arctan2(-b, a))
        angle -= np.pi * np.ceil((angle - np.pi / 2) / np.pi)
        names = [i, j] if j < len(V) else [i, "zero"]
        found.append({"of": names, "angle": angle, "height": float(curves(rows, angle)[i])})
    return sorted(found, key=lambda one: one["angle"])


def intervals(V: np.ndarray, k: int) -> list[dict[str, Any]]:
    """Return the sets of Vc and of -Vc between crossings; neighbours with the same are one."""
    ends = [-np.pi / 2, *(one["angle"] for one in crossings(V)), np.pi / 2]
    found: list[dict[str, Any]] = []
    for low, high in pairwise(ends):
        if high - low < 1e-12:
            continue
        middle = curves(V, np.array([(low + high) / 2]))[:, 0]
        sets = {"plus": top_set(middle, k), "minus": top_set(-middle, k)}
        if found and all(found[-1][sign] == sets[sign] for sign in sets):
            found[-1]["to"] = high
        else:
            found.append({"from": low, "to": high, **sets})
    return found


def heights(V: np.ndarray, k: int, angles: np.ndarray) -> np.ndarray:
    """Return the larger sum of squares of the k largest positive entries of Vc and -Vc.

    Its maximum over all angles is the best ‖V'x‖² of a nonnegative unit x with k entries.
    """
    entries = curves(V, angles)
    both = [np.sort(np.maximum(sign * entries, 0.0), axis=0)[-k:] for sign in (1, -1)]
    return np.maximum(*(np.sum(one**2, axis=0) for one in both))


def best(V: np.ndarray, k: int) -> dict[str, Any]:
    """Return the optimum, as kspan's exact spannogram has it."""
    A = as_covariance(V @ V.T, kind="covariance")
    x = solve(NonnegativeProblem(A, 1, k), "spannogram", rank=2).loadings[:, 0]
    c = V.T @ x
    angle = float(np.arctan2(c[0], c[1]))
    sign = "plus"
    if not -np.pi / 2 < angle <= np.pi / 2:
        angle, sign = angle - np.pi * np.sign(angle), "minus"
    support = [int(i) for i in np.flatnonzero(x)]
    return {"angle": angle, "value": float(c @ c), "support": support, "sign": sign}


def describe(V: np.ndarray, k: int, *, everything: bool) -> dict[str, Any]:
    """Return what is drawn of one matrix."""
    one = {"V": np.round(V, 6).tolist(), "k": k, "best": best(V, k)}
    if everything:
        one |= {"crossings": crossings(V), "intervals": intervals(V, k)}
    else:
        one |= {"n_crossings": len(crossings(V)), "n_intervals": len(intervals(V, k))}
    return one


def run(X: np.ndarray, k: int) -> dict[str, Any]:
    """Return both spannograms; of real data that of the two leading eigenvectors."""
    data = Data(X)
    pairs = data.covariance.leading(2)
    V = pairs.vectors * np.sqrt(pairs.values / data.largest)
    V = V[:, ::-1]  # the leading one at φ = 0
    V = V if best(V, k)["sign"] == "plus" else -V
    return {
        "four rows": describe(np.array(FOUR_ROWS), K, everything=True),
        "lrs": describe(V, k, everything=False),
    }


# --- the picture


def draw(record: dict[str, Any], path: Path) -> None:
    """Draw the curves, the sets or how high they are, and the best angle."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2, 2, figsize=(12, 6), constrained_layout=True, height_ratios=(3, 1), sharex="col"
    )
    for one, axis in zip(record.values(), axes[0], strict=True):
        _draw_curves(axis, one, labelled="crossings" in one)
    _draw_sets(axes[1, 0], record["four rows"])
    _draw_heights(axes[1, 1], record["lrs"])
    axes[0, 0].set_title(f"four rows, k = {record['four rows']['k']}")
    lrs = record["lrs"]
    axes[0, 1].set_title(f"LRS, two leading eigenvectors, {len(lrs['V'])} rows, k = {lrs['k']}")
    for axis in axes[1]:
        axis.set(xlabel="φ", xlim=(-np.pi / 2, np.pi / 2))
        axis.set_xticks(np.linspace(-np.pi / 2, np.pi / 2, 5), ["-π/2", "-π/4", "0", "π/4", "π/2"])
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _draw_curves(axis: Any, one: dict[str, Any], *, labelled: bool) -> None:
    V, k = np.array(one["V"]), one["k"]
    angles = np.linspace(-np.pi / 2, np.pi / 2, 1501)
    entries = curves(V, angles)
    inside = np.zeros(entries.shape, dtype=bool)
    for j, column in enumerate(entries.T):
        inside[top_set(column, k), j] = True
    styles = ("-", "--", "-.", ":")
    for i, entry in enumerate(entries):
        style = styles[i] if labelled else "-"
        axis.plot(angles, entry, color="k" if labelled else "0.75", lw=0.8, ls=style)
        axis.plot(
            angles, np.where(inside[i], entry, np.nan), color="#56b4e9" if labelled else "#004c80",
            zorder=0.5 if labelled else 2.1,
            lw=7 if labelled else 2, solid_capstyle="butt",
            label=f"among the {k} largest positive ones" if i == 0 else None,
        )  # fmt: skip
        if labelled:
            axis.annotate(
                f"row {i + 1}", (angles[-1], entry[-1]), (4, 0), textcoords="offset points",
                va="center", fontsize=9,
            )  # fmt: skip
    axis.axhline(0, color="k", lw=1.5)
    marks = {"a row meets a row": ("o", "k"), "a row meets zero": ("s", "w")}
    for (label, (marker, face)), zero in zip(marks.items(), (False, True), strict=True):
        mine = [cross for cross in one.get("crossings", []) if (cross["of"][1] == "zero") == zero]
        places = [[cross[key] for cross in mine] for key in ("angle", "height")]
        if mine:
            axis.plot(*places, marker, color="k", ms=5, mfc=face, label=label)
    axis.axvline(one["best"]["angle"], color="#d55e00", ls=(0, (6, 3)), lw=1.2, label="the best φ")
    low, high = axis.get_ylim()
    axis.set_ylim(low - 0.2 * (high - low), high)
    axis.legend(fontsize=9, loc="lower center", ncol=2, framealpha=1)
    axis.set_ylabel("entries of V(sin φ, cos φ)'")


def _draw_sets(axis: Any, one: dict[str, Any]) -> None:
    for line, sign in enumerate(("minus", "plus")):
        merged: list[list[Any]] = []
        for part in one["intervals"]:
            if merged and merged[-1][2] == part[sign]:
                merged[-1][1] = part["to"]
            else:
                merged.append([part["from"], part["to"], part[sign]])
        for number, (low, high, members) in enumerate(merged):
            axis.barh(line, high - low, left=low, height=0.8, color=("0.9", "0.75")[number % 2])
            text = "{" + ",".join(str(i + 1) for i in members) + "}"
            axis.text((low + high) / 2, line, text, ha="center", va="center", fontsize=8)
    axis.axvline(one["best"]["angle"], color="#d55e00", ls=(0, (6, 3)), lw=1.2)
    axis.set_yticks([0, 1], ["of -Vc", "of Vc"])
    axis.set_ylabel(f"largest {one['k']}")


def _draw_heights(axis: Any, one: dict[str, Any]) -> None:
    angles = np.linspace(-np.pi / 2, np.pi / 2, 1501)
    axis.plot(angles, heights(np.array(one["V"]), one["k"], angles), color="k")
    axis.plot(one["best"]["angle"], one["best"]["value"], "*", color="#d55e00", ms=13, mec="k")
    axis.axvline(one["best"]["angle"], color="#d55e00", ls=(0, (6, 3)), lw=1.2)
    axis.set_ylabel("sum of\ntheir squares")
    axis.set_ylim(0, 1.15 * one["best"]["value"])
    axis.grid(alpha=0.3)


def main() -> None:
    """Run it and write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--k", type=int, default=LRS_K, help="features, of the real data")
    parser.add_argument("--draw", action="store_true", help="only draw from the JSON")
    parser.add_argument("--out", type=Path, default=HERE / "figure1")
    options = parser.parse_args()
    json_file = options.out.with_suffix(".json")
    if not options.draw:
        json_file.write_text(json.dumps(run(load("lrs"), options.k)) + "\n")
    draw(json.loads(json_file.read_text()), options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()

"""The picture: seconds against explained variance, a panel for each data set."""

from pathlib import Path
from typing import Any

from benchmarks.peers.race.table import comparable, on_front, plain_pca

# A marker for each peer, so that nothing depends on colour.
MARKERS = {
    "kspan auto": "*", "kspan ipu": "P", "kspan go": "X", "variance top-k": "v",
    "SparsePCA": "o", "MiniBatchSparsePCA": "s", "abess": "D", "sparsepca": "^",
    "skmatter CUR": "<", "skmatter FPS": ">", "fastcan": "p", "xeofs": "1",
}  # fmt: skip
OURS, THEIRS, LINE = "#c2410c", "#6b7280", "#111827"


def draw(record: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    names = list(record["sets"])
    columns = 4
    n_rows = -(-len(names) // columns)
    figure, axes = plt.subplots(n_rows, columns, figsize=(14, 3.5 * n_rows + 0.9), squeeze=False)
    for axis, name in zip(axes.flat, names, strict=False):
        _panel(axis, record, name)
    for axis in axes.flat[len(names) :]:
        axis.set_visible(False)
    for axis in axes[-1]:
        axis.set_xlabel("seconds of one fit")
    for axis in axes[:, 0]:
        axis.set_ylabel("explained variance, % of plain PCA's")
    handles = [
        Line2D([], [], linestyle="", marker=marker, label=peer, **_look(peer))
        for peer, marker in MARKERS.items()
    ]
    handles.append(Line2D([], [], color=LINE, linewidth=1, label="front"))
    figure.legend(handles=handles, loc="lower center", ncols=7, frameon=False)
    figure.suptitle("Three components on k features: up and to the left is better")
    figure.tight_layout(rect=(0, 0.085, 1, 1))
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _look(peer: str) -> dict[str, Any]:
    if peer.startswith("kspan"):
        return {"color": OURS, "markeredgecolor": "black", "markersize": 11, "markeredgewidth": 0.8}
    return {"color": "white", "markeredgecolor": THEIRS, "markersize": 7, "markeredgewidth": 1.4}


def _panel(axis: Any, record: dict[str, Any], name: str) -> None:
    rows, about = record["rows"], record["sets"][name]
    whole = plain_pca(rows, name)
    fair = comparable(rows, name)
    ahead = on_front(rows, name)
    x = [row["seconds"] for row in ahead]
    y = [100 * row["variance"] / whole for row in ahead]
    axis.step(x, y, where="post", color=LINE, linewidth=1, zorder=1)
    for row in sorted(fair, key=lambda row: row["environment"] == "kspan"):
        ours = row["environment"] == "kspan"
        height = 100 * row["variance"] / whole
        axis.plot(row["seconds"], height, linestyle="", marker=MARKERS[row["peer"]],
                  zorder=3 if ours else 2, **_look(row["peer"]))  # fmt: skip
    axis.set_xscale("log")
    axis.margins(x=0.1, y=0.1)
    axis.set_title(f"{about['title']}\nk={about['k']}", fontsize=10)
    axis.grid(visible=True, color="0.92")
    axis.set_axisbelow(True)
    gone = missing(record, name)
    if gone:
        axis.text(0.03, 0.03, "no result at k:\n" + "\n".join(gone), transform=axis.transAxes,
                  ha="left", va="bottom", fontsize=7, color="0.35")  # fmt: skip


def missing(record: dict[str, Any], name: str) -> list[str]:
    """Return the peers that have nothing to show at k on a data set."""
    there = {row["peer"] for row in comparable(record["rows"], name)}
    return [peer for peer in MARKERS if peer not in there]

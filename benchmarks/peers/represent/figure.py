"""The picture: what everybody misses of PCA on all features, a panel for each data set and m."""

from pathlib import Path
from typing import Any

from benchmarks.peers.represent.entries import ENTRIES, KS, MS
from benchmarks.peers.represent.table import is_open, of, pca, tasks

# A marker and a fill for each k, so that nothing depends on colour.
MARKERS = {20: ("o", "white"), 50: ("s", "0.65"), 200: ("D", "black")}
OURS = "#c2410c"


def missing(record: dict[str, Any], task: tuple[str, int, int]) -> dict[str, float]:
    """Return, by name, the share of PCA's value that is missing."""
    limit = pca(record, task)
    return {
        name: 1 - row["share"] / limit
        for name, row in of(record, task).items()
        if row["share"] is not None
    }


def draw(record: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    sets = list(record["sets"])
    figure, axes = plt.subplots(
        len(MS), len(sets), figsize=(15, 7), squeeze=False, sharey=True, sharex="col"
    )
    for line, m in zip(axes, MS, strict=True):
        for axis, name in zip(line, sets, strict=True):
            _panel(axis, record, name, m)
        line[0].set_yticks(range(len(ENTRIES)), [entry.name for entry in ENTRIES])
        line[0].set_ylabel(f"m = {m}", fontsize=12)
        for label, entry in zip(line[0].get_yticklabels(), ENTRIES, strict=True):
            label.set_fontweight("bold" if entry.is_ours else "normal")
    axes[0, 0].invert_yaxis()  # for all of them, as they share it
    for axis in axes[-1]:
        axis.set_xlabel("missing, %")
    handles = [
        Line2D([], [], linestyle="", marker=marker, markerfacecolor=fill, color="black",
               markersize=8, label=f"k = {k}")
        for k, (marker, fill) in MARKERS.items()
    ]  # fmt: skip
    handles.append(Line2D([], [], color=OURS, linestyle=":", label="kspan represent"))
    figure.legend(handles=handles, loc="lower center", ncols=4, frameon=False)
    figure.suptitle(
        "All features told from k of them: what is missing of what m principal components of "
        "everything explain (left is better)"
    )
    figure.tight_layout(rect=(0, 0.045, 1, 1))
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _panel(axis: Any, record: dict[str, Any], name: str, m: int) -> None:
    names = [entry.name for entry in ENTRIES]
    for k in KS:
        task = (name, m, k)
        if task not in tasks(record) or not is_open(record, task):
            continue
        marker, fill = MARKERS[k]
        found = missing(record, task)
        axis.axvline(100 * found[names[0]], color=OURS, linestyle=":", linewidth=1, zorder=1)
        axis.plot(
            [100 * value for value in found.values()], [names.index(one) for one in found],
            linestyle="", marker=marker, markerfacecolor=fill, markeredgecolor="black",
            markersize=7, zorder=2,
        )  # fmt: skip
    axis.set_xscale("log")
    axis.grid(visible=True, axis="y", color="0.92")
    axis.set_axisbelow(True)
    if m == MS[0]:
        axis.set_title(record["sets"][name]["title"].replace(", ", "\n", 1), fontsize=10)

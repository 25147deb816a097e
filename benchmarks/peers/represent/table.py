"""Tables, and who is ahead, from the record alone."""

from typing import Any

from benchmarks.peers.race.table import versions_of
from benchmarks.peers.represent.entries import ENTRIES, REPRESENT, VARIANCE

Row = dict[str, Any]
SAME = 1e-9  # shares that differ by less, relatively, are the same
NOTICED = 1.0  # seconds: below this, nobody waits

PEERS = tuple(entry.name for entry in ENTRIES if not entry.is_ours)


def tasks(record: dict[str, Any]) -> list[tuple[str, int, int]]:
    """Return data, m and k of every task, in the order of the record."""
    return list(dict.fromkeys((row["data"], row["m"], row["k"]) for row in record["rows"]))


def of(record: dict[str, Any], task: tuple[str, int, int]) -> dict[str, Row]:
    """Return the rows of one task by the name of who made them."""
    return {row["peer"]: row for row in record["rows"] if (row["data"], row["m"], row["k"]) == task}


def pca(record: dict[str, Any], task: tuple[str, int, int]) -> float:
    """Return the share that m principal components of all features explain: the limit."""
    limit: float = record["sets"][task[0]]["PCA"][str(task[1])]
    return limit


def is_open(record: dict[str, Any], task: tuple[str, int, int]) -> bool:
    """Say whether there is something to choose: k is below the rank, and below d."""
    return task[2] < record["sets"][task[0]]["rank"]


def verdict(record: dict[str, Any], task: tuple[str, int, int]) -> str:
    """Return "more", "same" or "less": kspan beside the best of the peers."""
    rows = of(record, task)
    ours = rows[REPRESENT]["share"]
    best = max(rows[peer]["share"] or 0.0 for peer in PEERS)
    if abs(ours - best) <= SAME * best:
        return "same"
    return "more" if ours > best else "less"


def slower(record: dict[str, Any], task: tuple[str, int, int]) -> list[str]:
    """Return the peers that take more than a second, and less than kspan."""
    rows = of(record, task)
    ours = rows[REPRESENT]["seconds"]
    times = {peer: rows[peer]["seconds"] for peer in PEERS if rows[peer]["share"] is not None}
    return [peer for peer, seconds in times.items() if NOTICED < seconds < ours]


def best_peer(record: dict[str, Any], task: tuple[str, int, int]) -> Row:
    """Return the row of the peer that tells most; of those that tell the same, the fastest."""
    rows = [row for peer, row in of(record, task).items() if peer in PEERS and row["share"]]
    most = max(row["share"] for row in rows)
    same = [row for row in rows if row["share"] >= most * (1 - SAME)]
    return min(same, key=lambda row: row["seconds"])


def summary(record: dict[str, Any]) -> str:
    """Return one line for each task with something to choose: kspan and all others."""
    names = (REPRESENT, VARIANCE, *PEERS)
    lines = [
        "| data | m | k | PCA, all features | " + " | ".join(_bold(name) for name in names) + " |",
        "|---" * (4 + len(names)) + "|",
    ]
    for task in tasks(record):
        if not is_open(record, task):
            continue
        rows, limit = of(record, task), pca(record, task)
        most = max(row["share"] or 0.0 for row in rows.values())
        cells = [record["sets"][task[0]]["title"], str(task[1]), str(task[2]), f"{limit:.2%}"]
        for name in names:
            share = rows[name]["share"]
            text = "–" if share is None else f"{share:.2%}"
            cells.append(f"**{text}**" if share and share >= most * (1 - SAME) else text)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def outcome(record: dict[str, Any]) -> str:
    """Return who is ahead how often, in words."""
    free = [task for task in tasks(record) if is_open(record, task)]
    settled = [task for task in tasks(record) if not is_open(record, task)]
    verdicts = [verdict(record, task) for task in free]
    gaps = [_gap(record, task) for task in free]
    late = [task for task in free if slower(record, task)]
    text = (
        f'Of {len(free)} tasks with fewer features than the rank, `criterion="represent"` tells '
        f"more than every peer in {verdicts.count('more')}, as much as the best of them in "
        f"{verdicts.count('same')}, and less in {verdicts.count('less')}. What it misses of PCA on "
        f"all features is {min(gaps):.2g} to {max(gaps):.2g} of it. "
    )
    text += (
        "It never takes longer than a peer that takes more than a second."
        if not late
        else f"In {len(late)} of them a peer that takes more than a second is faster."
    )
    return text + (
        f" In the other {len(settled)} tasks k is not below the rank: whoever chooses features "
        "that span the samples is level with PCA."
    )


def _gap(record: dict[str, Any], task: tuple[str, int, int]) -> float:
    return 1 - of(record, task)[REPRESENT]["share"] / pca(record, task)


def _bold(name: str) -> str:
    return f"**{name}**" if name in (REPRESENT, VARIANCE) else name


def markdown(record: dict[str, Any]) -> str:
    """Return all tasks, with shares, seconds, and why an answer is missing."""
    lines = [
        "# How much of a whole table can be told from k of its features", "",
        "The share of the variance of **all** features that the best m combinations of the "
        "k chosen ones explain by linear regression. Data as `kspan.datasets.load_dataset` "
        "gives it, centred, neither scaled nor transformed. We compute every share from the "
        "chosen features and the data, in float64, with numpy. Seconds are medians of one "
        "to ten fits on one core. [What it means](../../../docs/which_question.md).", "",
        outcome(record), "",
        "| data | m | k | PCA | kspan represent | misses of PCA | seconds | best peer | its share "
        "| its seconds | kspan tells | faster peers above a second |",
        "|---" * 12 + "|",
    ]  # fmt: skip
    for task in tasks(record):
        ours, best = of(record, task)[REPRESENT], best_peer(record, task)
        told = verdict(record, task) if is_open(record, task) else "k ≥ rank"
        cells = [
            record["sets"][task[0]]["title"], str(task[1]), str(task[2]),
            f"{pca(record, task):.5%}", f"{ours['share']:.5%}", f"{_gap(record, task):.1e}",
            f"{ours['seconds']:.2g}", best["peer"], f"{best['share']:.5%}",
            f"{best['seconds']:.2g}", told, ", ".join(slower(record, task)) or "–",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "## Everybody", ""]
    lines += ["| data | m | k | who | share | seconds | note |", "|---" * 7 + "|"]
    for row in record["rows"]:
        share = "–" if row["share"] is None else f"{row['share']:.5%}"
        seconds = "–" if row["seconds"] is None else f"{row['seconds']:.2g}"
        note = row["note"].replace("|", "/").replace("<", "&lt;").replace("`", "'")
        cells = [
            row["data"],
            str(row["m"]),
            str(row["k"]),
            _bold(row["peer"]),
            share,
            seconds,
            note,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *versions_of(record), ""])

"""Tables and the front, from the record alone."""

import statistics
from typing import Any

from benchmarks.peers.race.entries import ENTRIES

Row = dict[str, Any]
SAME = 1e-9  # variances that differ by less, relatively, are the same


def front(points: list[tuple[float, float]]) -> list[bool]:
    """Say of each (seconds, variance) whether no other is as good in both and better in one.

    Examples
    --------
    >>> front([(1.0, 5.0), (2.0, 9.0), (3.0, 7.0)])
    [True, True, False]
    """
    return [not any(_beats(other, one) for other in points) for one in points]


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    margin = SAME * abs(other[1])
    as_good = one[0] <= other[0] and one[1] >= other[1] - margin
    return as_good and (one[0] < other[0] or one[1] > other[1] + margin)


def finished(rows: list[Row], name: str) -> list[Row]:
    """Return the rows of a data set that have a result."""
    return [row for row in rows if row["data"] == name and row["status"] == "ok"]


def comparable(rows: list[Row], name: str) -> list[Row]:
    """Return the rows of a data set that use features, and at most k of them."""
    return [row for row in finished(rows, name) if 0 < row["features"] <= row["k"]]


def on_front(rows: list[Row], name: str) -> list[Row]:
    """Return the comparable rows that no other beats, fastest first."""
    fair = comparable(rows, name)
    flags = front([(row["seconds"], row["variance"]) for row in fair])
    return sorted(
        (row for row, flag in zip(fair, flags, strict=True) if flag),
        key=lambda row: row["seconds"],
    )


def plain_pca(rows: list[Row], name: str) -> float:
    """Return what plain PCA explains with all features."""
    return max(row["variance"] for row in finished(rows, name) if row["peer"] == "PCA")


def summary(record: dict[str, Any]) -> str:
    """Return one line for each data set: kspan beside the best of the others."""
    lines = [
        "| data | k | kspan auto: seconds | kspan ipu: variance, auto's = 100% | seconds "
        "| best peer with at most k features | variance, auto's = 100% | seconds "
        "| peers without an answer at k |",
        "|---" * 9 + "|",
    ]
    for name, about in record["sets"].items():
        fair = comparable(record["rows"], name)
        auto, ipu = (_of(fair, "kspan " + solver) for solver in ("auto", "ipu"))
        theirs = [row for row in fair if row["environment"] != "kspan"]
        best = max(theirs, key=lambda row: row["variance"])
        there = {row["peer"] for row in fair}
        gone = [
            row["peer"]
            for row in record["rows"]
            if row["data"] == name and row["line"] == "at k" and row["peer"] not in there
        ]
        cells = [
            about["title"], str(about["k"]), f"{auto['seconds']:.2g}",
            f"{ipu['variance'] / auto['variance']:.2%}", f"{ipu['seconds']:.2g}", best["peer"],
            f"{best['variance'] / auto['variance']:.2%}", f"{best['seconds']:.2g}",
            ", ".join(dict.fromkeys(gone)) or "–",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def glance(record: dict[str, Any]) -> str:
    """Return one line for each package that chooses features, over all data sets."""
    given = {"exact": "k", "cardinality": "a number for each component", "penalty": "a penalty"}
    lines = [
        "| | is told | answers | variance on the same k features, `auto` = 100% "
        "| of all features, told by three scores on them, PCA = 100% | time, `ipu` = 1 | proof |",
        "|---" * 7 + "|",
    ]
    sets = list(record["sets"])
    fair = {name: comparable(record["rows"], name) for name in sets}
    for entry in ENTRIES:
        if entry.kind == "reference":
            continue
        found = [
            (row, _of(fair[name], "kspan auto"), _of(fair[name], "kspan ipu"))
            for name in sets
            for row in fair[name]
            if row["peer"] == entry.name and row["line"] == "at k"
        ]
        shares = [row["variance"] / auto["variance"] for row, auto, _ in found]
        told = [
            row["told"] / record["sets"][row["data"]]["told by PCA"]
            for row, _, _ in found
            if row["told"] is not None
        ]
        times = [row["seconds"] / ipu["seconds"] for row, _, ipu in found]
        cells = [
            f"**{entry.name}**" if entry.is_ours else entry.name, given[entry.kind],
            f"{len({row['data'] for row, _, _ in found})} of {len(sets)}",
            _range([f"{share:.1%}" for share in sorted(shares)]),
            _range([f"{share:.1%}" for share in sorted(told)]),
            _range([f"{_two_digits(time)}" for time in sorted(times)]),
            "yes" if entry.is_ours else "no",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
        if entry.name == "kspan go":  # the last of ours
            lines.append(_representing(record, fair))
    return "\n".join(lines)


def _representing(record: dict[str, Any], fair: dict[str, list[Row]]) -> str:
    """Return the line of the criterion that is about the second measure."""
    shares, told, times = [], [], []
    for name, about in record["sets"].items():
        ours = about["represent"]
        shares.append(ours["variance"] / _of(fair[name], "kspan auto")["variance"])
        told.append(ours["told"] / about["told by PCA"])
        # `ipu` of the same run: times of different days are not compared.
        times.append(statistics.median(ours["times"]) / statistics.median(ours["times of ipu"]))
    cells = [
        '**kspan, `criterion="represent"`**', "k", f"{len(shares)} of {len(shares)}",
        _range([f"{share:.1%}" for share in sorted(shares)]),
        _range([f"{share:.1%}" for share in sorted(told)]),
        _range([f"{_two_digits(time)}" for time in sorted(times)]), "yes",
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _two_digits(value: float) -> str:
    return f"{float(f'{value:.2g}'):,g}"


def _range(texts: list[str]) -> str:
    if not texts:
        return "–"
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"


def _of(rows: list[Row], peer: str) -> Row:
    return next(row for row in rows if row["peer"] == peer)


COLUMNS = (
    "peer", "line", "features", "explained variance", "of the best at k", "of plain PCA",
    "told of all features, PCA's = 100%",
    "seconds", "CPU s", "peak MB (the fit's)", "orthogonality error", "front", "note",
)  # fmt: skip


def markdown(record: dict[str, Any]) -> str:
    """Return a table for each data set, and the versions."""
    m = record["m"]
    lines = [
        "# The race", "",
        f"{m} components that use k features together, on one core. Variances are computed by us, "
        "in float64, from the data. *At k* of a method with a penalty is the best of the fits of a "
        "search; its seconds are those of this one fit. *Front*: nobody with at most k features "
        "is both as fast and as good. *Told of all features*: what three scores on the same "
        "features explain of the variance of all features, by linear regression. "
        "[What it means](../../../docs/race.md).", "",
    ]  # fmt: skip
    for name, about in record["sets"].items():
        lines += [
            f"## {about['title']}, k={about['k']}", "",
            f"At most {about['seconds']:g} s for a fit and {about['memory']:g} GiB.", "",
        ]  # fmt: skip
        lines += ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
        lines += _table(record, name)
        lines.append("")
    return "\n".join([*lines, *versions_of(record), ""])


def versions_of(record: dict[str, Any]) -> list[str]:
    """Return what was measured, and where, as the last lines of a page."""
    machine = record["machine"]
    return [
        "## Versions", "", "| environment | packages |", "|---|---|",
        *(f"| {name} | " + ", ".join(f"{key} {value}" for key, value in versions.items()) + " |"
          for name, versions in record["environments"].items()),
        "", f"Python {machine['python']}, {machine['processor']}, one core of "
        f"{machine['cores']}, {machine['date']}.",
    ]  # fmt: skip


def _table(record: dict[str, Any], name: str) -> list[str]:
    rows = record["rows"]
    best = max(row["variance"] for row in comparable(rows, name))
    whole = plain_pca(rows, name)
    most = record["sets"][name]["told by PCA"]
    ahead = on_front(rows, name)
    of_set = [row for row in rows if row["data"] == name]
    good = sorted((row for row in of_set if row["status"] == "ok"), key=_rank)
    bad = [row for row in of_set if row["status"] != "ok"]
    lines = []
    for row in good:
        fair = 0 < row["features"] <= row["k"]
        cells = [
            _name(row), row["line"], str(row["features"]), f"{row['variance']:.6g}",
            f"{row['variance'] / best:.2%}" if fair else "–", f"{row['variance'] / whole:.1%}",
            "–" if row.get("told") is None else f"{row['told'] / most:.1%}",
            f"{row['seconds']:.3g}", f"{statistics.median(row['cpu times']):.3g}",
            f"{row['peak MB']:.0f} ({row['fit MB']:.0f})",
            "–" if row["orthogonality"] is None else f"{row['orthogonality']:.1e}",
            "yes" if row in ahead else "", row["note"],
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    for row in bad:
        blank = " | ".join(["–"] * 9)
        message = row["message"].replace("|", "/").replace("<", "&lt;").replace("`", "'")
        note = f"; {row['note']}" if row["note"] else ""
        lines.append(f"| {_name(row)} | {row['line']} | {blank} | | **failed**: {message}{note} |")
    return lines


def _rank(row: Row) -> tuple[int, float]:
    """At most k features first, best first; then the others."""
    return (0 if 0 < row["features"] <= row["k"] else 1, -row["variance"])


def _name(row: Row) -> str:
    return f"**{row['peer']}**" if row["environment"] == "kspan" else row["peer"]

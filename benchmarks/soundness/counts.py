"""What was tried, by kind of problem and by route, added up over runs; and its table."""

import json
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure import fill, machine
from benchmarks.soundness.all_routes import ROUTES
from benchmarks.soundness.claims import TOLERANCE, Judgement

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "certificates.md"

# What is added up; of `worst` the largest is kept.
ADDED = (
    "certificates", "values", "forgeries", "accepted", "refused", "grazed", "net_missed",
    "net_expected",
)  # fmt: skip


@dataclass
class Count:
    """Of one kind of problem on one route."""

    cases: int = 0
    certificates: int = 0
    values: int = 0
    forgeries: int = 0
    accepted: int = 0
    refused: int = 0
    net_missed: int = 0
    net_expected: float = 0.0
    wrong: int = 0
    grazed: int = 0
    worst: float = 0.0
    seconds: float = 0.0

    def add(self, other: "Count") -> None:
        """Add another one up."""
        for name, value in asdict(other).items():
            mine = getattr(self, name)
            setattr(self, name, max(mine, value) if name == "worst" else mine + value)


@dataclass
class Counts:
    """All of them, and the runs that they come from."""

    by_place: dict[tuple[str, str], Count] = field(default_factory=lambda: defaultdict(Count))
    runs: list[dict[str, Any]] = field(default_factory=list)
    mended: list[dict[str, Any]] = field(default_factory=list)  # what they found: cases, sentence

    def note(self, kind: str, route: str, judgement: Judgement, seconds: float) -> None:
        """Count one case."""
        tried = {name: getattr(judgement, name) for name in ADDED}
        self.by_place[kind, route].add(
            Count(cases=1, wrong=int(bool(judgement.wrong)), worst=judgement.worst,
                  seconds=seconds, **tried)
        )  # fmt: skip

    def add(self, other: "Counts") -> None:
        """Add another run up."""
        for place, count in other.by_place.items():
            self.by_place[place].add(count)
        self.runs += other.runs
        self.mended += other.mended

    @property
    def n_open(self) -> int:
        """How many of the cases that were wrong are not mended since."""
        return self.total().wrong - sum(one["cases"] for one in self.mended)

    def total(self, kind: str | None = None, route: str | None = None) -> Count:
        """Return the sum over all of a kind, of a route, or over all."""
        whole = Count()
        for (its_kind, its_route), count in self.by_place.items():
            if kind in (None, its_kind) and route in (None, its_route):
                whole.add(count)
        return whole

    def kinds(self) -> list[str]:
        """Return the kinds of problems that were tried."""
        return sorted({kind for kind, _ in self.by_place})

    def routes(self) -> list[str]:
        """Return the routes that were tried, and those that were not."""
        tried = {route for _, route in self.by_place}
        return [*ROUTES, *sorted(tried - set(ROUTES))]

    def net_is_honest(self) -> bool:
        """Say whether bounds that hold with a probability fail no more often than they may."""
        whole = self.total()
        return whole.net_missed <= whole.net_expected + 5 * whole.net_expected**0.5 + 3

    # --- files

    def as_record(self) -> dict[str, Any]:
        """Return what the JSON file holds."""
        rows = [
            {"kind": kind, "route": route, **asdict(count)}
            for (kind, route), count in sorted(self.by_place.items())
        ]
        return {"machine": machine(), "runs": self.runs, "mended": self.mended, "rows": rows}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "Counts":
        """Read what `as_record` made."""
        counts = cls(runs=list(record["runs"]), mended=list(record.get("mended", ())))
        for row in record["rows"]:
            numbers = {name: row[name] for name in row if name not in ("kind", "route")}
            counts.by_place[row["kind"], row["route"]] = Count(**numbers)
        return counts


def add_to_files(counts: Counts, folder: Path = HERE) -> None:
    """Add a run to the JSON file, and make the table from it."""
    place = folder / "soundness.json"
    whole = Counts()
    if place.exists():
        whole = Counts.from_record(json.loads(place.read_text()))
    whole.add(counts)
    record = whole.as_record()
    place.write_text(as_text(record))
    (folder / "soundness.md").write_text(markdown(record))
    if folder == HERE:
        fill(PAGE, "soundness.json", summary(record))


def as_text(record: dict[str, Any]) -> str:
    """Return a record as JSON with a line for each row: hundreds of them, and changes are seen."""
    parts = [f'"machine": {json.dumps(record["machine"])}']
    for name in ("runs", "mended", "rows"):
        lines = ",\n".join(json.dumps(row) for row in record[name])
        parts.append(f'"{name}": [\n{lines}\n]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def summary(record: dict[str, Any]) -> str:
    """Return the sentences of docs/certificates.md."""
    counts = Counts.from_record(record)
    whole = counts.total()
    quick = [counts.total(route=name) for name, route in ROUTES.items() if not route.slow]
    least = min(count.certificates for count in quick if count.certificates)
    return (
        "A fuzzer (`benchmarks/soundness`) makes problems of all kinds, small enough to try every "
        "choice of features in extended precision by code that shares nothing with kspan. So far: "
        f"{whole.certificates:,} certificates on {len(counts.kinds())} kinds of data and "
        f"{len(counts.routes())} routes (at least {least:,} on each of the quick ones), "
        f"{whole.values:,} bounds for other k, {whole.forgeries:,} forged or damaged certificates "
        f"and records. **{counts.n_open:,} are wrong** by more than {TOLERANCE:g} of the optimum"
        f"{_mended(counts)}; "
        f"within that, the worst is off by {whole.worst:.1e}. The counts by kind and route are in "
        "`benchmarks/soundness/soundness.md`."
    )


def _mended(counts: Counts) -> str:
    """Say what was found in these runs and is mended since."""
    if not counts.mended:
        return ""
    found = "; ".join(f"{one['cases']} × {one['what']}" for one in counts.mended)
    return f" (found in these runs, mended since, each with a test: {found})"


def markdown(record: dict[str, Any]) -> str:
    """Return the table of a record."""
    counts = Counts.from_record(record)
    whole, computer = counts.total(), record["machine"]
    lines = [
        "# How certificates were tried", "",
        f"{whole.certificates:,} certificates, {whole.values:,} values of `upper_at` and of bands, "
        f"{whole.forgeries:,} forgeries: **{counts.n_open:,} wrong**{_mended(counts)}. "
        f"In {len(counts.runs)} run(s), "
        f"{whole.seconds:,.0f} seconds of one core.", "",
        f"Wrong is a bound on the wrong side by more than {TOLERANCE:g} of the optimum, a false "
        '"optimal", a feature falsely proved in or out, an honest certificate that `verify` '
        "refuses, a false one that it accepts, or a crash. Within that tolerance, "
        f"{whole.grazed:,} bounds were on the wrong side at all, the worst by a share of "
        f"{whole.worst:.1e}. Bounds that hold with a probability only missed "
        f"{whole.net_missed:,} times where up to {whole.net_expected:.1f} are expected.", "",
        f"Python {computer['python']} on {computer['processor']}, numpy "
        f"{computer['versions']['numpy']}, {computer['cores']} cores, {computer['date']}. "
        "`python -m benchmarks.soundness --seconds 60 --add` adds to it.", "",
    ]  # fmt: skip
    lines += ["## By route", "", *_table("route", counts, counts.routes()), ""]
    lines += ["## By kind of problem", "", *_table("kind", counts, counts.kinds()), ""]
    lines += ["## Certificates and forgeries by kind and route", "", *_matrix(counts), ""]
    return "\n".join(lines)


def _table(what: str, counts: Counts, names: list[str]) -> list[str]:
    lines = [
        f"| {what} | certificates | values | forgeries | true all the same | refused | wrong "
        "| within tolerance | worst of these | seconds |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name in names:
        count = counts.total(**{what: name})
        slow = " (slow)" if what == "route" and name in ROUTES and ROUTES[name].slow else ""
        lines.append(
            f"| {name}{slow} | {count.certificates:,} | {count.values:,} | {count.forgeries:,} | "
            f"{count.accepted:,} | {count.refused:,} | {count.wrong:,} | {count.grazed:,} | "
            f"{count.worst:.1e} | {count.seconds:,.0f} |"
        )
    return lines


def _matrix(counts: Counts) -> list[str]:
    kinds = counts.kinds()
    lines = ["| route | " + " | ".join(kinds) + " |", "|---" + "|--:" * len(kinds) + "|"]
    for route in counts.routes():
        cells = []
        for kind in kinds:
            count = counts.total(kind, route)
            cells.append(f"{count.certificates + count.forgeries:,}")
        lines.append(f"| {route} | " + " | ".join(cells) + " |")
    return lines

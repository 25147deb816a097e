"""What the tables of the page say, as texts."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kspan.arrays import FloatArray, Index
from kspan.cards import counted as count
from kspan.cards import unsigned_zero
from kspan.figures.appearance import component_names, shorten, signed
from kspan.progress import Status
from kspan.records import FitRecord
from kspan.report.wording import number, percent, place, plain, seconds

# The page shows no more features than this; the CSV has all.
MOST_ROWS = 2000

Fact = tuple[str, str]
Row = tuple[str, list[str], str]


@dataclass(frozen=True)
class Cell:
    """A number for people, and its exact value to sort by."""

    text: str
    value: float


def order(record: FitRecord) -> Index:
    """Return the places in `record.support` from the largest contribution to the smallest."""
    return np.argsort(-contributions(record), kind="stable")


def contributions(record: FitRecord) -> FloatArray:
    """Return the squared loadings of each feature, as a share of all."""
    squares = (record.loadings**2).sum(axis=1)
    total = squares.sum()
    return squares / total if total > 0 else squares


def csv_columns(record: FitRecord) -> list[str]:
    """Return the header of the CSV, and of the table."""
    columns = ["feature", "index", *component_names(record.n_components)]
    columns.append("contribution")
    if record.stability is not None:
        columns.append("frequency")
    return [*columns, *(name for name, _ in _rule_columns(record))]


def _rule_columns(record: FitRecord) -> list[tuple[str, list[Any]]]:
    """Return the group and the cost of each chosen feature, where there are rules about them."""
    found: list[tuple[str, list[Any]]] = []
    if record.groups is not None:
        found.append(("group", [label or "" for label in record.groups]))
    if record.costs is not None:
        found.append(("cost", record.costs.tolist()))
    return found


def csv_rows(record: FitRecord) -> list[list[Any]]:
    """Return a row of exact numbers for each feature, the largest contribution first."""
    shares, names, repeated = contributions(record), record.selected_names, record.stability
    rows, more = [], _rule_columns(record)
    for i in order(record):
        index = int(record.support[i])
        row = [names[i], index, *(record.loadings[i] + 0.0).tolist(), float(shares[i])]
        row += [] if repeated is None else [float(repeated.frequencies[index])]
        rows.append([*row, *(values[i] for _, values in more)])
    return rows


def feature_rows(record: FitRecord) -> list[tuple[str, list[Cell]]]:
    """Return name and cells of each feature."""
    m, rows, named = record.n_components, [], len(_rule_columns(record))
    labels = sorted(set(record.groups or []), key=str)
    for name, index, *values in csv_rows(record)[:MOST_ROWS]:
        shares, own = values[m : len(values) - named], values[len(values) - named :]
        cells = [Cell(f"{index}", index)]
        cells += [Cell(signed(value), value) for value in values[:m]]
        cells += [Cell(percent(value), value) for value in shares]
        for value in own:
            place = 1 + labels.index(value or None) if isinstance(value, str) else value
            cells.append(Cell(value if isinstance(value, str) else f"{value:g}", place))
        rows.append((name, cells))
    return rows


def asked(record: FitRecord) -> list[Fact]:
    """Return what the fit was asked to do, and with which data."""
    d = record.n_features
    size = f"a covariance of {count(d, 'feature')}"
    if record.n_samples is not None:
        size = f"{count(record.n_samples, 'sample')} × {count(d, 'feature')}"
    facts = [
        ("Data", place(record.source) or "without a name"),
        ("Size", f"{size}, {record.dtype}"),
        ("SHA-256", record.fingerprint),
        ("Estimator", record.estimator),
    ]
    if record.weights is not None:
        facts.append(("Sample weights", f"SHA-256 {record.weights}"))
    if record.n_missing:
        values = f"{count(record.n_missing, 'value')}, {percent(record.missing_share, 2)}"
        facts.append(("Missing", f"{values} of the table"))
    if record.indefiniteness:
        eigenvalue = number(-record.indefiniteness, 2)
        facts.append(("Smallest eigenvalue", f"{eigenvalue} of the largest one"))
    seed = record.parameters.get("random_state")
    facts.append(("Seed", "none was set" if seed is None else plain(seed)))
    for name, value in record.set_parameters.items():
        if name in ("include", "exclude") and value is not None:
            facts.append((name, _features(record, value)))
        elif name in ("groups", "costs") and value is not None:
            facts.append((name, f"of {count(len(value), 'feature')}"))
        elif name != "random_state":
            facts.append((name, plain(value)))
    return facts


def _features(record: FitRecord, places: list[int], most: int = 20) -> str:
    names = record.feature_names
    texts = [shorten(names[i], 60) if names else str(i) for i in places[:most]]
    more = len(places) - most
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "") or "none"


def proof_columns(record: FitRecord) -> list[str]:
    """Return the headings of the certificates."""
    proofs = record.certificates
    if record.is_row_sparse or record.is_joint or record.n_components == 1:
        return ["value"] * len(proofs)
    return [f"component {j + 1}" for j in range(len(proofs))]


def proof_rows(record: FitRecord) -> list[Row]:
    """Return name, values (one for each certificate) and meaning."""
    proofs, meaning = record.certificates, "variance explained"
    if record.n_components > 1 and not record.is_row_sparse:
        meaning = "variance of the component, in what those before it left"
        if record.is_joint:
            meaning = "variances of all components added up, tr(V'AV)"
    return [
        ("lower", [number(p.lower, 10) for p in proofs], meaning),
        ("upper", [number(p.upper, 10) for p in proofs], "no choice can exceed it"),
        ("gap", [f"{p.gap:.3g}" for p in proofs], "share of the optimum lost, at most"),
        ("status", [p.status.value for p in proofs], "how the proof ended"),
        ("level", [p.level for p in proofs], "what was asked for"),
        ("method", [p.method for p in proofs], "which bound is the best"),
        ("nodes", [f"{p.n_nodes:,}" for p in proofs], "of the search tree"),
        ("eigensolves", [f"{p.n_eigensolves:,}" for p in proofs], ""),
        ("seconds", [seconds(p.seconds) for p in proofs], ""),
        ("proved in", [f"{p.proved_in.size:,}" for p in proofs], "in every optimal choice"),
        ("proved out", [f"{p.proved_out.size:,}" for p in proofs], "in no optimal choice"),
        ("confidence", [_sure(p.confidence) for p in proofs], "that upper holds"),
        ("digest", [p.digest for p in proofs], "SHA-256 of the proof"),
    ]


def _sure(confidence: float) -> str:
    return "certain" if confidence == 1 else f"{confidence:.6g}"


def advice(record: FitRecord) -> list[str]:
    """Return what to do about the way the proofs ended, each sentence once."""
    return list(dict.fromkeys(proof.advice for proof in record.certificates))


def variance_columns(record: FitRecord) -> list[str]:
    """Return the headings of the variances."""
    columns = ["component", "variance", "share of total"]
    pca = ["plain PCA", "its share", "kept"] if record.pca_variance is not None else []
    return [*columns, *pca]


def variance_rows(record: FitRecord) -> list[list[str]]:
    """Return a row for each component, and one for all."""
    m, total = record.n_components, record.total_variance
    sparse = np.append(record.explained_variance, record.explained_variance.sum())
    pca = record.pca_variance
    plain_pca = None if pca is None else np.append(pca, pca.sum())
    rows = []
    for j, (name, value) in enumerate(zip([*component_names(m), "all"], sparse, strict=True)):
        row = [name, number(value), _share(value, total)]
        if plain_pca is not None:
            of_pca = plain_pca[j]
            row += [number(of_pca), _share(of_pca, total), _share(value, of_pca)]
        rows.append(row)
    return rows


def _share(part: float, whole: float) -> str:
    return unsigned_zero(f"{100 * part / whole:.2f}%") if whole > 0 else ""


def path_columns(record: FitRecord) -> list[str]:
    """Return the headings of the path: a limit and a gap, or the gaps of single components."""
    path, bounds = record.path, ["limit", "gap"]
    if path is not None and not path.is_bounded:
        bounds = [f"gap of {name}" for name in component_names(record.n_components)]
    told = [] if path is None or path.panel is None else ["scores tell", "features tell"]
    return ["k", "found", *bounds, *told]


def path_rows(record: FitRecord) -> list[list[str]]:
    """Return a row for each k of the path."""
    path = record.path
    if path is None:
        return []
    columns = path.columns()
    values = [path.objective, path.upper] if path.is_bounded else [path.objective]
    gaps = [column for name, column in columns.items() if name.startswith("gap")]
    told = [columns[name] for name in ("represented", "panel") if name in columns]
    texts = [
        *([number(value) for value in column] for column in values),
        *([_gap(gap) for gap in column] for column in gaps),
        *([percent(share) for share in column] for column in told),
    ]
    return [[f"{k}", *row] for k, *row in zip(path.k, *texts, strict=True)]


def budget_rows(record: FitRecord) -> list[list[str]]:
    """Return a row for each budget: what it buys, and what it could buy at most."""
    path = record.budget_path
    if path is None:
        return []
    sizes = [support.size for support in path.supports]
    rows = zip(path.budget, path.spent, sizes, path.objective, path.upper, path.gap, strict=True)
    return [
        [f"{budget:g}", f"{spent:g}", f"{size}", number(value), number(most), _gap(gap)]
        for budget, spent, size, value, most, gap in rows
    ]


def _gap(gap: float) -> str:
    return "not proved" if np.isnan(gap) else f"{gap:.2%}"


def made_with(record: FitRecord) -> list[Fact]:
    """Return how, when and with what the fit was made."""
    known = {status.value: status.advice for status in Status}
    ended = f"{record.status}. {known[record.status]}" if record.status in known else record.status
    facts = [
        ("Solver", record.solver),
        ("Ended", ended),
        ("Steps", f"{record.n_iter:,}"),
        ("Passes over data", f"{record.n_passes:,}"),
        ("Time", seconds(record.seconds)),
        ("Made", record.created.replace("T", " ") or "not recorded"),
    ]
    return [*facts, *record.environment.items()]

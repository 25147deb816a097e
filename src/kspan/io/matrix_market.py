"""MatrixMarket files, with names in files beside them; and the folders of 10x, which are such.

A file ``NAME.mtx`` has the names of its rows and columns in ``NAME_rows.txt`` and ``NAME_cols.txt``
(also ``.tsv``, ``.csv``, or ``NAME.mtx_rows`` and ``NAME.mtx_cols``), one in each line. A folder of
10x has ``matrix.mtx``, genes in its rows and cells in its columns, with ``features.tsv`` (or
``genes.tsv``) and ``barcodes.tsv``; all of them may be packed, and begin with the name of a sample.
"""

import bz2
import gzip
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kspan.io.table import Grid, Names, as_floats, refuse

_PACKED = ("", ".gz", ".bz2")
_GENES = "Gene Expression"


def is_tenx(path: str) -> bool:
    """Say whether a path is a folder of 10x."""
    return Path(path).is_dir() and _beside(Path(path), "matrix.mtx") is not None


def read_matrix_market(path: str) -> Grid:
    """Read a ``.mtx`` file: sparse, unless it lists every number. Of 10x cells are rows."""
    from scipy.io import mmread

    place = Path(path)
    if place.is_dir():
        found = _beside(place, "matrix.mtx")
        assert found is not None
        place = found
    values = as_floats(path, mmread(place))
    stem = place.name.removesuffix(".gz").removesuffix(".bz2").removesuffix(".mtx")
    if stem.endswith("matrix"):
        prefix = stem.removesuffix("matrix")
        genes = _beside(place.parent, f"{prefix}features.tsv", f"{prefix}genes.tsv")
        cells = _beside(place.parent, f"{prefix}barcodes.tsv")
        if genes is not None and cells is not None:
            return _tenx(values, genes, cells)
    if Path(path).is_dir():
        raise refuse(path, "has matrix.mtx, but not features.tsv (or genes.tsv) and barcodes.tsv.")
    endings = (".txt", ".tsv", ".csv")
    sides, notes = [], []
    for side, size in zip(("rows", "cols"), values.shape, strict=True):
        beside = _beside(
            place.parent, *(f"{stem}_{side}{ending}" for ending in endings), f"{stem}.mtx_{side}"
        )
        names = None
        if beside is not None:
            names = tuple(cells[0] for cells in _lines(beside))
            _require_count(beside, names, size, side)
            notes.append(f"names of {side}: {beside.name}")
        sides.append(names)
    return Grid(values, sides[0], sides[1], notes=tuple(notes))


def _tenx(values: Any, genes: Path, cells: Path) -> Grid:
    """Return cells in rows; genes by their symbols, with the identifier where one repeats."""
    lines, barcodes = _lines(genes), tuple(line[0] for line in _lines(cells))
    _require_count(genes, lines, values.shape[0], "rows")
    _require_count(cells, barcodes, values.shape[1], "columns")
    symbols = [line[1] if len(line) > 1 and line[1] else line[0] for line in lines]
    counts = Counter(symbols)
    names = [
        symbol if counts[symbol] == 1 else f"{symbol} ({line[0]})"
        for symbol, line in zip(symbols, lines, strict=True)
    ]
    notes = ["10x: cells are rows"]
    kinds = np.array([line[2] if len(line) > 2 else _GENES for line in lines])
    kept = np.flatnonzero(kinds == _GENES)
    if 0 < kept.size < kinds.size:
        others = ", ".join(sorted(set(kinds) - {_GENES}))
        notes.append(f"left out: {kinds.size - kept.size} features that are no genes ({others})")
        values, names = values[kept], [names[place] for place in kept]
    X = values.T
    X = X.tocsr() if hasattr(X, "tocsr") else X
    return Grid(X, barcodes, tuple(names), notes=tuple(notes))


def _beside(folder: Path, *names: str) -> Path | None:
    """Return the first of some files that is there, packed or not."""
    places = (folder / f"{name}{packed}" for name in names for packed in _PACKED)
    return next((place for place in places if place.is_file()), None)


def _lines(path: Path) -> list[list[str]]:
    """Return the cells of all lines of a small text file, between tabs."""
    unpack = {".gz": gzip.decompress, ".bz2": bz2.decompress}.get(path.suffix, bytes)
    try:
        text = unpack(path.read_bytes()).decode("utf-8-sig")
    except (OSError, EOFError, ValueError) as error:
        raise refuse(str(path), f"cannot be read: {error}.") from None
    return [line.split("\t") for line in text.splitlines() if line.strip()]


def _require_count(path: Path, names: Sequence[Any] | Names, size: int, side: str) -> None:
    if len(names) != size:
        raise refuse(str(path), f"has {len(names)} names for {size} {side}.")

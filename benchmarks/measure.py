"""What every benchmark shares: alternating timings, the machine, JSON and Markdown."""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np


def alternate(tasks: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Time the tasks in turn, `repeats` rounds after one warm-up round.

    The machine's mood changes over minutes; turn by turn it hits all tasks alike.
    """
    for task in tasks.values():
        task()
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            started = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - started)
    return seconds


def ratio(ours: list[float], theirs: list[float]) -> float:
    """Return the median over rounds of our time by theirs in the same round."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def explained_variance(X: Any, W: np.ndarray) -> float:
    """Return the sample variance that span(W) explains, from the definition, in float64."""
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    X = X.astype(np.float64)
    Q = np.linalg.qr(W.astype(np.float64))[0]
    scores = (X - X.mean(axis=0)) @ Q
    return float(np.sum(scores**2) / (X.shape[0] - 1))


def machine() -> dict[str, Any]:
    """Return what a reader needs to judge the figures."""
    packages = ("numpy", "scipy", "scikit-learn", "kspan")
    return {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "versions": {name: version(name) for name in packages},
    }


def in_own_process(module: str, case: tuple[Any, ...]) -> dict[str, Any]:
    """Return ``module.row(*case)`` from a process of its own with one BLAS thread."""
    code = f"import json; from {module} import row; print(json.dumps(row(*{case!r})))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    print(*case, {key: found[key] for key in found if key != "history"}, flush=True)
    return found


def write(folder: Path, name: str, title: str, rows: list[dict[str, Any]], notes: str = "") -> None:
    """Write ``name.json`` and, with the same rows, ``name.md``."""
    record = {"machine": machine(), "rows": rows}
    (folder / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
    columns = list(rows[0])
    lines = [f"# {title}", "", "| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    lines += ["| " + " | ".join(_cell(row[column]) for column in columns) + " |" for row in rows]
    (folder / f"{name}.md").write_text("\n".join([*lines, "", notes.strip(), ""]))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    return f"{value:.8g}" if abs(value) >= 10 else f"{value:.3g}"


def fill(page: Path, source: str, text: str) -> None:
    """Put what was made from a file of results between the marks of a page that name it."""
    start, end = f"<!-- from {source} -->", "<!-- end -->"
    before, found, rest = page.read_text().partition(start)
    if not found:
        raise ValueError(f"{page.name} has no place for what is made from {source}.")
    after = rest.partition(end)[2]
    page.write_text(f"{before}{start}\n\n{text}\n\n{end}{after}")

"""A fit to a file that is larger than the memory it may use, beside bare products over the file.

Run: ``python -m benchmarks.scale.out_of_core FOLDER``: the data (8 GB for a million rows) is made
there, block by block, if it is not there yet. ``--rows`` makes it smaller. Each repeat is a
process of its own, so that its peak memory is its own; fits and bare products take turns.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import ratio, write

HERE = Path(__file__).parent
D, M, K = 1000, 5, 50
FACTORS, EACH = 5, 12  # planted: five factors on twelve features each
BLOCK = 10_000


def make(path: Path, rows: int) -> None:
    """Write planted data, block by block."""
    rng = np.random.default_rng(0)
    loadings = np.zeros((FACTORS, D))
    for factor in loadings:
        factor[rng.choice(D, EACH, replace=False)] = rng.uniform(1, 2, EACH)
    temporary = path.with_suffix(".part")
    data = np.lib.format.open_memmap(temporary, "w+", shape=(rows, D), dtype=np.float64)
    for start in range(0, rows, BLOCK):
        count = min(BLOCK, rows - start)
        block = rng.standard_normal((count, D))
        data[start : start + count] = block + rng.standard_normal((count, FACTORS)) @ loadings
    data.flush()
    temporary.rename(path)


def fit(path: Path) -> dict[str, Any]:
    """Fit, and say how long it took, how often the data was read, and what it explains."""
    from kspan import FeatureSparsePCA

    started = time.perf_counter()
    model = FeatureSparsePCA(M, K, random_state=0).fit(path)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "passes": model.n_passes_, "variance": model.objective_}


def bare(path: Path, passes: int) -> dict[str, Any]:
    """As many products X'(XW) over the memory map, and nothing else."""
    X = np.load(path, mmap_mode="r")
    W = np.random.default_rng(1).standard_normal((D, M))
    started = time.perf_counter()
    for _ in range(passes):
        out = np.zeros((D, M))
        for start in range(0, len(X), BLOCK):
            block = X[start : start + BLOCK]
            out += block.T @ (block @ W)
    return {"seconds": time.perf_counter() - started}


def in_process(what: str, path: Path, passes: int = 0) -> dict[str, Any]:
    """Run one task in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale.out_of_core", str(path.parent)]
    command += ["--task", what, "--path", str(path), "--passes", str(passes)]
    found: dict[str, Any] = json.loads(subprocess.check_output(command, text=True))
    return found


def main() -> None:
    """Run it all and write the files, or one task and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--task", choices=["fit", "bare"])
    parser.add_argument("--path", type=Path)
    parser.add_argument("--passes", type=int, default=0)
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    if options.task:
        found = fit(options.path) if options.task == "fit" else bare(options.path, options.passes)
        found["peak GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        sys.stdout.write(json.dumps(found))
        return
    path = options.folder / f"planted-{options.rows}.npy"
    if not path.exists():
        make(path, options.rows)
    fits, bares = [], []
    for _ in range(options.repeats):
        fits.append(in_process("fit", path))
        bares.append(in_process("bare", path, fits[-1]["passes"]))
    row = {
        "rows": options.rows, "features": D, "GB on disk": path.stat().st_size / 1e9,
        "passes": fits[0]["passes"], "peak GB": max(run["peak GB"] for run in fits),
        "fit s": float(np.median([run["seconds"] for run in fits])),
        "bare products s": float(np.median([run["seconds"] for run in bares])),
        "fit by bare": ratio([r["seconds"] for r in fits], [r["seconds"] for r in bares]),
        "variance": fits[0]["variance"],
    }  # fmt: skip
    write(
        options.out, "out_of_core", "A fit to a file that is read in blocks", [row],
        f"{M} components, {K} features, default solver. The bare products are as many X'(XW) over "
        "the memory map as the fit has passes, in alternating processes.",
    )  # fmt: skip


if __name__ == "__main__":
    main()

"""``python -m benchmarks.soundness --seconds 60 [--seed N] [--processes 2] [--add]``."""

import os

# Before numpy is imported: matrices are tiny, and processes are many.
for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402

from numpy.random import SeedSequence  # noqa: E402

from benchmarks.soundness.all_routes import ROUTES  # noqa: E402
from benchmarks.soundness.counts import Counts, add_to_files  # noqa: E402
from benchmarks.soundness.fuzz import fuzz_in_processes  # noqa: E402
from benchmarks.soundness.oracle import require_extended_precision  # noqa: E402
from benchmarks.soundness.problems import KINDS  # noqa: E402
from benchmarks.soundness.reduce import save  # noqa: E402


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzer; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser("benchmarks.soundness", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="fresh by default")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--add", action="store_true", help="add to soundness.json and .md")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only these kinds")
    parser.add_argument("--route", action="append", choices=ROUTES, help="only these routes")
    parser.add_argument(
        "--failures", type=Path, default=Path("soundness-failures"),
        help="folder for the scripts that show what is wrong; keep it out of the repository",
    )  # fmt: skip
    asked = parser.parse_args(arguments)
    require_extended_precision()
    seed = int(SeedSequence().entropy % 2**63) if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)
    started = time.perf_counter()
    counts, failures = fuzz_in_processes(
        asked.seconds, seed, asked.processes,
        kinds=tuple(asked.kind or KINDS), routes=tuple(asked.route or ROUTES),
    )  # fmt: skip
    whole = counts.total()
    counts.runs.append({
        "seed": str(seed), "seconds": round(time.perf_counter() - started, 1),
        "processes": asked.processes, "certificates": whole.certificates, "wrong": whole.wrong,
    })  # fmt: skip
    show(counts)
    for failure in failures:
        place = save(failure, asked.failures)
        print(f"{failure.case.kind}, {failure.route}: {failure.sentence}\n    {place}")
    if not counts.net_is_honest():
        print(f"nets: {whole.net_missed} missed, at most {whole.net_expected:.1f} expected")
    if asked.add:
        add_to_files(counts)
    return 1 if whole.wrong or not counts.net_is_honest() else 0


def show(counts: Counts) -> None:
    """Print what was tried, by kind and by route."""
    for what, names in (("kind", counts.kinds()), ("route", counts.routes())):
        titles = "certificates  values  forgeries  refused  wrong  within    worst  per second"
        print(f"{what:22s} {titles}")
        for name in names:
            count = counts.total(**{what: name})
            tried = count.certificates + count.forgeries
            print(
                f"{name:22s} {count.certificates:12d} {count.values:7d} {count.forgeries:10d} "
                f"{count.refused:8d} {count.wrong:6d} {count.grazed:7d}  {count.worst:.1e} "
                f"{tried / max(count.seconds, 1e-9):11.1f}"
            )
    whole = counts.total()
    print(f"{whole.certificates} certificates, {whole.values} values, {whole.forgeries} forgeries, "
          f"{whole.wrong} wrong, {whole.seconds:.0f} s")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())

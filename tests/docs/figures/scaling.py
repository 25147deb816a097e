"""Figures of docs/scaling.md."""

from benchmarks.scale import growth
from kspan.covariance.data_covariance import DENSE_PIECE_BYTES
from tests.docs.figures.reading import Claim, result

RECORD = result("scale/growth")
SPARSE = {row["solver"]: row for row in result("scale/very_sparse")["rows"]}


def with_d():
    rows = RECORD["settings"]["sparse, ipu"]["d"]
    return f"{growth.exponent(rows[-3:], 'd'):.2f}", f"{growth.exponent(rows, 'd'):.2f}"


def very_sparse():
    auto, ipu = SPARSE["auto"], SPARSE["ipu"]
    found = [f"{auto['nnz'] / 1e6:.1f}"]
    for row in (auto, ipu):
        found += [f"{row['seconds']:.0f}", f"{row['peak']:.1f}", f"{row['passes']}"]
    return found


def model():
    ratios = [
        sum(growth.predicted(RECORD, name, row).values()) / growth.measured(row)
        for name, sweeps in RECORD["settings"].items()
        for rows in sweeps.values()
        for row in rows
    ]
    return len(ratios), f"{min(ratios):.2f}", f"{max(ratios):.2f}"


CLAIMS: list[Claim] = [
    (
        "`sparse, ipu` grows with d^{} at the end of its range, perhaps as the dense vectors leave "
        "the cache; over all of it the exponent is {}.",
        with_d,
    ),
    (
        "[100,000 × 1,000,000 with {} million entries]: {} s and {} GB with `auto` ({} passes), "
        "{} s and {} GB with `ipu` ({} passes).",
        very_sparse,
    ),
    (
        "It is within a factor of two of each of {} measured points, {} to {} times the "
        "measurement.",
        model,
    ),
    # A limit of the code.
    ("(if they have no more than {} MB).", lambda: [DENSE_PIECE_BYTES >> 20]),
]

NOT_MEASURED = [
    "worked on in pieces of 2 MB or 64 rows",  # of the code
    "blocks of 16 MB",
    # What the prediction assumes, and sizes that are products: 10⁹ × 10⁶ numbers, d × 16 arrays.
    "64 GB of memory for data, 2 GB/s from disk or object store, 50 GB/s from memory",
    "1.25 GB/s of network; blocks of 1 GB, 4 tasks for each, 1 ms of the scheduler and 1 kB of the "
    "client's memory for a task",
    "the d × 16 results (128 MB each)",
    "**Dense data is 4 to 8 PB, and no cluster",
    "alone takes half a day for float64: two to three days in all",  # the table of the model
    "a density of 10⁻³ (8 TB, read from disk in every pass)",
    "The client holds four d × 16 arrays (0.5 GB)",
    "a 128 MB result for each core",
    "much fewer bytes than the 128 MB result",
]

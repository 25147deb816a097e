"""What a fit should cost, from counts and rates: seconds by term, and bytes of memory.

Pure functions. The counts follow the code (which products, of which width, how often); the rates
are measured on the machine by `rates.py`, with bare NumPy and SciPy calls, and never fitted to
the time of a fit. ``docs/scaling.md`` has the same in formulas.

A table of rates is ``{width: seconds}`` and is read by interpolation in logarithms.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

# Of the code, and checked against it by a test.
SKETCH_COLUMNS, OVERSAMPLING = 16, 8
PER_FEATURE, FEWEST, MOST = 6, 200, 1000
GRAM_LIMIT, GRAM_WORK, LANCZOS_FEATURES = 2048, 2e10, 768
BLOCK_BYTES = 1 << 24
CACHE_BYTES, FEWEST_ROWS = 1 << 21, 64  # of a piece of a block that is worked on at a time

# Arrays of d × w that every piece makes anew: in the pass of the moments, and in a product.
MOMENT_ARRAYS, PRODUCT_ARRAYS = 6, 1

# A typical search of `auto` (see `search_counts`), from counting calls on planted data.
BATCH_PRODUCTS = 3  # products that all starts share: the first, and two steps
STEPS_EACH, SWEEPS_EACH, REFITS_EACH = 2.65, 1.25, 5.0  # of each start that is polished
TRIALS = 27  # swaps tried exactly in a sweep
PAIRS = 64 * 512  # pairs scored in a sweep, at most
POLISHED = 5
CALLS = 100_000, 170  # of functions: in a search, and for each trial that is solved on its own
STACK_LIMIT = 32  # up to this k, trials are solved in one call

Terms = dict[str, float]
Rates = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One fit: sizes, how the data is kept, and what the fit counted.

    Attributes
    ----------
    n, d, m, k : samples, features, components, features to select
    kind : "disk", "dense" or "sparse"
    solver : "auto" or "ipu"
    passes, steps : as the fit counted them (`n_passes_`, `n_iter_`); of rows on record without the
        two passes that measure a fit, which came later
    nnz : stored entries of sparse data
    itemsize : bytes of a number
    """

    n: int
    d: int
    m: int
    k: int
    kind: str
    solver: str
    passes: int
    steps: int
    nnz: int = 0
    itemsize: int = 8


def at(table: Mapping[str, float], width: float) -> float:
    """Return the rate at a width, between the two nearest that were measured.

    Beyond the last one, seconds grow as between the last two.
    """
    widths = np.array([float(key) for key in table])
    seconds = np.array(list(table.values()))
    x, y = np.log(widths), np.log(seconds)
    place = np.log(max(width, widths[0]))
    i = int(np.clip(np.searchsorted(x, place) - 1, 0, len(x) - 2))
    return float(np.exp(y[i] + (y[i + 1] - y[i]) * (place - x[i]) / (x[i + 1] - x[i])))


def candidate_count(d: int, k: int) -> int:
    """Return how many candidates a fit by way of candidates looks at."""
    return min(max(FEWEST, PER_FEATURE * k), max(MOST, 2 * k), d)


def piece_rows(d: float, itemsize: int) -> float:
    """Return how many rows of a dense block are worked on at a time."""
    return max(FEWEST_ROWS, CACHE_BYTES // (itemsize * d))


def search_counts(k: int) -> dict[str, float]:
    """Return how often `auto` does what, for k features: its budgets, and typical counts."""
    starts = int(np.clip(9600 // k, 12, 96))
    polished = POLISHED + starts // 4
    sweeps = SWEEPS_EACH * polished
    return {
        "starts": starts, "polished": polished, "steps": STEPS_EACH * polished, "sweeps": sweeps,
        "trials": TRIALS * sweeps, "refits": 2 * (starts + 1) + REFITS_EACH * polished,
    }  # fmt: skip


def search_seconds(d: int, k: int, m: int, rates: Rates) -> float:
    """Return the time of a search by `auto` that does not touch the data.

    Eigenproblems of order k, scores of pairs (and of all d features when there are more than a
    sweep pairs), scores of features, the random starts, and what Python takes to call it all.
    """
    counts = search_counts(k)
    eigen = (counts["trials"] + counts["refits"]) * at(rates["eigen"], k)
    pairs = counts["sweeps"] * (min(k, 64) * min(d, 512) + (d if d > 512 else 0))
    scored = counts["steps"] + counts["refits"] + BATCH_PRODUCTS * counts["starts"]
    drawn = 2 / 3 * counts["starts"] * d * m * (rates["random"] + m * rates["qr"])
    calls = CALLS[0] + (CALLS[1] * counts["trials"] if k > STACK_LIMIT else 0)
    arithmetic = pairs * m * rates["pair"] + scored * d * m * rates["score"]
    return eigen + arithmetic + drawn + calls * rates["call"]


def seconds(case: Case, rates: Rates) -> Terms:
    """Return the time of a fit by term."""
    by_candidates = case.solver == "auto" and (
        case.kind == "disk" or (case.kind == "sparse" and case.d > 100_000)
    )
    if by_candidates and case.kind == "disk":
        return _disk(case, rates)
    if by_candidates:
        return _sparse_candidates(case, rates)
    if case.solver == "auto":
        return _dense_auto(case, rates)
    return _dense_ipu(case, rates) if case.kind == "dense" else _sparse_ipu(case, rates)


def _disk(case: Case, rates: Rates) -> Terms:
    """By way of candidates: 16 random columns with the means, a basis, A on C, a last look.

    Every pass reads n·d numbers. A product of width w is 4·n·d·w multiplications and additions;
    A on the candidates C is n·|C|² of them.
    """
    n, d, m, k = case.n, case.d, case.m, case.k
    size, extra = candidate_count(d, k), int(m + OVERSAMPLING > SKETCH_COLUMNS)
    width = max(SKETCH_COLUMNS, m + OVERSAMPLING)
    grams = max(1, case.passes - 5 - extra)
    entries = float(n) * d
    columns = MOMENT_ARRAYS * SKETCH_COLUMNS + PRODUCT_ARRAYS * ((1 + extra) * width + m)
    return {
        "read": case.passes * entries * case.itemsize * rates["read"],
        "moments": entries * rates["moments"],
        "products": entries
        * (at(rates["fused"], SKETCH_COLUMNS) + (1 + extra) * at(rates["fused"], width)
           + at(rates["fused"], m) / 2)
        + n * k * rates["gather"],
        "small pieces": n / piece_rows(d, case.itemsize) * 8 * d * columns * rates["fresh"],
        "A on C": grams * n * size * (rates["gather"] + size * at(rates["gram"], size)),
        "basis": (1 + extra) * d * width**2 * rates["qr"],
        "search": grams * search_seconds(size, k, m, rates),
    }  # fmt: skip


def _forms_a(case: Case) -> bool:
    """Say whether A, or the matrix of inner products, is formed for the eigenpairs."""
    if min(case.n, case.d) > GRAM_LIMIT:
        return False
    # Of tall data Lanczos comes first, and is enough when the spectrum has gaps.
    return not _lanczos_first(case) or case.solver == "auto"


def _lanczos_first(case: Case) -> bool:
    large = case.n * case.d**2 > GRAM_WORK and case.d >= LANCZOS_FEATURES
    return case.kind == "dense" and case.n >= case.d and large


def _lanczos_products(case: Case) -> float:
    """Return how many products with A the eigensolver made: all passes but the known ones.

    Of rows on record, each of whose steps took columns anew: see `PASSES` for those of today.
    """
    known = 2 + 3 * case.steps + (case.n < case.d) + (case.kind == "sparse")
    each = 1 if case.kind == "dense" and case.n >= case.d else 2
    return max(0.0, (case.passes - known) / each)


def _orthogonalise(size: int, m: int, products: float, rates: Rates) -> float:
    """Return the time to keep the basis of Lanczos orthogonal: four sweeps over half of it."""
    capacity = max(4 * m + 4, 40)
    return products * 4 * size * 8 * (capacity / 2) * rates["stream"]


def _refit(n: int, k: int, rates: Rates) -> float:
    """Return the time to cut out k columns of dense data and to solve the problem on them."""
    return n * k * (rates["gather"] + k * at(rates["gram"], k)) + at(rates["eigen"], k)


def _dense_start(case: Case, rates: Rates) -> Terms:
    """Means, variances and m leading eigenpairs of data in memory: Gram matrix or Lanczos."""
    n, d, m = case.n, case.d, case.m
    entries, small = float(n) * d, min(n, d)
    terms = {"moments": entries * rates["moments"]}
    if _forms_a(case):
        terms["Gram matrix"] = entries * small * at(rates["gram"], small)
        products = 3.0 * m + 20
        terms["eigenpairs"] = products * small**2 * 8 * rates["stream"]
        if n >= d:
            terms["Gram matrix"] += entries * rates["centre"]
    else:
        products = _lanczos_products(case)
        both = at(rates["forward"], 1) + at(rates["backward"], 1)
        if n >= d:  # in one pass
            both = at(rates["fused"], 1)
        terms["products"] = products * entries * both
        terms["basis"] = _orthogonalise(small, m, products, rates)
    if n < d:  # the eigenvectors come back through X'
        terms["lift"] = entries * at(rates["backward"], m)
    return terms


def _dense_ipu(case: Case, rates: Rates) -> Terms:
    n, d, m, k = case.n, case.d, case.m, case.k
    terms = _dense_start(case, rates)
    if n >= d and _forms_a(case):  # nothing is read after that
        step, refit = d * k * m * rates["flop"], at(rates["eigen"], k)
    else:
        step = float(n) * d * at(rates["backward"], m) + n * k * rates["gather"]
        refit = _refit(n, k, rates)
    return terms | {"steps": case.steps * step + (1 + case.steps) * refit}


def _dense_auto(case: Case, rates: Rates) -> Terms:
    """`auto` on data in memory: products for all starts at once, then one start at a time."""
    n, d, m, k = case.n, case.d, case.m, case.k
    counts = search_counts(k)
    terms = _dense_start(case, rates)
    entries = float(n) * d
    batch = counts["starts"] * m
    if n >= d and _forms_a(case):
        terms["all starts"] = BATCH_PRODUCTS * 2.0 * d * d * batch * rates["flop"]
    else:
        back = at(rates["backward"], batch)
        terms["all starts"] = entries * (BATCH_PRODUCTS * back + at(rates["forward"], batch))
        terms["steps"] = counts["steps"] * entries * at(rates["backward"], m)
        terms["swaps"] = counts["sweeps"] * entries * at(rates["backward"], k)
        known = at(rates["eigen"], k)  # is in the search already
        terms["refits"] = counts["refits"] * (_refit(n, k, rates) - known)
    terms["search"] = search_seconds(d, k, m, rates)
    return terms


def _sparse_pair(case: Case, width: float, rates: Rates) -> float:
    """Return the time of X W and X'Z, with the dense blocks that come and go with them."""
    stored = at(rates["sparse forward"], width) + at(rates["sparse backward"], width)
    return case.nnz * stored + 2 * 8 * (case.n + case.d) * width * rates["fresh"]


def _sparse_ipu(case: Case, rates: Rates) -> Terms:
    """As dense data, with the stored entries in place of n·d."""
    products = _lanczos_products(case)
    columns = case.nnz * rates["sparse columns"] + at(rates["eigen"], case.k)
    return {
        "moments": case.nnz * rates["sparse moments"],
        "products": products * _sparse_pair(case, 1, rates),
        "basis": _orthogonalise(min(case.n, case.d), case.m, products, rates),
        "steps": case.steps * _sparse_pair(case, case.m, rates) + (1 + case.steps) * columns,
    }  # fmt: skip


def _sparse_candidates(case: Case, rates: Rates) -> Terms:
    """Two products of width m + 8, a basis between them, the columns of C, a last look."""
    d, m, k = case.d, case.m, case.k
    size, width = candidate_count(d, k), m + OVERSAMPLING
    rounds = max(1, case.passes - 8)
    counts = search_counts(k)
    inside = case.nnz * min(1.0, size / d)  # what the candidates store, if they are like others
    dense = 8 * (case.n + d) * rates["fresh"]  # a new column on each side
    stored = case.nnz * at(rates["sparse wide"], d) / 12
    return {
        "moments": case.nnz * rates["sparse moments"] + 10 * 8 * d * rates["fresh"],
        "products": (2 * width + m) * (stored + 2 * dense),
        "basis": d * width * (rates["random"] + width * rates["qr"] + 4 * 8 * rates["fresh"])
        + d * width * (width + m) * rates["skinny"],
        "scores": 4 * d * m * (rates["score"] + 3 * 8 * rates["fresh"]),
        "A on C": rounds * case.nnz * rates["sparse columns"],
        "search": rounds * (search_seconds(size, k, m, rates)
                            + counts["refits"] * inside * rates["sparse columns"]),
    }  # fmt: skip


# --- passes

# Where the data is: for "large" and "large disk" there are more than 2048 features, and at least as
# many samples; "sparse" is CSR or CSC with more than 400 of both.
WHERE = ("tall", "wide", "large", "sparse", "disk", "large disk")

# Passes: a fixed number, so many for each product of the eigensolver, so many for each step; and
# one for every time that the columns of a choice are taken, where they are kept. Where A is not
# formed, one or two are for what the fit tells of all features (`problem/shares.py`).
PASSES: dict[str, dict[str, tuple[int, int, int]]] = {
    "go": {
        "tall": (2, 0, 0), "wide": (4, 0, 0), "large": (2, 1, 0), "sparse": (3, 2, 0),
        "disk": (2, 0, 0), "large disk": (4, 1, 0),
    },
    "ipu": {
        "tall": (2, 0, 0), "wide": (4, 0, 1), "large": (2, 1, 1), "sparse": (3, 2, 1),
        "disk": (2, 0, 0), "large disk": (4, 1, 2),
    },
    "soap": {
        "tall": (2, 0, 0), "wide": (4, 0, 1), "large": (2, 1, 1), "sparse": (3, 2, 1),
        "disk": (2, 0, 0), "large disk": (4, 1, 2),
    },
    "srt": {
        "tall": (2, 0, 0), "wide": (4, 0, 1), "large": (2, 1, 1), "sparse": (3, 2, 1),
        "disk": (2, 0, 0), "large disk": (4, 1, 2),
    },
    "tpower": {
        "tall": (2, 0, 0), "wide": (5, 0, 1), "large": (3, 1, 1), "sparse": (5, 2, 1),
        "disk": (5, 0, 2), "large disk": (6, 1, 2),
    },
    "cssp": {
        "tall": (2, 0, 0), "wide": (5, 0, 0), "large": (3, 1, 0), "sparse": (4, 2, 0),
        "disk": (2, 0, 0), "large disk": (6, 1, 0),
    },
    "fps": {
        "tall": (2, 0, 0), "wide": (5, 0, 0), "large": (3, 1, 0), "sparse": (4, 2, 0),
        "disk": (3, 0, 0), "large disk": (4, 1, 0),
    },
    "streaming-srt": {
        "tall": (3, 0, 0), "wide": (5, 0, 0), "large": (3, 1, 0), "sparse": (4, 2, 0),
        "disk": (4, 0, 0), "large disk": (5, 1, 0),
    },
}  # fmt: skip


# Where columns that were taken are kept: all that is asked about a choice comes from them.
KEPT = ("wide", "large", "sparse")


def passes(method: str, where: str, products: int, steps: int, taken: int) -> int:
    """Return how often a method reads the data; `taken` is how often the choice has changed."""
    fixed, each_product, each_step = PASSES[method][where]
    return fixed + each_product * products + each_step * steps + (taken if where in KEPT else 0)


def passes_table() -> str:
    """Return the table of passes as Markdown: L products of the eigensolver, s steps, c choices."""
    lines = ["| method | " + " | ".join(WHERE) + " |", "|---" * (len(WHERE) + 1) + "|"]
    for method, counts in PASSES.items():
        cells = []
        for where in WHERE:
            fixed, products, steps = counts[where]
            parts = [str(fixed)]
            for count, letter in ((products, "L"), (steps, "s"), (int(where in KEPT), "c")):
                if count:
                    parts.append(f"{count}{letter}" if count > 1 else letter)
            cells.append(" + ".join(parts))
        lines.append(f"| `{method}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


# --- memory


def memory_bytes(case: Case, workers: int = 1) -> float:
    """Return how much more memory a fit needs at its peak than the data itself."""
    n, d, m, k = case.n, case.d, case.m, case.k
    starts = search_counts(k)["starts"]
    size = candidate_count(d, k)
    capacity = max(4 * m + 4, 40)
    if case.kind == "disk":
        blocks = (2 * workers + 1) * 1.5 * BLOCK_BYTES  # read, cut, and waiting
        width = max(SKETCH_COLUMNS, m + OVERSAMPLING)
        small = 8.0 * (3 * size**2 + 4 * size * starts * m + 6 * d * width)
        return blocks + small
    if case.kind == "sparse" and case.solver == "auto":
        width = m + OVERSAMPLING
        return 8.0 * (5 * d * width + 3 * n * width + 2 * case.nnz + 3 * size**2)
    small = min(n, d)
    total = 2.0 * BLOCK_BYTES + 8.0 * (2 * n * k + 6 * d + 4 * d * m)
    total += 8.0 * (2 * small**2 if small <= GRAM_LIMIT else small * (capacity + 6))
    if case.solver == "auto":  # the subspaces, side by side, their products, and those turned
        total += 8.0 * (5 * d + 2 * n) * starts * m
    if case.kind == "sparse":
        total += 8.0 * 2 * case.nnz
    return total


# --- a cluster


@dataclass(frozen=True)
class Cluster:
    """What a prediction assumes of a cluster. Rates are for one worker.

    Attributes
    ----------
    workers, cores : machines, and cores of each
    memory : bytes of a worker's memory for data
    disk : bytes a second from its disk, or from the store that the data is in
    stream : bytes a second from memory to a kernel, all cores together
    flops : multiplications and additions a second of a product of width 16, all cores
    sparse : stored entries a second of a sparse product, for each column, all cores
    network : bytes a second between workers
    overhead : seconds that the scheduler needs for a task
    tasks : tasks for each block: to get it, to check it, to multiply it, a share of the merging
    task_bytes : of the client's and the scheduler's memory for a task
    block : bytes of a block
    search : seconds of the search on the candidates, on the client
    """

    workers: int = 100
    cores: int = 16
    memory: float = 64e9
    disk: float = 2e9
    stream: float = 50e9
    flops: float = 200e9
    sparse: float = 2e9
    network: float = 1.25e9
    overhead: float = 1e-3
    tasks: int = 4
    task_bytes: float = 1e3
    block: float = 1e9
    search: float = 5.0


def on_cluster(
    n: float, d: float, m: int, k: int, *, itemsize: int, density: float | None, passes: int,
    cluster: Cluster,
) -> dict[str, Any]:  # fmt: skip
    """Predict a fit by way of candidates on a Dask cluster. A prediction, not a measurement.

    A pass reads the data where it is (in the memory of the workers if it fits there, else from
    disk) and multiplies it while the scheduler hands out tasks: the slowest of the three counts.
    Before it, W (d × w) goes to every worker; after it, the d × w results of all blocks are merged
    on the workers. One or two of the passes form A on the candidates.
    """
    width = max(SKETCH_COLUMNS, m + OVERSAMPLING)
    size = candidate_count(int(d), k)
    entries = n * d * (1.0 if density is None else density)
    stored = itemsize if density is None else itemsize + 4  # a value, and the number of its column
    total_bytes = entries * stored
    fits = total_bytes <= cluster.workers * cluster.memory
    blocks = max(float(cluster.workers), total_bytes / cluster.block)
    read = total_bytes / (cluster.workers * (cluster.stream if fits else cluster.disk))
    speed = cluster.flops if density is None else 2 * cluster.sparse
    work = 4.0 * entries * width / (cluster.workers * speed)
    # Every piece of a dense block makes a d × w array and adds it up: written, read, added.
    pieces = 0.0 if density is not None else n / piece_rows(d, itemsize)
    added = pieces * 3 * 8.0 * d * width / (cluster.workers * cluster.stream)
    work += PRODUCT_ARRAYS * added
    schedule = blocks * cluster.tasks * cluster.overhead
    sent = (cluster.workers + blocks / cluster.workers) * 8.0 * d * width / cluster.network
    one_pass = max(read, work, schedule) + sent
    load = total_bytes / (cluster.workers * cluster.disk) if fits else 0.0
    gram = (passes - 3) * 2.0 * n * size**2 / (cluster.workers * cluster.flops)
    return {
        "bytes": total_bytes, "fits in memory": fits, "blocks": blocks, "load": load, "read": read,
        "work": work, "schedule": schedule, "sent": sent, "pass": one_pass, "passes": passes,
        "total": load + passes * one_pass + gram + cluster.search
        + (MOMENT_ARRAYS - PRODUCT_ARRAYS) * added,
        "client bytes": 8.0 * (4 * d * width + 3 * size**2)
        + blocks * cluster.tasks * cluster.task_bytes,
    }  # fmt: skip


# What docs/scaling.md shows: a billion samples of a million features.
BILLION = {
    "dense float64": {"itemsize": 8, "density": None},
    "dense float32": {"itemsize": 4, "density": None},
    "sparse 1e-3, float32": {"itemsize": 4, "density": 1e-3},
    "sparse 1e-4, float32": {"itemsize": 4, "density": 1e-4},
    "sparse 1e-5, float32": {"itemsize": 4, "density": 1e-5},
}


def billion(cluster: Cluster | None = None, m: int = 5, k: int = 50) -> str:
    """Return the table of predictions for 10⁹ × 10⁶ as Markdown."""
    cluster = cluster or Cluster()
    lines = [
        "| data | size | in the cluster's memory | read | multiply | schedule | send and merge | "
        "one pass | 4 passes | 6 passes | client memory |", "|---" * 11 + "|",
    ]  # fmt: skip
    for name, kind in BILLION.items():
        few, most = (
            on_cluster(1e9, 1e6, m, k, passes=passes, cluster=cluster, **kind) for passes in (4, 6)
        )
        parts = [duration(few[part]) for part in ("read", "work", "schedule", "sent", "pass")]
        cells = [
            name, amount(few["bytes"]), "yes" if few["fits in memory"] else "no", *parts,
            duration(few["total"]), duration(most["total"]), amount(few["client bytes"]),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def duration(value: float) -> str:
    """Return seconds, minutes, hours or days, to two digits."""
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "min"), (2 * 86400, 3600, "h")):
        if value < limit:
            return f"{_two_digits(value / size)} {unit}"
    return f"{_two_digits(value / 86400)} days"


def amount(value: float) -> str:
    """Return megabytes to petabytes, to two digits."""
    for limit, size, unit in ((1e9, 1e6, "MB"), (1e12, 1e9, "GB"), (1e15, 1e12, "TB")):
        if value < limit:
            return f"{_two_digits(value / size)} {unit}"
    return f"{_two_digits(value / 1e15)} PB"


def _two_digits(value: float) -> str:
    return f"{value:.2g}" if value < 100 else f"{float(f'{value:.2g}'):.0f}"

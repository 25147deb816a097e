"""Every method is back soon after its time is up, on problems that would take it much longer."""

from functools import cache
from time import perf_counter

import numpy as np
import pytest

from kspan import NonnegativeProblem, RowSparseProblem, as_covariance, solve
from kspan.problem import ElementSparseProblem, Patterns, StiefelProblem
from kspan.progress import Status
from kspan.solvers.registry import methods_for

LIMIT, SLACK, TRIES = 0.15, 0.5, 3


@cache
def covariance(d):
    F = np.random.default_rng(0).standard_normal((d, d))
    found = as_covariance(F @ F.T / d, kind="covariance")
    found.leading(12)
    return found


@cache
def samples():
    return as_covariance(np.random.default_rng(0).standard_normal((20_000, 200)))


def stiefel(d, m):
    largest = StiefelProblem(covariance(d), m, 0.0).largest_alpha
    return StiefelProblem(covariance(d), m, 0.1 * largest)


def counted(d, m, k):
    return StiefelProblem(covariance(d), m, patterns=Patterns.of(d, m, k))


MANY = {"init": "random", "n_restarts": 300, "max_iter": 2000}

# A problem and options with which a method runs for seconds; `None`: it takes one step.
CASES = {
    (RowSparseProblem, "auto"): (lambda: RowSparseProblem(covariance(1000), 3, 400), {}),
    (RowSparseProblem, "exact"): (lambda: RowSparseProblem(covariance(100), 3, 30), {}),
    (RowSparseProblem, "brute-force"): (
        lambda: RowSparseProblem(covariance(100), 3, 6), {"max_supports": 10**10}),
    (RowSparseProblem, "cssp"): None,
    (RowSparseProblem, "fps"): (lambda: RowSparseProblem(covariance(300), 3, 30), {}),
    (RowSparseProblem, "go"): None,
    (RowSparseProblem, "ipu"): (lambda: RowSparseProblem(covariance(1000), 3, 200), MANY),
    (RowSparseProblem, "soap"): (lambda: RowSparseProblem(covariance(1000), 3, 200), MANY),
    (RowSparseProblem, "srt"): (lambda: RowSparseProblem(covariance(1000), 3, 200), MANY),
    (RowSparseProblem, "streaming-srt"): (
        lambda: RowSparseProblem(samples(), 3, 40), {"block_size": 3}),
    (RowSparseProblem, "tpower"): (lambda: RowSparseProblem(covariance(1000), 3, 200), MANY),
    (ElementSparseProblem, "gpower-l0"): (
        lambda: ElementSparseProblem(covariance(800), 30, 100), {}),
    (ElementSparseProblem, "gpower-l0-block"): (
        lambda: ElementSparseProblem(covariance(800), 30, 100), {}),
    (ElementSparseProblem, "gpower-l1"): (
        lambda: ElementSparseProblem(covariance(800), 30, 100), {}),
    (ElementSparseProblem, "gpower-l1-block"): (
        lambda: ElementSparseProblem(covariance(800), 30, 100), {}),
    (ElementSparseProblem, "grqi"): (
        lambda: ElementSparseProblem(covariance(1000), 40, 300), {}),
    (ElementSparseProblem, "ipm"): (
        lambda: ElementSparseProblem(covariance(800), 30, 100), {}),
    (ElementSparseProblem, "matching"): (
        lambda: ElementSparseProblem(covariance(1000), 4, 60), {"n_samples": 20_000}),
    (ElementSparseProblem, "spannogram"): (
        lambda: ElementSparseProblem(covariance(300), 3, 40), {"rank": 4, "max_vertices": None}),
    (ElementSparseProblem, "tpower"): (
        lambda: ElementSparseProblem(covariance(1000), 40, 300), {"gradual": True}),
    (StiefelProblem, "exact"): (
        lambda: StiefelProblem(covariance(100), 3, patterns=Patterns.of(100, 3, 10)), {}),
    (StiefelProblem, "admm"): (lambda: counted(600, 8, 60), {"max_iter": 3000, "tol": 1e-12}),
    (StiefelProblem, "auto"): (lambda: counted(600, 8, 60), {}),
    (StiefelProblem, "sadmm"): (lambda: counted(600, 8, 60), {"max_iter": 3000, "tol": 1e-12}),
    (StiefelProblem, "deflation"): (
        lambda: counted(600, 8, 60), {"max_iter": 3000, "tol": 1e-12}),
    (StiefelProblem, "two-stage"): (
        lambda: counted(600, 8, 60),
        {"n_features_to_select": 300, "max_iter": 3000, "tol": 1e-12}),
    (NonnegativeProblem, "auto"): (lambda: NonnegativeProblem(covariance(1000), 20, 300), {}),
    (NonnegativeProblem, "em"): (
        lambda: NonnegativeProblem(covariance(1000), 20, 300), {"n_restarts": 100, "tol": 0.0}),
    (NonnegativeProblem, "net"): (
        lambda: NonnegativeProblem(covariance(1000), 5, 300), {"rank": 4, "epsilon": 0.005}),
    (NonnegativeProblem, "nspca"): (lambda: NonnegativeProblem(covariance(1000), 5, 100), {}),
    (NonnegativeProblem, "spannogram"): (
        lambda: NonnegativeProblem(covariance(300), 3, 100),
        {"rank": 4, "eliminate": False, "max_vertices": None}),
}  # fmt: skip

# A method that is new and not among them gets one of these.
OTHERS = {
    RowSparseProblem: (lambda: RowSparseProblem(covariance(1000), 3, 200), {}),
    ElementSparseProblem: (lambda: ElementSparseProblem(covariance(1000), 40, 300), {}),
    StiefelProblem: (lambda: stiefel(600, 8), {}),
    NonnegativeProblem: (lambda: NonnegativeProblem(covariance(1000), 20, 300), {}),
}
METHODS = [(kind, name) for kind in OTHERS for name in methods_for(kind)]


@pytest.mark.parametrize(
    ("kind", "name"),
    [key for key in METHODS if CASES.get(key, True) is not None],
    ids=lambda key: getattr(key, "__name__", key),
)
def test_a_limit_is_met(kind, name):
    """The best of a few tries, as the machine may be busy."""
    make, options = CASES.get((kind, name)) or OTHERS[kind]
    problem = make()
    # A first call compiles what there is to compile.
    solve(problem, name, random_state=0, time_limit=1e-9, **options)
    for left in reversed(range(TRIES)):
        started = perf_counter()
        solution = solve(problem, name, random_state=0, time_limit=LIMIT, **options)
        seconds = perf_counter() - started
        if (kind, name) in CASES:
            assert solution.status is Status.TIME_LIMIT, "else the problem is too small"
        if seconds <= LIMIT + SLACK:
            return
        assert left, f"{seconds:.2f} s for a limit of {LIMIT} s"

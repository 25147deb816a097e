"""A time limit is met by every kind of proof: all loops ask one deadline."""

import time

import numpy as np
import pytest

from kspan import NonnegativeProblem, RowSparseProblem, as_covariance, verify
from kspan.progress import Monitor
from kspan.proofs.search import prover
from kspan.proofs.search.tree_state import Budgets
from tests.proofs.helpers import first_support, prove

LIMIT = 0.3

# Of a limit of half a second: what one eigensolve, its bound and the certificate may take.
SLACK = 0.5


def noise(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def gaussian(n, d):
    """Data in which few features stand out: proofs have much to do."""
    return as_covariance(noise(n, d) * np.linspace(1, 2, d))


CASES = {
    "relaxation": lambda: (RowSparseProblem(gaussian(600, 250), 2, 20), "tight", {}),
    "strengthening": lambda: (RowSparseProblem(gaussian(300, 120), 1, 10), "tight", {}),
    "search": lambda: (RowSparseProblem(gaussian(300, 60), 1, 10), "exact", {}),
    "path": lambda: (
        RowSparseProblem(gaussian(600, 200), 2, 20), "tight", {"k_grid": range(30, 150, 10)},
    ),
    "samples": lambda: (
        RowSparseProblem(gaussian(60, 3000), 1, 30), "tight",
        {"budgets": Budgets(dense_limit=100)},
    ),
    "split": lambda: (
        RowSparseProblem(gaussian(400, 300), 2, 30), "tight",
        # It never loses patience: on a fast machine it would end by itself.
        {"budgets": Budgets(
            dense_limit=100, n_inside=250, split_iter=100_000, split_patience=-np.inf,
        )},
    ),
    "nonnegative": lambda: (NonnegativeProblem(gaussian(400, 250), 1, 40), "exact", {}),
    "nets": lambda: (
        NonnegativeProblem(gaussian(400, 200), 1, 40), "net",
        {"budgets": Budgets(n_draws=200_000)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_limit_is_met(name):
    """The best of three tries: the machine may be busy with something else."""
    problem, level, asked = CASES[name]()
    problem.covariance.prepare()
    prove(problem, level, time_limit=0.05, **asked)  # whatever is computed once for a problem
    took = []
    for _ in range(3):
        started = time.perf_counter()
        certificate = prove(problem, level, time_limit=LIMIT, **asked)
        took.append(time.perf_counter() - started)
        assert certificate.status.value == "time limit"
        if took[-1] <= LIMIT + SLACK:
            break
    assert min(took) <= LIMIT + SLACK
    verify(problem, certificate)


def test_what_strengthening_has_found_by_then_is_used():
    """Its minimisation is cut short, and still improves on the plain relaxation."""
    problem = RowSparseProblem(gaussian(60, 40), 1, 6)
    plain = prove(problem, "tight", budgets=Budgets(strengthen_gap=2.0))
    for limit in (0.5, 1.0, 2.0, 4.0):
        cut_short = prove(problem, "tight", time_limit=limit)
        verify(problem, cut_short)
        if cut_short.upper < plain.upper * (1 - 1e-4):
            return
    pytest.fail("no bound below that of the plain relaxation")


def test_a_heuristic_gets_the_deadline():
    """It is asked with a monitor of its own that ends with the proof's, and reports nothing."""
    problem = RowSparseProblem(gaussian(100, 30), 1, 5)
    seen = []

    def heuristic(problem, scores, choice, monitor):
        seen.append(monitor)
        assert scores.shape == (30,)
        assert choice.n_features == 30
        return first_support(problem)

    monitor = Monitor("test", lambda progress: None, 60.0)
    prover.prove(
        problem, problem.refit(first_support(problem)), "tight", heuristic=heuristic,
        monitor=monitor, options=prover.ProofOptions(),
    )  # fmt: skip
    assert seen
    assert all(inner.callback is None for inner in seen)
    assert all(inner.deadline.left <= 60.0 for inner in seen)


def test_a_node_that_ran_out_of_time_stays_open(tmp_path):
    """It is gone on with, not split at a point that was not reached."""
    problem = RowSparseProblem(gaussian(600, 150), 2, 20)
    certificate = prove(problem, "exact", time_limit=0.1, checkpoint=tmp_path / "search.npz")
    assert certificate.status.value == "time limit"
    assert {record.kind for record in certificate.witness.records} <= {"open", "branched"}

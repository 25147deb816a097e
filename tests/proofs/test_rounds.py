"""Nodes in parallel: whoever works on them, and whatever happens to him, the proof is the same."""

import os
from dataclasses import replace

import joblib
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster

from kspan import (
    FeatureSparsePCA,
    NonnegativeProblem,
    NonnegativeSparsePCA,
    as_covariance,
    certify,
    solve,
)
from kspan.progress import Deadline, Monitor
from kspan.proofs import verify
from kspan.proofs.check.bounds import Cones, SharedCones
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.search import branch_and_bound
from kspan.proofs.search.node_steps import Given, NodeSteps, advance
from kspan.proofs.search.tree_state import Budgets, TreeState
from kspan.storage import digest
from tests.proofs.accidents import Deadly, Pressed
from tests.proofs.helpers import assert_sandwich, matrix_problem, prove, random_psd

# Nothing is enumerated, and every round of several nodes is sent away.
SEND = Budgets(enumerate_cost=0.0, strengthen_gap=2.0, worth_sending=0.0, max_nodes=12)
WITH_CONES = replace(SEND, strengthen_gap=0.0, strengthen_iter=25, strengthen_again=0.9)
ROUGH = replace(SEND, cone_iter=20, cone_node_iter=20, max_nodes=6)


@pytest.fixture(scope="module")
def A():
    return random_psd(np.random.default_rng(9), 12, "gaussian")


@pytest.fixture(scope="module")
def problems(A):
    B = random_psd(np.random.default_rng(0), 16, "gaussian")
    return {
        "plain": (matrix_problem(A, 1, 5), SEND),
        "two components": (matrix_problem(A, 2, 5, include=[3]), SEND),
        "with cones": (matrix_problem(A, 1, 5), WITH_CONES),
        "nonnegative": (NonnegativeProblem(as_covariance(B, kind="covariance"), 1, 5), ROUGH),
    }


KINDS = ("plain", "two components", "with cones", "nonnegative")


@pytest.fixture(scope="module")
def serial(problems):
    """The proofs of one process."""
    found = {
        name: prove(problem, "exact", budgets=budgets)
        for name, (problem, budgets) in problems.items()
    }
    for name, certificate in found.items():
        assert certificate.n_nodes >= 6, name  # otherwise there is nothing to share out
        assert len(certificate.witness.shared_cones) > (2 if name == "with cones" else -1)
    return found


def assert_same(certificate, other):
    """The same proof, record by record and to the last digit; only the times differ."""
    assert digest(certificate.witness) == digest(other.witness)
    assert (certificate.lower, certificate.upper) == (other.lower, other.upper)
    assert certificate.status is other.status
    assert (certificate.n_nodes, certificate.n_eigensolves) == (other.n_nodes, other.n_eigensolves)
    np.testing.assert_array_equal(certificate.support, other.support)
    np.testing.assert_array_equal(certificate.history[:, 1:], other.history[:, 1:])


# --- parallel equals serial


@pytest.mark.parametrize(("kind", "n_jobs"), [*((kind, 2) for kind in KINDS), ("plain", 3)])
def test_threads_make_the_same_proof(problems, serial, kind, n_jobs):
    problem, budgets = problems[kind]
    with joblib.parallel_config("threading"):
        certificate = prove(problem, "exact", budgets=budgets, n_jobs=n_jobs)
    assert_same(certificate, serial[kind])
    verify(problem, certificate)


@pytest.mark.parametrize("kind", ["with cones", "nonnegative"])
def test_processes_make_the_same_proof(problems, serial, kind):
    problem, budgets = problems[kind]
    certificate = prove(problem, "exact", budgets=budgets, n_jobs=2)
    assert_same(certificate, serial[kind])
    verify(problem, certificate)


def test_the_workers_of_a_dask_client_make_the_same_proof(problems, serial):
    problem, budgets = problems["plain"]
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster,
        Client(cluster),
    ):
        certificate = prove(problem, "exact", budgets=budgets, n_jobs=2)
        done = {task for task, *_ in cluster.scheduler.transition_log}
        assert done  # they did the work
        with joblib.parallel_config("threading"):  # what the user asks for comes first
            prove(problem, "exact", budgets=budgets, n_jobs=2)
        prove(problem, "exact", budgets=budgets)
        assert {task for task, *_ in cluster.scheduler.transition_log} == done
    assert_same(certificate, serial["plain"])


@pytest.mark.parametrize("round_size", [1, 3])
def test_rounds_of_another_size_make_another_proof_of_the_same(problems, A, round_size):
    problem, budgets = problems["plain"]
    budgets = replace(budgets, round_size=round_size, max_nodes=1000)
    certificate = prove(problem, "exact", budgets=budgets)
    assert certificate.status.value == "optimal"
    assert_sandwich(certificate, problem, A)
    verify(problem, certificate)


def test_nodes_that_take_no_time_stay_here(monkeypatch, problems, serial):
    problem, budgets = problems["plain"]
    asked = []

    def spied(work, forks, n_jobs):
        asked.append(n_jobs)
        return real(work, forks, n_jobs)

    real = branch_and_bound.in_order
    monkeypatch.setattr(branch_and_bound, "in_order", spied)
    quick = replace(budgets, worth_sending=60.0)
    assert_same(prove(problem, "exact", budgets=quick, n_jobs=2), serial["plain"])
    assert set(asked) == {1}


def test_forks_keep_their_own_when_they_are_put_together(A):
    """Each of two nodes gets a witness and cones, and is cut or split: all numbers must move on."""
    problem = matrix_problem(A, 1, 5)
    known = KnownMatrix.of(problem, np.arange(12))
    state = TreeState.start(known, 1, problem.choice, np.arange(5), 0.0)
    (root,) = state.next_round(SEND)
    root.split(0, None)
    state = state.after([root])
    forks = state.next_round(SEND)
    cones = [SharedCones(np.array([number]), Cones()) for number in (5, 6)]
    for fork, own in zip(forks, cones, strict=True):
        fork.share(own)
        fork.record.witness = fork.keep(np.zeros((fork.node.features.size, 1)))
    forks[0].split(1, None)
    after = state.after(forks)
    assert (len(state.records), len(state.open), len(state.witnesses)) == (3, 2, 1)  # as it was
    first, second = after.records[forks[0].node.record], after.records[forks[1].node.record]
    assert first.children == [3, 4]
    assert {node.record for node in after.open} == {3, 4, forks[1].node.record}
    for node in after.open:
        own, leaf = cones[node.record < 3], after.records[node.record]
        assert after.shared_cones[node.shared] is own
        assert after.shared_cones[after.witnesses[leaf.witness].shared] is own
    assert second.kind == "open"
    assert after.n_nodes == state.n_nodes + 1


# --- what may happen to a worker


def test_a_killed_worker_costs_its_node(tmp_path, problems, serial):
    problem, budgets = problems["plain"]
    mark = tmp_path / "killed"
    deadly = Deadly(**vars(budgets), home=os.getpid(), mark=str(mark))
    with pytest.warns(RuntimeWarning, match="A worker died .* is done in this process") as caught:
        certificate = prove(problem, "exact", budgets=deadly, n_jobs=2)
    assert mark.exists()
    assert sum("worker died" in str(warning.message) for warning in caught) == 1
    assert_same(certificate, serial["plain"])
    verify(problem, certificate)


def test_no_node_is_begun_when_time_is_up(A):
    """Nor sent away shortly before: workers take longer to start."""
    problem = matrix_problem(A, 1, 5)
    known = KnownMatrix.of(problem, np.arange(12))
    state = TreeState.start(known, 1, problem.choice, np.arange(5), 0.0)
    (fork,) = state.next_round(SEND)
    before, deadline = digest(fork.node), Deadline(1e-9)
    assert advance(NodeSteps, Given.of(problem, known, SEND), deadline, fork) is fork
    assert digest(fork.node) == before
    assert fork.is_open
    for seconds, sends in ((1.0, False), (60.0, True)):
        search = branch_and_bound.BranchAndBound(
            problem, state, known, NodeSteps, heuristic=None, budgets=SEND,
            monitor=Monitor("exact", deadline=seconds),
        )  # fmt: skip
        assert search.sends_nodes is sends


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("place", ["in the middle", "while forks are put together"])
def test_an_interrupted_round_has_not_happened(monkeypatch, tmp_path, A, place, n_jobs):
    problem, path, rounds = matrix_problem(A, 1, 5), tmp_path / "search.npz", 0

    def pressed(self, *args):
        nonlocal rounds
        rounds += 1
        if rounds == 4:
            raise KeyboardInterrupt
        return real(self, *args)

    name = "next_round" if place == "in the middle" else "after"
    real = getattr(branch_and_bound.TreeState, name)
    with monkeypatch.context() as patch, joblib.parallel_config("threading"):
        patch.setattr(branch_and_bound.TreeState, name, pressed)
        certificate = prove(problem, "exact", budgets=SEND, n_jobs=n_jobs, checkpoint=path)
    assert certificate.status.value == "interrupted"
    assert_sandwich(certificate, problem, A)
    verify(problem, certificate)
    whole = prove(problem, "exact", budgets=SEND, checkpoint=tmp_path / "other.npz")
    again = prove(problem, "exact", budgets=SEND, checkpoint=path)
    assert digest(again.witness) == digest(whole.witness)


def test_ctrl_c_in_a_worker(problems, A):
    problem, budgets = problems["plain"]
    pressed = Pressed(**vars(budgets), home=os.getpid())
    certificate = prove(problem, "exact", budgets=pressed, n_jobs=2)
    assert certificate.status.value == "interrupted"
    assert_sandwich(certificate, problem, A)
    verify(problem, certificate)


@pytest.mark.parametrize("resumed_with", [None, 3])
def test_a_checkpoint_of_two_is_resumed_by_any_number(tmp_path, problems, resumed_with):
    problem, budgets = problems["plain"]
    path = tmp_path / "search.npz"
    with joblib.parallel_config("threading"):
        for step in (2, 3):
            prove(
                problem, "exact", budgets=budgets, n_jobs=2, checkpoint=path,
                callback=lambda progress, step=step: progress.iteration == step,
            )  # fmt: skip
        again = prove(problem, "exact", budgets=budgets, n_jobs=resumed_with, checkpoint=path)
    whole = prove(problem, "exact", budgets=budgets, checkpoint=tmp_path / "other.npz")
    assert digest(again.witness) == digest(whole.witness)
    assert (again.n_nodes, again.upper) == (whole.n_nodes, whole.upper)


# --- where it is asked for


def test_certify_and_solve_take_a_number_of_jobs(problems):
    problem, _ = problems["plain"]
    solution = solve(problem, "exact", random_state=0, n_jobs=2)
    one, two = (certify(problem, solution, "exact", n_jobs=n) for n in (None, 2))
    assert digest(one.witness) == digest(two.witness)
    assert solution.status.value == "optimal"


@pytest.mark.parametrize("estimator", [FeatureSparsePCA(1, 5), NonnegativeSparsePCA(1, 5)])
def test_estimators_take_a_number_of_jobs(A, estimator):
    X = np.linalg.cholesky(A + 1e-9 * np.eye(12)).T
    estimator.set_params(certify="exact", random_state=0)
    one = estimator.fit(X).components_
    assert np.array_equal(estimator.set_params(n_jobs=2).fit(X).components_, one)
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        estimator.set_params(n_jobs=0).fit(X)
    with pytest.raises(ValueError, match="'n_jobs' parameter"):
        estimator.set_params(n_jobs="all").fit(X)

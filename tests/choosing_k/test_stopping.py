from dataclasses import dataclass

import numpy as np
import pytest

from kspan import Solution, selection_stability, sparsity_path
from kspan.progress import Status
from kspan.solvers.method import RowSparseMethod
from tests.oracles import random_covariance

A = random_covariance(np.random.default_rng(0), 10)


def path_of(**options):
    return sparsity_path(A, 2, covariance="precomputed", random_state=0, **options)


def stop_after(count, how):
    calls = []

    def callback(progress):
        calls.append(progress)
        if len(calls) == count:
            return how()
        return False

    callback.calls = calls
    return callback


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("solver", ["auto", "ipu"])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    ("how", "status"), [(lambda: True, "stopped by callback"), (interrupt, "interrupted")]
)
def test_what_is_done_is_returned(solver, count, how, status):
    path = path_of(solver=solver, callback=stop_after(count, how))
    assert path.status == status
    assert path.k.tolist() == list(range(2, 2 + count))
    assert not path.certificates
    assert (path.upper >= path.objective).all()


def test_no_time_at_all_still_gives_one_k():
    path = path_of(time_limit=1e-9)
    assert path.status == "time limit"
    assert path.k.tolist() == [2]


def test_an_interrupted_proof_keeps_the_whole_path():
    def callback(progress):
        if progress.upper is not None:
            raise KeyboardInterrupt

    path = path_of(callback=callback)
    assert path.status == "interrupted"
    assert path.k.size == 9
    assert len(path.certificates) == 1


def test_an_interrupt_inside_a_solver_ends_the_walk(monkeypatch):
    import kspan.solvers.rowsparse.moves as moves

    calls = []
    honest = moves.improve_by_swaps

    def improve(*args, **kwargs):
        calls.append(args)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return honest(*args, **kwargs)

    monkeypatch.setattr(moves, "improve_by_swaps", improve)
    path = path_of()
    assert path.status == "interrupted"
    assert 1 <= path.k.size < 9
    assert (np.diff(path.objective) >= 0).all()


def test_reports_name_the_k_and_never_fall_along_the_first_way_up():
    callback = stop_after(10**9, bool)
    path_of(callback=callback, certify=False)
    first = callback.calls[:9]
    assert [report.solver for report in first] == [f"path k={k}" for k in range(2, 11)]


def test_verbose_writes_to_standard_error(capsys):
    path_of(ks=[2, 3], certify=False, verbose=1)
    captured = capsys.readouterr()
    assert "path k=2" in captured.err
    assert captured.out == ""


def test_proofs_asked_for_where_time_did_not_reach():
    path = path_of(certify_at=[5], time_limit=1e-9)
    assert path.k.tolist() == [2]
    assert not path.certificates
    with pytest.raises(ValueError, match="certify_at holds 50, which is not on the path"):
        path_of(certify_at=[50], certify=False)


@dataclass(frozen=True, eq=False)
class Interrupted(RowSparseMethod):
    """Ends its third run as a method does that was interrupted by the keyboard."""

    name, summary = "interrupted", "for this test"

    runs: tuple = ()

    def run(self, problem, monitor, rng):
        best = problem.refit(np.arange(problem.choice.size))
        object.__setattr__(self, "runs", (*self.runs, 1))
        third = len(self.runs) == 3
        return Solution.from_candidate(
            best, n_features=problem.n_features, solver=self.name,
            status=Status.INTERRUPTED if third else Status.COMPLETED,
            history=[best.objective], n_iter=1,
        )  # fmt: skip


def test_an_interrupt_of_a_resample_is_not_lost():
    X = np.random.default_rng(0).standard_normal((30, 6))
    found = selection_stability(X, 1, 2, n_resamples=9, solver=Interrupted(), random_state=0)
    assert found.status == "interrupted"
    assert found.n_resamples == 2

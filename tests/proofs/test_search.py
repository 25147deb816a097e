"""Long searches: stopping, resuming, reporting, and answers for other k."""

import math
from dataclasses import replace

import numpy as np
import pytest

from kspan import NonnegativeProblem, RowSparseProblem, as_covariance, certify, solve, storage
from kspan.covariance import DenseCovariance
from kspan.problem import Choice
from kspan.proofs import Certificate, CertificateError, verify
from kspan.proofs.check.bounds import Cones
from kspan.proofs.check.claims import Part
from kspan.proofs.check.tree import Record
from kspan.proofs.search import node_steps, prover
from kspan.proofs.search.cone_relaxation import ConeRelaxation
from kspan.proofs.search.relaxation import Relaxation
from kspan.proofs.search.tree_state import Budgets, Node, TreeState
from tests.proofs.helpers import (
    RELAX,
    ROUNDING,
    all_values,
    any_of,
    assert_sandwich,
    matrix_problem,
    optimum,
    prove,
    random_psd,
)

# No strengthening either, so that there are nodes to stop at.
SLOW = Budgets(enumerate_cost=0.0, strengthen_gap=2.0)


@pytest.fixture(scope="module")
def A():
    return random_psd(np.random.default_rng(9), 12, "gaussian")


@pytest.fixture(scope="module")
def problem(A):
    return matrix_problem(A, 1, 5)


@pytest.fixture(scope="module")
def whole(problem):
    """The certificate of a search that nobody disturbed."""
    certificate = prove(problem, "exact", budgets=SLOW)
    assert certificate.n_nodes > 8  # otherwise there is nothing to interrupt below
    assert certificate.status.value == "optimal"
    return certificate


def assert_same_end(certificate, whole):
    """The same proof, down to the last digit: time is not part of the digest."""
    np.testing.assert_array_equal(certificate.support, whole.support)
    assert certificate.lower == whole.lower
    assert certificate.upper == whole.upper
    assert certificate.n_nodes == whole.n_nodes
    assert certificate.status is whole.status
    np.testing.assert_array_equal(certificate.proved_in, whole.proved_in)
    np.testing.assert_array_equal(certificate.proved_out, whole.proved_out)


class StopAt:
    """A callback that stops, or presses Ctrl-C, at one report."""

    def __init__(self, step, press=False):
        self.step, self.press = step, press

    def __call__(self, progress):
        if progress.iteration != self.step:
            return False
        if self.press:
            raise KeyboardInterrupt
        return True


# --- stopping


@pytest.mark.parametrize("press", [False, True], ids=["callback", "ctrl-c"])
@pytest.mark.parametrize("step", [1, 2, 4, 8])
def test_a_search_that_is_stopped_has_a_certificate(problem, A, step, press):
    certificate = prove(problem, "exact", budgets=SLOW, callback=StopAt(step, press))
    assert certificate.status.value == ("interrupted" if press else "stopped by callback")
    assert_sandwich(certificate, problem, A)
    verify(problem, certificate)


@pytest.mark.parametrize("level", ["tight", "exact"])
def test_time_limit(problem, A, level):
    certificate = prove(problem, level, budgets=SLOW, time_limit=1e-9)
    assert certificate.status.value == "time limit"
    assert "more time" in certificate.status.advice
    assert_sandwich(certificate, problem, A)
    verify(problem, certificate)


def test_max_nodes(problem, A):
    certificate = prove(
        problem, "exact", budgets=Budgets(enumerate_cost=0.0, strengthen_gap=2.0, max_nodes=3)
    )
    assert 3 <= certificate.n_nodes < 3 + Budgets().round_size
    assert certificate.status.value == "bounded"
    assert certificate.gap > 1e-6
    assert_sandwich(certificate, problem, A)
    verify(problem, certificate)


@pytest.mark.parametrize("where", ["relax", "heuristic", "bound"])
@pytest.mark.parametrize("call", [2, 5, 9])
def test_ctrl_c_inside_a_step(monkeypatch, problem, A, where, call):
    """An interrupt may come anywhere; the half-done step is undone."""
    calls = 0

    def pressed(real):
        def wrapped(*args, **kwargs):
            nonlocal calls
            calls += 1
            if calls == call:
                raise KeyboardInterrupt
            return real(*args, **kwargs)

        return wrapped

    if where == "relax":
        real = node_steps.Relaxation
        monkeypatch.setattr(node_steps, "Relaxation", pressed(real))
    elif where == "heuristic":
        real = node_steps.NodeSteps.improve
        monkeypatch.setattr(node_steps.NodeSteps, "improve", pressed(real))
    else:
        monkeypatch.setattr(node_steps, "screen", pressed(node_steps.screen))
    certificate = prove(
        problem, "exact", budgets=Budgets(enumerate_cost=0, strengthen_gap=2, heuristic_every=1)
    )
    assert calls >= call
    assert certificate.status.value == "interrupted"
    assert_sandwich(certificate, problem, A)
    verify(problem, certificate)


def test_ctrl_c_while_the_path_is_made(monkeypatch, problem, A):
    """The search is over by then; its answer must not be lost."""

    def press(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(prover, "Relaxation", press)
    try:
        certificate = prove(problem, "exact", budgets=SLOW, k_grid=[3])
    except KeyboardInterrupt:  # pytest would take it for its own
        pytest.fail("the interrupt was not caught")
    assert_sandwich(certificate, problem, A)
    verify(problem, certificate)


@pytest.mark.parametrize("press", [False, True], ids=["callback", "ctrl-c"])
@pytest.mark.parametrize("m", [1, 2])
def test_stopping_the_wide_code_keeps_the_best_bound_so_far(m, press):
    X = np.random.default_rng(0).standard_normal((6, 10)) * np.linspace(0.3, 2, 10)
    problem = RowSparseProblem(as_covariance(X), m, 4)
    seen = []

    def callback(progress):
        seen.append(progress.upper)
        return StopAt(2, press)(progress)

    certificate = prove(problem, "tight", budgets=Budgets(dense_limit=0), callback=callback)
    assert certificate.status.value == ("interrupted" if press else "stopped by callback")
    assert certificate.upper <= min(seen) * (1 + ROUNDING)
    assert_sandwich(certificate, problem, np.cov(X.T))
    verify(problem, certificate)


def test_ctrl_c_at_the_fast_level(problem, A):
    try:
        certificate = prove(problem, "fast", callback=StopAt(1, press=True))
    except KeyboardInterrupt:  # pytest would take it for its own
        pytest.fail("the interrupt was not caught")
    assert certificate.status.value == "interrupted"
    assert_sandwich(certificate, problem, A)
    verify(problem, certificate)


# --- checkpoints


@pytest.mark.parametrize("press", [False, True], ids=["callback", "ctrl-c"])
@pytest.mark.parametrize("step", [1, 2, 3, 5, 9])
def test_resuming_ends_with_the_same_certificate(tmp_path, problem, whole, step, press):
    path = tmp_path / "search.npz"
    first = prove(problem, "exact", budgets=SLOW, checkpoint=path, callback=StopAt(step, press))
    assert first.gap > 1e-6
    assert path.exists()
    again = prove(problem, "exact", budgets=SLOW, checkpoint=path)
    assert_same_end(again, whole)
    verify(problem, again)
    assert (np.diff(again.history[:, 0]) >= 0).all()
    assert again.history[-1, 1] == again.lower


def test_stopping_again_and_again(tmp_path, problem, whole):
    path = tmp_path / "search.npz"
    for _ in range(200):
        certificate = prove(problem, "exact", budgets=SLOW, checkpoint=path, callback=StopAt(9))
        if certificate.status.value == "optimal":
            break
    assert_same_end(certificate, whole)
    verify(problem, certificate)


def test_a_checkpoint_of_a_finished_search_gives_the_answer_at_once(tmp_path, problem, whole):
    path = tmp_path / "search.npz"
    prove(problem, "exact", budgets=SLOW, checkpoint=path)
    reports = []
    again = prove(problem, "exact", budgets=SLOW, checkpoint=path, callback=reports.append)
    assert len(reports) == 1
    assert_same_end(again, whole)


def test_a_tight_checkpoint_goes_on_to_exact(tmp_path, problem, whole):
    path = tmp_path / "search.npz"
    assert prove(problem, "tight", budgets=SLOW, checkpoint=path).n_nodes == 1
    assert_same_end(prove(problem, "exact", budgets=SLOW, checkpoint=path), whole)


def test_a_budget_of_nodes_is_not_another_problem(tmp_path, problem, whole):
    path = tmp_path / "search.npz"
    few = Budgets(enumerate_cost=0.0, strengthen_gap=2.0, max_nodes=4)
    prove(problem, "exact", budgets=few, checkpoint=path)
    assert_same_end(prove(problem, "exact", budgets=SLOW, checkpoint=path), whole)


def test_a_checkpoint_is_written_at_intervals(tmp_path, problem):
    path = tmp_path / "search.npz"
    seen = []

    def callback(progress):
        seen.append(path.exists())

    few = replace(SLOW, max_nodes=4)
    prove(problem, "exact", budgets=few, checkpoint=path, checkpoint_every=0.0, callback=callback)
    assert not seen[0]
    assert seen[2]
    seen.clear()
    path.unlink()
    prove(problem, "exact", budgets=few, checkpoint=path, checkpoint_every=1e9, callback=callback)
    assert not any(seen)
    assert path.exists()
    assert [file.name for file in tmp_path.iterdir()] == ["search.npz"]


def test_a_process_that_died_resumes_from_its_last_checkpoint(tmp_path, problem, whole):
    """Not an interrupt but a crash: whatever was written last is a good place to go on from."""
    path = tmp_path / "search.npz"

    def crash(progress):
        if progress.iteration == 5:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        prove(problem, "exact", budgets=SLOW, checkpoint=path, checkpoint_every=0.0, callback=crash)
    assert path.exists()
    assert_same_end(prove(problem, "exact", budgets=SLOW, checkpoint=path), whole)


def test_a_checkpoint_of_another_problem_is_refused(tmp_path, problem, A):
    path = tmp_path / "search.npz"
    prove(problem, "exact", budgets=SLOW, checkpoint=path)
    before = path.read_bytes()
    touched = A.copy()
    touched[0, 0] *= 1 + 1e-12
    for other in (
        matrix_problem(touched, 1, 5),
        matrix_problem(4 * A, 1, 5),
        matrix_problem(A, 1, 4),
        matrix_problem(A, 2, 5),
        matrix_problem(A, 1, 5, include=[2]),
        matrix_problem(A, 1, 5, exclude=[2]),
    ):
        with pytest.raises(ValueError, match="belongs to another problem; delete it or use"):
            prove(other, "exact", budgets=SLOW, checkpoint=path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path, problem, whole):
    path = tmp_path / "certificate.npz"
    whole.save(path)
    with pytest.raises(ValueError, match="unknown type 'Certificate'"):
        prove(problem, "exact", budgets=SLOW, checkpoint=path)
    assert Certificate.load(path).digest == whole.digest


def a_file_below_a_file(folder):
    (folder / "file").write_text("x")
    return folder / "file" / "search.npz"


PLACES = {
    "no folder": (lambda folder: folder / "nowhere" / "search.npz", "there is no folder"),
    "below a file": (a_file_below_a_file, "there is no folder"),
    "a folder": (lambda folder: folder, "is a folder; name a file in it"),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_place_that_cannot_be_written_to_is_seen_before_the_search(tmp_path, problem, name):
    place, message = PLACES[name]
    steps = []
    with pytest.raises(OSError, match=message):
        prove(problem, "exact", checkpoint=place(tmp_path), callback=steps.append)
    assert steps == []


def test_a_read_only_place_is_seen_before_the_search(tmp_path, problem, monkeypatch):
    """Permission bits do not stop everyone: what counts is whether a file can be made."""

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(PermissionError, match=r"cannot write in the folder .*: Permission denied"):
        prove(problem, "exact", checkpoint=tmp_path / "search.npz")


@pytest.mark.parametrize("when", ["at all times", "at the end"])
def test_a_disk_that_fills_up_costs_the_checkpoint_and_not_the_proof(
    tmp_path, problem, whole, monkeypatch, when
):
    path = tmp_path / "search.npz"

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    every = 0.0 if when == "at all times" else 1e9
    message = r"checkpoint '.*search\.npz' could not be written: No space left on device"
    with pytest.warns(RuntimeWarning, match=message) as caught:
        certificate = prove(problem, "exact", budgets=SLOW, checkpoint=path, checkpoint_every=every)
    assert len(caught) == 1, "once is enough"
    assert_same_end(certificate, whole)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_the_last_checkpoint_is_written(tmp_path, problem, whole, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupt)
    certificate = prove(problem, "exact", budgets=SLOW, checkpoint=tmp_path / "search.npz")
    assert certificate.upper == whole.upper


def test_a_checkpoint_that_was_changed_is_refused(tmp_path, problem):
    path = tmp_path / "search.npz"
    prove(problem, "exact", budgets=SLOW, checkpoint=path, callback=StopAt(3))
    types = (Choice, *Part.known)
    kept = storage.load_file(path, types)
    node = kept.search.open[0]
    node.features = node.features[:-1]
    storage.save_file(path, kept)
    with pytest.raises(ValueError, match="was changed after it was written; delete it"):
        prove(problem, "exact", budgets=SLOW, checkpoint=path)


def test_resuming_with_a_better_support_does_not_forget_it(tmp_path, problem, A):
    path = tmp_path / "search.npz"
    supports, values = all_values(A, 1, 5)
    first = prove(
        problem, "exact", supports[values.argmin()], heuristic=False, budgets=SLOW,
        checkpoint=path, callback=StopAt(1),
    )  # fmt: skip
    assert first.lower < values.max() * 0.99
    again = prove(
        problem, "exact", supports[values.argmax()], heuristic=False, budgets=SLOW,
        checkpoint=path, callback=StopAt(1),
    )  # fmt: skip
    assert again.lower == pytest.approx(values.max(), rel=ROUNDING)


# --- reports


def test_progress_reports(problem, whole):
    reports = []
    prove(problem, "exact", budgets=replace(SLOW, row_sweeps=0), callback=reports.append)
    assert len(reports) > whole.n_nodes / SLOW.round_size
    lower = np.array([report.objective for report in reports])
    upper = np.array([report.upper for report in reports])
    nodes = np.array([report.n_nodes for report in reports])
    assert (np.diff(lower) >= 0).all()
    # A node that is enumerated adds its rounding margin to its parent's bound.
    assert (np.diff(upper) <= ROUNDING * upper[0]).all()
    assert (lower <= upper).all()
    assert (np.diff(nodes) >= 0).all()
    assert nodes[0] == 0
    assert nodes[-1] == whole.n_nodes
    assert reports[0].n_features_left == 12
    for report in reports:
        assert report.solver == "exact"
        assert report.n_open >= 0
        assert 0 <= report.n_features_left <= 12
        assert report.gap == pytest.approx((report.upper - report.objective) / report.upper)
    assert [report.iteration for report in reports] == list(range(1, len(reports) + 1))
    assert reports[-1].objective == pytest.approx(whole.lower, rel=ROUNDING)
    assert reports[-1].upper == pytest.approx(whole.upper, rel=ROUNDING)


def test_nothing_is_printed(problem, capsys):
    certify(problem, solve(problem, random_state=0), "tight")
    assert capsys.readouterr() == ("", "")


# --- other k


@pytest.mark.parametrize(("m", "include", "exclude"), [(1, [], []), (2, [], []), (2, [4], [0, 7])])
@pytest.mark.parametrize("level", ["tight", "exact"])
def test_upper_at_holds_for_every_k(A, m, include, exclude, level):
    A = A[:10, :10]
    problem = matrix_problem(A, m, 5, include, exclude)
    certificate = prove(problem, level, budgets=RELAX)
    for k in range(m, 11 - len(exclude)):
        best, _ = optimum(matrix_problem(A, m, k, include, exclude), A)
        assert certificate.upper_at(k) >= best * (1 - ROUNDING)
    assert certificate.upper_at(5) == certificate.upper


def test_upper_at_is_not_looser_than_ordinary_pca(problem, A):
    certificate = prove(problem, "tight", budgets=RELAX)
    top = np.linalg.eigvalsh(A)[-1]
    for k in range(1, 13):
        assert certificate.upper_at(k) <= top * (1 + 1e-9)
    uppers = [certificate.upper_at(k) for k in range(1, 13)]
    assert uppers == sorted(uppers)


@pytest.mark.parametrize("k", [3, 8])
def test_a_grid_of_k_tightens_upper_at(problem, k):
    plain = prove(problem, "tight", budgets=RELAX)
    grid = prove(problem, "tight", budgets=RELAX, k_grid=[k])
    assert grid.upper_at(k) < plain.upper_at(k) * (1 - 1e-3)
    for other in range(1, 13):
        assert grid.upper_at(other) <= plain.upper_at(other)
    verify(problem, grid)


def test_a_grid_may_name_what_cannot_be_chosen(problem):
    """Numbers without a question of their own (k ≤ m, k = d) are passed over."""
    certificate = prove(problem, "tight", budgets=RELAX, k_grid=[1, 12, 5, 5])
    verify(problem, certificate)
    assert math.isfinite(certificate.upper_at(12))


@pytest.mark.parametrize("k", [0, 1, 12, -3])
def test_upper_at_refuses_other_numbers(A, k):
    problem = matrix_problem(A, 2, 5, exclude=[3])
    certificate = prove(problem, "tight", budgets=RELAX)
    with pytest.raises(ValueError, match=f"k={k} must be between n_components=2 and the 11"):
        certificate.upper_at(k)


def test_upper_at_needs_room_for_the_included_features(A):
    certificate = prove(matrix_problem(A, 1, 5, include=[1, 2, 3]), "tight", budgets=RELAX)
    with pytest.raises(ValueError, match="fewer than the 3 features to include"):
        certificate.upper_at(2)


def test_upper_at_without_a_witness_says_what_to_do(problem):
    certificate = prove(problem, "fast")
    assert certificate.upper_at(3) == certificate.upper
    with pytest.raises(ValueError, match="level='tight'"):
        certificate.upper_at(6)


# --- the state of a search


def test_best_open_is_the_largest_bound_then_the_oldest():
    nothing = np.empty(0, dtype=np.intp)
    search = TreeState(1.0, nothing, 1.0)
    assert search.best_open() is None
    for record, bound in ((0, 2.0), (1, 3.0), (2, 3.0)):
        search.open.append(Node(record, nothing, any_of(0, 0), bound, None))
    assert search.best_open().record == 1
    search.refresh()
    assert search.upper == 3.0
    assert search.gap == pytest.approx(2 / 3)
    search.open.clear()
    search.settled = 1.0
    search.refresh()
    assert search.upper == search.lower == 1.0
    assert search.gap == 0.0


def test_the_proof_keeps_the_witnesses_it_needs_and_no_others(whole):
    tree = whole.witness
    used = {cut.witness for record in tree.records for cut in record.reductions}
    used |= {record.witness for record in tree.records if record.kind in ("bound", "open")}
    assert used == set(range(len(tree.witnesses)))
    assert all(isinstance(record, Record) for record in tree.records)


# --- how well A is known


def less_known(problem):
    """The same problem, with a covariance whose variances are known to seven digits."""
    A = problem.covariance.submatrix(np.arange(problem.n_features))
    other = DenseCovariance(A, is_psd=True, errors=UNKNOWN * np.diagonal(A))
    if problem.nonnegative:
        return NonnegativeProblem(other, 1, problem.choice.size)
    return problem.changed(covariance=other)


UNKNOWN = 1e-7


def no_witness(self):
    return np.full((self.d, 1), np.nan)


def no_cones(self):
    return np.full((self.t, 1), np.nan), Cones()


ROUTES = {
    "diagonal, k = m": ("exact", (3, 3), RELAX),
    "enumerated": ("exact", (1, 5), Budgets()),
    "relaxed": ("exact", (1, 5), SLOW),
    "strengthened": ("tight", (1, 5), RELAX),
    "fallback": ("tight", (1, 5), RELAX),
    "nonnegative": ("exact", None, RELAX),
    "nonnegative fallback": ("tight", None, RELAX),
    "not begun": ("tight", (1, 5), RELAX),
}


@pytest.mark.parametrize("route", ROUTES)
def test_every_bound_of_a_tree_has_the_margin_of_its_data(monkeypatch, A, route):
    """Errors of the entries are at least a share of the variances; all bounds must say so."""
    level, sizes, budgets = ROUTES[route]
    covariance = as_covariance(A, kind="covariance")
    problem = (
        NonnegativeProblem(covariance, 1, 4)
        if sizes is None
        else RowSparseProblem(covariance, *sizes)
    )
    if "fallback" in route:
        monkeypatch.setattr(Relaxation, "witness", no_witness)
        monkeypatch.setattr(ConeRelaxation, "witness", no_cones)
    limit = 1e-9 if route == "not begun" else None
    known = prove(problem, level, budgets=budgets, time_limit=limit)
    other = less_known(problem)
    less = prove(other, level, budgets=budgets, time_limit=limit)
    verify(problem, known)
    verify(other, less)
    # What the search claimed for an exact matrix does not follow for the other.
    with pytest.raises(CertificateError, match=r"but (only )?.* follows"):
        verify(other, replace(known, path=[], digest=""))
    # Every piece holds k variances.
    margin = UNKNOWN * np.sort(np.diagonal(A))[: problem.choice.size].sum()
    evaluate = less.witness.evaluate
    assert evaluate(other) - evaluate(problem) >= margin * (1 - 1e-6)

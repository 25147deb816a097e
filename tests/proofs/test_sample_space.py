"""The sample-space bound's solver, on data with few rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance
from kspan.progress import Monitor, Status
from kspan.proofs.search.proof import Proof
from kspan.proofs.search.tree_state import Budgets
from kspan.proofs.search.wide_search import ROOM, _capped, _secular_roots, prove_by_samples
from tests.effort import examples
from tests.proofs.helpers import all_values


def solved(X, m, k, *, include=(), exclude=(), support=None, n_iter=60, callback=None):
    """The proof that the sample-space bound alone gives, for data that is centred already."""
    problem = RowSparseProblem(as_covariance(X), m, k, include, exclude)
    if support is None:
        support = problem.select((X * X).sum(axis=0))
    best = problem.refit(np.sort(support))
    proof = Proof(problem, best, Monitor("test", callback))
    prove_by_samples(proof, Budgets(sample_iter=n_iter))
    return proof


def covariance_of(X):
    return X.T @ X / (len(X) - 1)


def wide_data(seed, n=5, d=9):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.3, 1.5, d)
    return X - X.mean(axis=0)


@examples(40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 7),
    m=st.integers(1, 4),
    more=st.integers(0, 3),
    constrained=st.booleans(),
)
def test_the_bound_holds_and_is_the_witness_s(seed, n, m, more, constrained):
    X, k = wide_data(seed, n), m + more
    include, exclude = ([1], [4]) if constrained else ([], [])
    support = np.array([1, 0, 2, 3, 5, 6, 7][:k])
    outcome = solved(X, m, k, include=include, exclude=exclude, support=support, n_iter=25)
    if outcome.upper == np.inf:
        assert k == 1  # the one feature is forced: nothing to choose
        assert constrained
        return
    values = all_values(covariance_of(X), m, k, include, exclude)[1]
    assert outcome.upper >= values.max() * (1 - 1e-12)
    assert outcome.witness.evaluate(outcome.problem) * (1 + ROOM) == outcome.upper


def sample_space_by_cvxpy(X, m, k):
    """min KyFan_m(Σ P_i) + kτ + Σ(s_i - τ)_+ over P_i ⪰ 0, P_i ⪰ x_ix_i' - s_i I (§12.6)."""
    cp = pytest.importorskip("cvxpy")
    r, d = X.shape
    s, level = cp.Variable(d), cp.Variable()
    P = [cp.Variable((r, r), PSD=True) for _ in range(d)]
    limits = [s >= 0, level >= 0]
    limits += [P[i] + s[i] * np.eye(r) - np.outer(X[:, i], X[:, i]) >> 0 for i in range(d)]
    value = cp.lambda_sum_largest(sum(P), m) + k * level + cp.sum(cp.pos(s - level))
    return float(cp.Problem(cp.Minimize(value), limits).solve(solver=cp.CLARABEL))


@pytest.mark.parametrize(("m", "k"), [(2, 3), (2, 5), (3, 4)])
def test_several_components_reach_the_conic_value(m, k):
    """One metric τI for all: the solver's bound is not below the best, and within 2% of it."""
    X = wide_data(m + k, n=5, d=8)
    value = sample_space_by_cvxpy(X / np.sqrt(len(X) - 1), m, k)
    outcome = solved(X, m, k, n_iter=150)
    assert value * (1 - 1e-5) <= outcome.upper <= value * 1.02


def test_one_component_is_better_than_one_metric():
    """m = 1 uses a matrix metric, of which τI is a special case."""
    X = wide_data(4, n=5, d=8)
    outcome = solved(X, 1, 3, n_iter=150)
    assert outcome.witness.common.shape[1] > 0
    assert outcome.upper <= sample_space_by_cvxpy(X / 2, 1, 3) * (1 + 1e-3)
    assert outcome.upper >= all_values(covariance_of(X), 1, 3)[1].max()


def test_it_beats_the_trace_bound_and_the_eigenvalues():
    X = wide_data(0, n=10, d=40)
    for m in (1, 2):
        outcome = solved(X, m, 6, n_iter=100)
        trace = np.sort((X * X).sum(axis=0))[-6:].sum() / 9
        top = np.linalg.eigvalsh(X @ X.T)[-m:].sum() / 9
        assert outcome.upper < 0.99 * min(trace, top)


def test_it_stops_when_told():
    X = wide_data(0, n=10, d=40)
    reports = []

    def callback(progress):
        reports.append(progress)
        return len(reports) == 3

    outcome = solved(X, 1, 6, n_iter=80, callback=callback)
    assert outcome.monitor.stopped is Status.STOPPED
    assert len(reports) == 3
    uppers = [report.upper for report in reports]
    assert uppers == sorted(uppers, reverse=True)
    assert outcome.upper == uppers[-1]


def test_it_gives_up_when_nothing_is_gained():
    outcome = solved(wide_data(0, n=4, d=6), 2, 3, n_iter=5000)
    assert outcome.n_eigensolves < 3 * 1000


@pytest.mark.parametrize(("n", "m", "k"), [(2, 1, 2), (3, 2, 3), (4, 3, 3), (2, 2, 3), (5, 2, 9)])
def test_corners(n, m, k):
    """As few rows as components, or one; all features: no warning, a true bound."""
    X = wide_data(n, n=n)
    outcome = solved(X, m, k, n_iter=30)
    assert outcome.upper >= all_values(covariance_of(X), m, k)[1].max() * (1 - 1e-12)


def test_a_support_without_variance_to_start_from():
    """A thoughtless start must not stop the proof."""
    X = wide_data(0)
    X[:, :3] = 0.0
    outcome = solved(X, 1, 3, support=np.arange(3), n_iter=20)
    assert outcome.upper >= all_values(covariance_of(X), 1, 3)[1].max() * (1 - 1e-12)


# --- its two small solvers


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_secular_roots(seed, r):
    rng = np.random.default_rng(seed)
    shift = 10.0 ** rng.uniform(-6, 1, r)
    squares = rng.uniform(0, 3, (7, r))
    squares *= (1 + rng.uniform(0.001, 5, 7) / (squares / shift).sum(axis=1))[:, None]
    squares = squares[(squares / shift).sum(axis=1) > 1]
    mu = _secular_roots(squares, shift)
    assert (mu >= 0).all()
    np.testing.assert_allclose((squares / (shift + mu[:, None])).sum(axis=1), 1.0, rtol=1e-6)


def test_secular_roots_of_nothing():
    assert _secular_roots(np.empty((0, 3)), np.ones(3)).shape == (0,)


@given(st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=8), st.integers(1, 7))
def test_capped_values_sum_to_m(values, m):
    values = np.array(values)
    m = min(m, values.size - 1)
    capped = _capped(values, m)
    assert capped.sum() == pytest.approx(m, rel=1e-12)
    assert capped.max() <= 1.0
    assert capped.min() > 0
    below = capped < 1
    if below.any():  # all of these are scaled alike
        ratio = capped[below] / values[below]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import FeatureSparsePCA, RowSparseProblem, as_covariance, solve
from kspan.method_tables import method_table
from kspan.solvers import UnrefinedIPU
from tests.oracles import random_covariance


def problem_of(A, m, k):
    return RowSparseProblem(as_covariance(A, kind="covariance"), m, k)


def proxy_step(A, W, k):
    """Equation (4.1), solved by the definition: Go on the proxy, all of it formed."""
    B = A @ W
    P = B @ np.linalg.pinv(W.T @ B) @ B.T
    support = np.sort(np.argsort(-np.diag(P), kind="stable")[:k])
    V = np.linalg.eigh(P[np.ix_(support, support)])[1][:, -W.shape[1] :]
    new = np.zeros_like(W)
    new[support] = V
    return new


@pytest.mark.parametrize(("m", "k"), [(1, 3), (2, 5), (3, 4)])
@pytest.mark.parametrize("seed", range(5))
def test_each_step_is_that_of_the_paper(m, k, seed):
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, 9)
    W = start = np.linalg.qr(rng.standard_normal((9, m)))[0]
    for n_iter in range(4):
        W = proxy_step(A, W, k)
        found = solve(problem_of(A, m, k), UnrefinedIPU(init=start, max_iter=n_iter))
        if found.n_iter < n_iter:
            break  # it has settled
        np.testing.assert_allclose(found.history[-1], np.trace(W.T @ A @ W), rtol=1e-9)


def start_of(seed, m):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((8, m)))[0]


@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(0, 5))
def test_it_never_falls_and_never_beats_the_refined_update(seed, m, more):
    A = random_covariance(np.random.default_rng(seed), 8)
    problem, start = problem_of(A, m, min(m + more, 8)), start_of(seed, m)
    history = solve(problem, UnrefinedIPU(init=start)).history
    assert (np.diff(history) >= -1e-9 * history[-1]).all()
    one, refined = (
        solve(problem, method, init=start, max_iter=0).objective
        for method in ("ipu-unrefined", "ipu")
    )
    assert one <= refined * (1 + 1e-12)


def test_it_is_there_without_another_edit():
    model = FeatureSparsePCA(2, 4, solver="ipu-unrefined", random_state=0)
    assert model.fit(np.random.default_rng(0).standard_normal((30, 9))).solver_ == "ipu-unrefined"
    assert '"ipu-unrefined" (`UnrefinedIPU`)' in FeatureSparsePCA.__doc__
    assert "| `ipu-unrefined` |" in method_table(RowSparseProblem)

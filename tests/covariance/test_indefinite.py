"""Matrices that lack positive semidefiniteness: taken as they are, with a warning, and bounded."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from kspan import (
    ElementSparsePCA,
    FeatureSparsePCA,
    NonnegativeSparsePCA,
    RowSparseProblem,
    StiefelSparsePCA,
    as_covariance,
    certify,
    solve,
    sparsity_path,
    verify,
)
from kspan.datasets import load_pitprops
from kspan.progress import Status

WARNING = "not positive semidefinite: it has an eigenvalue of"


def printed(name):
    """Correlations with so few digits that one eigenvalue is below zero."""
    wine, cancer = load_wine().data, load_breast_cancer().data
    A, digits = {
        "cancer": (np.corrcoef(cancer[:, [0, 2, 3, 20, 22, 23, 10, 12, 13, 5, 6, 7]].T), 3),
        "wine": (np.corrcoef(np.c_[wine, wine[:, 5] + wine[:, 6]].T), 3),
        "pitprops": (load_pitprops().covariance, 1),
    }[name]
    A = np.round(A, digits)
    assert -0.05 * np.linalg.eigvalsh(A)[-1] < np.linalg.eigvalsh(A)[0] < -1e-6
    return A


def best_of_all(A, m, k):
    """The optimum, on the matrix as it is given."""
    supports = combinations(range(len(A)), k)
    return max(np.linalg.eigvalsh(A[np.ix_(S, S)])[-m:].sum() for S in supports)


@pytest.mark.parametrize("name", ["cancer", "wine", "pitprops"])
@pytest.mark.parametrize(("m", "k"), [(1, 4), (2, 2), (2, 5), (3, 4)])
@pytest.mark.parametrize("level", ["fast", "tight", "exact"])
def test_bounds_hold_for_the_matrix_as_it_is(name, m, k, level):
    A = printed(name)
    with pytest.warns(UserWarning, match=WARNING):
        covariance = as_covariance(A, kind="covariance")
    values = np.linalg.eigvalsh(A)
    assert covariance.indefiniteness == pytest.approx(-values[0] / values[-1])
    np.testing.assert_array_equal(covariance.submatrix(np.arange(len(A))), A)
    problem, best = RowSparseProblem(covariance, m, k), best_of_all(A, m, k)
    solution = solve(problem, random_state=0)
    proof = certify(problem, solution, level=level)
    assert proof.lower <= best * (1 + 1e-12)
    assert best <= proof.upper
    verify(problem, proof)
    if level == "exact":
        assert proof.status is Status.OPTIMAL
        assert proof.lower == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("Estimator", [ElementSparsePCA, NonnegativeSparsePCA, StiefelSparsePCA])
def test_components_with_features_of_their_own(Estimator):
    A = printed("cancer")
    model = Estimator(
        2, n_nonzero_coefs=3, covariance="precomputed", certify="exact", random_state=0
    )
    with pytest.warns(UserWarning, match=WARNING):
        model.fit(A)
    V = model.components_
    if Estimator is StiefelSparsePCA:
        proof = model.certificate_
        assert proof.lower == pytest.approx(np.trace(V @ A @ V.T))
        assert proof.lower <= proof.upper
        return
    first = model.certificates_[0]
    assert first.lower == pytest.approx(V[0] @ A @ V[0])
    if Estimator is ElementSparsePCA:
        assert first.lower == pytest.approx(best_of_all(A, 1, 3))


def test_the_objective_is_that_of_the_matrix_as_it_is():
    A = printed("wine")
    model = FeatureSparsePCA(2, 4, covariance="precomputed", certify="exact", random_state=0)
    with pytest.warns(UserWarning, match=WARNING):
        model.fit(A)
    W = model.components_
    assert model.objective_ == pytest.approx(np.trace(W @ A @ W.T))
    assert model.objective_ == pytest.approx(best_of_all(A, 2, 4))
    with pytest.warns(UserWarning, match=WARNING):
        assert model.score(A) == pytest.approx(model.objective_ / np.trace(A))


def test_negative_eigenvalues_count_where_all_are_added():
    """With k = m the sum is the trace on the support: nothing is cut off."""
    A = np.array([[1.0, 0.99, 0.5], [0.99, 1.0, 0.65], [0.5, 0.65, 1.0]])
    with pytest.warns(UserWarning, match=WARNING):
        problem = RowSparseProblem(as_covariance(A, kind="covariance"), 3, 3)
    assert problem.refit(np.arange(3)).objective == pytest.approx(3.0)


def test_a_path_on_such_a_matrix():
    A = printed("pitprops")
    with pytest.warns(UserWarning, match=WARNING):
        path = sparsity_path(A, 2, covariance="precomputed", ks=[2, 4, 6], random_state=0)
    for k, objective, upper in zip(path.k, path.objective, path.upper, strict=True):
        assert objective <= best_of_all(A, 2, k) * (1 + 1e-12) <= upper * (1 + 1e-9)
    with pytest.raises(ValueError, match=WARNING):
        sparsity_path(A, 2, covariance="precomputed", psd="raise")


def test_random_matrices_never_exceed_their_bounds(rng):
    for _ in range(30):
        d = int(rng.integers(4, 8))
        m = int(rng.integers(1, 3))
        k = int(rng.integers(m, d))
        X = rng.standard_normal((d + 2, d)) @ np.diag(rng.uniform(0.2, 3, d))
        A = X.T @ X
        values, vectors = np.linalg.eigh(A)
        values[: d // 2] = -rng.uniform(0, 0.04) * values[-1] * rng.random(d // 2)
        A = (vectors * values) @ vectors.T
        A = 0.5 * (A + A.T)
        if np.diag(A).min() <= 0 or values.min() > -1e-7 * values[-1]:
            continue
        with pytest.warns(UserWarning, match=WARNING):
            problem = RowSparseProblem(as_covariance(A, kind="covariance"), m, k)
        best = best_of_all(A, m, k)
        for level in ("fast", "tight", "exact"):
            proof = certify(problem, solve(problem, "ipu"), level=level)
            assert proof.lower <= best * (1 + 1e-9)
            assert proof.upper >= best * (1 - 1e-12)
            verify(problem, proof)


def test_what_is_no_covariance_is_refused():
    A = printed("wine")
    with pytest.raises(ValueError, match=WARNING):
        as_covariance(A, kind="covariance", psd="raise")
    with pytest.raises(ValueError, match="psd must be 'mend' or 'raise'"):
        as_covariance(A, kind="covariance", psd="cut")
    with pytest.raises(ValueError, match=r"by 33.33% of the largest one: 5% is the most"):
        as_covariance(np.array([[1.0, 2.0], [2.0, 1.0]]), kind="covariance")


def test_large_matrices_are_settled_when_it_matters():
    """Beyond 1024 features nothing is factored before somebody asks."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((1100, 2)))[0]
    A = np.eye(1100) + (Q * [9.0, -1.1]) @ Q.T
    model = FeatureSparsePCA(1, 3, covariance="precomputed", certify="fast", solver="ipu")
    with pytest.warns(UserWarning, match=WARNING) as told:
        model.fit(A)
    assert len([one for one in told if WARNING in str(one.message)]) == 1
    W = model.components_
    assert model.objective_ == pytest.approx(float(np.trace(W @ A @ W.T)))
    assert model.certificate_.upper >= model.objective_
    with pytest.raises(ValueError, match=WARNING):
        model.set_params(psd="raise").fit(A)


def test_a_large_matrix_that_nobody_has_asked_about_is_not_bounded_on_the_way():
    """Its negative eigenvalues are called rounding, and none has looked for them: no bound holds.

    The k largest variances are then below what k features explain, and a search that takes a look
    from above must not be told so.
    """
    d = 1100
    A = np.full((d, d), 1 + 1e-9)
    np.fill_diagonal(A, 1.0)
    sizes = np.random.default_rng(0).uniform(0.5, 2, d)
    covariance = as_covariance(A * np.outer(sizes, sizes), kind="covariance")
    problem = RowSparseProblem(covariance, 1, 4)
    assert not covariance.knows_psd
    solution = solve(problem, random_state=0, n_restarts=2, n_kicks=0)
    assert solution.status is Status.COMPLETED
    np.testing.assert_array_equal(solution.support, np.sort(np.argsort(-sizes)[:4]))
    inside = covariance.restrict(np.arange(6))
    assert not inside.knows_psd
    inside.ensure_psd()
    assert inside.knows_psd
    assert as_covariance(A[:6, :6], kind="covariance").knows_psd

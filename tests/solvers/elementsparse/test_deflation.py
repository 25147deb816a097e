"""Deflations against the identities that define them, on dense matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import as_covariance, solve
from kspan.covariance import UpdatedCovariance
from kspan.problem import ElementSparseProblem
from kspan.solvers.one_by_one import DEFLATIONS, Deflation
from tests.oracles import random_covariance

# All but the one that takes whole features out.
OF_DIRECTIONS = [kind for kind in DEFLATIONS if kind != "remove"]


def dense(covariance):
    return covariance.matmat(np.eye(covariance.n_features))


def by_definition(A, vectors, kind):
    """Apply the textbook formula with full matrices, one vector after the other."""
    eye, Q, B = np.eye(len(A)), np.zeros((len(A), 0)), np.eye(len(A))
    for x in vectors:
        if kind == "projection":
            A = (eye - np.outer(x, x)) @ A @ (eye - np.outer(x, x))
        elif kind == "schur":
            A = A - A @ np.outer(x, x) @ A / (x @ A @ x)
        elif kind == "hotelling":
            A = A - (x @ A @ x) * np.outer(x, x)
        elif kind == "orthogonalized":
            q = x - Q @ (Q.T @ x)
            q /= np.linalg.norm(q)
            Q = np.column_stack([Q, q])
            A = (eye - np.outer(q, q)) @ A @ (eye - np.outer(q, q))
        elif kind == "remove":
            A = np.diag(x == 0) @ A @ np.diag(x == 0)
        else:
            q = B @ (x / np.sqrt(x @ B @ x))
            A = (eye - np.outer(q, q)) @ A @ (eye - np.outer(q, q))
            B = B @ (eye - np.outer(q, q))
    return A


def sparse_unit_vectors(rng, d, count):
    X = rng.standard_normal((count, d)) * (rng.uniform(size=(count, d)) < 0.6)
    X[:, 0] += 0.5
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", DEFLATIONS)
@given(seed=st.integers(0, 10_000))
def test_the_definition(kind, seed):
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, 8)
    vectors = sparse_unit_vectors(rng, 8, 3)
    left = Deflation(as_covariance(A, kind="covariance"), kind)
    for x in vectors:
        left.remove(x)
    expected = by_definition(A, vectors, kind)
    size = np.abs(A).max()
    np.testing.assert_allclose(dense(left.current), expected, atol=1e-9 * size)
    np.testing.assert_allclose(left.current.diagonal(), np.diag(expected), atol=1e-9 * size)


@pytest.mark.parametrize("kind", DEFLATIONS)
def test_what_they_promise(rng, kind):
    """A component is gone; Schur and the orthogonal ones keep A PSD and all earlier ones gone."""
    A = random_covariance(rng, 10)
    vectors = sparse_unit_vectors(rng, 10, 3)
    left = Deflation(as_covariance(A, kind="covariance"), kind)
    for x in vectors:
        left.remove(x)
    M = dense(left.current)
    size = np.linalg.norm(A)
    assert abs(vectors[-1] @ M @ vectors[-1]) <= 1e-10 * size
    if kind in ("schur", "orthogonalized", "generalized"):
        assert np.abs(M @ vectors.T).max() <= 1e-9 * size
    if kind != "hotelling":
        assert np.linalg.eigvalsh(M)[0] >= -1e-10 * size


@pytest.mark.parametrize("kind", OF_DIRECTIONS)
def test_eigenvectors_are_removed_alike_by_all(rng, kind):
    A = random_covariance(rng, 7)
    values, vectors = np.linalg.eigh(A)
    left = Deflation(as_covariance(A, kind="covariance"), kind)
    for j in (-1, -2):
        left.remove(vectors[:, j])
    expected = (vectors[:, :-2] * values[:-2]) @ vectors[:, :-2].T
    np.testing.assert_allclose(dense(left.current), expected, atol=1e-10 * values[-1])


def test_a_vector_in_the_span_of_earlier_ones_changes_nothing(rng):
    A = random_covariance(rng, 6)
    x, y = sparse_unit_vectors(rng, 6, 2)
    left = Deflation(as_covariance(A, kind="covariance"), "orthogonalized")
    for vector in (x, y, (x + y) / np.linalg.norm(x + y)):
        left.remove(vector)
    assert left.taken.shape == (6, 2)


@given(seed=st.integers(0, 10_000))
def test_what_hotellings_deflation_lacks(seed):
    """No eigenvalue is below what it says; with that on the diagonal it is PSD."""
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, 8)
    left = Deflation(as_covariance(A, kind="covariance"), "hotelling")
    for x in sparse_unit_vectors(rng, 8, 3):
        left.remove(x)
        assert np.linalg.eigvalsh(dense(left.current))[0] >= -left.lacking - 1e-9 * np.abs(A).max()
        lifted = left.lifted()
        expected = dense(left.current) + left.lacking * np.eye(8)
        np.testing.assert_allclose(dense(lifted.current), expected, atol=1e-9 * np.abs(A).max())
    assert Deflation(left.current, "projection").lifted().current is left.current


def test_unknown_deflation(rng):
    with pytest.raises(ValueError, match="deflation must be one of"):
        Deflation(as_covariance(np.eye(3), kind="covariance"), "wishful")


# --- the updated covariance itself, against the formed sum


@pytest.mark.parametrize("source", ["covariance", "wide data"])
def test_an_update_is_the_sum(rng, source):
    X = rng.standard_normal((8, 12))
    A = np.cov(X, rowvar=False)
    base = as_covariance(A, kind="covariance") if source == "covariance" else as_covariance(X)
    L, C = rng.standard_normal((12, 2)), np.array([[1.0, 0.3], [0.3, -0.2]])
    inner = UpdatedCovariance(base, L[:, :1], C[:1, :1])
    updated = UpdatedCovariance(base, L, C)
    twice = UpdatedCovariance(inner, L[:, 1:], C[1:, 1:])
    assert twice.base is base
    total = A + L @ C @ L.T
    S = np.array([1, 4, 7])
    W = rng.standard_normal((12, 2))
    np.testing.assert_allclose(dense(updated), total, atol=1e-12)
    np.testing.assert_allclose(updated.matmat(W[S], S), total[:, S] @ W[S], atol=1e-12)
    np.testing.assert_allclose(updated.submatrix(S), total[np.ix_(S, S)], atol=1e-12)
    np.testing.assert_allclose(updated.columns(S), total[:, S], atol=1e-12)
    np.testing.assert_allclose(dense(updated.restrict(S)), total[np.ix_(S, S)], atol=1e-12)
    np.testing.assert_allclose(updated.diagonal(), np.diag(total), atol=1e-12)
    np.testing.assert_allclose(
        updated.leading(3).values, np.linalg.eigvalsh(total)[:-4:-1], rtol=1e-9
    )
    np.testing.assert_allclose(dense(twice), A + (L * np.diag(C)) @ L.T, atol=1e-12)
    assert updated.n_passes == base.n_passes


# --- TPower by deflation


@pytest.mark.parametrize("kind", OF_DIRECTIONS)
def test_tpower_with_all_features_is_pca(rng, kind):
    values = np.array([9.0, 5.0, 2.0, 0.5, 0.2, 0.1])
    U = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    A = (U * values) @ U.T
    problem = ElementSparseProblem(as_covariance(A, kind="covariance"), 3, 6)
    solution = solve(problem, "tpower", deflation=kind, init="random", random_state=0)
    np.testing.assert_allclose(solution.explained_variance, values[:3], rtol=1e-6)


@pytest.mark.parametrize("kind", DEFLATIONS)
def test_tpower_gives_k_features_each_and_adjusted_variances(rng, kind):
    X = rng.standard_normal((30, 12)) @ rng.standard_normal((12, 12))
    X -= X.mean(axis=0)
    problem = ElementSparseProblem(as_covariance(X), 3, 4)
    solution = solve(problem, "tpower", deflation=kind)
    Z = solution.loadings
    assert (np.count_nonzero(Z, axis=0) <= 4).all()
    np.testing.assert_allclose(np.linalg.norm(Z, axis=0), 1.0)
    R = np.linalg.qr(X @ Z, mode="r") / np.sqrt(29)
    np.testing.assert_allclose(solution.explained_variance, np.diag(R) ** 2, rtol=1e-8)
    assert solution.objective == pytest.approx(solution.explained_variance.sum())
    assert np.array_equal(solution.support, np.flatnonzero(Z.any(axis=1)))


def test_generalized_deflation_maximises_its_quotient(rng):
    """No other support of that size has a larger x'Ax / x'Bx than a handful of lucky ones."""
    A = random_covariance(rng, 9)
    problem = ElementSparseProblem(as_covariance(A, kind="covariance"), 2, 3)
    Z = solve(problem, "tpower", deflation="generalized").loadings
    q = Z[:, 0]
    P = np.eye(9) - np.outer(q, q)
    left = P @ A @ P

    def quotient(x):
        return (x @ left @ x) / (x @ P @ x)

    support = np.flatnonzero(Z[:, 1])
    inside = np.ix_(support, support)
    # On its own support it is the best: the largest generalised eigenvalue.
    best = np.linalg.eigvals(np.linalg.solve(P[inside], left[inside])).real.max()
    assert quotient(Z[:, 1]) == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("name", ["n_components", "n_nonzero_coefs"])
@pytest.mark.parametrize("value", [0, 7, 2.5, True])
def test_the_problem_checks_its_numbers(name, value):
    arguments = {"n_components": 2, "n_nonzero_coefs": 3, name: value}
    with pytest.raises(ValueError, match=f"{name} must be an integer between 1 and n_features=6"):
        ElementSparseProblem(as_covariance(np.eye(6), kind="covariance"), **arguments)

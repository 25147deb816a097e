import numpy as np
import pytest

from kspan import RowSparseProblem, as_covariance
from kspan.problem.solution import adjusted_variances


@pytest.fixture
def A():
    return as_covariance(np.diag([4.0, 3.0, 0.0, 2.0, 1.0]), kind="covariance")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_components": 0}, "n_components=0 must be between 1 and n_features=5"),
        ({"n_components": 6}, "n_components=6 must be between 1 and n_features=5"),
        ({"n_features_to_select": 6}, "n_features_to_select=6.*n_components=2 and n_features=5"),
        ({"n_features_to_select": 1}, "n_features_to_select=1.*n_components=2 and n_features=5"),
        ({"n_features_to_select": 2.5}, "must be an integer, got 2.5"),
        ({"n_components": True}, "must be an integer, got True"),
        ({"include": [1], "exclude": [1]}, "both name feature 1"),
        ({"include": [0, 1, 2, 3]}, "include names 4 features"),
        ({"exclude": [0, 1, 2]}, "exclude leaves 2 features"),
        ({"include": [5]}, "indices from 0 to 4"),
        ({"exclude": [-1]}, "indices from 0 to 4"),
        ({"include": ["a"]}, "list of feature indices"),
    ],
)
def test_what_cannot_be_asked(A, arguments, message):
    with pytest.raises(ValueError, match=message):
        RowSparseProblem(A, **{"n_components": 2, "n_features_to_select": 3, **arguments})


def test_select_honours_include_and_exclude(A):
    problem = RowSparseProblem(A, 1, 3, include=[4], exclude=[0])
    assert problem.select(np.array([9.0, 1.0, 8.0, 2.0, 0.0])).tolist() == [1, 3, 4]


def test_select_takes_constant_features_last(A):
    problem = RowSparseProblem(A, 1, 4)
    assert problem.select(np.zeros(5)).tolist() == [0, 1, 3, 4]


def test_scores_of_rounding_size_are_ties(A):
    problem = RowSparseProblem(A, 1, 2)
    assert problem.select(np.array([1.0, 0.0, 0.0, 1e-20, 1e-18])).tolist() == [0, 1]


def test_refit_gives_principal_axes(rng):
    F = rng.standard_normal((6, 6))
    A = F @ F.T
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), 2, 4)
    support = np.array([0, 2, 3, 5])
    candidate = problem.refit(support)
    W = candidate.weights
    np.testing.assert_allclose(W.T @ W, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(
        W.T @ A[np.ix_(support, support)] @ W, np.diag(candidate.variances), atol=1e-10
    )


@pytest.mark.parametrize("source", ["covariance", "tall", "wide"])
@pytest.mark.parametrize("k", [4, 40])
def test_many_supports_are_refitted_like_one(rng, source, k):
    X = rng.standard_normal((100 if source == "tall" else 30, 50))
    A = np.cov(X, rowvar=False)
    covariance = as_covariance(A, kind="covariance") if source == "covariance" else as_covariance(X)
    problem = RowSparseProblem(covariance, 2, k)
    supports = [np.sort(rng.choice(50, k, replace=False)) for _ in range(5)]
    bases = [rng.standard_normal((k, 2)) for _ in supports]
    for support, candidate in zip(supports, problem.refit_all(supports), strict=True):
        inside = A[np.ix_(support, support)]
        assert np.array_equal(candidate.support, support)
        np.testing.assert_allclose(candidate.variances, np.linalg.eigvalsh(inside)[:-3:-1])
        W = candidate.weights
        np.testing.assert_allclose(W.T @ inside @ W, np.diag(candidate.variances), atol=1e-10)
    spans = problem.on_spans(supports, bases)
    for support, basis, candidate in zip(supports, bases, spans, strict=True):
        Q = np.linalg.qr(basis)[0]
        W = candidate.weights
        np.testing.assert_allclose(W @ W.T, Q @ Q.T, atol=1e-12)
        inside = A[np.ix_(support, support)]
        np.testing.assert_allclose(W.T @ inside @ W, np.diag(candidate.variances), atol=1e-10)


def test_a_score_that_depends_on_others_takes_nothing_from_those_after_it(rng):
    """Against the residuals of a least-squares fit on the scores before."""
    Y = rng.standard_normal((9, 5))
    Y[:, 1], Y[:, 3] = -Y[:, 0], Y[:, 0] + Y[:, 2]
    added = []
    for j in range(5):
        fit = Y[:, :j] @ np.linalg.lstsq(Y[:, :j], Y[:, j], rcond=1e-9)[0]
        added.append(np.sum((Y[:, j] - fit) ** 2))
    np.testing.assert_allclose(adjusted_variances(Y.T @ Y), added, atol=1e-12)

"""`NonnegativeSparsePCA`: what only it has; what estimators share is in test_loadings."""

import warnings

import numpy as np
import pytest

from kspan import NonnegativeProblem, NonnegativeSparsePCA, as_covariance, verify
from kspan.solvers.registry import methods_for
from kspan.solving import component_problems


@pytest.fixture
def X(rng):
    factors = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 12))
    return factors + 0.5 * rng.standard_normal((60, 12)) + np.arange(12)


@pytest.mark.parametrize("solver", methods_for(NonnegativeProblem))
def test_components_are_nonnegative_with_at_most_k_features(X, solver):
    pca = NonnegativeSparsePCA(3, 3, solver=solver, random_state=0).fit(X)
    assert (pca.components_ >= 0).all()
    assert (pca.n_nonzero_coefs_ <= 3).all()
    assert (pca.n_nonzero_coefs_ >= 1).all()
    assert pca.solver_ == solver
    assert not hasattr(pca, "certificates_")


@pytest.mark.parametrize("level", [True, "fast", "net", "tight", "exact"])
def test_certificates_are_about_the_components(X, level):
    pca = NonnegativeSparsePCA(2, 3, certify=level, random_state=0).fit(X)
    problem = NonnegativeProblem(as_covariance(X), 2, 3)
    singles = component_problems(problem, pca.components_.T)
    assert len(pca.certificates_) == 2
    for x, single, certificate in zip(pca.components_, singles, pca.certificates_, strict=True):
        verify(single, certificate)
        np.testing.assert_array_equal(np.flatnonzero(x), certificate.support)
        assert certificate.level == ("tight" if level is True else level)
        assert 0 < certificate.confidence <= 1
    if level == "exact":
        assert all(certificate.gap <= 1e-6 for certificate in pca.certificates_)


def test_a_second_fit_forgets_the_first_proof(X):
    pca = NonnegativeSparsePCA(1, 3, certify="fast").fit(X)
    assert pca.certificates_
    assert not hasattr(pca.set_params(certify=False).fit(X), "certificates_")


@pytest.mark.parametrize("deflation", ["projection", "orthogonalized", "remove", None])
def test_deflations(X, deflation):
    pca = NonnegativeSparsePCA(3, 4, deflation=deflation, random_state=0).fit(X)
    shared = (pca.components_ > 0).sum(axis=0)
    if deflation in ("remove", None):
        assert shared.max() == 1
    first = NonnegativeSparsePCA(1, 4, random_state=0).fit(X)
    np.testing.assert_allclose(pca.components_[0], first.components_[0], atol=1e-10)


def test_the_default_number_of_features_is_a_fifth(X):
    assert NonnegativeSparsePCA(random_state=0).fit(X).n_nonzero_coefs_.max() <= 2


@pytest.mark.parametrize("solver", methods_for(NonnegativeProblem))
def test_a_component_that_would_be_zero_is_a_feature(solver):
    """All correlations negative: after clipping, nothing is left but single features."""
    A = 5 * np.eye(4) - np.ones((4, 4))
    pca = NonnegativeSparsePCA(2, 3, solver=solver, covariance="precomputed", random_state=0).fit(A)
    np.testing.assert_allclose(np.linalg.norm(pca.components_, axis=1), 1.0)
    assert (pca.components_ >= 0).all()


def test_more_components_than_features_is_a_warning(rng):
    X = rng.standard_normal((20, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pca = NonnegativeSparsePCA(4, 2, random_state=0).fit(X)
    np.testing.assert_allclose(np.linalg.norm(pca.components_, axis=1), 1.0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_nonzero_coefs": 13}, "between 1 and n_features=12"),
        ({"n_components": 13}, "between 1 and n_features=12"),
        ({"solver": "nspca", "deflation": "remove"}, "has no option 'deflation'"),
        ({"solver": "nspca", "certify": True}, "together"),
        ({"solver": "nspca", "solver_options": {"rank": 1}}, "'rank' is a parameter"),
        ({"solver_options": {"beta": 1}}, "has no option 'beta'"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 1.5}, "epsilon"),
        ({"rank": 0}, "rank"),
        ({"deflation": "hotelling"}, "deflation"),
        ({"solver": "spannogram", "rank": 11, "solver_options": {"max_vertices": 10}}, "rank"),
    ],
)
def test_what_cannot_be(X, parameters, message):
    with pytest.raises(ValueError, match=message):
        NonnegativeSparsePCA(**parameters).fit(X)


def test_options_go_where_they_belong(X, tmp_path):
    path = tmp_path / "search.npz"
    pca = NonnegativeSparsePCA(
        1, 3, certify="exact", random_state=0,
        solver_options={"n_restarts": 2, "checkpoint": path, "k_grid": (5,)},
    ).fit(X)  # fmt: skip
    assert path.exists()
    assert pca.certificates_[0].upper_at(5) >= pca.certificates_[0].lower


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_the_net_says_what_it_achieves(X, rank):
    pca = NonnegativeSparsePCA(1, 3, rank=rank, epsilon=0.2, solver="net", random_state=0)
    assert 0 <= pca.fit(X).epsilon_ <= 0.2
    assert not hasattr(pca.set_params(solver="em").fit(X), "epsilon_")

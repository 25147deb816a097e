"""Standardised data on every route: no certificate is wrong, copies and weak relations included."""

import numpy as np
import pytest
import scipy.linalg

from kspan import RowSparseProblem, as_covariance, solve, verify
from kspan.proofs.search.tree_state import Budgets
from tests.proofs.helpers import RELAX, assert_sandwich, prove

# All features at once by Newton's method; by cones alone; and parts of them.
ROUTES = {
    "whole": RELAX,
    "cones alone": Budgets(enumerate_cost=0.0, newton_limit=1, alone_iter=75, max_nodes=40),
    "split": Budgets(dense_limit=2, n_inside=3, split_iter=40, sample_iter=20),
    "no rows": Budgets(enumerate_cost=0.0, row_sweeps=0),
}


def standardised(kind, d, n, rng):
    """Return samples whose columns are unrelated, near copies of a few, or copies of them."""
    X = rng.standard_normal((n, d))
    if kind != "weak":
        X = X[:, rng.integers(0, 3, d)] * rng.choice([-1.0, 1.0], d)
    if kind == "near copies":
        X = X + 0.3 * rng.standard_normal((n, d))
    return X


@pytest.mark.parametrize("kind", ["weak", "near copies", "copies"])
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("n", [4, pytest.param(30, marks=pytest.mark.slow)])
def test_all_numbers_of_features_and_components(kind, route, n):
    d = 5
    X = standardised(kind, d, n, np.random.default_rng(n))
    covariance, A = as_covariance(X, scale=True), np.corrcoef(X.T)
    for m in range(1, d + 1):
        for k in range(m, d + 1):
            problem = RowSparseProblem(covariance, m, k)
            for level in ("fast", "tight", "exact"):
                certificate = prove(problem, level, budgets=ROUTES[route])
                assert_sandwich(certificate, problem, A)
                verify(problem, certificate)


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("d", [9, 12])
def test_exact_proves_small_correlations(m, d):
    X = standardised("near copies", d, 40, np.random.default_rng(d))
    for k in range(m, d + 1):
        problem = RowSparseProblem(as_covariance(X, scale=True), m, k)
        certificate = prove(problem, "exact", budgets=RELAX)
        best = assert_sandwich(certificate, problem, np.corrcoef(X.T))
        assert certificate.status.value == "optimal"
        assert certificate.lower == pytest.approx(best, rel=1e-9)


def one_group(n_samples, d, size, loading):
    """Return orthogonal columns, some of which share one more: the optimum is known.

    These are correlated by the square of the loading with each other, all others with nothing: k of
    the group explain 1 + (k - 1) of that by one component, and what more components add is less
    than one, which an unrelated feature brings.
    """
    H = scipy.linalg.hadamard(n_samples).astype(float)[:, 1:]
    X = H[:, 1 : d + 1].copy()
    X[:, :size] = loading * H[:, :1] + np.sqrt(1 - loading**2) * X[:, :size]
    return X


@pytest.mark.parametrize(("m", "k"), [(1, 5), (1, 8), (2, 6), (3, 7)])
def test_wide_data_with_a_known_optimum(m, k):
    """60 standardised features of 64 samples, and no matrix of all of them is formed."""
    size, loading = 10, 0.9
    X = one_group(64, 60, size, loading)
    group = k - (m - 1)
    best = 1 + (group - 1) * loading**2 + (m - 1)
    problem = RowSparseProblem(as_covariance(X, scale=True), m, k)
    support = solve(problem, random_state=0).support
    for budgets in (Budgets(), Budgets(dense_limit=20, n_inside=15), Budgets(newton_limit=20)):
        certificate = prove(problem, "exact", support, budgets=budgets, time_limit=0.4)
        verify(problem, certificate)
        assert certificate.lower == pytest.approx(best, rel=1e-9)
        assert certificate.upper >= best * (1 - 1e-12)
        # With more components all that are unrelated are as good as each other: a long search.
        assert m > 1 or certificate.status.value == "optimal"


def test_where_no_search_is_possible_the_advice_says_so():
    X = standardised("weak", 12, 30, np.random.default_rng(0))
    problem = RowSparseProblem(as_covariance(X, scale=True), 2, 4)
    budgets = Budgets(dense_limit=5, n_inside=4)
    assert "'exact' searches on" in prove(problem, "tight", budgets=budgets).advice
    certificate = prove(problem, "exact", budgets=budgets)
    assert certificate.status.value == "bounded"
    assert "More time would not help" in certificate.advice
    assert "one component, or features that are not scaled" in certificate.advice


@pytest.mark.parametrize(
    ("m", "d", "scale", "level", "words"),
    [
        (2, 2600, True, "fast", "'tight' has a better bound"),
        (2, 2600, True, "tight", "'exact' could do no more"),
        (2, 2600, False, "tight", "'exact' searches on, among the features"),
        (1, 2600, True, "tight", "'exact' searches on, among the features"),
        (2, 2600, True, "exact", "More time would not help"),
    ],
)
def test_the_advice_is_what_can_be_done(m, d, scale, level, words):
    """Whoever follows it gets on: the certificate knows its level, its features and its bound."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, d)) * np.where(scale, 1.0, np.geomspace(10, 0.1, d))
    problem = RowSparseProblem(as_covariance(X, scale=scale), m, 8)
    certificate = prove(problem, level, budgets=Budgets(n_inside=40, split_iter=2, sample_iter=2))
    assert certificate.status.value == "bounded"
    assert words in certificate.advice
    if level == "tight" and scale and m > 1:
        for word in ("one component", "fewer candidate features (exclude)", "not scaled"):
            assert word in certificate.advice


def test_with_fewer_features_tight_advises_to_search_on():
    X = np.random.default_rng(0).normal(size=(60, 30))
    certificate = prove(RowSparseProblem(as_covariance(X, scale=True), 2, 8), "tight")
    assert certificate.advice == "A gap is left; 'exact' searches on."


def test_a_proof_keeps_only_the_cones_it_refers_to():
    X = standardised("near copies", 14, 40, np.random.default_rng(3))
    problem = RowSparseProblem(as_covariance(X, scale=True), 2, 6)
    budgets = Budgets(enumerate_cost=0.0, strengthen_gap=1e-6, strengthen_again=0.95)
    witness = prove(problem, "exact", budgets=budgets).witness
    used = {part.shared for part in witness.witnesses} - {-1}
    assert used == set(range(len(witness.shared_cones)))
    assert used


@pytest.mark.parametrize("m", [1, 2])
def test_tight_is_never_worse_than_fast(m):
    """Also where the features are too many for Newton's method, and the steps too few."""
    X = standardised("near copies", 20, 40, np.random.default_rng(1)) * np.linspace(1, 3, 20)
    problem = RowSparseProblem(as_covariance(X), m, 12)
    budgets = Budgets(newton_limit=5, n_inside=8, split_iter=1, alone_iter=1)
    assert (
        prove(problem, "tight", budgets=budgets).upper
        <= prove(problem, "fast", budgets=budgets).upper
    )

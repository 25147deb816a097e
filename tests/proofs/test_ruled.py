"""Proofs and methods under rules about which features go together, against all supports."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance, certify, solve, verify
from kspan.problem import RuledChoice
from kspan.proofs.check.certificate import Certificate
from kspan.proofs.check.claims import CertificateError
from kspan.proofs.search.relaxation import Relaxation
from kspan.solvers.registry import methods_for
from tests.effort import examples
from tests.ruled import choice_of, keeps, rules, supports

METHODS = [name for name in methods_for(RowSparseProblem) if name != "exact"]


def data(d, seed):
    """Rows of features, some of which are copies, constant, or far from the others in size."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((int(rng.integers(3, 15)), d)) * rng.uniform(0.5, 2, d)
    kind = seed % 5
    if kind == 1:
        X[:, -1] = X[:, 0]
    elif kind == 2:
        X[:, 0] = 1.0
    elif kind == 3:
        X *= 1e-60
    elif kind == 4:
        X = np.outer(X[:, 0], rng.uniform(0.5, 2, d)) * 1e40
    return X


@examples(60)
@given(st.integers(1, 3).flatmap(lambda m: rules(most=9, least=m)), st.integers(0, 10_000))
def test_exact_is_the_enumerated_optimum_and_no_method_breaks_a_rule(asked, seed):
    choice, every = choice_of(asked), supports(asked)
    if choice is None:
        assert not every
        return
    m, X = asked["least"], data(asked["n_features"], seed)
    problem = RowSparseProblem(as_covariance(X), m, choice)
    A = np.cov(X, rowvar=False)
    best = max(np.linalg.eigvalsh(A[np.ix_(S, S)])[-m:].sum() for S in every)
    for method in METHODS:
        solution = solve(problem, method, random_state=0)
        assert keeps(asked, solution.support.tolist()), method
        if method == "brute-force":
            assert solution.objective == pytest.approx(best, rel=1e-9, abs=1e-9 * np.trace(A))
    start = solve(problem, "go")
    for level in ("fast", "tight", "exact"):
        certificate = certify(problem, start, level)
        verify(problem, certificate)
        assert keeps(asked, certificate.support.tolist())
        assert certificate.lower <= best * (1 + 1e-9)
        assert certificate.upper >= best * (1 - 1e-9)
    assert certificate.gap <= 1e-6 or best <= 1e-9 * np.trace(A)


def test_the_relaxation_keeps_the_limits_and_is_that_of_cvxpy():
    cvxpy = pytest.importorskip("cvxpy")
    rng, d, m = np.random.default_rng(1), 9, 2
    for given_rules in (
        {"costs": rng.integers(1, 5, d).astype(float), "budget": 9.0},
        {"groups": list("aaabbbcdd"), "together": True, "size": 5},
        {"conflicts": np.array([[0, 1], [1, 2], [3, 4], [0, 2], [5, 6]]), "size": 4},
    ):
        A = np.cov(rng.standard_normal((12, d)) * rng.uniform(0.5, 2, d), rowvar=False)
        choice = RuledChoice.of(d, least=m, **given_rules)
        relax = Relaxation(A, m, choice)
        relax.run(60, precision=1e-7)
        limits, P, z = choice.linear_limits(), cvxpy.Variable((d, d), PSD=True), cvxpy.Variable(d)
        shares = cvxpy.Variable(limits.rows.shape[1])
        rows = [z[i] == shares[u] for i, u in zip(choice.free, limits.unit_of, strict=True)]
        rows += [limits.rows @ shares <= limits.most, z >= 0, z <= 1]
        rows += [cvxpy.diag(z) - P >> 0, cvxpy.trace(P) == m]
        best = cvxpy.Problem(cvxpy.Maximize(cvxpy.trace(A @ P)), rows).solve(solver="CLARABEL")
        inside = relax.z[choice.free][np.unique(limits.unit_of, return_index=True)[1]]
        assert (limits.rows @ inside <= limits.most + 1e-3).all()
        # The bound adds up whole features where the relaxation has shares.
        assert best * (1 - 1e-6) <= relax.upper <= best * 1.03


def test_certificates_of_other_rules_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    A = as_covariance(rng.standard_normal((30, 8)))
    costs = np.arange(1.0, 9.0)
    problem = RowSparseProblem(A, 2, RuledChoice.of(8, least=2, costs=costs, budget=14.0))
    certificate = certify(problem, solve(problem, random_state=0), "exact")
    certificate.save(tmp_path / "c.npz")
    verify(problem, Certificate.load(tmp_path / "c.npz"))
    for other in (
        RuledChoice.of(8, least=2, costs=costs, budget=15.0),
        RuledChoice.of(8, least=2, costs=costs[::-1], budget=14.0),
        RuledChoice.of(8, 3, least=2, costs=costs, budget=14.0),
    ):
        with pytest.raises(CertificateError):
            verify(RowSparseProblem(A, 2, other), certificate)
    with pytest.raises(CertificateError):
        verify(RowSparseProblem(A, 2, certificate.choice.size), certificate)


@pytest.mark.parametrize(("size", "most"), [(5, 8), (2, 2)])
def test_other_numbers_of_features_are_bounded_where_the_same_may_be_chosen(size, most):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 8))
    groups = list("aaabbccd")
    problem = RowSparseProblem(
        as_covariance(X), 1, RuledChoice.of(8, size, groups=groups, together=True)
    )
    certificate = certify(problem, solve(problem, random_state=0), "tight")
    assert certificate.choice.largest_size == most
    for k in range(1, most + 1):
        smaller = RowSparseProblem(
            problem.covariance, 1, RuledChoice.of(8, k, groups=groups, together=True)
        )
        best = solve(smaller, "brute-force").objective
        assert best <= certificate.upper_at(k)
    with pytest.raises(ValueError, match="features that may be chosen"):
        certificate.upper_at(most + 1)

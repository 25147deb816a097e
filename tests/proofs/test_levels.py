"""Every certificate has the optimum between its bounds, whatever the data."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance, certify, solve, verify
from kspan.covariance import matrix
from kspan.proofs.search.tree_state import Budgets
from tests.effort import examples
from tests.proofs.helpers import (
    KINDS,
    RELAX,
    ROUNDING,
    all_values,
    assert_sandwich,
    first_support,
    matrix_problem,
    prove,
    psd_problems,
    random_psd,
)

LEVELS = ("fast", "tight", "exact")


def assert_optimal(certificate, best):
    """What `exact` promises: an optimal support, up to a millionth of its value."""
    assert certificate.status.value == "optimal"
    assert certificate.gap <= 1e-6
    assert certificate.lower >= best * (1 - 1e-6 - ROUNDING)
    assert certificate.upper <= best * (1 + 1e-6 + 1e-11)


# --- random matrices


@pytest.mark.parametrize("level", ["fast", "tight"])
@examples(60)
@given(case=psd_problems(max_d=10))
def test_bounds_hold(level, case):
    A, problem = case
    assert_sandwich(prove(problem, level, budgets=RELAX), problem, A)


@examples(60)
@given(case=psd_problems(max_d=10))
def test_exact_equals_enumeration(case):
    A, problem = case
    certificate = prove(problem, "exact")
    assert_optimal(certificate, assert_sandwich(certificate, problem, A))


@examples(40)
@given(case=psd_problems(max_d=10), heuristic=st.booleans())
def test_exact_by_relaxation_and_branching_equals_enumeration(case, heuristic):
    """Nothing is enumerated, and the support to start from is a bad one."""
    A, problem = case
    certificate = prove(problem, "exact", budgets=RELAX, heuristic=heuristic)
    assert_optimal(certificate, assert_sandwich(certificate, problem, A))


@examples(40)
@given(case=psd_problems(max_d=10))
def test_from_the_best_support_nothing_optimal_is_removed(case):
    """With the optimum as incumbent screening is at its sharpest."""
    A, problem = case
    supports, values = all_values(
        A, problem.n_components, problem.n_features_to_select, problem.include, problem.exclude
    )
    certificate = prove(problem, "tight", supports[values.argmax()], budgets=RELAX)
    assert_sandwich(certificate, problem, A)
    assert certificate.lower == pytest.approx(values.max(), rel=ROUNDING)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_every_m_and_k_of_one_matrix(m):
    A = random_psd(np.random.default_rng(m), 7, "gaussian")
    for k in range(m, 8):
        problem = matrix_problem(A, m, k)
        certificate = prove(problem, "exact", budgets=RELAX)
        assert_optimal(certificate, assert_sandwich(certificate, problem, A))


# --- by name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("m", "k"), [(1, 4), (2, 5), (3, 3), (2, 9)])
def test_kinds_of_matrices(kind, level, m, k):
    """Ties, repeated eigenvalues, deficient ranks, scales; k = m and k = d among the sizes."""
    A = random_psd(np.random.default_rng(5), 9, kind)
    problem = matrix_problem(A, m, k)
    certificate = prove(problem, level, budgets=RELAX)
    best = assert_sandwich(certificate, problem, A)
    verify(problem, certificate)
    if level == "exact":
        assert_optimal(certificate, best)


@pytest.mark.parametrize("exponent", [-249, 249])
@pytest.mark.parametrize("level", LEVELS)
def test_a_power_of_four_changes_no_digit(exponent, level):
    """Dividing by the scale is exact, so 1e-150 and 1e150 are as good as 1."""
    A = random_psd(np.random.default_rng(8), 8, "gaussian")
    scale = 4.0**exponent
    plain = prove(matrix_problem(A, 2, 4), level, budgets=RELAX)
    scaled = prove(matrix_problem(A * scale, 2, 4), level, budgets=RELAX)
    assert scaled.upper == plain.upper * scale
    # The value of a support is LAPACK's, which rescales by powers of its own.
    assert scaled.lower == pytest.approx(plain.lower * scale, rel=1e-14)
    np.testing.assert_array_equal(scaled.support, plain.support)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("m", [1, 3])
def test_k_equal_to_m_is_the_sum_of_the_largest_variances(level, m):
    A = random_psd(np.random.default_rng(2), 8, "gaussian")
    certificate = prove(matrix_problem(A, m, m), level, budgets=RELAX)
    best = np.sort(np.diagonal(A))[-m:].sum()
    assert certificate.upper == pytest.approx(best, rel=1e-12)
    if level != "fast":  # the closed forms do not look for a better support
        assert certificate.lower == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("level", LEVELS)
def test_all_features_are_ordinary_pca(level):
    A = random_psd(np.random.default_rng(3), 8, "gaussian")
    certificate = prove(matrix_problem(A, 3, 8), level, budgets=RELAX)
    assert certificate.lower == pytest.approx(np.linalg.eigvalsh(A)[-3:].sum(), rel=1e-12)
    assert certificate.gap <= 1e-6
    assert certificate.status.value == "optimal"


@pytest.mark.parametrize("level", LEVELS)
def test_one_feature(level):
    certificate = prove(matrix_problem(np.array([[2.5]]), 1, 1), level)
    assert certificate.lower <= 2.5 <= certificate.upper
    assert certificate.upper == pytest.approx(certificate.lower, rel=1e-12)


@pytest.mark.parametrize("level", LEVELS)
def test_include_and_exclude_are_part_of_the_question(level):
    A = np.diag([9.0, 8.0, 1.0, 2.0, 3.0])
    problem = matrix_problem(A, 1, 2, include=[2], exclude=[0])
    certificate = prove(problem, level, budgets=RELAX)
    assert_sandwich(certificate, problem, A)
    # Without feature 0 the largest eigenvalue is 8; with it, it would be 9.
    assert certificate.upper == pytest.approx(8.0, rel=1e-6)
    np.testing.assert_array_equal(certificate.exclude, [0])
    np.testing.assert_array_equal(certificate.include, [2])


@pytest.mark.parametrize("seed", [1, 2, 7, 11])
def test_screening_settles_features_at_the_root(seed):
    """On these matrices a relaxation with a gap still proves features in and out."""
    A = random_psd(np.random.default_rng(seed), 12, "gaussian")
    problem = matrix_problem(A, 1 + seed % 2, 4)
    supports, values = all_values(A, problem.n_components, 4)
    certificate = prove(problem, "tight", supports[values.argmax()], budgets=RELAX)
    assert_sandwich(certificate, problem, A)
    assert certificate.proved_in.size + certificate.proved_out.size > 0
    verify(problem, certificate)


def test_tied_features_are_neither_proved_in_nor_out():
    A = np.eye(6)
    certificate = prove(matrix_problem(A, 1, 3), "exact", budgets=RELAX)
    assert certificate.proved_in.size == certificate.proved_out.size == 0


def test_levels_get_better():
    A = random_psd(np.random.default_rng(0), 12, "gaussian")
    problem = matrix_problem(A, 2, 5)
    solution = solve(problem, random_state=0)
    fast, tight, exact = (certify(problem, solution, level).upper for level in LEVELS)
    assert exact <= tight * (1 + ROUNDING)
    assert tight <= fast * (1 + ROUNDING)


def test_fast_is_never_above_the_trace_the_eigenvalues_or_theorem_5_1():
    rng = np.random.default_rng(1)
    for kind in KINDS:
        A = random_psd(rng, 10, kind)
        m, k = 2, 4
        values, vectors = np.linalg.eigh(A)
        values = np.maximum(values, 0.0)
        leading = np.sort((vectors[:, -m:] ** 2) @ values[-m:])[::-1]
        known = (
            np.sort(np.diagonal(A))[-k:].sum(),
            values[-m:].sum(),
            leading[:k].sum() + values[-2 * m : -m].sum(),
        )
        certificate = prove(matrix_problem(A, m, k), "fast")
        assert certificate.upper <= min(known) * (1 + 1e-9)  # Ritz pairs suggest B: 1e-8 squared


def test_an_early_stopped_start_never_lowers_the_bound_below_the_truth():
    """Gaussian data: Ritz values of a few iterations are off by percents (§12.1)."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((40, 11))
    problem = RowSparseProblem(as_covariance(X), 2, 11)
    certificate = prove(problem, "fast")
    assert certificate.upper >= np.linalg.eigvalsh(np.cov(X.T))[-2:].sum() * (1 - ROUNDING)


# --- from data


def data_sets():
    rng = np.random.default_rng(6)
    mixing = rng.standard_normal((9, 9))
    tall = rng.standard_normal((30, 9)) @ mixing
    wide = rng.standard_normal((5, 9)) @ mixing + 3.0
    sparse = np.where(rng.random((20, 9)) < 0.3, rng.standard_normal((20, 9)), 0.0)
    sparse_wide = np.where(rng.random((6, 9)) < 0.6, rng.standard_normal((6, 9)), 0.0)
    return {
        "tall": (tall, tall),
        "wide": (wide, wide),
        "two samples": (wide[:2], wide[:2]),
        "float32": (wide.astype(np.float32), wide.astype(np.float32).astype(float)),
        "csr": (scipy.sparse.csr_array(sparse), sparse),
        "wide csr": (scipy.sparse.csr_array(sparse_wide), sparse_wide),
    }


# No matrix of all features; few iterations, as a bound holds after any number of them.
WIDE = Budgets(dense_limit=0, split_iter=25, sample_iter=25)


@pytest.mark.parametrize(
    ("level", "relaxed_whole"),
    [("fast", True), ("tight", True), ("exact", True), ("tight", False)],
    ids=["fast", "tight", "exact", "tight wide code"],
)
@pytest.mark.parametrize("name", data_sets())
@pytest.mark.parametrize(("m", "k"), [(1, 3), (2, 4), (3, 5), (3, 3), (2, 9)])
def test_data(name, level, relaxed_whole, m, k):
    """From data of all shapes, with and without a matrix of all features."""
    X, dense = data_sets()[name]
    A = np.cov(dense.T)
    problem = RowSparseProblem(as_covariance(X), m, k)
    certificate = prove(problem, level, budgets=RELAX if relaxed_whole else WIDE)
    best = assert_sandwich(certificate, problem, A)
    verify(problem, certificate)
    if level == "exact" and relaxed_whole:
        assert_optimal(certificate, best)


@examples(30)
@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(2, 8), m=st.integers(1, 4), more=st.integers(0, 4)
)
def test_wide_data_without_a_matrix_of_all_features(seed, n, m, more):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 9)) * rng.uniform(0.2, 2.0, 9)
    include, exclude = ([1], [4]) if seed % 2 else ([], [])
    problem = RowSparseProblem(as_covariance(X), m, m + more, include, exclude)
    certificate = prove(problem, "tight", budgets=WIDE)
    assert_sandwich(certificate, problem, np.cov(X.T))
    verify(problem, certificate)


def test_wide_code_never_asks_for_the_whole_matrix(monkeypatch):
    rng = np.random.default_rng(0)
    covariance = as_covariance(rng.standard_normal((8, 60)))
    sizes = []
    cut_out = type(covariance).submatrix

    def watched(self, support):
        sizes.append(len(support))
        return cut_out(self, support)

    monkeypatch.setattr(type(covariance), "submatrix", watched)
    problem = RowSparseProblem(covariance, 2, 5)
    budgets = Budgets(dense_limit=50, n_inside=20, split_iter=60)
    certificate = prove(problem, "tight", budgets=budgets)
    verify(problem, certificate)
    # 20 features inside, and what the solver cuts out for its swaps; never the 60 of the problem.
    assert 20 <= max(sizes) < 50


# --- the public function


def test_a_better_support_takes_the_place_of_the_one_given():
    A = np.diag([1.0, 2.0, 3.0, 4.0, 5.0])
    problem = matrix_problem(A, 1, 2)
    bad = solve(problem, random_state=0, solver="go")
    certificate = certify(problem, bad, "exact")
    assert certificate.lower == pytest.approx(5.0, rel=1e-12)
    assert certificate.lower >= bad.objective * (1 - 1e-12)


def test_the_given_support_is_kept_by_the_closed_forms():
    A = np.diag([1.0, 2.0, 3.0])
    certificate = prove(matrix_problem(A, 1, 2), "fast", np.array([0, 1]))
    np.testing.assert_array_equal(certificate.support, [0, 1])
    assert certificate.lower == pytest.approx(2.0, rel=1e-13)
    assert certificate.status.value == "bounded"
    assert "'exact' searches on" in certificate.advice
    assert "certificate's advice" in certificate.status.advice


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"level": "quick"}, "level must be one of"),
        ({"time_limit": 0.0}, "time_limit must be positive"),
    ],
)
def test_bad_arguments(asked, message):
    problem = matrix_problem(np.eye(4), 1, 2)
    with pytest.raises(ValueError, match=message):
        certify(problem, solve(problem, random_state=0), **asked)


def test_a_solution_of_another_problem_is_refused():
    problem = matrix_problem(np.diag([4.0, 3.0, 2.0, 1.0]), 1, 2)
    solution = solve(problem, random_state=0)
    for other in (
        matrix_problem(np.eye(5), 1, 2),
        matrix_problem(np.eye(4), 1, 3),
        matrix_problem(np.diag([4.0, 3.0, 2.0, 1.0]), 1, 2, exclude=[0]),
        matrix_problem(np.diag([4.0, 3.0, 2.0, 1.0]), 1, 2, include=[3]),
    ):
        with pytest.raises(ValueError, match="solution"):
            certify(other, solution, "fast")


def test_the_same_question_has_the_same_certificate():
    A = random_psd(np.random.default_rng(9), 10, "gaussian")
    problem = matrix_problem(A, 2, 4)
    one, two = (prove(problem, "exact", budgets=RELAX) for _ in range(2))
    assert one.digest == two.digest


def test_history_and_counts():
    A = random_psd(np.random.default_rng(9), 10, "gaussian")
    certificate = prove(matrix_problem(A, 1, 4), "exact", budgets=Budgets(enumerate_cost=0.0))
    times, lower, upper = certificate.history.T
    assert certificate.history.shape[1] == 3
    assert (np.diff(times) >= 0).all()
    assert (np.diff(lower) >= -ROUNDING * certificate.lower).all()
    assert (np.diff(upper) <= ROUNDING * certificate.upper).all()
    assert lower[-1] == certificate.lower
    assert upper[-1] == certificate.upper
    assert certificate.n_nodes >= 1
    assert certificate.n_eigensolves >= 1
    assert certificate.seconds >= times[0]


def test_first_support_is_feasible():
    """The helper of these tests."""
    problem = matrix_problem(np.eye(6), 1, 3, include=[5], exclude=[0, 1])
    np.testing.assert_array_equal(first_support(problem), [2, 3, 5])


@pytest.mark.parametrize("level", ["fast", "tight", "exact"])
@pytest.mark.parametrize("large", [False, True])
def test_a_float32_covariance_that_is_not_quite_psd(rng, monkeypatch, level, large):
    """Its k largest variances may sum to less than k features explain, unless it is mended."""
    if large:
        monkeypatch.setattr(matrix, "CHOLESKY_LIMIT", 0)
    d, k = 8, 6
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    A = (Q * [1.0, *[-1e-4] * (d - 1)]) @ Q.T
    A = ((A + A.T) / 2).astype(np.float32)
    given = max(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in combinations(range(d), k))
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), 1, k)
    certificate = certify(problem, solve(problem, random_state=0), level)
    mended = problem.covariance.submatrix(np.arange(d))
    best = max(np.linalg.eigvalsh(mended[np.ix_(s, s)])[-1] for s in combinations(range(d), k))
    assert certificate.upper >= best * (1 - 1e-12)
    assert best == pytest.approx(given, abs=4e-4), "mended no more than its rounding"
    assert verify(problem, certificate)

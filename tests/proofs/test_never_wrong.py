"""A certificate is about the numbers that were given: what attacks found, each with its test.

The oracle computes covariances and values in extended precision, from the numbers themselves.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse

from kspan import (
    FeatureSparsePCA,
    NonnegativeProblem,
    NonnegativeSparsePCA,
    RowSparseProblem,
    as_covariance,
    certify,
    solve,
    sparsity_path,
    verify,
)
from kspan.covariance import DenseCovariance, streamed
from kspan.covariance.block_kernels import CACHE_BLOCK_BYTES
from kspan.progress import Monitor
from kspan.proofs import CertificateError
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.check.witnesses import PathWitness
from kspan.proofs.search.proof import Proof
from kspan.proofs.search.prover import ProofOptions, RowSparseProver
from kspan.proofs.search.tree_state import Budgets
from kspan.solvers.one_by_one import Deflation
from kspan.solving import component_problems, prove_point

if np.finfo(np.longdouble).eps > 1e-18:
    pytest.skip("no extended precision on this machine", allow_module_level=True)


def exact_covariance(X, scale=False):
    """The sample covariance of the numbers as they are."""
    X = np.asarray(X.toarray() if scipy.sparse.issparse(X) else X).astype(np.longdouble)
    X = X - X[0]
    X = X - X.mean(axis=0)
    A = X.T @ X / (len(X) - 1)
    if scale:
        s = np.sqrt(np.where(np.diagonal(A) > 0, np.diagonal(A), 1))
        A = A / np.outer(s, s)
    return A


def exact_value(A, support, m):
    """The m leading eigenvalues on a support; never more, and less by 1e-30 or so."""
    A = A[np.ix_(support, support)]
    size = np.abs(A).max()
    W = np.linalg.eigh((A / size).astype(float))[1][:, -m:].astype(np.longdouble)
    for _ in range(2):
        for j in range(m):
            for i in range(j):
                W[:, j] -= (W[:, i] @ W[:, j]) * W[:, i]
            W[:, j] /= np.sqrt(W[:, j] @ W[:, j])
    return np.trace(W.T @ A @ W)


def exact_optimum(A, m, k, choose=None):
    features = range(len(A)) if choose is None else choose
    return max(exact_value(A, list(S), m) for S in combinations(features, k))


def check(certificate, A, m, k, choose=None):
    """Both bounds hold, of the numbers themselves."""
    optimum = exact_optimum(A, m, k, choose)
    assert certificate.lower <= exact_value(A, list(certificate.support), m)
    assert certificate.upper >= optimum
    if certificate.status.value == "optimal":
        assert certificate.lower >= optimum * (1 - 1e-6)


# --- 1: near-constant columns


@pytest.fixture
def near_constant():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 4))
    X[:, 0] = 1e9 + 2e-4 * X[:, 0]
    X[:, 1] = X[:, 0] + 1e-5 * rng.standard_normal(2000)
    return X


def test_a_column_is_constant_only_if_its_numbers_are_equal(near_constant):
    X = near_constant
    model = FeatureSparsePCA(1, 2, scale=True, certify="exact", random_state=0).fit(X)
    assert model.selected_features_.tolist() == [0, 1]
    assert model.objective_ == pytest.approx(1.9987, abs=2e-3)
    check(model.certificate_, exact_covariance(X, scale=True), 1, 2)


def test_paths_of_near_constant_columns(near_constant):
    path = sparsity_path(near_constant, n_components=1)
    A = exact_covariance(near_constant)
    for k, upper in zip(path.k, path.upper, strict=True):
        assert upper >= exact_optimum(A, 1, int(k))


def test_a_bound_below_what_was_reached_is_never_passed_over():
    problem = RowSparseProblem(as_covariance(np.diag([3.0, 2.0, 1.0]), kind="covariance"), 1, 2)
    proof = Proof(problem, problem.refit(np.array([0, 1])), None)
    with pytest.raises(CertificateError, match=r"below .*, which was reached"):
        proof.offer(2.9, proof.witness)


# --- 2: centring


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize(("mean", "sd"), [(1e8, 1e-4), (1e8, 1e-6), (-3e5, 1e-9), (1e12, 1.0)])
def test_large_means(mean, sd, scale):
    rng = np.random.default_rng(1)
    X = mean + sd * (rng.standard_normal((1000, 2)) @ rng.standard_normal((2, 5)))
    X += sd * rng.standard_normal((1000, 5))
    A = exact_covariance(X, scale)
    for level in ("fast", "tight", "exact"):
        model = FeatureSparsePCA(2, 3, scale=scale, certify=level, random_state=0).fit(X)
        check(model.certificate_, A, 2, 3)
    assert model.certificate_.status.value == "optimal"
    assert model.certificate_.gap < 1e-10


@pytest.mark.parametrize("scale", [False, True])
def test_sparse_columns_without_zeros(scale):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((500, 6)) + 95.0
    X[:, 4:] *= rng.uniform(size=(500, 2)) < 0.1
    sparse = scipy.sparse.csr_array(X)
    A = exact_covariance(X, scale)
    computed = as_covariance(sparse, scale=scale).submatrix(np.arange(6))
    np.testing.assert_allclose(computed, A.astype(float), rtol=0, atol=1e-13 * float(A.max()))
    model = FeatureSparsePCA(1, 3, scale=scale, certify="exact", random_state=0).fit(sparse)
    check(model.certificate_, A, 1, 3)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("shape", [(40, 6), (6, 40)])
@pytest.mark.parametrize("scale", [False, True])
def test_what_is_said_of_the_entries_is_true(form, shape, scale):
    rng = np.random.default_rng(3)
    X = rng.standard_normal(shape) * 10.0 ** rng.uniform(-3, 3, shape[1])
    X += 10.0 ** rng.uniform(-3, 6, shape[1])
    A, covariance = exact_covariance(X, scale), as_covariance(form(X), scale=scale)
    root = np.sqrt(covariance.entry_errors())
    every = np.arange(shape[1])
    assert (np.abs(covariance.submatrix(every) - A) <= np.outer(root, root)).all()
    assert (np.abs(covariance.diagonal() - np.diagonal(A)) <= root**2).all()
    if (factor := covariance.sample_factor()) is not None:
        assert (np.abs(factor.T @ factor - A) <= np.outer(root, root)).all()
    x = rng.standard_normal(shape[1])
    root = np.sqrt(covariance.product_errors())
    off = np.abs(covariance.precise_product(x[:, None])[:, 0] - A @ x)
    assert (off <= root * (np.abs(x) @ root)).all()


def rounded_to_one_side(base, count, sign):
    """Numbers near `base` whose sum, added up one by one, is rounded to one side each time."""
    total, found = 0.0, []
    for _ in range(count):
        unit = np.spacing(total + base)
        x = np.round((total + base) / unit) * unit - total
        x += sign * 0.498 * unit if unit > 4 * np.spacing(x) else 0.0
        found.append(x)
        total += x
    return found


@pytest.mark.parametrize("sign", [-1, 1])
def test_pieces_whose_means_are_rounded_apart(sign):
    """The first row is far away, and the sums of two pieces round in opposite directions."""
    d = 64
    rows = CACHE_BLOCK_BYTES // (8 * d)  # of a piece
    first = rounded_to_one_side(1.0 + 1e-9, rows - 1, sign)
    second = rounded_to_one_side(1.0 + np.sqrt(2 / rows), rows, -sign)
    column = np.array([0.0, *first, *second])
    X = 1e-5 * np.random.default_rng(0).standard_normal((2 * rows, d))
    X[:, 0] = column
    numbers = [Fraction(x) for x in column]
    mean = sum(numbers) / len(numbers)
    exact = sum((x - mean) ** 2 for x in numbers) / (len(numbers) - 1)
    covariance = as_covariance(X)
    off = abs(Fraction(covariance.diagonal()[0]) - exact)
    assert off <= Fraction(0.1 * covariance.entry_errors()[0])


@pytest.mark.parametrize("scale", [np.float32(0.1), 10**10, 1e155, [2.0]])
def test_scales_of_any_type(scale):
    X = np.random.default_rng(13).standard_normal((30, 4))
    given = np.resize(np.asarray(scale), 4)
    problem = RowSparseProblem(as_covariance(X, scale=given), 1, 2)
    certificate = certify(problem, solve(problem, random_state=0), level="exact")
    check(certificate, exact_covariance(X / given.astype(np.longdouble)), 1, 2)


@pytest.mark.parametrize("scale", [np.zeros(4), -np.ones(4), np.ones(3), np.ones((4, 1)), 2.0])
def test_scales_that_make_no_sense(scale):
    with pytest.raises(ValueError, match="scale"):
        as_covariance(np.eye(4), scale=scale)


def test_forms_of_the_same_numbers_are_verified_by_each_other(tmp_path):
    X = np.random.default_rng(14).standard_normal((60, 90))
    forms = [X, scipy.sparse.csr_array(X), scipy.sparse.csc_array(X), np.asfortranarray(X)]
    np.save(tmp_path / "x.npy", X)
    problems = [RowSparseProblem(as_covariance(form), 3, 8) for form in forms]
    problems.append(RowSparseProblem(as_covariance(tmp_path / "x.npy"), 3, 8))
    point = problems[0].point_of(solve(problems[0], random_state=0))
    for budgets in (Budgets(), Budgets(dense_limit=20, n_inside=25, split_iter=40)):
        options = ProofOptions(budgets=budgets)
        proof = prove_point(problems[0], point, "tight", Monitor("tight"), options)
        for problem in problems:
            verify(problem, proof)
    single = [problem.changed(n_components=1) for problem in problems]
    point = single[0].refit(point.support)
    for method, budgets in (
        ("sample space", Budgets(dense_limit=20, row_sweeps=0, split_iter=0)),
        ("row sums", Budgets(dense_limit=20, narrower=0.0, sample_iter=0, split_iter=0)),
        ("split", Budgets(dense_limit=20)),
    ):
        options = ProofOptions(budgets=budgets)
        proof = prove_point(single[0], point, "tight", Monitor("tight"), options)
        assert proof.method == method
        for problem in single:
            verify(problem, proof)


def test_a_checkpoint_knows_how_well_the_matrix_is_known(tmp_path):
    A = np.cov(np.random.default_rng(15).standard_normal((30, 8)), rowvar=False)
    place = tmp_path / "search.npz"
    for errors in (None, 1e-9 * np.diagonal(A)):
        problem = RowSparseProblem(DenseCovariance(A, is_psd=True, errors=errors), 1, 3)
        solution = solve(problem, random_state=0)
        if errors is None:
            certify(problem, solution, level="exact", checkpoint=place)
        else:
            with pytest.raises(ValueError, match="belongs to another problem"):
                certify(problem, solution, level="exact", checkpoint=place)


# --- 3: sketches


@pytest.mark.parametrize("scale", [False, True])
def test_a_sketch_proves_no_more_than_it_knows(monkeypatch, scale):
    monkeypatch.setattr(streamed, "EXACT_LIMIT", 5)
    monkeypatch.setattr(streamed, "SKETCH_ROWS", 3)
    monkeypatch.setattr(streamed.RowStream.__init__, "__defaults__", (3,))
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 9)) * np.linspace(1, 2, 9)
    model = FeatureSparsePCA(1, 3, scale=scale, certify="tight", random_state=0)
    for block in np.array_split(X, 10):
        model.partial_fit(block)
    check(model.certificate_, exact_covariance(X, scale), 1, 3)
    assert model.certificate_.status.value == "bounded"
    assert model.certificate_.gap > 0.1


def test_a_part_of_a_sketch_knows_what_it_has_not_seen():
    stream = streamed.RowStream(6, 2)
    stream.exact, stream._S = False, np.zeros((4, 6))
    stream.add(np.random.default_rng(16).standard_normal((40, 6)))
    sketch = stream.covariance(scale=False)
    part = sketch.restrict(np.array([1, 4]))
    assert (sketch.unseen() > 0).all()
    np.testing.assert_array_equal(part.unseen(), sketch.unseen()[[1, 4]])
    assert (part.entry_errors() >= sketch._errors[[1, 4]]).all()


def test_a_stream_that_is_exact_is_proved(monkeypatch):
    rng = np.random.default_rng(4)
    X = 1e8 + 1e-3 * rng.standard_normal((300, 7)) @ rng.standard_normal((7, 7))
    model = FeatureSparsePCA(1, 3, certify="exact", random_state=0)
    for block in np.array_split(X, 10):
        model.partial_fit(block)
    check(model.certificate_, exact_covariance(X), 1, 3)
    assert model.certificate_.status.value == "optimal"


# --- 4: what verify lets pass


def two_of_five():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 5))
    problem = RowSparseProblem(as_covariance(X), 2, 2)
    return problem, certify(problem, solve(problem, random_state=0), level="exact")


def test_path_bounds_are_compared_by_what_they_say():
    problem, certificate = two_of_five()
    features = np.arange(5)
    scale = certificate.path[0].scale
    factor = np.sqrt(1e9) * np.eye(5)
    known = KnownMatrix.of(problem, features, scale)
    honest = PathWitness.of(problem, known, factor, None)
    low = replace(honest, ky_fan=honest.ky_fan - 8.5 / scale)
    forged = replace(certificate, path=[low], digest="")
    assert forged.upper_at(2) < certificate.lower
    with pytest.raises(CertificateError, match="path witness 0 at k="):
        verify(problem, forged)


@pytest.mark.parametrize("share", [1e-11, 1e-9, 1e-3])
def test_no_bound_may_be_claimed_that_does_not_follow(share):
    problem, certificate = two_of_five()
    lower = certificate.lower * (1 - 2 * share)
    forged = replace(certificate, lower=lower, upper=certificate.upper * (1 - share), digest="")
    with pytest.raises(CertificateError):
        verify(problem, forged)


def test_ties_are_not_proved_in_or_out():
    A = np.array([[2.0, 1.0, 0, 0], [1.0, 2.0, 0, 0], [0, 0, 2.0, 1.0], [0, 0, 1.0, 2.0]])
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), 1, 2)
    for level in ("tight", "exact"):
        certificate = certify(problem, solve(problem, random_state=0), level=level)
        assert certificate.proved_in.size == certificate.proved_out.size == 0


@pytest.mark.parametrize("bad", [np.nan, 2.0])
def test_weights_are_part_of_the_proof(bad):
    problem, certificate = two_of_five()
    weights = certificate.weights.copy()
    weights[0, 0] = bad
    with pytest.raises(CertificateError, match="weights"):
        verify(problem, replace(certificate, weights=weights, digest=""))


# --- 5: asymmetry


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_asymmetric_matrix_is_one_matrix(dtype):
    rng = np.random.default_rng(6)
    size = 3e-4 if dtype == np.float32 else 1e-8
    for _ in range(8):
        A = np.eye(4) + 0.5 + size * rng.uniform(-0.3, 0.3, (4, 4))
        A = A.astype(dtype)
        covariance = as_covariance(A, kind="covariance")
        np.testing.assert_array_equal(covariance.submatrix(np.arange(4)), covariance.A)
        np.testing.assert_array_equal(covariance.A, covariance.A.T)
        problem = RowSparseProblem(covariance, 1, 2)
        certificate = certify(problem, solve(problem, random_state=0), level="exact")
        symmetric = (A.astype(np.longdouble) + A.T) / 2
        check(certificate, symmetric, 1, 2)
        best = max(combinations(range(4), 2), key=lambda S: exact_value(symmetric, list(S), 1))
        assert certificate.lower >= exact_value(symmetric, list(best), 1) * (1 - 1e-6)


# --- 6: deflation


@pytest.mark.parametrize("deflation", ["projection", "orthogonalized"])
@pytest.mark.parametrize("ratio", [1.0, 1e10])
def test_what_a_deflation_cancels_is_in_the_margin(deflation, ratio):
    rng = np.random.default_rng(7)
    for _ in range(4):
        x = np.abs(rng.standard_normal(5))
        B = rng.standard_normal((5, 5))
        A = ratio * np.outer(x, x) + B @ B.T
        problem = NonnegativeProblem(as_covariance(A, kind="covariance"), 2, 3)
        model = NonnegativeSparsePCA(
            2, 3, covariance="precomputed", deflation=deflation, certify="exact", random_state=0
        ).fit(A)
        loadings = np.zeros((5, 2))
        for j, proof in enumerate(model.certificates_):
            loadings[proof.support, j] = proof.weights[:, 0]
        second = component_problems(problem, loadings, deflation)[1]
        verify(second, model.certificates_[1])
        q = loadings[:, 0].astype(np.longdouble)
        P = np.eye(5, dtype=np.longdouble) - np.outer(q, q) / (q @ q)
        left = P @ A.astype(np.longdouble) @ P
        proof = model.certificates_[1]
        y = loadings[:, 1].astype(np.longdouble)
        assert proof.lower <= (y @ left @ y) / (y @ y)
        assert proof.upper >= best_nonnegative(left, 3)


def test_a_deflation_hands_on_what_its_covariance_is_off_by():
    """Errors far above rounding, at their worst: the deflated matrix is off by as much as said."""
    rng = np.random.default_rng(12)
    for _ in range(50):
        B = rng.standard_normal((6, 6))
        true = B @ B.T
        errors = rng.uniform(0, 0.1, 6)
        known = true + np.sqrt(np.outer(errors, errors)) * np.sign(rng.standard_normal((6, 1)))
        known = np.tril(known) + np.tril(known, -1).T
        x = rng.standard_normal(6) * (rng.uniform(size=6) < 0.6) + 1e-3
        x /= np.linalg.norm(x)
        left = Deflation(DenseCovariance(known, is_psd=True, errors=errors))
        left.remove(x)
        P = np.eye(6) - np.outer(x, x)
        root = np.sqrt(left.current.entry_errors())
        off = np.abs(left.current.submatrix(np.arange(6)) - P @ true @ P)
        assert (off <= np.outer(root, root)).all()


def test_schur_deflation_hands_on_what_its_covariance_is_off_by():
    """The same, twice in a row; where nothing is known of what x explains, nothing is taken out."""
    rng = np.random.default_rng(13)
    taken = 0
    for trial in range(200):
        B = rng.standard_normal((6, 6))
        true = B @ B.T
        errors = rng.uniform(0, 10.0 ** -(trial % 6) / 10, 6)
        known = true + np.sqrt(np.outer(errors, errors)) * np.sign(rng.standard_normal((6, 1)))
        known = np.tril(known) + np.tril(known, -1).T
        left = Deflation(DenseCovariance(known, is_psd=True, errors=errors), "schur")
        for _ in range(2):
            x = rng.standard_normal(6) * (rng.uniform(size=6) < 0.6) + 1e-3
            x /= np.linalg.norm(x)
            before = left.current
            left.remove(x)
            if left.current is before:
                break
            taken += 1
            true = true - np.outer(true @ x, true @ x) / (x @ true @ x)
            root = np.sqrt(left.current.entry_errors())
            off = np.abs(left.current.submatrix(np.arange(6)) - true)
            assert (off <= np.outer(root, root)).all()
            off = np.abs(left.current.diagonal() - np.diagonal(true))
            assert (off <= root**2).all()
    assert taken > 200


def best_nonnegative(A, k):
    """The value of a nonnegative vector on at most k features; the best up to rounding."""
    best = max(np.diagonal(A))
    for size in range(2, k + 1):
        for S in combinations(range(len(A)), size):
            block = A[np.ix_(S, S)]
            x = np.linalg.eigh(block.astype(float))[1][:, -1].astype(np.longdouble)
            x = x if x.sum() > 0 else -x
            if (x > 0).all():
                best = max(best, (x @ block @ x) / (x @ x))
    return best


# --- 7: the scale is that of what may be chosen


def test_an_excluded_column_does_not_matter():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((60, 20)) * np.linspace(1, 2, 20)
    plain = FeatureSparsePCA(2, 5, certify="exact", random_state=0).fit(X)
    for size in (1e7, 1e100):
        huge = np.hstack([X, size * rng.standard_normal((60, 1))])
        model = FeatureSparsePCA(2, 5, exclude=[20], certify="exact", random_state=0).fit(huge)
        assert model.certificate_.status.value == "optimal"
        assert model.certificate_.lower == pytest.approx(plain.certificate_.lower, rel=1e-12)
        assert model.certificate_.upper == pytest.approx(plain.certificate_.upper, rel=1e-12)


def test_a_huge_range_of_variances():
    rng = np.random.default_rng(9)
    X = rng.standard_normal((40, 6)) * np.array([1e150, 1e-100, 1e-100, 2e-100, 1e-100, 1e-100])
    model = FeatureSparsePCA(1, 2, exclude=[0], certify="exact", random_state=0).fit(X)
    check(model.certificate_, exact_covariance(X), 1, 2, choose=range(1, 6))
    assert model.certificate_.gap < 1e-6


@pytest.mark.parametrize("scale", [False, True])
def test_variances_that_underflow_are_refused(scale):
    X = 1e-158 * np.random.default_rng(10).standard_normal((20, 4))
    with pytest.raises(ValueError, match="underflow"):
        FeatureSparsePCA(1, 2, scale=scale).fit(X)
    X = np.random.default_rng(10).standard_normal((20, 4))
    X[:, 2] *= 1e-200
    for form in (np.asarray, scipy.sparse.csr_array):
        FeatureSparsePCA(1, 2).fit(form(X))
        with pytest.raises(ValueError, match="variance of column 2 underflows"):
            FeatureSparsePCA(1, 2, scale=True).fit(form(X))


def test_squares_that_underflow_between_pieces_or_blocks():
    X = np.zeros((2**17, 2))
    X[2**16 :, 0] = 2.0**-565
    X[:, 1] = np.arange(2**17)
    with pytest.raises(ValueError, match="variance of column 0 underflows"):
        as_covariance(X, scale=True)
    model = FeatureSparsePCA(1, 1, scale=True)
    model.partial_fit(X[:10] + np.arange(10)[:, None] * [0.0, 1.0])
    with pytest.raises(ValueError, match="variance of column 0 underflows"):
        model.partial_fit(X[-10:])


def test_only_what_may_be_chosen_is_too_small():
    X = np.random.default_rng(17).standard_normal((20, 4))
    X[:, 1:] *= 1e-161
    problem = RowSparseProblem(as_covariance(X), 1, 2, exclude=[0])
    certificate = certify(problem, solve(problem, random_state=0), level="exact")
    check(certificate, exact_covariance(X), 1, 2, choose=range(1, 4))


def test_a_feature_without_variance_whose_row_is_not_zero():
    """Not quite PSD: [[1, ε], [ε, 0]] has an eigenvalue of 1 + ε²."""
    A = np.diag(np.r_[1.0, np.full(98, 0.1), 0.0])
    A[0, 99] = A[99, 0] = 3e-7
    problem = NonnegativeProblem(as_covariance(A, kind="covariance"), 1, 2)
    for level in ("fast", "tight", "exact"):
        certificate = certify(problem, solve(problem, random_state=0), level=level)
        assert certificate.upper >= 1 + 9e-14


def test_what_a_deflation_leaves_is_far_below_its_rounding():
    X = np.array([[8e83, 1e-142], [-5e84, -5e-141]])
    model = NonnegativeSparsePCA(2, 1, deflation="projection", certify="fast", random_state=0)
    with pytest.warns(UserWarning, match="above the rank"):
        model.fit(X)
    second = model.certificates_[1]
    assert second.upper >= np.cov(X[:, 1])
    assert second.status.value == "bounded"


@pytest.mark.parametrize("level", ["fast", "tight", "exact"])
@pytest.mark.parametrize("k", [1, 2])
def test_a_forced_feature_that_vanishes_beside_others(level, k):
    X = np.random.default_rng(18).standard_normal((9, 4)) * [1e-84, 1e85, 1e85, 1e85]
    problem = RowSparseProblem(as_covariance(X), 1, k, include=[0])
    certificate = certify(problem, solve(problem, random_state=0), level=level)
    verify(problem, certificate)
    A = exact_covariance(X)
    best = max(exact_value(A, [0, *S], 1) for S in combinations(range(1, 4), k - 1))
    assert certificate.lower <= best <= certificate.upper
    if k == 2:  # alone, it is lost in the scale of those that might come with more features
        assert certificate.status.value == "optimal"


def test_witnesses_for_more_features_when_all_are_forced():
    """What may not come in at this k may come in at others."""
    X = np.random.default_rng(19).standard_normal((30, 6))
    problem = RowSparseProblem(as_covariance(X), 1, 2, include=[0, 3])
    A = exact_covariance(X)
    for level in ("tight", "exact"):
        certificate = certify(problem, solve(problem, random_state=0), level=level)
        for k in range(3, 7):
            others = combinations([1, 2, 4, 5], k - 2)
            best = max(exact_value(A, [0, 3, *S], 1) for S in others)
            assert certificate.upper_at(k) >= best


# --- 8: lower is rounded inwards


def test_lower_is_never_above_the_value():
    rng = np.random.default_rng(11)
    for _ in range(25):
        X = rng.standard_normal((12, 6))
        k = int(rng.integers(2, 6))
        m = int(rng.integers(1, k + 1))
        problem = RowSparseProblem(as_covariance(X), m, k)
        for level in ("fast", "exact"):
            certificate = certify(problem, solve(problem, random_state=0), level=level)
            check(certificate, exact_covariance(X), m, k)


# --- 9: whatever a search meets


@pytest.mark.parametrize("n", [3, 5, 12, 20])
@pytest.mark.parametrize("m", [1, 2])
def test_wide_standardised_noise(n, m):
    """No feature stays active in the sample space; as with 1100 features and default budgets."""
    problem = RowSparseProblem(as_covariance(noise(n, 60), scale=True), m, 5)
    point = problem.point_of(solve(problem, random_state=0))
    budgets = Budgets(dense_limit=20, n_inside=25, split_iter=40)
    options = ProofOptions(budgets=budgets)
    certificate = prove_point(problem, point, "tight", Monitor("tight"), options)
    assert 0 <= certificate.gap < 1
    verify(problem, certificate)


@pytest.mark.slow
def test_wide_standardised_noise_as_it_was_reported():
    model = FeatureSparsePCA(2, 5, scale=True, certify=True, random_state=0).fit(noise(12, 1100))
    assert 0 <= model.certificate_.gap < 1


def noise(n, d):
    return np.random.default_rng(n).standard_normal((n, d))


def test_a_step_that_fails_leaves_the_bound_before_it(monkeypatch):
    def fail(self, level):
        raise np.linalg.LinAlgError("did not converge")

    monkeypatch.setattr(RowSparseProver, "whole", fail)
    X = np.random.default_rng(16).standard_normal((20, 6))
    problem = RowSparseProblem(as_covariance(X), 2, 3)
    with pytest.warns(RuntimeWarning, match="did not converge"):
        certificate = certify(problem, solve(problem, random_state=0), level="tight")
    assert certificate.method == "trace"
    verify(problem, certificate)

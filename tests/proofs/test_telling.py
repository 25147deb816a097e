"""Proofs of what features tell: never below the enumerated optimum, whoever wrote the witness."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from kspan import Certificate, RepresentProblem, RowSparseProblem, as_covariance, certify, solve
from kspan.linalg.subset_scan import add_feature, scan_after
from kspan.progress import Monitor, Status
from kspan.proofs import CertificateError, verify
from kspan.proofs.check.telling import (
    KnownWhole,
    RelaxedWitness,
    ScanWitness,
    SpectrumWitness,
    TellingPart,
    TellingTreeWitness,
    scanned,
)
from kspan.proofs.check.tree import Place
from kspan.proofs.check.witnesses import TraceWitness
from kspan.proofs.search import prover, telling_search
from kspan.proofs.search.proof import Proof
from kspan.proofs.search.prover import ProofOptions
from kspan.solvers.registry import as_method
from kspan.solving import prove_solution
from tests.effort import examples
from tests.proofs.forging import with_junk
from tests.proofs.helpers import prove, random_psd
from tests.telling import best_told, telling_problems, told

LEVELS = ("fast", "tight", "exact")


@pytest.fixture
def branches(monkeypatch):
    """Nodes are split, not enumerated, unless they are tiny."""
    monkeypatch.setattr(telling_search, "FEW_SUPPORTS", 3)


def data(n=40, d=9, seed=1):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 3)) @ rng.standard_normal((3, d)) + rng.standard_normal((n, d))


def forged(certificate, **changes):
    return replace(certificate, **{"status": Status.BOUNDED, **changes}, digest="")


# --- bounds hold


@examples(80)
@given(telling_problems())
def test_every_level_holds_and_exact_is_proved(asked):
    A, problem = asked
    m, k, choice = problem.n_components, problem.n_features_to_select, problem.choice
    size = float(np.diagonal(A).max())
    best = best_told(A / size, m, k, problem.ridge, choice.include, choice.exclude) * size
    for level in LEVELS:
        certificate = prove(problem, level)
        assert certificate.lower <= best * (1 + 1e-8)
        assert certificate.upper >= best * (1 - 1e-8)
        verify(problem, certificate)
    assert certificate.gap <= 1e-6


@examples(60)
@given(telling_problems(max_d=6), st.integers(0, 2**32 - 1))
def test_any_witness_gives_a_bound(asked, seed):
    A, problem = asked
    rng = np.random.default_rng(seed)
    m, k, choice = problem.n_components, problem.n_features_to_select, problem.choice
    size = float(np.diagonal(A).max())
    best = best_told(A / size, m, k, problem.ridge, choice.include, choice.exclude) * size
    known = KnownWhole.of(problem)
    r, d = known.R.shape
    for _ in range(5):
        q = int(rng.integers(0, r + 2))
        b = 10 ** rng.uniform(-2, 1) * rng.standard_normal((r, q))
        if rng.random() < 0.5:
            b = 10 ** rng.uniform(-2, 1) * np.eye(r)
        z = rng.uniform(0, 1, d)
        eta = np.zeros(d)
        bottom = known.noise + known.delta * known.variances * (1 - z)
        eta[bottom > 0] = z[bottom > 0] / bottom[bottom > 0]
        inverse = np.linalg.inv(np.eye(r) + (known.R * eta) @ known.R.T)
        t = eta[:, None] * (known.R.T @ (inverse @ b))  # the best one for z
        t = t + rng.choice([0.0, 0.1, 1.0]) * rng.standard_normal(t.shape)
        upper = RelaxedWitness(known.scale, TellingPart(b, t)).evaluate(problem)
        assert upper >= best * (1 - 1e-9)


def test_directions_below_zero_do_not_count():
    """A = I with a ridge of 1: a feature tells half of itself, whatever is subtracted from G."""
    problem = RepresentProblem(as_covariance(np.eye(2), kind="covariance"), 1, 1, ridge=1.0)
    known = KnownWhole.of(problem)
    for c in (0.5, 1.0, 1.2, 1.4, 3.0):
        part = TellingPart(c * np.eye(2), np.zeros((2, 2)))
        assert RelaxedWitness(known.scale, part).evaluate(problem) >= 0.5


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.filterwarnings("ignore:A step of the proof was given up")
def test_a_tiny_feature_may_tell_a_huge_one(level):
    X = np.random.default_rng(0).standard_normal((30, 4))
    X[:, 1] = X[:, 0] * 1e-100
    X[:, 0] *= 1e80
    problem = RepresentProblem(as_covariance(X), 1, 1, exclude=[0], ridge=0.1)
    certificate = certify(problem, solve(problem, random_state=0), level)
    assert certificate.upper >= np.var(X[:, 0], ddof=1) / 1.1 * (1 - 1e-9)
    verify(problem, certificate)


def test_a_better_support_of_the_proof_takes_its_place():
    problem = RepresentProblem(as_covariance(data()), 2, 3, ridge=0.1)
    poor = solve(problem, "forward")
    worst = min(combinations(range(9), 3), key=lambda S: problem.refit(np.array(S)).objective)
    point = problem.refit(np.array(worst))
    poor = replace(poor, support=point.support, weights=point.weights,
                   explained_variance=point.variances)  # fmt: skip
    method = as_method(RepresentProblem, "forward", {})
    options = ProofOptions()
    better, certificate = prove_solution(problem, poor, method, "exact", Monitor("x"), options)
    assert better.objective >= certificate.lower > point.objective
    np.testing.assert_array_equal(better.support, certificate.support)


@pytest.mark.parametrize("ridge", [1e-18, 1e-14, 0.0])
@pytest.mark.filterwarnings("ignore:A step of the proof was given up")
def test_next_to_no_ridge_and_copies(ridge):
    X = data(30, 5)
    X[:, 3], X[:, 4] = X[:, 0], X[:, 1] + 1e-7 * X[:, 4]
    problem = RepresentProblem(as_covariance(X), 2, 3, ridge=ridge)
    best = max(told(np.cov(X.T), S, 2, 0.0) for S in combinations(range(5), 3))
    for level in LEVELS:
        certificate = certify(problem, solve(problem, random_state=0), level)
        assert certificate.upper >= best * (1 - 1e-9)
        verify(problem, certificate)


# --- the scan


@pytest.mark.parametrize("n_open", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("n_forced", [0, 1, 2])
def test_the_scan_finds_what_enumeration_finds(n_open, n_forced):
    rng = np.random.default_rng(n_open)
    for kind in ("gaussian", "duplicated columns", "ties", "rank deficient", "mixed scales"):
        A = random_psd(rng, 8, kind)
        k = n_open + n_forced
        include = rng.permutation(8)[:n_forced]
        problem = RepresentProblem(
            as_covariance(A, kind="covariance"), k, k, include, ridge=10 ** rng.uniform(-4, 0)
        )
        best = best_told(A, k, k, problem.ridge, include)
        known = KnownWhole.of(problem)
        for asked in (0.0, 0.7, 1 - 1e-9):
            found = scanned(known, problem, asked * best / known.scale)
            assert found.value * known.scale == pytest.approx(best, rel=1e-8)
            assert told(A, found.support, k, problem.ridge) == pytest.approx(best, rel=1e-8)
        nothing = scanned(known, problem, 1.01 * best / known.scale)
        assert nothing.value * known.scale <= best * (1 + 1e-8)
        witness = ScanWitness(known.scale, 0.0)  # it finds the best whatever it asks for
        assert best * (1 - 1e-9) <= witness.evaluate(problem) <= best * (1 + 1e-4)


def test_a_scan_names_features_once_where_they_add_nothing():
    A = np.diag([1.0, 0.0, 0.0, 0.0])
    for k in (2, 3, 4):
        problem = RepresentProblem(as_covariance(A, kind="covariance"), k, k, ridge=0.1)
        found = scanned(KnownWhole.of(problem), problem, 0.0)
        assert np.unique(found.support).size == k
        certificate = certify(problem, solve(problem, random_state=0), "exact")
        assert certificate.lower <= 1 / 1.1 <= certificate.upper
        verify(problem, certificate)


def test_what_a_feature_leaves():
    A = random_psd(np.random.default_rng(0), 6, "gaussian")
    noise = 0.1 * np.diagonal(A)
    K1, H1 = np.empty_like(A), np.empty_like(A)
    gained, size = add_feature(A, A @ A, noise, 2, K1, H1)
    left = A - np.outer(A[2], A[2]) / (A[2, 2] + noise[2])
    np.testing.assert_allclose(K1, left, atol=1e-12)
    np.testing.assert_allclose(H1, left @ left, atol=1e-11)
    assert gained == pytest.approx(np.trace(A) - np.trace(left))
    assert size == pytest.approx(np.sum(np.linalg.eigvalsh(left) ** 4) ** 0.25)
    best, counts = np.zeros(3, dtype=np.int64), np.zeros(1, dtype=np.int64)
    value = scan_after(A, A @ A, noise, np.arange(6), 0, 3, 0.0, best, counts)
    wanted = max(told(A, (0, *S), 3, 0.1) for S in combinations(range(1, 6), 2))
    assert value == pytest.approx(wanted)
    assert counts[0] == 10


# --- verify


@pytest.fixture(autouse=True)
def nothing_is_tiny(monkeypatch):
    """Small problems are proved to the end at any level; here the steps are looked at."""
    monkeypatch.setattr(prover, "TINY", 0)


def test_small_problems_are_proved_to_the_end(monkeypatch):
    monkeypatch.setattr(prover, "TINY", 5000)
    problem = RepresentProblem(as_covariance(data()), 2, 4)
    certificate = certify(problem, solve(problem, random_state=0), "tight")
    assert certificate.status is Status.OPTIMAL
    verify(problem, certificate)


def honest(kind):
    """A problem and a certificate whose witness has the named form."""
    X = data()
    m, k, level = {"spectrum": (2, 4, "fast"), "scan": (4, 4, "exact")}.get(kind, (2, 4, "tight"))
    level = "exact" if kind == "tree" else level
    problem = RepresentProblem(as_covariance(X), m, k, [0], [8], ridge=0.05)
    return X, problem, certify(problem, solve(problem, random_state=0), level)


WITNESSES = {
    "spectrum": SpectrumWitness, "relaxed": RelaxedWitness, "scan": ScanWitness,
    "tree": TellingTreeWitness,
}  # fmt: skip


@pytest.mark.parametrize("kind", WITNESSES)
def test_honest_certificates_pass_in_every_form(kind, branches, tmp_path):
    X, problem, certificate = honest(kind)
    assert isinstance(certificate.witness, WITNESSES[kind])
    best = best_told(np.cov(X.T), problem.n_components, 4, 0.05, [0], [8])
    certificate.save(tmp_path / "c.npz")
    loaded = Certificate.load(tmp_path / "c.npz")
    forms = [as_covariance(form(X)) for form in (np.asfortranarray, scipy.sparse.csr_array)]
    forms.append(as_covariance(scipy.sparse.csc_array(X)))
    for covariance in (problem.covariance, *forms):
        lower, upper = verify(problem.changed(covariance=covariance), loaded)
        assert lower <= best * (1 + 1e-9)
        assert upper >= best * (1 - 1e-9)


def test_wide_certificates_pass_in_every_form():
    X = data(8, 14)
    problem = RepresentProblem(as_covariance(X), 3, 3, ridge=1e-3)
    assert problem.covariance.is_wide
    for level in LEVELS:
        certificate = certify(problem, solve(problem, random_state=0), level)
        sparse = as_covariance(scipy.sparse.csr_array(X))
        for covariance in (problem.covariance, sparse):
            verify(problem.changed(covariance=covariance), certificate)
    assert certificate.status is Status.OPTIMAL


@pytest.mark.parametrize("kind", WITNESSES)
def test_claims_that_do_not_follow(kind, branches):
    _, problem, certificate = honest(kind)
    follows = certificate.witness.evaluate(problem)
    for changes in (
        {"upper": min(follows, certificate.upper) * (1 - 1e-6)},
        {"upper": np.nan}, {"ridge": 0.04}, {"ridge": None}, {"lower": certificate.lower * 1.001},
        {"weights": 2.0 * certificate.weights[:, :1]}, {"problem": "row-sparse"},
        {"witness": TraceWitness()},
    ):  # fmt: skip
        lowered = changes.get("upper", np.inf)
        lower = min(certificate.lower, lowered if np.isfinite(lowered) else np.inf)
        with pytest.raises(CertificateError):
            verify(problem, forged(certificate, **{"lower": lower, **changes}))
    other = RepresentProblem(problem.covariance, problem.n_components, problem.choice, ridge=0.06)
    with pytest.raises(CertificateError, match="ridge"):
        verify(other, certificate)
    with pytest.raises(CertificateError):
        verify(RowSparseProblem(problem.covariance, 2, problem.choice), certificate)
    with pytest.raises(CertificateError, match="digest"):
        verify(problem, replace(certificate, upper=certificate.upper * 2))


def test_witnesses_of_another_question(branches):
    _, problem, certificate = honest("tree")
    about = RowSparseProblem(problem.covariance, 2, problem.choice)
    for level in LEVELS:
        other = certify(about, solve(about, random_state=0), level)
        swapped = forged(certificate, witness=other.witness, upper=100 * certificate.upper)
        with pytest.raises(CertificateError, match="another question"):
            verify(problem, swapped)
        back = forged(other, witness=certificate.witness, upper=100 * other.upper)
        with pytest.raises(CertificateError, match="another question"):
            verify(about, back)
        with pytest.raises(CertificateError):
            verify(problem, forged(certificate, path=other.path or [None]))


def test_forged_trees(branches):
    _, problem, certificate = honest("tree")
    tree = certificate.witness
    branched = [i for i, record in enumerate(tree.records) if record.kind == "branched"]
    assert branched
    first = branched[0]
    child = tree.records[first].children[0]

    def with_record(index, **changes):
        records = list(tree.records)
        records[index] = replace(records[index], **changes)
        return replace(tree, records=records)

    leaf = next(i for i, r in enumerate(tree.records) if r.kind in ("bound", "enumerated"))
    for witness in (
        with_record(first, children=tree.records[first].children[:1]),
        with_record(first, children=[10**6, child]),
        with_record(first, kind="void"),
        with_record(child, feature=(tree.records[child].feature + 1) % 9),
        with_record(child, included=not tree.records[child].included),
        with_record(leaf, bound=0.5 * tree.records[leaf].bound),
        with_record(leaf, kind="bound", witness=len(tree.witnesses)),
        with_record(0, kind="bound", reductions=[], bound=0.0),
    ):
        with pytest.raises(CertificateError):
            verify(problem, forged(certificate, witness=witness))


def test_a_scan_that_asks_for_too_little_says_the_same():
    _, problem, certificate = honest("scan")
    value = certificate.witness.value
    lowered = replace(certificate.witness, value=0.5 * value)
    assert lowered.evaluate(problem) >= certificate.lower
    for wrong in (np.nan, np.inf, -1.0):
        with pytest.raises(CertificateError):
            verify(problem, forged(certificate, witness=replace(lowered, value=wrong)))
    high = replace(lowered, value=1.5 * value)
    with pytest.raises(CertificateError):
        verify(problem, forged(certificate, witness=high))


@pytest.mark.parametrize("kind", ["relaxed", "scan", "tree"])
def test_junk_is_refused_or_true(kind, branches):
    X, problem, certificate = honest(kind)
    best = best_told(np.cov(X.T), problem.n_components, 4, 0.05, [0], [8])

    @examples(60)
    @given(st.data())
    def tried(drawn):
        witness = with_junk(drawn, certificate.witness)
        try:
            _, upper = verify(
                problem, forged(certificate, witness=witness, upper=100 * certificate.upper,
                                proved_in=certificate.proved_in[:0],
                                proved_out=certificate.proved_out[:0]),
            )  # fmt: skip
        except CertificateError:
            return
        assert upper >= best * (1 - 1e-9)

    tried()


def test_what_is_proved_in_and_out(branches):
    for seed in range(6):
        X = data(seed=seed)
        A = np.cov(X.T)
        problem = RepresentProblem(as_covariance(X), 2, 4, ridge=0.05)
        certificate = certify(problem, solve(problem, random_state=0), "exact")
        best = max(combinations(range(9), 4), key=lambda S: told(A, S, 2, 0.05))
        assert np.isin(certificate.proved_in, best).all()
        assert not np.isin(certificate.proved_out, best).any()


def test_the_relaxation_is_that_of_cvxpy():
    """Y ≤ Y(z) = R(Diag(1/η) + R'R)⁻¹R' for δ = 0, by Schur complements."""
    cvxpy = pytest.importorskip("cvxpy")
    X = data(5, 5, seed=4)[:4]
    problem = RepresentProblem(as_covariance(X), 1, 2, ridge=0.2)
    known = KnownWhole.of(problem)
    assert known.delta == 0
    R, e, m, k = known.R, known.noise, 1, 2
    r, d = R.shape
    place = Place(problem.choice.features, problem.choice)
    relaxation = telling_search.TellingRelaxation(known, m, known.slack(m, problem.choice), place)
    proof = Proof(problem, problem.refit(np.array([0, 1])), Monitor("tight"))
    found = relaxation.run(300, proof, 0.0)
    # I - Y ≥ (I + Σ η_i x_i x_i')⁻¹ with η_i = z_i/e_i.
    Y, z = cvxpy.Variable((r, r), PSD=True), cvxpy.Variable(d)
    eye = np.eye(r)
    M = eye + sum(z[i] / e[i] * np.outer(R[:, i], R[:, i]) for i in range(d))
    rows = [cvxpy.bmat([[eye - Y, eye], [eye, M]]) >> 0, cvxpy.trace(Y) <= m]
    rows += [z >= 0, z <= 1, cvxpy.sum(z) <= k]
    target = cvxpy.Maximize(cvxpy.trace(known.gram @ Y))
    best = cvxpy.Problem(target, rows).solve(solver="CLARABEL")
    assert best * (1 - 1e-6) <= found.bound.value <= best * (1 + 1e-3)


def test_a_given_matrix_that_is_no_covariance_by_rounding_needs_a_ridge():
    """Found by the fuzzer: its determinant is -5e-18, and two features tell more than its trace."""
    A = np.array(
        [
            [0.3282218014218621, -0.6581041496797063, 0.20361291443317703],
            [-0.6581041496797063, 1.319538771830219, -0.40799960495924215],
            [0.20361291443317703, -0.40799960495924215, 0.19352242205258383],
        ]
    )
    covariance = as_covariance(A, kind="covariance")
    bare = RepresentProblem(covariance, 2, 2, ridge=0.0)
    with pytest.raises(CertificateError, match="without a ridge"):
        certify(bare, solve(bare, random_state=0))
    problem = RepresentProblem(covariance, 2, 2)
    certificate = certify(problem, solve(problem, random_state=0), "exact")
    verify(problem, certificate)
    assert certificate.upper >= 1.8412829953046654 * (1 - 1e-4)

"""Proofs that relax some of the features only, with row cones in closed form for the others."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.soundness.joint_oracle import Enumeration, interval
from kspan import as_covariance, certify, solve, verify
from kspan.problem import Patterns, StiefelProblem
from kspan.progress import Monitor, Status
from kspan.proofs import Certificate, CertificateError
from kspan.proofs.check.bounds import Cones
from kspan.proofs.check.known import KnownMatrix, Uncertainty
from kspan.proofs.check.partly_known import PartlyKnown
from kspan.proofs.check.pattern_tree import InsideTreeWitness, other_counts
from kspan.proofs.check.teams import (
    TeamPart,
    TeamsWitness,
    first_teams,
    team_cut_levels,
    teams_bound,
    tidy,
)
from kspan.proofs.search import inside_search, prover
from kspan.proofs.search.prover import ProofOptions
from kspan.proofs.search.tree_state import Budgets
from kspan.solving import prove_point
from tests.effort import examples
from tests.proofs.forging import (
    NOTHING,
    claiming_little,
    forged,
    refused_or_true,
    tree_factor,
    with_junk,
)
from tests.proofs.helpers import JUNK
from tests.proofs.test_joint_enumeration import (
    COUNTS,
    KINDS,
    assert_true,
    counted,
    matrix,
    patterns_of,
)

# Few features inside at first, and as many as it takes; or never more than some.
GROWING = Budgets(pattern_limit=0, least_inside=1, inside_iter=15, max_nodes=200)
FEW = replace(GROWING, dense_limit=4)


def proved(problem, level, budgets, **options):
    solution = solve(problem, random_state=0)
    point, monitor = problem.point_of(solution), Monitor(level, options.pop("callback", None))
    return prove_point(problem, point, level, monitor, ProofOptions(budgets=budgets, **options))


# --- the formula


def random_case(seed, kind="gaussian"):
    """A matrix, patterns, features inside, and a witness on them."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 6))
    r, counts = COUNTS[int(rng.integers(len(COUNTS)))]
    r = min(r, d)
    counts = {
        name: value[:r] if isinstance(value, list) else value for name, value in counts.items()
    }
    A = matrix(kind, d, seed)
    A = A / np.diag(A).max()
    patterns = Patterns.of(d, r, **counts)
    inside = np.sort(rng.permutation(d)[: int(rng.integers(r, d + 1))])
    teams = tidy(first_teams(patterns), patterns)
    n = inside.size
    parts = []
    for _ in teams:
        F = 0.5 * rng.standard_normal((n, int(rng.integers(0, n + 1))))
        G = 0.3 * rng.standard_normal((n, n))
        parts.append(TeamPart(inside, F, Cones(G, rng.uniform(0.0, 1.0, n))))
    common = 0.3 * rng.standard_normal((d, 2))
    prices = rng.uniform(0, 0.5, d) if rng.random() < 0.5 else np.empty(0)
    return A, patterns, inside, teams, TeamsWitness(common, parts, prices)


def partly(A, patterns, inside):
    problem = StiefelProblem(
        as_covariance(A, kind="covariance"), patterns.n_components, patterns=patterns
    )
    return PartlyKnown.of(problem, inside, other_counts(patterns), 1.0 if A.max() < 4 else None)


@pytest.mark.parametrize("seed", range(40))
def test_the_closed_form_is_a_row_cone(seed):
    """The same G, α and β as arrays on all features give the same bound."""
    A, patterns, inside, teams, witness = random_case(seed)
    known = partly(A, patterns, inside)
    A = A / known.scale
    d, n = len(A), inside.size
    outside = np.setdiff1d(np.arange(d), inside)
    bound = teams_bound(known, teams, witness, patterns)
    common = np.zeros_like(witness.common)
    common[inside] = witness.common[inside]
    parts = []
    for part, team in zip(witness.parts, teams, strict=True):
        G, alpha, F = np.zeros((d, d)), np.zeros(d), np.zeros((d, part.factor.shape[1]))
        G[np.ix_(inside, inside)], alpha[inside], F[inside] = (
            part.cones.rows,
            part.cones.alpha,
            part.factor,
        )
        G[np.ix_(outside, inside)] = 2 * A[np.ix_(outside, inside)]
        G[np.ix_(outside, outside)] = A[np.ix_(outside, outside)]
        np.fill_diagonal(G, 0.0)
        # β from its definition: half of the larger root of β² + (μ - a)β - R.
        kappa = team.choice.size - 1
        inner = part.cones.rows.copy()
        np.fill_diagonal(inner, 0.0)
        idle = part.cones.alpha < 1e-100
        inner[idle] = 0.0
        squares = np.sort(inner**2, axis=1)[:, max(n - max(kappa, 1), 0) :].sum(axis=1)
        beta = np.where(idle, 0.0, squares / np.where(idle, 1.0, 4 * part.cones.alpha))
        C = A[np.ix_(inside, inside)] - 0.5 * (inner + inner.T) + np.diag(part.cones.alpha - beta)
        C = C - part.factor @ part.factor.T - common[inside] @ common[inside].T
        mu = np.linalg.eigvalsh(C)[n - team.count]
        for i in outside:
            R = np.sort(G[i] ** 2 / 4)[::-1][:kappa].sum()
            own = max(np.roots([1.0, mu - A[i, i], -R]).real)
            alpha[i] = own + mu - A[i, i]
            assert bound.scores[len(parts)][i] == pytest.approx(
                own - (witness.prices[i] if patterns.disjoint and witness.prices.size else 0.0),
                rel=1e-9, abs=1e-9,
            )  # fmt: skip
        parts.append(TeamPart(np.arange(d), F, Cones(G, alpha)))
    if min(patterns.limits) == 1 or any(
        (part.cones.alpha[outside] < 1e-12).any() for part in parts
    ):  # κ of at least one there; rows without α there carry no β
        return
    full = teams_bound(
        KnownMatrix.exact(A), teams, TeamsWitness(common, parts, witness.prices), patterns
    )
    assert bound.value == pytest.approx(full.value, rel=1e-8)


@examples(150)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from(["gaussian", "ties", "rank deficient", "constant"])
)
def test_any_witness_on_any_features_gives_a_bound(seed, kind):
    """And what is cut off is below its level."""
    A, patterns, inside, teams, witness = random_case(seed, kind)
    known = partly(A, patterns, inside)
    bound = teams_bound(known, teams, witness, patterns)
    levels = team_cut_levels(bound, teams, patterns)
    oracle = Enumeration(A / known.scale)
    team_of = [place for place, team in enumerate(teams) for _ in range(team.count)]
    for supports in patterns_of(teams, patterns):
        if oracle.quick(supports) <= min(
            bound.value, *(low.min() for pair in levels for low in pair)
        ):
            continue  # there is nothing to see
        value = oracle.settle(supports)[0]
        assert value <= bound.value + 1e-9
        for q, S in zip(team_of, supports, strict=True):
            for i in range(len(A)):
                assert value <= levels[q][0 if i in S else 1][i] + 1e-9


@examples(300)
@given(
    st.floats(-1e3, 1e3), st.floats(0, 1e3), st.floats(0, 1e3), st.integers(-12, 3),
    st.integers(-150, 3),
)  # fmt: skip
def test_scores_are_rounded_upwards(level, variance, square, tens, square_tens):
    """β(β + μ - a) ≥ R and β + μ - a ≥ 0, in fractions."""
    variance, square = variance * 10.0**tens, square * 10.0**square_tens
    one = np.zeros(1)
    known = PartlyKnown(
        KnownMatrix.exact(np.ones((1, 1))), np.array([0]), np.array([1]), np.array([variance]),
        np.array([[square]]), Uncertainty(one, one, one),
    )  # fmt: skip
    found = known.outside_scores(np.array([0]), 1, level)[0]
    assert found >= 0
    beta, room = Fraction(float(found)), Fraction(level) - Fraction(variance)
    assert beta + room >= 0
    assert beta * (beta + room) >= Fraction(square)


def test_more_others_than_are_known_are_refused():
    A, patterns, inside, *_ = random_case(3)
    known = partly(A, patterns, inside)
    with pytest.raises(FloatingPointError, match="so many"):
        known.outside_scores(inside[:0], 100, 1.0)
    outside = np.setdiff1d(np.arange(len(A)), inside)
    assert outside.size
    with pytest.raises(FloatingPointError, match="not among"):
        known.on(outside)


# --- certificates


def check(A, r, counts, budgets, stops=(2,)):
    """Prove at both levels, and with searches that are stopped early."""
    problem = counted(A, r, counts)
    unit = float(np.diag(A).max())
    reached, above = (unit * value for value in interval(A, problem.patterns))
    for level in ("tight", "exact"):
        certificate = proved(problem, level, budgets)
        assert_true(problem, certificate, reached, above)
    for stop in stops:
        seen = []

        def enough(progress, seen=seen, stop=stop):
            seen.append(progress)
            return len(seen) >= stop

        early = proved(problem, "exact", budgets, callback=enough)
        assert_true(problem, early, reached, above)
    return certificate


SOME = [(kind, *COUNTS[(4 * i + 2) % 9]) for i, kind in enumerate(KINDS)]


# Each kind meets one of the two budgets here, and both in the slow test.
@pytest.mark.parametrize(
    ("kind", "r", "counts", "budgets"),
    [
        pytest.param(
            *case, (GROWING, FEW)[place // 2 % 2], marks=[pytest.mark.slow] if place % 2 else []
        )
        for place, case in enumerate(SOME)
    ],
)
def test_no_pattern_exceeds_an_upper_bound(kind, r, counts, budgets):
    check(matrix(kind, 5, 3), r, counts, budgets)


@pytest.mark.slow
@pytest.mark.parametrize("budgets", [GROWING, FEW], ids=["growing", "few"])
@pytest.mark.parametrize(("r", "counts"), COUNTS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_pattern_exceeds_an_upper_bound_in_more_cases(kind, r, counts, budgets):
    check(matrix(kind, 6, 1), r, counts, budgets, stops=(1, 3, 10))


def test_what_some_features_do_not_settle_is_settled_by_more_of_them(monkeypatch):
    problem = counted(matrix("gaussian", 10, 1), 2, {"n_nonzero_coefs": 3})
    few = proved(problem, "exact", FEW)
    more = proved(problem, "exact", GROWING)
    assert more.status is Status.OPTIMAL
    assert few.gap > 1e-3
    verify(problem, few)
    # The first features are those of the loadings, and no others come in before the search.
    monkeypatch.setattr(inside_search, "FIRST_SHARE", 1e6)
    monkeypatch.setattr(inside_search, "ROUNDS", 0)
    again = proved(problem, "exact", GROWING)
    assert again.status is Status.OPTIMAL
    assert again.lower == pytest.approx(more.lower, rel=1e-9)
    assert again.witness.inside.size > np.count_nonzero(again.weights.any(axis=1))
    verify(problem, again)


def spiked(n_features, seed=0):
    """Wide data with three groups of features that go together, and noise."""
    rng = np.random.default_rng(seed)
    X = 0.4 * rng.standard_normal((30, n_features))
    for group, size in enumerate((6, 5, 4)):
        places = slice(20 * group, 20 * group + size)
        X[:, places] += (3.0 - 0.5 * group) * rng.standard_normal((30, 1))
    return X


WIDE = 800


@cache
def wide_case(disjoint=False):
    patterns = Patterns.of(WIDE, 2, 4, disjoint=disjoint)
    problem = StiefelProblem(as_covariance(spiked(WIDE)), 2, patterns=patterns)
    return problem, certify(problem, solve(problem, random_state=0), "exact")


@pytest.mark.parametrize("disjoint", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_wide_data_is_settled_without_a_matrix_of_all_features(disjoint, tmp_path):
    problem, certificate = wide_case(disjoint)
    assert certificate.status is Status.OPTIMAL
    assert certificate.method in ("joint relaxation", "joint branch and bound")
    assert isinstance(certificate.witness, InsideTreeWitness)
    assert certificate.witness.inside.size < WIDE / 3
    verify(problem, certificate)
    # From the definition.
    U = np.zeros((WIDE, 2))
    U[certificate.support] = certificate.weights
    X = spiked(WIDE) - spiked(WIDE).mean(axis=0)
    assert np.linalg.norm(X @ U) ** 2 / 29 == pytest.approx(certificate.lower, rel=1e-9)
    # It survives a file, and is about one problem.
    certificate.save(tmp_path / "proof.npz")
    again = Certificate.load(tmp_path / "proof.npz")
    assert verify(problem, again) == verify(problem, certificate)
    other = StiefelProblem(problem.covariance, 2, patterns=Patterns.of(WIDE, 2, 5))
    with pytest.raises(CertificateError):
        verify(other, certificate)


def test_a_search_goes_on_from_its_checkpoint(tmp_path):
    A = matrix("correlation", 8, 2)
    problem, place, seen = counted(A, 2, {"n_nonzero_coefs": 3}), tmp_path / "search.npz", []

    def after_some_nodes(progress) -> bool:
        seen.append(progress)
        return len(seen) > 3

    options = {"checkpoint": place, "checkpoint_every": 0.0}
    budgets = replace(GROWING, pattern_root_iter=15)
    stopped = proved(problem, "exact", budgets, callback=after_some_nodes, **options)
    assert isinstance(stopped.witness, InsideTreeWitness)
    verify(problem, stopped)
    done = proved(problem, "exact", budgets, **options)
    assert done.status is Status.OPTIMAL
    verify(problem, done)


def test_the_proof_does_not_depend_on_who_made_it():
    problem = counted(matrix("correlation", 8, 1), 2, {"n_nonzero_coefs": 3})
    budgets = replace(GROWING, worth_sending=0.0, pattern_root_iter=15)
    alone = proved(problem, "exact", budgets)
    assert alone.n_nodes > 3
    assert proved(problem, "exact", budgets, n_jobs=2).digest == alone.digest


def test_a_checkpoint_of_standardised_data_is_about_these_data(tmp_path):
    X = np.random.default_rng(0).standard_normal((20, 8)) * np.arange(1, 9)
    options = {"checkpoint": tmp_path / "search.npz", "checkpoint_every": 0.0}
    patterns = Patterns.of(8, 2, 3)
    problem = StiefelProblem(as_covariance(X, scale=True), 2, patterns=patterns)
    done = proved(problem, "exact", GROWING, **options)
    assert proved(problem, "exact", GROWING, **options).upper == pytest.approx(done.upper)
    other = StiefelProblem(as_covariance(X), 2, patterns=patterns)
    with pytest.raises(ValueError, match="another problem"):
        proved(other, "exact", GROWING, **options)


def test_data_that_no_rows_can_be_read_of_are_bounded_otherwise(monkeypatch):
    """More samples than features, and too many features for a matrix of them."""
    monkeypatch.setattr(prover, "MATRIX_LIMIT", 5)
    problem = counted(matrix("gaussian", 8, 0), 2, {"n_nonzero_coefs": 3})
    certificate = proved(problem, "tight", replace(FEW, n_inside=3, split_iter=20))
    assert certificate.method in ("shared features", "single components", "trace")
    verify(problem, certificate)


# --- forgeries

TREES = {
    "alike": (7, 2, 0, {"n_nonzero_coefs": 3}),
    "unlike": (7, 2, 0, {"n_nonzero_coefs": [3, 2]}),
    "total": (6, 2, 2, {"n_nonzero_total": 5}),
    "disjoint": (7, 2, 5, {"n_nonzero_coefs": 3, "disjoint": True}),
}


@cache
def small_tree(name):
    d, r, seed, counts = TREES[name]
    F = tree_factor(d, seed)
    F[:, 5:] *= 0.2  # these need not be relaxed
    problem = counted(F.T @ F, r, counts)
    honest = proved(problem, "exact", replace(FEW, dense_limit=5, pattern_root_iter=30))
    assert isinstance(honest.witness, InsideTreeWitness)
    assert honest.witness.inside.size < d
    return claiming_little(problem, honest)


@pytest.mark.parametrize("name", TREES)
def test_other_features_inside_give_an_error_or_a_true_bound(name):
    problem, best, certificate = small_tree(name)
    tree, d = certificate.witness, problem.n_features
    inside = tree.inside
    others = [
        *JUNK, inside[:-1], inside[1:], inside[::-1], (inside + 1) % d, np.arange(d), NOTHING,
        inside.astype(float), np.append(inside, d), np.append(inside, inside[0]),
    ]  # fmt: skip
    for other in others:
        refused_or_true(problem, best, certificate, replace(tree, inside=other))


@examples(150)
@given(st.data())
def test_junk_anywhere_gives_a_clear_error_or_a_true_bound(data):
    problem, best, certificate = small_tree(data.draw(st.sampled_from(sorted(TREES))))
    refused_or_true(problem, best, certificate, with_junk(data, certificate.witness))


@pytest.mark.parametrize("name", TREES)
def test_a_bound_that_does_not_follow_is_refused(name):
    problem, _, certificate = small_tree(name)
    tree = certificate.witness
    follows = tree.evaluate(problem)
    verify(problem, forged(certificate, upper=follows))
    with pytest.raises(CertificateError, match="upper"):
        verify(problem, forged(certificate, upper=follows * (1 - 1e-9)))

"""Bounds on orthonormal components with supports of their own, against all of their patterns."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.soundness.joint_oracle import Enumeration, interval
from kspan import as_covariance, certify, solve, verify
from kspan.problem import Patterns, StiefelProblem
from kspan.proofs.check.teams import (
    TeamsBound,
    best_pattern_sum,
    first_teams,
    split_team,
    team_cut_levels,
    tidy,
)
from tests.effort import examples
from tests.proofs.helpers import random_psd

# The oracle's own rounding.
ROUNDING = 1e-11

COUNTS = (
    (2, {"n_nonzero_coefs": 3}),
    (2, {"n_nonzero_coefs": [3, 1]}),
    (2, {"n_nonzero_coefs": [2, 3], "n_nonzero_total": 4}),
    (2, {"n_nonzero_total": 5}),
    (3, {"n_nonzero_coefs": 2}),
    (3, {"n_nonzero_coefs": [1, 2, 2]}),
    (3, {"n_nonzero_total": 5}),
    (2, {"n_nonzero_coefs": 3, "disjoint": True}),
    (3, {"n_nonzero_total": 4, "disjoint": True}),
)
KINDS = (
    "gaussian", "rank deficient", "ties", "repeated eigenvalues", "duplicated columns", "tiny",
    "huge", "mixed scales", "rank one", "constant", "correlation",
)  # fmt: skip


def matrix(kind, d, seed):
    """A covariance of one of several kinds that have broken proofs before."""
    rng = np.random.default_rng(seed)
    if kind == "rank one":
        x = rng.standard_normal(d)
        return np.outer(x, x)
    A = random_psd(rng, d, "gaussian" if kind in ("constant", "correlation") else kind)
    if kind == "constant":
        A[1], A[:, 1] = 0.0, 0.0
    if kind == "correlation":
        roots = np.sqrt(np.diag(A))
        A = A / roots / roots[:, None]
    return 0.5 * (A + A.T)


def counted(A, r, counts):
    patterns = Patterns.of(len(A), r, **counts)
    return StiefelProblem(as_covariance(A, kind="covariance"), r, patterns=patterns)


def assert_true(problem, certificate, reached, above):
    """The optimum is between the numbers of the certificate, which follow."""
    assert certificate.upper >= reached * (1 - ROUNDING)
    assert certificate.lower <= above * (1 + ROUNDING)
    verify(problem, certificate)


def check(A, r, counts, stops=(2,)):
    """Prove at all levels, and with searches that are stopped early."""
    problem = counted(A, r, counts)
    unit = float(np.diag(A).max())
    reached, above = (unit * value for value in interval(A, problem.patterns))
    assert above <= reached * (1 + 1e-3)  # the oracle has settled it
    solution = solve(problem, random_state=0)
    for level in ("fast", "tight", "exact"):
        certificate = certify(problem, solution, level)
        assert_true(problem, certificate, reached, above)
    assert certificate.lower >= reached * (1 - 1e-4)
    for stop in stops:
        seen = []

        def enough(progress, seen=seen, stop=stop):
            seen.append(progress)
            return len(seen) >= stop

        early = certify(problem, solution, "exact", callback=enough)
        assert_true(problem, early, reached, above)
    return certificate


# Each kind meets some of the counts here, and all of them in the slow test.
SOME = [(kind, *COUNTS[4 * i % 9]) for i, kind in enumerate(KINDS)]


@pytest.mark.parametrize(("kind", "r", "counts"), SOME)
def test_no_pattern_exceeds_an_upper_bound(kind, r, counts):
    check(matrix(kind, 5, 3), r, counts)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("r", "counts"), COUNTS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_pattern_exceeds_an_upper_bound_in_more_cases(kind, r, counts, seed):
    check(matrix(kind, 6, seed), r, counts, stops=(1, 3, 10))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gaussian", "correlation"])
@pytest.mark.parametrize(
    ("d", "r", "counts"),
    [
        (9, 2, {"n_nonzero_coefs": 3}),
        (9, 2, {"n_nonzero_coefs": [4, 2]}),
        (9, 2, {"n_nonzero_coefs": 4, "disjoint": True}),
        (9, 3, {"n_nonzero_coefs": 2}),
        (9, 3, {"n_nonzero_coefs": 3, "disjoint": True}),
    ],
)
def test_no_pattern_of_more_features_exceeds_an_upper_bound(d, r, counts, kind):
    check(matrix(kind, d, 0), r, counts, stops=(1, 3, 10))


@pytest.mark.parametrize(
    ("d", "r", "counts"),
    [
        (3, 3, {"n_nonzero_coefs": [1, 2, 2]}),
        (3, 3, {"n_nonzero_coefs": 3}),
        (4, 2, {"n_nonzero_coefs": 4}),
        (4, 4, {"n_nonzero_coefs": 2}),
        (4, 3, {"n_nonzero_coefs": 1}),
        (1, 1, {"n_nonzero_coefs": 1}),
        (4, 1, {"n_nonzero_total": 2}),
        (4, 4, {"n_nonzero_total": 4, "disjoint": True}),
    ],
)
def test_all_features_all_components_and_single_features(d, r, counts):
    certificate = check(matrix("gaussian", d, 1), r, counts)
    assert certificate.status.value == "optimal"


# --- the oracle itself


@pytest.mark.parametrize("seed", range(3))
def test_the_oracle_agrees_with_a_fine_grid(seed):
    """Supports {0, 1, 2} and {1, 2, 3}: u and v are orthogonal in the plane of 1 and 2."""
    A = matrix("gaussian", 4, seed)
    reached, above = Enumeration(A).settle(((0, 1, 2), (1, 2, 3)))
    best = 0.0
    for angle in np.linspace(0, np.pi, 4001):
        h = np.array([np.cos(angle), np.sin(angle)])
        u, v = np.zeros((4, 2)), np.zeros((4, 2))
        u[0, 0] = v[3, 0] = 1.0
        u[1:3, 1], v[1:3, 1] = h, [-h[1], h[0]]
        best = max(best, sum(np.linalg.eigvalsh(B.T @ A @ B)[-1] for B in (u, v)))
    assert reached <= above <= reached * (1 + 1e-4)
    assert best == pytest.approx(reached, rel=1e-4)
    assert best <= above * (1 + ROUNDING)


# --- what patterns add up to


def subsets_of(team):
    """All supports that a component of a team may have."""
    choice = team.choice
    for size in range(1, choice.size + 1):
        for S in combinations(choice.features.tolist(), size):
            if set(choice.include.tolist()) <= set(S):
                yield S


def patterns_of(teams, patterns):
    """All patterns of a node, as lists of supports in the order of its teams."""
    each = [list(subsets_of(team)) for team in teams for _ in range(team.count)]
    for supports in product(*each):
        if sum(map(len, supports)) > patterns.total:
            continue
        if patterns.disjoint and len(set().union(*supports)) < sum(map(len, supports)):
            continue
        if len(set().union(*supports)) >= len(supports):
            yield supports


@examples(400)
@given(st.integers(0, 2**32 - 1))
def test_sums_and_levels_bound_all_patterns_of_a_node(seed):
    """Scores are small whole numbers, with many ties; less than zero where prices are paid."""
    rng = np.random.default_rng(seed)
    d, r, rule = 4, int(rng.integers(2, 4)), int(rng.integers(5))
    limits = np.sort(rng.integers(1, 4, r)).tolist()
    disjoint, total = rule < 2, sum(limits) - int(rng.integers(1, 3)) if rule > 2 else None
    if total is not None and total < r:
        total = r
    patterns = Patterns.of(d, r, limits, total, disjoint=disjoint)
    node = tidy(first_teams(patterns), patterns)
    for _ in range(int(rng.integers(0, 4))):
        place = int(rng.integers(len(node)))
        free = node[place].choice.free
        if not free.size:
            continue
        with_it = int(rng.integers(node[place].count + 1))
        parts = split_team(node, place, int(rng.choice(free)), with_it)
        before, node = list(patterns_of(parts, patterns)), tidy(parts, patterns)
        # Nothing is lost by what is concluded, and no more is found than there was.
        if node is None:
            assert not [S for S in before if can_be_orthonormal(S)]
            return
        assert set(before) >= set(patterns_of(node, patterns))
        lost = set(before) - set(patterns_of(node, patterns))
        assert not [S for S in lost if can_be_orthonormal(S)]
    scores = [rng.integers(-1 if disjoint else 0, 5, d).astype(float) for _ in node]
    # What counts once for a team, however many of its components have it.
    once = [rng.integers(0, 4, d) * float(team.count > 1 and not disjoint) for team in node]
    team_of = [place for place, team in enumerate(node) for _ in range(team.count)]
    value = best_pattern_sum(node, TeamsBound(0.0, scores, once), patterns)
    levels = team_cut_levels(TeamsBound(value, scores, once), node, patterns)
    for supports in patterns_of(node, patterns):
        worth = sum(scores[q][list(S)].sum() for q, S in zip(team_of, supports, strict=True))
        for q, bonus in enumerate(once):
            had = set().union(*(S for p, S in zip(team_of, supports, strict=True) if p == q))
            worth += bonus[list(had)].sum()
        assert worth <= value
        for q, S in zip(team_of, supports, strict=True):
            with_it, without = levels[q]
            for i in node[q].choice.free:
                assert worth <= (with_it if i in S else without)[i]


def can_be_orthonormal(supports):
    """No group of components has fewer features than members."""
    return all(
        len(set().union(*group)) >= size
        for size in range(1, len(supports) + 1)
        for group in combinations(supports, size)
    )

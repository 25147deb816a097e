"""Row cones: any multipliers give a bound, and certificates that use them are true.

Correlations, and matrices that are hard on them: near and exact copies, one dimension, features
without variance, clusters. Everything is held against enumeration.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan.progress import Status
from kspan.proofs import CertificateError, verify
from kspan.proofs.check.bounds import Cones, SharedCones, dual_bound, split_bound
from kspan.proofs.check.known import KnownMatrix, KnownVariances
from kspan.proofs.search.cone_relaxation import ConeRelaxation
from kspan.proofs.search.tree_state import Budgets
from tests.effort import examples
from tests.oracles import best_by_enumeration
from tests.proofs.helpers import (
    ROUNDING,
    all_values,
    any_of,
    assert_sandwich,
    choice_of,
    matrix_problem,
    prove,
)

KINDS = (
    "wishart", "near copies", "exact copies", "rank one", "zero variance", "clusters",
    "opposite signs", "identity",
)  # fmt: skip

# Enumeration itself is rounded: an eigenvalue of an 8×8 matrix is off by some u‖A‖.
SLACK = 1e-13

# Every node is relaxed and gets cones of its own when half of the features are gone.
CONES = Budgets(enumerate_cost=0.0, strengthen_gap=0.0)

# Few steps, and cones again whenever a feature is gone: rough ones, and many of them.
ROUGH = replace(CONES, strengthen_iter=25, strengthen_again=0.9, clearly_smaller=0.0)

# Branching alone.
BRANCH = Budgets(enumerate_cost=0.0, strengthen_gap=2.0)


def correlations(rng, d, kind):
    """A correlation matrix, up to features without variance."""
    n = int(rng.integers(2, d + 3))
    X = rng.standard_normal((n, d))
    if kind == "near copies":
        X = X[:, rng.integers(0, max(1, d // 2), d)]
        X = X + 10.0 ** rng.uniform(-9, -1) * rng.standard_normal((n, d))
    elif kind == "exact copies":
        X = X[:, rng.integers(0, max(1, d // 2), d)]
    elif kind == "rank one":
        X = X[:1]
    elif kind == "clusters":
        centres = rng.standard_normal((n, 3))
        X = 0.4 * X + centres[:, np.sort(rng.integers(0, 3, d))]
    elif kind == "opposite signs":
        X = X[:, rng.integers(0, max(1, d // 2), d)] * rng.choice([-1.0, 1.0], d)
        X += 0.1 * rng.standard_normal((n, d))
    A = X.T @ X
    deviations = np.sqrt(np.diagonal(A))
    A = np.eye(d) if kind == "identity" else A / np.outer(deviations, deviations)
    np.fill_diagonal(A, 1.0)
    if kind == "zero variance" and d > 1:
        gone = rng.permutation(d)[: rng.integers(1, d)]
        A[gone] = 0.0
        A[:, gone] = 0.0
    return 0.5 * (A + A.T)


@st.composite
def questions(draw, max_d=8):
    """A matrix, m, a choice with forced and excluded features, and a generator."""
    d = draw(st.integers(1, max_d))
    m = draw(st.integers(1, d))
    k = draw(st.integers(m, d))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    A = correlations(rng, d, draw(st.sampled_from(KINDS)))
    order = rng.permutation(d)
    forced, allowed = np.zeros(d, bool), np.ones(d, bool)
    forced[order[: draw(st.integers(0, k))]] = True
    room = min(d - k, d - int(forced.sum()))
    allowed[order[d - draw(st.integers(0, room)) :]] = False
    return A, m, choice_of(forced, k, allowed), rng


def sizes(rng):
    """A size for a multiplier: much too small, about right, much too large."""
    return 10.0 ** rng.integers(-6, 4)


def random_cones(rng, A):
    """Any cones: some rows without a weight, any β or none, of single or double precision.

    The rows may be those of A, which takes the most from it. Their diagonal must not count.
    """
    d = len(A)
    rows = A * rng.uniform(0, 2, (d, 1)) if rng.random() < 0.5 else rng.standard_normal((d, d))
    rows = rows * (1.0 if rng.random() < 0.5 else sizes(rng))
    rows[rng.random((d, d)) < 0.2] = 0.0
    alpha = rng.uniform(-0.3, 1.0, d) * sizes(rng)
    alpha[rng.random(d) < rng.choice([0.2, 1.0])] = 0.0
    beta = np.empty(0) if rng.random() < 0.3 else rng.standard_normal(d) * sizes(rng)
    dtype = rng.choice([np.float32, np.float64])
    return Cones(rows.astype(dtype), alpha.astype(dtype), beta=beta.astype(dtype))


def good_cones(A, m, choice, n_steps):
    """A factor and cones that were looked for: there a bound has the least to spare."""
    if not choice.has_options or not A.any():
        return np.zeros((len(A), 0)), Cones()
    relax = ConeRelaxation(A, m, choice)
    for _ in range(n_steps):
        relax.step()
    factor, cones = relax.witness()
    return factor, cones.compact(choice.size - 1) if n_steps % 2 else cones


def allowed_part(A, choice):
    """The features that may be chosen, the choice between them, and A there."""
    places = choice.features
    return places, choice.on(places), A[np.ix_(places, places)]


def random_factor(rng, d):
    """A factor of B; often there is none."""
    return rng.standard_normal((d, rng.integers(0, d + 2) // 2)) * np.sqrt(sizes(rng))


def best_of(A, m, choice):
    """The optimum by enumeration."""
    return all_values(A, m, choice.size, choice.include, choice.exclude)[1].max()


def holds(value, best):
    return value >= best - SLACK * max(1.0, abs(best))


def bound_on(A, m, choice, factor, cones, **options):
    """The bound of cones on all features, for the allowed ones."""
    places = choice.features
    known, inside = KnownMatrix.exact(A).on(places), choice.on(places)
    return dual_bound(known, factor[places], m, inside, cones.on(places), **options)


# --- any multipliers


@examples(250)
@given(questions())
def test_dual_bound_of_any_cones(question):
    A, m, choice, rng = question
    factor, cones = random_factor(rng, len(A)), random_cones(rng, A)
    bound = bound_on(A, m, choice, factor, cones)
    assert holds(bound.value, best_of(A, m, choice))
    # The parts add up to it, and supports are bounded one by one.
    places = choice.features
    supports, values = all_values(A, m, choice.size, choice.include, choice.exclude)
    scores = np.full(len(A), np.nan)
    scores[places] = bound.scores
    totals = bound.ky_fan + scores[supports].sum(axis=1)
    assert (totals >= values - SLACK * np.maximum(1.0, np.abs(totals))).all()


@examples(60)
@given(questions(), st.integers(1, 60))
def test_dual_bound_of_good_cones(question, n_steps):
    """Those of an iteration, whole and made small; they beat no support either."""
    A, m, choice, rng = question
    places, inside, part = allowed_part(A, choice)
    factor, cones = good_cones(part, m, inside, n_steps)
    known, every = KnownMatrix.exact(part), np.arange(places.size)
    best = best_of(A, m, choice)
    assert holds(dual_bound(known, factor, m, inside, cones.on(every)).value, best)
    if cones.alpha.size:  # almost right: a little less weight or none, or more of a row
        less = replace(cones, alpha=cones.alpha * rng.uniform(0.9, 1.0, every.size))
        none = replace(cones, alpha=cones.alpha * rng.choice([-1.0, 0.0, 1.0], every.size))
        more = replace(cones, rows=cones.rows * rng.uniform(1.0, 1.1, (every.size, 1)))
        for other in (less, none, replace(none, rows=10 * cones.rows), more):
            assert holds(dual_bound(known, factor, m, inside, other.on(every)).value, best)


@given(questions())
def test_shared_cones_on_some_features(question):
    """On all, on some and on none of the features of a node, in any order."""
    A, m, choice, rng = question
    d, places = len(A), choice.features
    named = rng.permutation(d)[: rng.integers(0, d + 1)]
    shared = SharedCones(named, random_cones(rng, A[np.ix_(named, named)]))
    cones = shared.on(places)
    assert cones.rows.shape == (places.size, places.size)
    assert not cones.alpha[~np.isin(places, named)].any()
    known, inside = KnownMatrix.exact(A).on(places), choice.on(places)
    factor = random_factor(rng, places.size)
    bound = dual_bound(known, factor, m, inside, cones)
    assert holds(bound.value, best_of(A, m, choice))


@given(questions(), st.integers(5, 60))
def test_good_shared_cones_on_a_part(question, n_steps):
    """What a node hands on to nodes with fewer features, and more of them forced."""
    A, m, choice, rng = question
    places, inside, part = allowed_part(A, choice)
    factor, cones = good_cones(part, m, inside, n_steps)
    shared = SharedCones(places, cones if cones.alpha.size else random_cones(rng, part))
    order = rng.permutation(inside.free)
    removed = order[: rng.integers(0, places.size - choice.size + 1)]
    left = np.setdiff1d(np.arange(places.size), removed)
    node = inside.settled(fixed=rng.permutation(left)[:1]) if left.size else inside
    if node.is_empty or int(node.forced.sum()) > node.size:
        node = inside
    node = node.on(left)
    small = part[np.ix_(left, left)]
    bound = dual_bound(KnownMatrix.exact(small), factor[left], m, node, shared.on(places[left]))
    assert holds(bound.value, best_of(small, m, node))


@given(questions())
def test_any_size_bounds_every_number_of_features(question):
    A, m, choice, rng = question
    places = choice.features
    factor, cones = random_factor(rng, len(A)), random_cones(rng, A)
    bound = bound_on(A, m, choice, factor, cones, any_size=True)
    inside, part = choice.on(places), A[np.ix_(places, places)]
    for k in range(max(m, choice.include.size, 1), places.size + 1):
        other = inside.resized(k)
        assert holds(bound.ky_fan + other.best_sum(bound.scores), best_of(part, m, other))


@given(questions(max_d=7), st.integers(10, 60))
def test_any_size_of_good_cones(question, n_steps):
    """Made for one k, with the β of that k: other k need a larger one, and get it."""
    A, m, choice, _ = question
    places, inside, part = allowed_part(A, choice)
    factor, cones = good_cones(part, m, inside, n_steps)
    cones = cones.on(np.arange(places.size))
    bound = dual_bound(KnownMatrix.exact(part), factor, m, inside, cones, any_size=True)
    for k in range(max(m, choice.include.size, 1), places.size + 1):
        other = inside.resized(k)
        assert holds(bound.ky_fan + other.best_sum(bound.scores), best_of(part, m, other))


@examples(150)
@given(questions())
def test_split_bound_of_any_cones(question):
    """Some features relaxed with cones, the others at their variance."""
    A, m, choice, rng = question
    d = len(A)
    inside = np.sort(rng.permutation(d)[: rng.integers(0, d + 1)])
    factor, cones = random_factor(rng, inside.size), random_cones(rng, A[np.ix_(inside, inside)])
    known, everywhere = KnownMatrix.exact(A).on(inside), KnownVariances.exact(np.diagonal(A))
    bound = split_bound(known, everywhere, inside, factor, cones, m, choice)
    assert holds(bound.value, best_of(A, m, choice))
    assert bound.scores.shape == (d,)
    assert bound.value == pytest.approx(bound.ky_fan + choice.best_sum(bound.scores), rel=1e-12)


def test_all_sizes_of_one_matrix():
    """Every m ≤ k ≤ 6, with cones that were looked for."""
    A = correlations(np.random.default_rng(0), 6, "wishart")
    for m in range(1, 7):
        for k in range(m, 7):
            factor, cones = good_cones(A, m, any_of(6, k), 15)
            cones = cones.on(np.arange(6))
            bound = dual_bound(KnownMatrix.exact(A), factor, m, any_of(6, k), cones)
            assert holds(bound.value, best_by_enumeration(A, m, k)), (m, k)


def test_few_entries_are_what_makes_cones_strong():
    """On correlations: the same rows with all entries bound little, and B alone even less."""
    A = correlations(np.random.default_rng(1), 12, "wishart")
    choice, every = any_of(12, 3), np.arange(12)
    factor, cones = good_cones(A, 1, choice, 200)
    known = KnownMatrix.exact(A)
    strong = dual_bound(known, factor, 1, choice, cones.on(every)).value
    for weak in (
        dual_bound(known, factor, 1, choice).value,
        dual_bound(known, factor, 1, choice, cones.on(every), any_size=True).value,
    ):
        assert strong < weak * (1 - 1e-2)


@examples(40)
@given(questions())
def test_small_cones_are_as_good(question):
    """In float32, with a β that covers it, the bound is the same to six digits."""
    A, m, choice, _ = question
    places, inside, part = allowed_part(A, choice)
    factor, cones = good_cones(part, m, inside, 40)
    if not cones.alpha.size:
        return
    small = cones.compact(choice.size - 1)
    assert small.rows.dtype == small.alpha.dtype == small.beta.dtype == np.float32
    known, every = KnownMatrix.exact(part), np.arange(places.size)
    one = dual_bound(known, factor, m, inside, cones.on(every)).value
    two = dual_bound(known, factor, m, inside, small.on(every)).value
    assert two == pytest.approx(one, rel=1e-4, abs=1e-4)


# --- certificates


@st.composite
def problems(draw, max_d=12):
    """A problem of correlations, sometimes with features to include and to exclude."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d = int(rng.integers(3, max_d + 1))
    k = int(rng.integers(1, d))
    m = int(rng.integers(1, k + 1))
    A = correlations(rng, d, draw(st.sampled_from(KINDS)))
    order = rng.permutation(d).tolist()
    include, exclude = order[: rng.integers(0, 2)], order[d - rng.integers(0, 2) :]
    return A, matrix_problem(A, m, k, include, exclude)


@examples(60)
@given(problems(), st.sampled_from(["tight", "exact"]), st.sampled_from([CONES, ROUGH, BRANCH]))
def test_certificates_hold_the_optimum(drawn, level, budgets):
    A, problem = drawn
    certificate = prove(problem, level, budgets=budgets)
    best = assert_sandwich(certificate, problem, A)
    lower, upper = verify(problem, certificate)
    assert lower <= best * (1 + ROUNDING)
    assert upper >= best * (1 - ROUNDING)
    if level == "exact" and best > 0:  # without variance there is nothing to be a share of
        assert certificate.status is Status.OPTIMAL
        assert certificate.lower == pytest.approx(best, rel=2e-6)
    m, choice = problem.n_components, problem.choice
    for path in certificate.path:
        for k in range(max(m, choice.include.size), choice.features.size + 1):
            other = all_values(A, m, k, problem.include, problem.exclude)[1].max()
            assert path.upper_at(choice, k) >= other * (1 - ROUNDING)


@cache
def cone_case(name):
    """A problem, its matrix and a certificate whose tree has shared cones."""
    m, k, level, kind, budgets = {
        "tight": (2, 5, "tight", "wishart", CONES),
        "exact": (2, 5, "exact", "wishart", CONES),
        "clusters": (3, 4, "exact", "clusters", CONES),
        "rough": (2, 6, "exact", "wishart", ROUGH),
    }[name]
    A = correlations(np.random.default_rng(5), 12, kind)
    problem = matrix_problem(A, m, k)
    return problem, A, prove(problem, level, budgets=budgets)


CASES = ("tight", "exact", "clusters", "rough")


def used_cones(certificate):
    """The numbers of shared cones that bounds of the tree refer to."""
    return sorted({w.shared for w in certificate.witness.witnesses if w.shared >= 0})


@pytest.mark.parametrize("name", CASES)
def test_the_trees_here_have_cones(name):
    """Otherwise the forgeries below would forge nothing."""
    problem, _, certificate = cone_case(name)
    assert used_cones(certificate)
    shared = certificate.witness.shared_cones[used_cones(certificate)[0]]
    assert shared.cones.rows.any()
    assert shared.cones.alpha.max() > 0
    assert shared.cones.rows.dtype == np.float32
    verify(problem, certificate)


def with_cones_changed(certificate, index, **parts):
    """The certificate with other arrays in one of its shared cones, signed again."""
    tree = certificate.witness
    shared = list(tree.shared_cones)
    shared[index] = replace(shared[index], cones=replace(shared[index].cones, **parts))
    return replace(certificate, witness=replace(tree, shared_cones=shared), digest="")


def refused_or_true(problem, A, forged):
    """Whether a forgery is refused; if not, it must be true."""
    try:
        _, upper = verify(problem, forged)
    except CertificateError:
        return True
    best = all_values(A, problem.n_components, problem.n_features_to_select)[1].max()
    assert upper >= best * (1 - ROUNDING)
    assert forged.upper >= best * (1 - ROUNDING)
    return False


@examples(60)
@given(st.data())
def test_a_changed_digit_in_the_cones(data):
    """A digit of one entry, at any place: the first or the last one, or the sign."""
    problem, A, certificate = cone_case(data.draw(st.sampled_from(CASES)))
    index = data.draw(st.sampled_from(used_cones(certificate)))
    cones = certificate.witness.shared_cones[index].cones
    part = data.draw(st.sampled_from(["rows", "alpha", "beta"]))
    array = getattr(cones, part).copy()
    place = data.draw(st.integers(0, array.size - 1))
    change = data.draw(st.sampled_from([0.0, -1.0, 0.5, 0.9, 1 - 1e-6, 1 + 1e-6, 1.1, 10.0, 1e6]))
    array.flat[place] *= np.float32(change)
    refused_or_true(problem, A, with_cones_changed(certificate, index, **{part: array}))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("share", [0.0, 0.5, 2.0, -1.0])
def test_cones_of_another_size(name, share):
    """All weights, or all rows, times a number: what was claimed no longer follows."""
    problem, A, certificate = cone_case(name)
    refused = 0
    for index in used_cones(certificate)[:3]:
        cones = certificate.witness.shared_cones[index].cones
        for part in ("rows", "alpha"):
            array = np.float32(share) * getattr(cones, part)
            refused += refused_or_true(
                problem, A, with_cones_changed(certificate, index, **{part: array})
            )
    assert refused > 0


@pytest.mark.parametrize("name", CASES)
def test_beta_may_be_left_out_but_not_lowered(name):
    """β is computed again: zeros and negative numbers, or none at all, change nothing unsound."""
    problem, A, certificate = cone_case(name)
    for index in used_cones(certificate)[:2]:
        beta = certificate.witness.shared_cones[index].cones.beta
        for other in (beta[:0], 0 * beta, -beta, 0.5 * beta):
            refused_or_true(problem, A, with_cones_changed(certificate, index, beta=other))
        larger = with_cones_changed(certificate, index, beta=100 * beta)
        refused_or_true(problem, A, larger)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("part", ["rows", "alpha", "beta"])
def test_cones_that_are_no_numbers(part, bad):
    problem, _, certificate = cone_case("tight")
    index = used_cones(certificate)[0]
    array = getattr(certificate.witness.shared_cones[index].cones, part).copy()
    array.flat[1] = bad
    with pytest.raises(CertificateError, match="finite"):
        verify(problem, with_cones_changed(certificate, index, **{part: array}))


def test_cones_of_other_features():
    """Named twice, out of range, or fewer than there are rows; cones that are not there."""
    problem, A, certificate = cone_case("tight")
    tree = certificate.witness
    index = used_cones(certificate)[0]
    shared = tree.shared_cones[index]
    for features, message in (
        (np.zeros_like(shared.features), "named twice"),
        (shared.features + 12, "out of range"),
        (shared.features.astype(float), "not feature numbers"),
    ):
        others = list(tree.shared_cones)
        others[index] = replace(shared, features=features)
        forged = replace(certificate, witness=replace(tree, shared_cones=others), digest="")
        with pytest.raises(CertificateError, match=message):
            verify(problem, forged)
    others = list(tree.shared_cones)
    others[index] = replace(shared, features=shared.features[::-1])
    forged = replace(certificate, witness=replace(tree, shared_cones=others), digest="")
    refused_or_true(problem, A, forged)
    forged = replace(certificate, witness=replace(tree, shared_cones=[]), digest="")
    with pytest.raises(CertificateError, match="there are no shared cones"):
        verify(problem, forged)

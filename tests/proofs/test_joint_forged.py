"""Forged proofs about orthonormal components: `verify` refuses them, or what follows is true."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance, certify, solve, verify
from kspan.problem import Patterns, StiefelProblem
from kspan.progress import Status
from kspan.proofs import CertificateError
from kspan.proofs.check.bounds import Cones
from kspan.proofs.check.known import data_scale
from kspan.proofs.check.pattern_tree import PatternRecord, PatternTreeWitness, TeamCut
from kspan.proofs.check.teams import TeamPart, TeamsWitness
from kspan.proofs.check.tree import NodeWitness, Record, Reduction, TreeWitness
from tests.effort import examples
from tests.proofs.forging import (
    NOTHING,
    claiming_little,
    forged,
    refused_or_true,
    tree_factor,
    with_junk,
)
from tests.proofs.helpers import changed


def counted(A, r, *counts, **rules):
    patterns = Patterns.of(len(A), r, *counts, **rules)
    return StiefelProblem(as_covariance(A, kind="covariance"), r, patterns=patterns)


VARIANCES = np.array([3.0, 2.5, 1.0, 0.1])


def diagonal_case(kind):
    """The two largest variances are the optimum, 5.5; and a witness that says no more than that."""
    A, every = np.diag(VARIANCES), np.arange(4)
    if kind == "shared":
        problem = RowSparseProblem(as_covariance(A, kind="covariance"), 2, 2)
        witness = TreeWitness(data_scale(problem), [], [NodeWitness(every, None)], [])
    else:
        problem = counted(A, 2, 1)
        scale = data_scale(problem)
        part = TeamPart(every, np.diag(np.sqrt(VARIANCES / scale)), Cones())
        witness = PatternTreeWitness(scale, [], [TeamsWitness(np.zeros((4, 0)), [part])])
    honest = certify(problem, solve(problem, random_state=0), "fast")
    return problem, honest, witness


def root(kind, cuts):
    """A tree of one node, with cuts (removed features, level)."""
    if kind == "shared":
        reductions = [Reduction(0, np.array(gone), NOTHING, level) for gone, level in cuts]
        return Record(-1, -1, False, reductions, "bound", 0, 100.0)
    removed = [TeamCut(0, [np.array(gone)], [NOTHING], level) for gone, level in cuts]
    return PatternRecord(-1, removed, "bound", 0, 100.0)


@pytest.mark.parametrize("kind", ["shared", "own"])
def test_what_a_later_cut_settles_is_about_what_the_first_one_leaves(kind):
    """Without the best feature the second one is not worth having: that says nothing about it."""
    problem, honest, witness = diagonal_case(kind)
    tree = replace(witness, records=[root(kind, [([0], 100.0), ([1], 5.2 / witness.scale)])])
    loose = forged(honest, witness=tree, upper=100.0 * witness.scale)
    verify(problem, loose)
    with pytest.raises(CertificateError, match="proved_out"):
        verify(problem, replace(loose, proved_out=np.array([1]), digest=""))


@pytest.mark.parametrize("kind", ["shared", "own"])
def test_cuts_of_what_is_cut_off_are_not_looked_at(kind):
    """So that there must be none."""
    problem, honest, witness = diagonal_case(kind)
    cuts = [([0, 1, 2, 3], 100.0), ([0, 1], -5.0)]
    tree = replace(witness, records=[root(kind, cuts)])
    false = forged(honest, witness=tree, upper=100.0 * witness.scale, proved_out=np.arange(2))
    with pytest.raises(CertificateError, match="nothing left to cut"):
        verify(problem, false)


def test_a_root_without_a_witness_has_no_bound():
    problem, honest, witness = diagonal_case("own")
    for kind in ("open", "bound"):
        tree = replace(witness, records=[PatternRecord(-1, kind=kind, bound=1.0)])
        with pytest.raises(CertificateError, match="only inf follows"):
            verify(problem, forged(honest, witness=tree))


def test_a_vector_of_both_signs_may_be_the_best():
    """A search for nonnegative vectors may leave such supports out; this one may not."""
    A = np.array([[2.0, -1.5, 0.0], [-1.5, 2.0, 0.0], [0.0, 0.0, 1.9]])  # 3.5 on the first two
    problem = counted(A, 1, 2)
    records = [
        Record(-1, -1, False, kind="branched", children=[1, 2]),
        Record(0, 0, True, kind="branched", children=[3, 4]),
        Record(0, 0, False, kind="enumerated", bound=9.0),
        Record(1, 1, True, kind="void", bound=9.0),
        Record(1, 1, False, kind="enumerated", bound=9.0),
    ]
    tree = TreeWitness(data_scale(problem), records, [NodeWitness(np.arange(3), None)], [])
    one, support = np.ones((1, 1)), np.array([0])
    honest = certify(problem, solve(problem, random_state=0), "fast")
    false = forged(
        honest, witness=tree, upper=2.5, lower=problem.claimed_value(support, one),
        support=support, weights=one, proved_in=NOTHING, proved_out=NOTHING,
    )  # fmt: skip
    with pytest.raises(CertificateError, match="not void"):
        verify(problem, false)


def test_certificates_without_a_choice():
    problem, honest, _ = diagonal_case("own")
    for junk in (None, "text", 3):
        with pytest.raises(CertificateError):
            verify(problem, forged(honest, choice=junk))


def nearly_orthonormal():
    """Three vectors that are orthonormal to 1e-9, and better than all that are so.

    u = (1, 0, x, -x, 0), v = (0, 1, y, 0, z), w = (0, 0, s, s, z'), s² = 1/2: v'w = 0 makes y of
    the size of zz', so u'v = 0 makes one of x, z and z' zero. A product of 1e-9 lets all three be
    1e-3, for which A gives 1e-6 each.
    """
    t, s = 8.8e-4, np.sqrt(0.5)
    A = np.diag([1.0, 1.0, 0.5, 0.5, 3 * t * t])
    A[2, 3] = A[3, 2] = 0.5
    apart = np.array([0.0, 0.0, s, -s, 0.0])
    A += 2 * t * t * np.outer(apart, apart)
    A[0] += t * apart
    A[:, 0] += t * apart
    A[1, 4] = A[4, 1] = t
    A[2:4, 4] = A[4, 2:4] = t * s
    W = np.array([[1, 0, 0], [0, 1, 0], [t * s, -t * t / s, s], [-t * s, 0, s], [0, t, t]])
    return counted(A, 3, 3), W / np.linalg.norm(W, axis=0)


def test_nearly_orthonormal_is_not_enough():
    problem, W = nearly_orthonormal()
    A = problem.covariance.submatrix(np.arange(5))
    assert np.abs(W.T @ W - np.eye(3)).max() < 1e-9
    found = solve(problem, random_state=0)
    U = found.loadings
    best = float(np.trace(U.T @ A @ U))
    assert best == pytest.approx(3 + 2 * 8.8e-4**2, abs=1e-9)  # two of the three
    assert np.trace(W.T @ A @ W) > best + 7e-7
    assert problem.claimed_value(np.arange(5), W) < best
    loose = certify(problem, found, "fast")
    assert loose.lower == pytest.approx(best, abs=1e-11)
    false = forged(loose, support=np.arange(5), weights=W, lower=best + 5e-7)
    with pytest.raises(CertificateError, match="lower"):
        verify(problem, false)


def test_what_rounding_leaves_of_a_zero_does_no_harm():
    A = np.diag([3.0, 2.0, 1.0])
    problem = counted(A, 2, 2)
    W = np.array([[1.0, 0.0], [0.0, 1.0], [1e-17, -1e-15]])
    assert problem.claimed_value(np.arange(3), W) == pytest.approx(5.0, abs=1e-12)


# --- changes anywhere

# Features, components, seed and counts: small trees with all that a tree can have.
TREES = {
    "alike": (7, 2, 0, {"n_nonzero_coefs": 3}),
    "unlike": (7, 2, 4, {"n_nonzero_coefs": [3, 2]}),
    "total": (6, 2, 0, {"n_nonzero_total": 5}),
    "disjoint": (7, 2, 3, {"n_nonzero_coefs": 3, "disjoint": True}),
    "three": (6, 3, 5, {"n_nonzero_coefs": 2}),
}


@cache
def small_tree(name):
    d, r, seed, counts = TREES[name]
    F = tree_factor(d, seed)
    problem = counted(F.T @ F, r, **counts)
    honest = certify(problem, solve(problem, random_state=0), "exact")
    assert honest.status is Status.OPTIMAL
    verify(problem, honest)
    return claiming_little(problem, honest)


def test_the_trees_here_have_all_that_a_tree_can_have():
    trees = [small_tree(name)[2].witness for name in TREES]
    records = [record for tree in trees for record in tree.records]
    cuts = [cut for record in records for cut in record.cuts]
    assert {record.kind for record in records} == {"branched", "bound", "void"}
    assert any(part.size for cut in cuts for part in cut.fixed)
    assert any(part.size for cut in cuts for part in cut.removed)
    assert any(witness.prices.size for tree in trees for witness in tree.witnesses)
    assert any(len(witness.parts) == 3 for tree in trees for witness in tree.witnesses)


@examples(300)
@given(st.data())
def test_junk_anywhere_gives_a_clear_error_or_a_true_bound(data):
    problem, best, certificate = small_tree(data.draw(st.sampled_from(sorted(TREES))))
    refused_or_true(problem, best, certificate, with_junk(data, certificate.witness))


@pytest.mark.parametrize("name", TREES)
def test_lists_that_are_shorter_or_in_another_order(name):
    """Children, cuts, the parts of teams, what is removed and fixed, records and witnesses."""
    problem, best, certificate = small_tree(name)
    tree = certificate.witness

    def try_lists(owner, path):
        for field in ("records", "witnesses", "children", "cuts", "parts", "removed", "fixed"):
            items = getattr(owner, field, None)
            if not isinstance(items, list) or not items:
                continue
            for other in (items[1:], items[:-1], items[::-1], [*items, items[0]]):
                forgery = changed(tree, (*path, field), other)
                refused_or_true(problem, best, certificate, forgery)
            for i, item in enumerate(items):
                try_lists(item, (*path, field, i))

    try_lists(tree, ())
    for i, record in enumerate(tree.records):
        for j, cut in enumerate(record.cuts):
            swapped = replace(cut, removed=cut.fixed, fixed=cut.removed)
            forgery = changed(tree, ("records", i, "cuts", j), swapped)
            refused_or_true(problem, best, certificate, forgery)


def test_no_complaint_about_empty_lists_of_a_strange_kind():
    problem, _, certificate = small_tree("alike")
    tree = certificate.witness
    place = next(i for i, record in enumerate(tree.records) if record.cuts)
    empty = [np.empty(0, dtype=complex) for _ in tree.records[place].cuts[0].fixed]
    changes = changed(tree, ("records", place, "cuts", 0, "fixed"), empty)
    refused_or_true(problem, 0.0, certificate, changes)

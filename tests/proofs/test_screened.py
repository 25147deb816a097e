"""Proofs in two parts: what one witness settles, and what another says of the rest."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.soundness.examine import examine
from benchmarks.soundness.problems import Case
from kspan import RowSparseProblem, as_covariance, certify, solve, verify
from kspan.proofs import CertificateError
from kspan.proofs.check.row_sums import RowWitness
from kspan.proofs.check.screened import ScreenedWitness
from kspan.proofs.check.witnesses import TraceWitness
from tests.effort import examples
from tests.oracles import best_by_enumeration, draw_problem


@examples(60)
@given(st.data(), st.integers(0, 2**32 - 1))
def test_any_two_parts_bound_the_optimum(data, seed):
    """Whatever is removed: supports that have it are bounded by its level."""
    A, problem = draw_problem(data, seed, 7)
    problem = problem.changed(n_components=1)
    rng = np.random.default_rng(seed)
    free = problem.choice.free
    if free.size == 0:
        return
    removed = np.sort(rng.choice(free, rng.integers(1, free.size + 1), replace=False))
    first = RowWitness(10.0 ** rng.uniform(-1, 1, problem.choice.features.size))
    level = max(float(first.levels(problem)[removed].max()), 0.0)
    for inner in (TraceWitness(), RowWitness()):
        upper = ScreenedWitness(first, removed, level, inner).evaluate(problem)
        best = best_by_enumeration(
            A, 1, problem.choice.size, problem.choice.include, problem.choice.exclude
        )
        assert upper >= best * (1 - 1e-12)


def wide(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((25, 40))
    X[:, :6] += 3 * rng.standard_normal((25, 1))
    problem = RowSparseProblem(as_covariance(X, scale=True), 1, 5)
    return problem, certify(problem, solve(problem, random_state=0), "exact")


def test_a_standardised_cluster_is_proved_by_what_is_left():
    problem, certificate = wide()
    assert certificate.status.value == "optimal"
    assert isinstance(certificate.witness, ScreenedWitness | RowWitness)
    verify(problem, certificate)


def test_forgeries():
    problem, certificate = wide()
    features = np.setdiff1d(np.arange(40), certificate.support)
    first = RowWitness()
    level = float(first.levels(problem)[features].max())
    honest = ScreenedWitness(first, features, level, TraceWitness())
    good = replace(certificate, witness=honest, upper=5.0001, digest="", proved_out=features[:0])
    verify(problem, replace(good, status=type(good.status).BOUNDED, digest=""))
    for witness, message in (
        (replace(honest, level=0.9 * level), "level"),
        (replace(honest, removed=features[:0]), "removes nothing"),
        (replace(honest, removed=np.array([40])), "range"),
        (replace(honest, rest=None), "second part"),
        (replace(honest, first=TraceWitness()), "settles no features"),
        (replace(honest, first=RowWitness(np.ones(3))), "one weight"),
        (replace(honest, first=RowWitness(np.full(40, np.nan))), "fair size"),
    ):
        false = replace(good, witness=witness, status=type(good.status).BOUNDED, digest="")
        with pytest.raises(CertificateError, match=message):
            verify(problem, false)


def test_what_is_forced_is_never_removed():
    A = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.1], [0.1, 0.1, 1.0]])
    problem = RowSparseProblem(as_covariance(A, kind="covariance"), 1, 2, include=[2])
    witness = ScreenedWitness(RowWitness(), np.array([2]), 2.0, TraceWitness())
    with pytest.raises(CertificateError, match="may not be"):
        witness.evaluate(problem)


def test_what_a_sketch_has_not_seen_may_be_in_any_feature():
    """Found by the fuzzer: a feature was called proved out that is optimal."""
    data = np.array([[-20, -5, -20], [-6, -4, -4], [20, -2, -6], [40, -9, 8], [-30, -6, 5]]) / 10
    case = Case("sketch", data, m=1, k=1, scale=True, form="sketch")
    assert examine(case, "exact", seed=338048766).wrong == []

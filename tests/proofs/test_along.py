"""Proofs of one k after another along a split of the features, and their witness for all k."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan import RowSparseProblem, as_covariance, sparsity_path, verify
from kspan.choosing_k import SparsityPath
from kspan.progress import Monitor, Status
from kspan.proofs import Certificate, CertificateError
from kspan.proofs.check.bounds import Cones
from kspan.proofs.check.known import KnownMatrix, KnownVariances
from kspan.proofs.check.witnesses import SplitPathWitness, SplitWitness
from kspan.proofs.search import along as along_module
from kspan.proofs.search.along import Along
from kspan.solvers.rowsparse.moves import polish
from tests.effort import examples
from tests.oracles import best_by_enumeration
from tests.proofs.helpers import ROUNDING, changed, leaves, matrix_problem, random_psd

KINDS = ("gaussian", "rank deficient", "ties", "diagonal", "duplicated columns", "mixed scales")


def sizes_of(problem, most):
    """All k that a witness of a problem bounds."""
    return range(max(problem.n_components, problem.include.size), most + 1)


def enumerated(A, problem, k):
    return best_by_enumeration(A, problem.n_components, k, problem.include, problem.exclude)


@st.composite
def split_problems(draw, max_d=9):
    """A matrix, a problem, the largest k of a witness, and a source of random numbers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d, m = draw(st.integers(2, max_d)), draw(st.integers(1, 3))
    m = min(m, d)
    A = random_psd(rng, d, draw(st.sampled_from(KINDS)))
    A = A * np.outer(*[rng.uniform(0.2, 2, d)] * 2)
    k = draw(st.integers(m, d))
    order = rng.permutation(d)
    include = order[: draw(st.integers(0, min(2, k)))].tolist()
    exclude = order[d - draw(st.integers(0, min(2, d - k, d - len(include)))) :].tolist()
    exclude = exclude if d - k else []
    problem = matrix_problem(A, m, k, include, exclude)
    return A, problem, draw(st.integers(k, problem.choice.largest_size)), rng


def random_split(rng, problem, scale):
    """A witness that nobody looked for: any features inside, any factor, any cones."""
    d = problem.n_features
    inside = np.sort(rng.permutation(d)[: rng.integers(0, d + 1)])
    n, size = inside.size, 10 ** rng.uniform(-2, 1)
    factor = size * rng.standard_normal((n, int(rng.integers(0, n + 1))))
    rows = size * rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.6)
    kind = rng.integers(3)
    cones = (
        Cones() if kind == 0
        else Cones(rows, rng.uniform(0, 2, n)) if kind == 1
        else Cones(rows, rng.uniform(0, 2, n), beta=rng.uniform(0, 2, n))
    )  # fmt: skip
    return SplitWitness(scale, inside, factor, cones)


def path_of(problem, split, most):
    """The witness for all k up to some, as a proof keeps it."""
    known = KnownMatrix.of(problem, split.inside, split.scale)
    everywhere = KnownVariances.of(problem, split.scale)
    found = SplitPathWitness.of(problem, split, most, known, everywhere)
    return found.with_room(everywhere, problem.n_components)


@examples(250)
@given(split_problems())
def test_any_witness_bounds_every_k_that_it_names(drawn):
    A, problem, most, rng = drawn
    scale = KnownVariances.of(problem).scale
    path = path_of(problem, random_split(rng, problem, scale), most)
    path.check(problem, "witness")
    assert path.reach(problem.choice) == most
    for k in sizes_of(problem, most):
        assert path.upper_at(problem.choice, k) >= enumerated(A, problem, k) * (1 - ROUNDING)


def proved_along(A, problems, most, n_inside, monkeypatch, monitor=None):
    """Certificates of problems, one after another, with so few features inside."""
    monkeypatch.setattr(along_module, "LEAST_INSIDE", n_inside)
    points = [problem.refit(problem.choice.select(np.diagonal(A))) for problem in problems]
    monitor = monitor or Monitor("test")
    along = Along(
        problems[-1], [point.support for point in points], heuristic=polish, monitor=monitor
    )
    return along, [
        along.prove(problem, point, most) for problem, point in zip(problems, points, strict=True)
    ]


@examples(50)
@given(split_problems(max_d=12), st.integers(1, 8))
def test_what_is_looked_for_bounds_every_k(drawn, n_inside):
    A, problem, most, rng = drawn
    problem.covariance.ensure_psd()
    ks = sorted({problem.choice.size, int(rng.integers(problem.choice.size, most + 1))})
    with pytest.MonkeyPatch.context() as patch:
        _, found = proved_along(A, [problem.at(k) for k in ks], most, n_inside, patch)
    best = {k: enumerated(A, problem, k) for k in sizes_of(problem, most)}
    for k, certificate in zip(ks, found, strict=True):
        assert certificate.lower <= best[k] * (1 + ROUNDING)
        assert certificate.upper >= best[k] * (1 - ROUNDING)
        verify(problem.at(k), certificate)
        for other in range(min(best), certificate.reach + 1):
            assert certificate.upper_at(other) >= best[other] * (1 - ROUNDING)


def uneven(rng, d=40):
    """A covariance of which few features have most of the variance."""
    F = rng.standard_normal((d, d)) * (np.arange(1, d + 1) ** -0.7)[:, None]
    return F @ F.T


def test_a_witness_says_more_than_variances(rng, monkeypatch):
    A = uneven(rng)
    problems = [matrix_problem(A, 2, k) for k in (6, 9)]
    along, found = proved_along(A, problems, 12, 25, monkeypatch)
    assert [certificate.reach for certificate in found] == [12, 12]
    assert along.split.inside.size == 25
    assert sorted(along.snapshots) == [6, 9]
    variances = np.sort(np.diagonal(A))[::-1]
    for k in (4, 8, 12):
        assert min(one.upper_at(k) for one in found) < 0.9 * variances[:k].sum()
    with pytest.raises(ValueError, match="No witness for k=13"):
        found[0].upper_at(13)
    # The k that is proved reaches at least that far itself.
    _, own = proved_along(A, problems[1:], 3, 25, monkeypatch)
    assert with_path(own[0]).most == own[0].reach == 9


def test_a_proof_along_the_way_stops_when_told(rng, monkeypatch):
    A = uneven(rng)
    reports = []

    def callback(progress):
        reports.append(progress)
        return True

    _, found = proved_along(
        A, [matrix_problem(A, 2, 6)], 9, 25, monkeypatch, Monitor("test", callback)
    )
    assert len(reports) == 1
    assert found[0].status is Status.STOPPED
    verify(matrix_problem(A, 2, 6), found[0])
    _, late = proved_along(
        A, [matrix_problem(A, 2, 6)], 9, 25, monkeypatch, Monitor("test", None, 1e-9)
    )
    assert late[0].status is Status.TIME_LIMIT
    verify(matrix_problem(A, 2, 6), late[0])


# --- paths of wide data


@pytest.fixture(scope="module")
def wide():
    """Samples of many features of uneven variances, their path, and the problem of a k."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((30, 600)) * np.arange(1, 601) ** -0.6
    X += rng.standard_normal((30, 3)) @ rng.standard_normal((3, 600)) * np.arange(1, 601) ** -0.5
    path = sparsity_path(X, 2, ks=range(2, 41, 2), random_state=0)
    covariance = as_covariance(X)
    return path, lambda k: RowSparseProblem(covariance, 2, int(k))


def with_path(certificate):
    """The witness for all k of a certificate; there is one."""
    (found,) = certificate.path
    assert isinstance(found, SplitPathWitness)
    return found


def test_certificates_along_a_path_are_accepted(wide, tmp_path):
    path, problem_at = wide
    assert len(path.certificates) >= 3
    path.save(tmp_path / "path.npz")
    loaded = SparsityPath.load(tmp_path / "path.npz")
    for certificate, again in zip(path.certificates, loaded.certificates, strict=True):
        problem = problem_at(certificate.n_features_to_select)
        with_path(certificate)
        assert verify(problem, again) == pytest.approx(verify(problem, certificate), rel=1e-14)
        assert again.digest == certificate.digest
    one = path.certificates[-1]
    one.save(tmp_path / "one.npz")
    alone = Certificate.load(tmp_path / "one.npz")
    assert alone.upper_at(5) == one.upper_at(5)
    assert alone.reach == one.reach == with_path(one).most == 40


def test_beyond_its_reach_a_certificate_says_nothing(wide):
    first = wide[0].certificates[0]
    reach = first.reach
    assert first.n_features_to_select <= reach == with_path(first).most < 40
    assert first.upper_at(reach) >= first.upper_at(reach - 1)
    with pytest.raises(ValueError, match=f"No witness for k={reach + 1}"):
        first.upper_at(reach + 1)
    with pytest.raises(ValueError, match="must be between"):
        first.upper_at(601)


def forged(certificate, **changes):
    """A certificate with another path witness, and a digest that fits."""
    return replace(certificate, path=[replace(with_path(certificate), **changes)], digest="")


def with_split(certificate, **changes):
    return forged(certificate, split=replace(with_path(certificate).split, **changes))


def test_a_changed_witness_is_refused(wide):
    path, problem_at = wide
    one = path.certificates[len(path.certificates) // 2]
    problem, honest = problem_at(one.n_features_to_select), with_path(one)
    verify(problem, forged(one))
    split, largest = honest.split, int(np.argmax(honest.scores))
    lower = honest.scores.copy()
    lower[largest] *= 1 - 1e-6
    others = np.setdiff1d(np.arange(600), split.inside)
    moved = np.sort(np.append(split.inside[:-1], others[0]))
    claims = {
        "a score": forged(one, scores=lower),
        "too few scores": forged(one, scores=honest.scores[:-1]),
        "scores in singles": forged(one, scores=honest.scores.astype(np.float32)),
        "the sum": forged(one, ky_fan=honest.ky_fan - 1e-6 * abs(honest.ky_fan) - 1e-9),
        "no sum": forged(one, ky_fan=np.nan),
        "more than all": forged(one, most=601),
        "fewer than m": forged(one, most=1),
        "no number": forged(one, most=True),
        "half a number": forged(one, most=10.5),
        "another factor": with_split(one, factor=0.9 * split.factor),
        "no factor": with_split(one, factor=split.factor[:, :0]),
        "another scale": with_split(one, scale=0.5 * split.scale),
        "features moved": with_split(one, inside=moved),
        "features twice": with_split(one, inside=split.inside[[0, *range(split.inside.size - 1)]]),
        "no cones": with_split(one, cones=Cones()),
    }
    accepted = []
    for name, claim in claims.items():
        with suppress(CertificateError):
            verify(problem, claim)
            accepted.append(name)
    assert accepted == []
    with pytest.raises(CertificateError, match="digest"):
        verify(problem, replace(forged(one, scores=lower), digest=one.digest))


def test_a_number_that_is_too_large_for_the_cones_is_refused(wide):
    """Rows of P have more entries then, and the same cones cost more."""
    path, problem_at = wide
    one = path.certificates[0]
    assert with_path(one).split.cones.rows.any()
    most = with_path(one).most
    with pytest.raises(CertificateError, match="at k="):
        verify(problem_at(one.n_features_to_select), forged(one, most=most + 100))


@examples(100)
@given(split_problems(max_d=7), st.data())
def test_whatever_is_changed_is_refused_or_true(drawn, data):
    A, problem, most, rng = drawn
    scale = KnownVariances.of(problem).scale
    honest = path_of(problem, random_split(rng, problem, scale), most)
    place, value = data.draw(st.sampled_from(list(leaves(honest))))
    factor = data.draw(st.sampled_from([0.0, 0.5, 0.999, 1.001, 2.0, -1.0]))
    new = value + (factor > 1) - (factor < 1) if place == ("most",) else value * factor
    if place == ("split", "inside"):
        new = np.sort(rng.permutation(problem.n_features)[: value.size])
    claimed = changed(honest, place, new)
    try:
        claimed.check(problem, "witness")
    except (CertificateError, FloatingPointError):
        return
    for k in sizes_of(problem, claimed.most):
        assert claimed.upper_at(problem.choice, k) >= enumerated(A, problem, k) * (1 - 1e-8)

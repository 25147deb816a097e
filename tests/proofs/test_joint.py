"""Proofs about orthonormal components with supports of their own, against enumeration."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from kspan import StiefelSparsePCA, as_covariance, certify, solve, verify
from kspan.datasets import load_pitprops
from kspan.problem import Patterns, StiefelProblem
from kspan.proofs import Certificate, CertificateError
from kspan.proofs.check.bounds import Cones
from kspan.proofs.check.known import KnownMatrix
from kspan.proofs.check.teams import (
    TeamPart,
    TeamsWitness,
    first_teams,
    split_team,
    team_cut_levels,
    teams_bound,
    tidy,
)


def matrix(kind: str, d: int, seed: int) -> np.ndarray:
    """Return a covariance of one of several kinds."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d + 2, d)) @ np.diag(rng.uniform(0.3, 2, d))
    if kind == "copies":
        X[:, 1] = X[:, 0]
        X[:, 3] = -X[:, 2]
    if kind == "constant":
        X[:, 2] = 0.0
    A = np.cov(X.T)
    if kind == "correlation":
        s = np.sqrt(np.diag(A))
        A = A / s / s[:, None]
    if kind == "ties":
        A = np.eye(d) + 0.5
    return {"huge": 1e120, "tiny": 1e-120}.get(kind, 1.0) * A


KINDS = ("covariance", "correlation", "copies", "constant", "ties", "huge", "tiny")
HERE = (("covariance", [3, 2]), ("copies", [3, 2]))


def disjoint_optimum(A: np.ndarray, patterns: Patterns) -> float:
    """Return the optimum of disjoint supports: every feature goes to one component, or to none."""
    d, r = patterns.n_features, patterns.n_components
    values: dict[tuple[int, ...], float] = {}
    best = 0.0
    for owners in product(range(r + 1), repeat=d):
        supports = [tuple(i for i in range(d) if owners[i] == t) for t in range(r)]
        mask = np.array([[i in S for S in supports] for i in range(d)])
        if patterns.objection(mask) is not None:
            continue
        total = 0.0
        for S in supports:
            if S not in values:
                values[S] = float(np.linalg.eigvalsh(A[np.ix_(S, S)])[-1])
            total += values[S]
        best = max(best, total)
    return best


def best_of_pairs(A: np.ndarray, S: tuple[int, ...], T: tuple[int, ...]) -> float:
    """Return a value that two orthonormal vectors on S and T reach, as large as a grid finds.

    For a fixed u the best v is an eigenvector on T without the direction of u: one alternates
    between both from many starts.
    """
    d, best = len(A), 0.0
    rng = np.random.default_rng(0)
    on_S, on_T = np.eye(d)[:, S], np.eye(d)[:, T]

    def best_without(basis: np.ndarray, x: np.ndarray) -> np.ndarray | None:
        inside = basis.T @ x
        if np.linalg.norm(inside) > 1e-12:
            q = np.linalg.svd(inside[None])[2][1:].T  # all that is orthogonal to it
            if not q.shape[1]:
                return None
            basis = basis @ q
        return basis @ np.linalg.eigh(basis.T @ A @ basis)[1][:, -1]

    starts = [on_S @ v for v in (*np.eye(len(S)), *rng.standard_normal((6, len(S))))]
    for u in starts:
        u = u / np.linalg.norm(u)
        for _ in range(8):
            v = best_without(on_T, u)
            if v is None:
                break
            best = max(best, float(u @ A @ u + v @ A @ v))
            u = best_without(on_S, v)
            if u is None:
                break
    return best


def reached(A: np.ndarray, patterns: Patterns) -> float:
    """Return the best value of two components that enumeration of all supports reaches."""
    d, (a, b) = patterns.n_features, patterns.limits
    return max(
        best_of_pairs(A, S, T)
        for S in combinations(range(d), int(a))
        for T in combinations(range(d), int(b))
    )


def problem_of(A: np.ndarray, r: int, **counts) -> StiefelProblem:
    covariance = as_covariance(A, kind="covariance")
    return StiefelProblem(covariance, r, patterns=Patterns.of(len(A), r, **counts))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("r", "counts"),
    [
        (2, {"n_nonzero_coefs": 2}),
        pytest.param(2, {"n_nonzero_coefs": [3, 1]}, marks=pytest.mark.slow),
        (3, {"n_nonzero_coefs": 2}),
        pytest.param(2, {"n_nonzero_total": 4}, marks=pytest.mark.slow),
    ],
)
def test_disjoint_supports_are_proved_to_be_what_enumeration_finds(kind, r, counts):
    A = matrix(kind, 6, 1)
    problem = problem_of(A, r, disjoint=True, **counts)
    optimum = disjoint_optimum(A, problem.patterns)
    solution = solve(problem, random_state=0)
    for level in ("fast", "tight", "exact"):
        certificate = certify(problem, solution, level)
        assert certificate.upper >= optimum * (1 - 1e-12)
        assert certificate.lower <= optimum * (1 + 1e-12)
        verify(problem, certificate)
    assert certificate.status.value == "optimal"


# All kinds meet a sharper oracle in `test_joint_enumeration.py`.
@pytest.mark.parametrize(
    ("kind", "counts"),
    [
        pytest.param(kind, counts, marks=[] if case in HERE else [pytest.mark.slow])
        for case in product(KINDS, ([3, 3], [3, 2]))
        for kind, counts in [case]
    ],
)
def test_no_pair_of_components_exceeds_an_upper_bound(kind, counts):
    A = matrix(kind, 5, 2)
    problem = problem_of(A, 2, n_nonzero_coefs=counts)
    value = reached(A, problem.patterns)
    solution = solve(problem, random_state=0)
    for level in ("fast", "tight", "exact"):
        certificate = certify(problem, solution, level)
        assert certificate.upper >= value * (1 - 1e-9)
        verify(problem, certificate)
    assert certificate.lower >= value * (1 - 1e-6)


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))]
)
@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("counts", [{"n_nonzero_coefs": 2}, {"n_nonzero_total": 4}])
def test_any_witness_gives_a_bound(seed, disjoint, counts):
    """On every node, with and without cones; and what is cut off is below its level."""
    A = matrix("covariance", 5, seed)
    patterns = Patterns.of(5, 2, disjoint=disjoint, **counts)
    known, rng = KnownMatrix.exact(A), np.random.default_rng(seed)
    masks = [np.array(bits).reshape(5, 2).astype(bool) for bits in product((0, 1), repeat=10)]
    values = {}
    for number, mask in enumerate(masks):
        if patterns.objection(mask) is None:
            S, T = (tuple(np.flatnonzero(column)) for column in mask.T)
            values[number] = best_of_pairs(A, S, T)
    teams = first_teams(patterns)
    nodes = {n_with: tidy(split_team(teams, 0, 1, n_with), patterns) for n_with in range(3)}
    for n_with, node in {None: teams, **nodes}.items():
        if node is None:
            continue
        parts = []
        for team in node:
            features = team.choice.features
            n = features.size
            G, F = rng.standard_normal((2, n, n))
            parts.append(TeamPart(features, F, Cones(G, rng.uniform(0.1, 1, n))))
        prices = rng.uniform(0, 0.5, 5) if disjoint else np.empty(0)
        witness = TeamsWitness(rng.standard_normal((5, 2)), parts, prices)
        bound = teams_bound(known, node, witness, patterns)
        levels = team_cut_levels(bound, node, patterns)
        for number, value in values.items():
            mask = masks[number]
            if n_with is not None and int(mask[1].sum()) != n_with:
                continue
            assert value <= bound.value + 1e-9
            if len(node) == 1:  # then it does not matter which component is which
                for i in node[0].choice.free:
                    if mask[i].any():
                        assert value <= levels[0][0][i] + 1e-9
                    if not mask[i].all():
                        assert value <= levels[0][1][i] + 1e-9


@pytest.fixture(scope="module")
def pitprops():
    problem = problem_of(np.asarray(load_pitprops().covariance), 2, n_nonzero_coefs=5)
    return problem, certify(problem, solve(problem, random_state=0), "exact")


def test_pitprops_is_proved(pitprops):
    problem, certificate = pitprops
    assert certificate.status.value == "optimal"
    assert certificate.lower == pytest.approx(5.710358, abs=1e-6)
    assert certificate.n_nodes > 10
    assert certificate.method == "joint branch and bound"
    verify(problem, certificate)


def test_a_certificate_survives_a_file(pitprops, tmp_path):
    problem, certificate = pitprops
    certificate.save(tmp_path / "proof.npz")
    again = Certificate.load(tmp_path / "proof.npz")
    assert verify(problem, again) == verify(problem, certificate)


def forged(certificate: Certificate, **changes) -> Certificate:
    return replace(certificate, digest="", **changes)


def test_forged_certificates_are_refused(pitprops):
    problem, certificate = pitprops
    tree = certificate.witness
    first = tree.records[0]
    leaf = next(i for i, record in enumerate(tree.records) if record.kind == "bound")

    def with_record(place, **changes):
        records = list(tree.records)
        records[place] = replace(records[place], **changes)
        return replace(tree, records=records)

    forgeries = {
        "node": forged(certificate, witness=with_record(0, children=first.children[:-1])),
        "void": forged(certificate, witness=with_record(leaf, kind="void")),
        "bound": forged(certificate, witness=with_record(leaf, bound=0.0, kind="bound")),
        "patterns": forged(certificate, patterns=Patterns.of(13, 2, 4)),
        "weights": forged(certificate, weights=certificate.weights * 1.01),
    }
    for forgery in forgeries.values():
        with pytest.raises(CertificateError):
            verify(problem, forgery)
    loose = certify(problem, solve(problem, random_state=0), "tight")
    with pytest.raises(CertificateError, match="upper"):
        verify(problem, forged(loose, upper=0.5 * (loose.lower + loose.upper)))
    other = problem_of(np.asarray(load_pitprops().covariance), 2, n_nonzero_coefs=6)
    with pytest.raises(CertificateError):
        verify(other, certificate)


def test_the_proof_does_not_depend_on_who_made_it(pitprops):
    problem, certificate = pitprops
    again = certify(problem, solve(problem, random_state=0), "exact", n_jobs=2)
    assert again.digest == certificate.digest


def test_a_search_goes_on_from_its_checkpoint(tmp_path):
    problem = problem_of(np.asarray(load_pitprops().covariance), 2, n_nonzero_coefs=5)
    solution, place = solve(problem, random_state=0), tmp_path / "search.npz"
    seen = []

    def after_some_nodes(progress) -> bool:
        seen.append(progress)
        return len(seen) > 4

    stopped = certify(problem, solution, "exact", checkpoint=place, callback=after_some_nodes)
    assert stopped.gap > 1e-6
    verify(problem, stopped)
    done = certify(problem, solution, "exact", checkpoint=place)
    assert done.status.value == "optimal"
    verify(problem, done)


def test_wide_data_is_bounded_without_a_matrix_of_all_features():
    X = np.random.default_rng(0).standard_normal((12, 3000))
    X[:, :20] += 3 * np.random.default_rng(1).standard_normal((12, 1))
    covariance = as_covariance(X)
    problem = StiefelProblem(covariance, 2, patterns=Patterns.of(3000, 2, 5))
    certificate = certify(problem, solve(problem, random_state=0), "fast")
    assert certificate.lower <= certificate.upper < np.inf
    assert certificate.method in ("shared features", "single components", "trace")
    verify(problem, certificate)


def test_the_estimator_proves():
    A = np.asarray(load_pitprops().covariance)
    pca = StiefelSparsePCA(
        2, n_nonzero_coefs=4, disjoint=True, covariance="precomputed", certify="exact",
        random_state=0,
    ).fit(A)  # fmt: skip
    assert pca.certificate_.status.value == "optimal"
    U = pca.components_
    assert np.trace(U @ A @ U.T) == pytest.approx(pca.certificate_.lower, rel=1e-9)
    assert solve(
        problem_of(A, 2, n_nonzero_coefs=4, disjoint=True), "exact"
    ).status.value == "optimal"  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.1}, "certify needs counts"),
        ({"n_nonzero_coefs": 3, "solver": "deflation"}, "need not be orthogonal"),
    ],
)
def test_what_cannot_be_proved_says_so(parameters, message):
    A = np.asarray(load_pitprops().covariance)
    pca = StiefelSparsePCA(2, covariance="precomputed", certify=True, **parameters)
    with pytest.raises(ValueError, match=message):
        pca.fit(A)

"""The path of components with features of their own, against enumeration."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from kspan import (
    ElementSparsePCA,
    NonnegativeSparsePCA,
    StiefelSparsePCA,
    as_covariance,
    sparsity_path,
    suggest_k,
    verify,
)
from kspan.choosing_k import ComponentPath, SparsityPath
from kspan.choosing_k.own_features import KINDS, OwnFeatures
from kspan.solving import component_problems
from tests.effort import examples
from tests.oracles import best_by_enumeration, nonnegative_optimum, random_covariance

ROUNDING = 1e-10


def path_of(A, m, estimator, **options):
    options = {"random_state": 0, **options}
    return sparsity_path(A, m, estimator=estimator, covariance="precomputed", **options)


def best_pair(A, k, *, disjoint, rng):
    """Return the best two orthonormal vectors of at most k features that many starts find.

    On each pair of supports: the best v for a given u is a leading eigenvector on T without the
    direction of u, and so on in turn.
    """

    def leading(T, other):
        inside = A[np.ix_(T, T)]
        part = other[T]
        length = np.linalg.norm(part)
        P = np.eye(len(T)) - (np.outer(part, part) / length**2 if length > 1e-12 else 0.0)
        _, vectors = np.linalg.eigh(P @ inside @ P)
        # Where nothing is left beside u, the component has no direction.
        choices = [j for j in range(len(T)) if abs(part @ vectors[:, j]) < 1e-9]
        if not choices:
            return None
        full = np.zeros(len(A))
        full[T] = vectors[:, choices[-1]]
        return full

    best, d = 0.0, len(A)
    supports = [list(S) for S in combinations(range(d), k)]
    if disjoint:
        supports = [list(S) for size in range(1, k + 1) for S in combinations(range(d), size)]
    for S, T in product(supports, supports):
        if disjoint and set(S) & set(T):
            continue
        for _ in range(1 if disjoint else 3):
            v = np.zeros(d)
            v[T] = rng.standard_normal(len(T))
            for _ in range(1 if disjoint else 40):
                u = leading(S, v * (not disjoint))
                w = None if u is None else leading(T, u)
                if w is None:
                    break
                v = w
                if abs(u @ v) < 1e-9:
                    best = max(best, u @ A @ u + v @ A @ v)
    return best


def assert_rising_band(path):
    assert path.is_bounded
    assert (np.diff(path.objective) >= 0).all()
    assert (np.diff(path.upper) >= 0).all()
    assert np.isfinite(path.upper).all()
    assert (path.upper >= path.objective).all()


def assert_feasible(path, A):
    for k, support, W, objective in zip(
        path.k, path.supports, path.loadings, path.objective, strict=True
    ):
        counts = np.count_nonzero(W, axis=0)
        assert ((counts >= 1) & (counts <= k)).all()
        assert W.any(axis=1).all()
        np.testing.assert_allclose(np.linalg.norm(W, axis=0), 1.0, rtol=1e-9)
        gram = W.T @ A[np.ix_(support, support)] @ W
        if path.is_bounded:
            assert objective == pytest.approx(np.trace(gram), rel=1e-9)
        if path.estimator == "orthonormal":
            np.testing.assert_allclose(W.T @ W, np.eye(W.shape[1]), atol=1e-9)
        if path.estimator == "nonnegative":
            assert (W >= 0).all()
        if path.disjoint:
            assert (np.count_nonzero(W, axis=1) == 1).all()


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 2))])
def test_orthonormal_components_against_enumeration(seed, disjoint):
    rng = np.random.default_rng(seed)
    A = random_covariance(rng, 5, 4)
    path = path_of(A, 2, "orthonormal", disjoint=disjoint, certify="tight")
    assert path.k.tolist() == [1, 2, 3, 4, 5]
    assert_rising_band(path)
    assert_feasible(path, A)
    for place, k in enumerate(path.k.tolist()[:4]):
        best = best_pair(A, k, disjoint=disjoint, rng=rng)
        assert path.upper[place] >= best * (1 - ROUNDING)
        assert path.objective[place] >= best * (1 - 1e-6)


@examples(15)
@given(st.data(), st.integers(0, 2**32 - 1))
def test_a_single_component_against_enumeration(data, seed):
    d = data.draw(st.integers(2, 7))
    A = random_covariance(np.random.default_rng(seed), d, data.draw(st.integers(1, d)))
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    level = data.draw(st.sampled_from([False, "fast", "tight", "exact"]))
    path = path_of(A, 1, kind, certify=level)
    assert_rising_band(path)
    assert_feasible(path, A)
    for k, objective, upper in zip(path.k, path.objective, path.upper, strict=True):
        best = (
            nonnegative_optimum(A, int(k))
            if kind == "nonnegative"
            else best_by_enumeration(A, 1, int(k))
        )
        assert objective <= best * (1 + ROUNDING)
        assert upper >= best * (1 - ROUNDING)
        if level == "exact":
            assert objective == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("kind", ["separate", "nonnegative"])
def test_components_one_after_the_other_have_proofs_of_their_own_and_no_band(kind):
    A = random_covariance(np.random.default_rng(0), 7)
    path = path_of(A, 3, kind, certify="exact")
    assert not path.is_bounded
    assert np.isnan(path.upper).all()
    assert np.isnan(path.gap).all()
    assert_feasible(path, A)
    assert path.component_gap.shape == (path.k.size, 3)
    assert path.component_gap.max() <= 1e-6
    assert path.proved_at.tolist() == np.repeat(path.k, 3).tolist()
    problems = OwnFeatures(as_covariance(A, kind="covariance"), 3, kind)
    for place, k in enumerate(path.k.tolist()):
        loadings = np.zeros((7, 3))
        loadings[path.supports[place]] = path.loadings[place]
        alone = component_problems(problems.at(k), loadings, path.deflation)
        for j, problem in enumerate(alone):
            verify(problem, path.certificates[3 * place + j])
    assert list(path.columns()) == [
        "features", "explained_variance", "share_of_pca", "represented", "panel",
        "gap_PC1", "gap_PC2", "gap_PC3",
    ]  # fmt: skip
    assert path.no_fewer_than(0.99) == 1  # nothing is proved
    said = " ".join(suggest_k(path, share=0.3).reasons)
    assert "whether fewer could is not proved" in said
    assert "it is proved" not in said
    assert "best possible" not in said
    assert not suggest_k(path, share=0.3).knee_is_certain


@pytest.mark.parametrize(
    ("kind", "Estimator"),
    [("separate", ElementSparsePCA), ("nonnegative", NonnegativeSparsePCA)],
)
def test_every_k_is_what_the_estimator_finds(kind, Estimator):
    X = load_wine(as_frame=True).data
    path = sparsity_path(X, 2, estimator=kind, ks=[3, 5], scale=True, random_state=0)
    for k in (3, 5):
        fit = Estimator(2, k, scale=True, certify=True, random_state=0).fit(X)
        assert path.objective[path.k == k][0] == pytest.approx(fit.objective_, rel=1e-9)
        names = [X.columns[row != 0].tolist() for row in fit.components_]
        assert path.components_at(k) == names


@pytest.mark.parametrize("disjoint", [False, True])
def test_orthonormal_components_are_as_good_as_those_of_the_estimator(disjoint):
    X = load_wine().data
    path = sparsity_path(
        X, 2, estimator="orthonormal", disjoint=disjoint, ks=[2, 4], scale=True, random_state=0
    )
    for k, objective, upper in zip(path.k.tolist(), path.objective, path.upper, strict=True):
        fit = StiefelSparsePCA(
            2, n_nonzero_coefs=k, disjoint=disjoint, scale=True, certify=True, random_state=0
        ).fit(X)
        assert objective >= fit.certificate_.lower * (1 - 1e-6)
        assert upper == pytest.approx(fit.certificate_.upper, rel=1e-4)
    assert list(path.columns()) == [
        "features", "variance_sum", "share_of_pca", "represented", "panel", "at_most", "gap",
    ]  # fmt: skip
    assert "(variances of all components added up)" in suggest_k(path, share=0.5).reasons[0]
    assert "4 features in each component" in suggest_k(path, share=0.6).reasons[0]


DEGENERATE = {
    "ties": np.eye(5),
    "rank one": np.outer(np.arange(1.0, 6), np.arange(1.0, 6)),
    "constant features": np.diag([3.0, 0.0, 2.0, 0.0, 1.0]),
    "negative": 2 * np.eye(5) - 0.3,
}


# One component of tiny numbers and two of huge ones here, the others in the slow test.
@pytest.mark.parametrize(
    ("m", "size"),
    [
        (1, 1e-120), (2, 1e120),
        *(pytest.param(*rest, marks=pytest.mark.slow)
          for rest in ((2, 1e-120), (1, 1.0), (2, 1.0), (1, 1e120))),
    ],
)  # fmt: skip
@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("kind", KINDS)
def test_degenerate_matrices_at_every_scale(kind, case, m, size):
    A = DEGENERATE[case] * size
    path = path_of(A, m, kind, ks=[1, 2, 5])
    assert path.k.tolist() == [1, 2, 5]
    if path.is_bounded:
        assert_rising_band(path)
    assert_feasible(path, A)


def test_where_proofs_are_made_and_what_they_bound():
    X = load_wine().data
    asked = {"estimator": "orthonormal", "ks": [2, 3, 5], "scale": True, "random_state": 0}
    path = sparsity_path(X, 2, certify_at=[3], **asked)
    assert path.proved_at.tolist() == [3]
    free = sparsity_path(X, 2, certify=False, **asked)
    assert not free.certificates
    assert path.upper[1] == path.certificates[0].upper < free.upper[1]
    assert path.upper[0] <= path.upper[1]  # fewer features cannot have more
    assert path.upper[2] == free.upper[2]  # of more a proof says nothing
    problems = OwnFeatures(as_covariance(X, scale=True), 2, "orthonormal")
    verify(problems.at(3), path.certificates[0])


def test_the_exact_path_is_proved_at_every_k():
    path = sparsity_path(
        load_wine().data, 2, estimator="orthonormal", ks=[2, 3], scale=True, solver="exact"
    )
    assert path.status == "completed"
    assert path.gap.max() <= 1e-6


def test_the_default_grid_is_thin():
    A = random_covariance(np.random.default_rng(0), 40, 6)
    path = path_of(A, 1, "nonnegative", certify=False)
    assert path.k.tolist() == [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 27, 30]


def test_the_same_seed_gives_the_same_path():
    A = random_covariance(np.random.default_rng(1), 8)
    one, other = (path_of(A, 2, "orthonormal", ks=[2, 4], random_state=3) for _ in range(2))
    assert np.array_equal(one.objective, other.objective)
    assert np.array_equal(one.upper, other.upper)


def test_saved_and_loaded(tmp_path):
    X = load_wine(as_frame=True).data
    path = sparsity_path(X, 2, estimator="separate", ks=[2, 4], scale=True, random_state=0)
    path.save(tmp_path / "path.npz")
    for kind in (SparsityPath, ComponentPath):
        back = kind.load(tmp_path / "path.npz")
        assert isinstance(back, ComponentPath)
        assert back.components_at(4) == path.components_at(4)
        assert np.isnan(back.gap).all()
    frame = pd.DataFrame(path.columns())
    assert frame.features.tolist() == [2, 4]
    with pytest.raises(ValueError, match="k=3 is not on the path"):
        path.components_at(3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("interrupted", [False, True])
def test_what_is_done_is_returned(kind, count, interrupted):
    calls = []

    def callback(progress):
        calls.append(progress.solver)
        if len(calls) == count and interrupted:
            raise KeyboardInterrupt
        return len(calls) == count

    path = path_of(random_covariance(np.random.default_rng(0), 6), 2, kind, callback=callback)
    assert path.status == ("interrupted" if interrupted else "stopped by callback")
    assert path.k.tolist() == list(range(1, count + 1))
    assert calls == [f"path k={k}" for k in path.k]


@pytest.mark.parametrize("kind", KINDS)
def test_no_time_at_all_still_gives_one_k(kind):
    A = random_covariance(np.random.default_rng(0), 6)
    path = path_of(A, 2, kind, time_limit=1e-9)
    assert path.status == "time limit"
    assert path.k.tolist() == [1]
    assert_feasible(path, A)


def test_an_interrupt_before_anything_is_found_leaves_single_features(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("kspan.choosing_k.own_features.solve_with_proof", interrupt)
    A = np.diag([1.0, 3.0, 2.0])
    path = path_of(A, 2, "separate", ks=[2, 3])
    assert path.status == "interrupted"
    assert path.k.tolist() == [2]
    assert path.objective[0] == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "magic"}, "estimator must be one of .'features', 'orthonormal', 'separate'"),
        (
            {"estimator": "separate", "disjoint": True},
            "disjoint=True needs estimator='orthonormal'",
        ),
        ({"disjoint": True}, "disjoint=True needs estimator='orthonormal'"),
        ({"estimator": "separate", "include": [0]}, "include and exclude need"),
        ({"estimator": "nonnegative", "exclude": ["a"]}, "include and exclude need"),
        ({"estimator": "orthonormal", "ks": [0]}, "ks"),
        ({"estimator": "orthonormal", "ks": [5]}, "must lie between 1 and 4"),
        ({"estimator": "orthonormal", "ks": []}, "ks is empty"),
        ({"estimator": "separate", "ks": [2], "certify_at": [3]}, "certify_at holds 3"),
        ({"estimator": "orthonormal", "n_components": 5}, "need as many features; there are 4"),
        ({"estimator": "separate", "n_components": 5}, "between 1 and n_features=4, got 5"),
        ({"estimator": "orthonormal", "n_components": "2"}, "n_components"),
        ({"estimator": "separate", "n_components": 0}, "n_components"),
        ({"estimator": "orthonormal", "solver": "deflation"}, "need not be orthogonal"),
        ({"estimator": "orthonormal", "solver": "ipu"}, "solver must be one of"),
        ({"estimator": "nonnegative", "certify": "net"}, "a path needs what is certain"),
        ({"estimator": "separate", "certify": "loud"}, "loud"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        sparsity_path(np.diag([1.0, 2.0, 3.0, 4.0]), covariance="precomputed", **options)


def test_certified_is_up_to_the_last_proof_of_all_components():
    X = load_wine().data
    path = sparsity_path(X, 2, estimator="orthonormal", scale=True, random_state=0)
    assert path.certified.any()
    assert not path.certified[path.k > path.proved_at.max()].any()
    apart = sparsity_path(X, 2, estimator="separate", ks=[2, 4], scale=True, random_state=0)
    assert not apart.certified.any()

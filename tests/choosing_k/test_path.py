from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_wine

from kspan import (
    FeatureSparsePCA,
    Panel,
    RowSparseProblem,
    as_covariance,
    solve,
    sparsity_path,
    verify,
)
from kspan.choosing_k import SparsityPath
from kspan.choosing_k.band import checked, free_bounds, least_of_more, upper_band
from kspan.choosing_k.path import grid_between
from kspan.proofs import CertificateError
from tests.effort import examples
from tests.oracles import best_by_enumeration, explained, random_covariance

# What eigenvalues and sums of this size may be off by.
ROUNDING = 1e-10


def path_of(A, m, **options):
    options = {"random_state": 0, **options}
    return sparsity_path(A, m, covariance="precomputed", **options)


def assert_sound(path, A, include=(), exclude=()):
    """All that must hold, whatever the matrix: checked against enumeration."""
    m = path.n_components
    assert path.k.size == path.objective.size == path.upper.size == len(path.supports)
    assert (np.diff(path.objective) >= 0).all()
    assert (np.diff(path.upper) >= 0).all()
    assert np.isfinite(path.upper).all()
    assert (path.upper >= path.objective).all()
    for k, support, objective, upper in zip(
        path.k, path.supports, path.objective, path.upper, strict=True
    ):
        assert np.array_equal(support, np.unique(support))
        assert support.size == k
        assert set(include) <= set(support.tolist())
        assert not set(exclude) & set(support.tolist())
        assert objective == pytest.approx(explained(A, support, m), rel=1e-9, abs=1e-300)
        best = best_by_enumeration(A, m, int(k), include, exclude)
        assert objective <= best * (1 + ROUNDING)
        assert upper >= best * (1 - ROUNDING)
        assert upper <= path.full * (1 + 1e-9)


@examples(25)
@given(st.data(), st.integers(0, 2**32 - 1))
def test_the_band_holds_the_optimum_of_every_k(data, seed):
    d = data.draw(st.integers(2, 7))
    m = data.draw(st.integers(1, d))
    A = random_covariance(np.random.default_rng(seed), d, data.draw(st.integers(1, d)))
    include = data.draw(st.sets(st.integers(0, d - 1), max_size=min(2, d - 1)))
    exclude = data.draw(st.sets(st.integers(0, d - 1), max_size=min(2, d - m))) - include
    level = data.draw(st.sampled_from([False, "fast", "tight"]))
    if d - len(exclude) < max(m, len(include)):
        exclude = set()
    path = path_of(A, m, include=sorted(include), exclude=sorted(exclude), certify=level)
    assert path.k.tolist() == list(range(max(m, len(include)), d - len(exclude) + 1))
    assert_sound(path, A, include, exclude)


CASES = {
    "ties": np.eye(6),
    "equal entries": np.ones((6, 6)) + np.eye(6),
    "rank one": np.outer(np.arange(1.0, 7), np.arange(1.0, 7)),
    "constant features": np.diag([3.0, 0.0, 2.0, 0.0, 1.0, 0.0]),
    "two blocks": np.kron(np.diag([1.0, 2.0]), np.ones((3, 3))),
}


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("m", [1, 2])
def test_degenerate_matrices_at_every_scale(case, m, size):
    A = CASES[case] * size
    path = path_of(A, m)
    assert path.k.tolist() == list(range(m, 7))
    assert_sound(path, A)
    assert path.explained[-1] == pytest.approx(1.0)


def test_only_k_equal_to_m_and_d():
    path = path_of(np.diag([2.0, 1.0]), 2)
    assert path.k.tolist() == [2]
    assert path.objective[0] == pytest.approx(3.0)
    assert path.gap[0] == pytest.approx(0.0, abs=1e-12)
    assert path.overlap.size == path.jumps.size == 0


@pytest.fixture(scope="module")
def cancer():
    return as_covariance(load_breast_cancer().data, scale=True)


@pytest.mark.parametrize("m", [1, 2, 4])
def test_never_below_ipu(cancer, m):
    path = sparsity_path(cancer, m, scale=True, ks=range(6, 30, 4), certify=False, random_state=0)
    for k, objective in zip(path.k, path.objective, strict=True):
        problem = RowSparseProblem(cancer, m, int(k))
        assert objective >= solve(problem, "ipu").objective * (1 - 1e-14)


def test_finds_the_proved_optimum_where_it_was_enumerated(cancer):
    ks = [2, 3, 4, 27, 28, 30]
    path = sparsity_path(cancer, 2, scale=True, ks=ks, certify=False, random_state=0)
    for k in ks:
        best = solve(RowSparseProblem(cancer, 2, k), "brute-force").objective
        assert path.objective[path.k == k][0] == pytest.approx(best, rel=1e-10)


def test_the_exact_path_is_proved_at_every_k():
    path = sparsity_path(load_wine().data, 2, ks=[3, 5, 8], scale=True, solver="exact")
    assert path.status == "completed"
    assert len(path.certificates) == 3
    assert path.gap.max() <= 1e-6


@pytest.mark.parametrize("solver", ["go", "ipu", "soap", "fps", "brute-force"])
def test_any_method_can_be_run_along_the_path(solver):
    A = random_covariance(np.random.default_rng(3), 7)
    assert_sound(path_of(A, 2, solver=solver), A)


def test_certificates_can_be_verified_and_bound_their_own_k(cancer):
    path = sparsity_path(cancer, 2, scale=True, ks=[3, 5, 9, 20], certify_at=[5], random_state=0)
    (certificate,) = path.certificates
    verify(RowSparseProblem(cancer, 2, 5), certificate)
    assert path.upper[path.k == 5][0] == certificate.upper
    free = sparsity_path(cancer, 2, scale=True, ks=[3, 5, 9, 20], certify=False, random_state=0)
    assert (path.upper <= free.upper).all()
    assert path.gap.mean() < free.gap.mean()


def test_a_bound_below_the_curve_is_a_bug():
    with pytest.raises(CertificateError, match="bug"):
        checked(np.array([1.0, 2.0]), np.array([1.0, 1.9]), [1.0, 2.0].__getitem__)
    below = np.array([1.0, 2.0 * (1 - 1e-15)])
    with pytest.raises(CertificateError, match="bug"):
        checked(np.array([1.0, 2.0]), below, [1.0, 2.0].__getitem__)


def test_an_objective_that_is_off_raises_the_band_by_as_much():
    """It was computed as 2, and is known to be 2 - 4e-15 or more; the bound is between the two."""
    upper = np.array([1.0, 2.0 - 1e-15, 2.0 - 5e-16, 3.0])
    objective = np.array([1.0, 2.0, 2.0, 2.0])
    band = checked(objective, upper, [1.0, 2.0 - 4e-15, 2.0 - 4e-15, 2.0].__getitem__)
    assert band.tolist() == pytest.approx([1.0, 2.0 + 3e-15, 2.0 + 3.5e-15, 3.0], abs=5e-16)
    assert (np.diff(band) >= 0).all()


@pytest.mark.parametrize("mean", [0.0, 1e3, 1e6])
@pytest.mark.parametrize(
    ("seed", "n", "ks"), [(0, 30, [2, 10, 59, 60]), (1, 20, [100, 450, 500])], ids=["60", "500"]
)
def test_sparse_data_with_large_means(mean, seed, n, ks):
    """Products in which the means are taken out last are off by more than sums of squares."""
    rng, d = np.random.default_rng(seed), ks[-1]
    X = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d)) + rng.standard_normal((n, d))
    X = 1e-3 * X + mean
    path = sparsity_path(scipy.sparse.csr_array(X), 2, ks=ks, certify="fast", random_state=0)
    assert (path.upper >= path.objective).all()
    plain = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[:2] ** 2 / (n - 1)
    assert path.upper[-1] >= plain.sum() * (1 - 1e-12)


def test_the_same_seed_gives_the_same_path(cancer):
    one, other = (sparsity_path(cancer, 3, scale=True, ks=[3, 5, 8], certify=False, random_state=7)
                  for _ in range(2))  # fmt: skip
    assert all(np.array_equal(a, b) for a, b in zip(one.supports, other.supports, strict=True))
    assert np.array_equal(one.objective, other.objective)


def test_smallest_and_what_is_proved_about_it(cancer):
    path = sparsity_path(cancer, 2, scale=True, ks=range(2, 31, 4), solver="ipu", certify="fast")
    k = path.smallest(0.9)
    place = int(np.flatnonzero(path.k == k)[0])
    assert path.explained[place] >= 0.9 > path.explained[place - 1]
    assert path.no_fewer_than(0.9) <= k
    assert path.smallest(1.0) == 30
    assert path.no_fewer_than(1e-9) == 2
    with pytest.raises(ValueError, match="share must be"):
        path.smallest(0)
    short = sparsity_path(cancer, 2, scale=True, ks=[2, 3], certify=False)
    with pytest.raises(ValueError, match="with 3 features, less than share"):
        short.smallest()


def test_shares_overlap_and_jumps():
    A = np.diag([4.0, 3.0, 2.0, 1.0])
    path = path_of(A, 1)
    assert path.total_variance == 10.0
    assert path.share_of_total[0] == pytest.approx(0.4)
    nested = path_of(CASES["rank one"], 1)
    assert nested.jumps.tolist() == [0] * 5
    assert nested.overlap == pytest.approx([1 / 2, 2 / 3, 3 / 4, 4 / 5, 5 / 6])


def test_names_of_a_data_frame():
    frame = pd.DataFrame(load_wine().data, columns=load_wine().feature_names)
    path = sparsity_path(
        frame, 2, ks=[2, 3], scale=True, include=["hue"], exclude=["ash"], certify=False
    )
    assert path.feature_names == load_wine().feature_names
    assert "hue" in path.support_at(3)
    with pytest.raises(ValueError, match="k=9 is not on the path"):
        path.support_at(9)
    with pytest.raises(ValueError, match="include names 'colour', which is not a feature"):
        sparsity_path(frame, 2, include=["colour"])


def test_sparse_rows_and_dense_ones_give_the_same_path():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, (60, 6)).astype(float)
    dense, sparse = (sparsity_path(data, 2, random_state=0, certify=False)
                     for data in (X, scipy.sparse.csr_array(X)))  # fmt: skip
    assert sparse.objective == pytest.approx(dense.objective, rel=1e-10)


def test_a_file_is_read_a_few_times_only(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3)) @ rng.standard_normal((3, 300)) + rng.random((400, 300))
    np.save(tmp_path / "rows.npy", X)
    path = sparsity_path(tmp_path / "rows.npy", 2, ks=[2, 5, 10], certify=False, random_state=0)
    assert path.n_passes <= 3
    memory = sparsity_path(X, 2, ks=[2, 5, 10], certify=False, random_state=0)
    assert path.objective == pytest.approx(memory.objective, rel=1e-9)


def test_a_large_file_goes_by_way_of_candidates(tmp_path, monkeypatch):
    monkeypatch.setattr("kspan.covariance.data_covariance.GRAM_WORK", 1.0)
    monkeypatch.setattr("kspan.covariance.data_covariance.GRAM_LIMIT", 10)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3)) @ rng.standard_normal((3, 400)) + rng.random((300, 400))
    np.save(tmp_path / "rows.npy", X)
    options = {"ks": [2, 5, 10], "include": [7], "exclude": [1], "certify": False}
    path = sparsity_path(tmp_path / "rows.npy", 2, random_state=0, **options)
    covariance = as_covariance(tmp_path / "rows.npy")
    covariance.leading(2)
    assert path.n_passes <= covariance.n_passes + 6
    assert all(7 in support and 1 not in support for support in path.supports)
    assert path.objective == pytest.approx(
        sparsity_path(X, 2, random_state=0, **options).objective, rel=1e-3
    )


def test_wide_data_is_bounded_at_every_k():
    X = np.random.default_rng(0).standard_normal((12, 1100)) * np.linspace(3, 1, 1100)
    path = sparsity_path(X, 1, ks=[1, 5, 20], random_state=0, time_limit=60, certify="fast")
    assert (path.upper >= path.objective).all()
    assert path.upper[-1] <= path.full * (1 + 1e-6)


def test_saved_and_loaded(tmp_path, cancer):
    path = sparsity_path(cancer, 2, scale=True, ks=[2, 4, 8], random_state=0)
    path.save(tmp_path / "path.npz")
    loaded = SparsityPath.load(tmp_path / "path.npz")
    assert np.array_equal(loaded.upper, path.upper)
    assert loaded.status == path.status == "completed"
    verify(RowSparseProblem(cancer, 2, int(loaded.certificates[0].n_features_to_select)),
           loaded.certificates[0])  # fmt: skip
    loaded.certificates[0].save(tmp_path / "other.npz")
    with pytest.raises(ValueError, match=r"unknown type|does not hold a sparsity path"):
        SparsityPath.load(tmp_path / "other.npz")


def test_default_grids():
    assert grid_between(3, 200) == list(range(3, 201))
    grid = grid_between(2, 20_000)
    assert grid[:49] == list(range(2, 51))
    assert grid[-1] == 200
    assert grid_between(1500, 20_000) == [1500]
    assert all(b <= 1.2 * a + 1 for a, b in pairwise(grid))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ks": [1]}, "ks holds 1; it must lie between 2 and 4"),
        ({"ks": [5]}, "ks holds 5"),
        ({"ks": [2.5]}, "every number in ks must be a whole number"),
        ({"ks": []}, "ks is empty"),
        ({"solver": "best"}, "solver must be one of"),
        ({"certify": "very"}, "certify must be a bool or one of"),
        ({"certify_at": [9]}, "certify_at holds 9"),
        ({"n_components": 5}, "n_components=5 must be between"),
        ({"n_components": 1.5}, "n_components must be"),
        ({"scale": True}, "scale=True needs data"),
        ({"time_limit": 0}, "time_limit must be positive"),
        ({"include": ["a"]}, "no feature names"),
        ({"include": [True]}, "mask of shape"),
        ({"exclude": [0.5]}, "must hold feature names"),
        ({"covariance": "given"}, "covariance must be None or 'precomputed'"),
    ],
)
def test_what_is_refused(options, message):
    options = {"n_components": 2, "covariance": "precomputed", **options}
    with pytest.raises(ValueError, match=message):
        sparsity_path(np.diag([4.0, 3.0, 2.0, 1.0]), **options)


def test_a_covariance_must_be_built_as_asked(cancer):
    X = load_breast_cancer().data
    asked = {"ks": [3, 5], "scale": True, "certify": False, "random_state": 0}
    one, other = (sparsity_path(data, 2, **asked) for data in (X, cancer))
    np.testing.assert_array_equal(one.objective, other.objective)
    with pytest.raises(ValueError, match="standardised, but scale=False"):
        sparsity_path(cancer, 2)
    with pytest.raises(ValueError, match="scale=True, but the covariance is not standardised"):
        sparsity_path(as_covariance(X), 2, scale=True)
    with pytest.raises(ValueError, match="was made from data"):
        sparsity_path(cancer, 2, scale=True, covariance="precomputed")


@pytest.mark.parametrize("shape", [(80, 15), (12, 300)], ids=["tall", "wide"])
def test_what_every_k_tells_is_that_of_a_fit(shape, tmp_path):
    rng = np.random.default_rng(0)
    n, d = shape
    X = rng.standard_normal((n, 3)) @ rng.standard_normal((3, d)) + rng.standard_normal((n, d))
    path = sparsity_path(X, 2, ks=[2, 4, 9], certify=False, random_state=0)
    for place, support in enumerate(path.supports):
        rest = np.setdiff1d(np.arange(d), support)
        fit = FeatureSparsePCA(2, support.size, exclude=rest, random_state=0).fit(X)
        assert path.represented[place] == pytest.approx(fit.represented_variance_ratio_, rel=1e-7)
        assert path.panel[place] == pytest.approx(fit.panel_variance_ratio_, rel=1e-9)
    path.save(tmp_path / "path")
    back = SparsityPath.load(tmp_path / "path")
    np.testing.assert_array_equal(back.panel, path.panel)
    assert list(back.columns())[3:5] == ["represented", "panel"]


@pytest.mark.parametrize("certify", [False, "fast", True])
def test_certified_says_where_a_certificate_is_what_bounds(certify):
    X = load_wine().data
    problem = RowSparseProblem(as_covariance(X, scale=True), 2, 5)
    path = sparsity_path(X, 2, scale=True, random_state=0, certify=certify)
    free = least_of_more(free_bounds([problem.at(k) for k in path.k.tolist()]))
    assert_allclose(path.upper[~path.certified], free[~path.certified], rtol=1e-9)
    assert (path.upper <= free * (1 + 1e-9)).all()
    below = path.upper < free * (1 - 1e-9)
    assert path.certified[below].all()
    assert below.any() == bool(certify)


def test_a_certificate_counts_as_far_as_it_reaches():
    X = load_wine().data
    problem = RowSparseProblem(as_covariance(X, scale=True), 2, 5)
    path = sparsity_path(X, 2, scale=True, random_state=0)
    (proof,) = sparsity_path(X, 2, ks=[5], scale=True, random_state=0).certificates
    alone = replace(proof, path=[], digest="")  # it says nothing about more features
    ks = path.k.tolist()
    free = free_bounds([problem.at(k) for k in ks])
    with_it = replace(path, certificates=[alone], upper=upper_band(problem, ks, [alone], free))
    assert with_it.certified.tolist() == [k <= 5 and proof.upper <= free[k - 2] for k in ks]
    assert with_it.certified.any()


def test_what_variances_and_eigenvalues_say_is_not_called_certified():
    X = load_breast_cancer().data
    asked = {"ks": [3, 6, 9], "scale": True, "random_state": 0}
    unproved = sparsity_path(X, 3, certify=False, **asked)
    fast = sparsity_path(X, 3, certify="fast", **asked)
    assert {proof.method for proof in fast.certificates} == {"trace"}
    assert not unproved.certified.any()
    assert not fast.certified.any()


def test_certified_under_rules_and_about_what_is_told():
    X = load_wine().data
    panel = Panel(costs=np.ones(13), budget=4.0)
    few = sparsity_path(X, 2, scale=True, random_state=0, panel=panel)
    assert few.certified.any()
    told = sparsity_path(X, 2, scale=True, random_state=0, criterion="represent", ks=[2, 5, 13])
    assert told.certified[:2].all()

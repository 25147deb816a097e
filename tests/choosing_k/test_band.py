"""The band of wide data: proofs of one k after another, where the band is widest."""

import numpy as np
import pytest

from kspan import RowSparseProblem, as_covariance, sparsity_path, verify
from kspan.choosing_k import band
from kspan.choosing_k.band import MANY_FEATURES, MOST_ALONG, N_ALONG, NARROW
from kspan.proofs.check.witnesses import SplitPathWitness
from kspan.proofs.search import along as along_module
from tests.oracles import best_by_enumeration

D = MANY_FEATURES + 100


def uneven(d=D, n=25, seed=0, power=0.8):
    """Samples of which few features have most of the variance."""
    rng = np.random.default_rng(seed)
    sizes = np.arange(1, d + 1) ** -power
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 2)) @ rng.standard_normal((2, d))
    return X * sizes


def even(n=40, d=D, seed=0):
    """Samples of features that all vary alike."""
    X = np.random.default_rng(seed).standard_normal((n, d))
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


def path_of(X, m, **options):
    """A path by a quick method: what is tested is its band."""
    return sparsity_path(X, m, **{"solver": "ipu", "random_state": 0, **options})


def proved(path):
    return [certificate.n_features_to_select for certificate in path.certificates]


def is_along(path):
    return bool(path.certificates) and all(
        isinstance(witness, SplitPathWitness)
        for certificate in path.certificates
        for witness in certificate.path
    )


def assert_band(path):
    """What holds of every band."""
    assert (path.objective <= path.upper).all()
    assert (np.diff(path.upper) >= 0).all()
    assert (np.diff(path.objective) >= 0).all()
    assert np.isfinite(path.upper).all()


KS = list(range(2, 31, 2))


@pytest.fixture(scope="module")
def plain():
    return path_of(uneven(), 2, ks=KS)


def test_some_k_are_proved_and_all_are_bounded(plain):
    assert is_along(plain)
    assert N_ALONG <= len(plain.certificates) <= MOST_ALONG
    assert_band(plain)
    assert proved(plain) == sorted(set(proved(plain)))
    assert set(proved(plain)) <= set(KS)
    assert plain.status == "completed"
    covariance = as_covariance(uneven())
    for certificate in plain.certificates:
        k = certificate.n_features_to_select
        verify(RowSparseProblem(covariance, 2, k), certificate)
        assert plain.upper[KS.index(k)] <= certificate.upper * (1 + 1e-12)
    # Whatever is not proved is as narrow as wanted, unless there are as many proofs as may be.
    others = [place for place, k in enumerate(KS) if k not in proved(plain)]
    narrow = plain.gap[others].max(initial=0.0) <= NARROW * (1 + 1e-9)
    assert narrow or len(plain.certificates) == MOST_ALONG


def test_the_last_k_is_proved_and_the_one_before_reaches_it(plain):
    assert proved(plain)[-1] == KS[-1]
    reaches = [certificate.reach for certificate in plain.certificates]
    assert max(reaches) == KS[-1]
    assert all(reach >= k for reach, k in zip(reaches, proved(plain), strict=True))


def test_more_are_proved_where_the_band_is_wide(monkeypatch):
    """A band that is narrow enough takes the first proofs; one that never is, as many as may be."""
    first = band._spread(KS, np.geomspace(KS[0], KS[-1], N_ALONG + 1)[1:])
    monkeypatch.setattr(band, "NARROW", 1.0)
    few = path_of(uneven(), 2, ks=KS)
    assert proved(few) == first
    assert_band(few)
    monkeypatch.setattr(band, "NARROW", 0.0)
    monkeypatch.setattr(band, "MOST_ALONG", len(first) + 1)
    more = path_of(uneven(), 2, ks=KS)
    assert_band(more)
    (added,) = set(proved(more)) - set(first)
    gaps = np.where(np.isin(KS, first), 0.0, few.gap)
    assert gaps[KS.index(added)] == pytest.approx(gaps.max(), rel=1e-6)
    assert (more.upper <= few.upper * (1 + 1e-9)).all()


def test_the_same_seed_gives_the_same_band(plain):
    again = path_of(uneven(), 2, ks=KS)
    assert proved(again) == proved(plain)
    np.testing.assert_array_equal(again.upper, plain.upper)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_band_holds_the_optimum_of_every_k(monkeypatch, m):
    """Few features, which are taken for many."""
    monkeypatch.setattr(band, "MANY_FEATURES", 5)
    monkeypatch.setattr(along_module, "LEAST_INSIDE", 5)
    went_along = 0
    for seed in range(4):
        X = uneven(d=10, n=8, seed=seed, power=1.5)
        A = np.cov(X.T)
        path = sparsity_path(A, m, covariance="precomputed", ks=range(m, 6), random_state=0)
        assert_band(path)
        went_along += is_along(path)
        for k, objective, upper in zip(path.k, path.objective, path.upper, strict=True):
            best = best_by_enumeration(A, m, int(k))
            assert objective <= best * (1 + 1e-10)
            assert upper >= best * (1 - 1e-10)
        for certificate in path.certificates:
            for k in range(m, certificate.reach + 1):
                assert certificate.upper_at(k) >= best_by_enumeration(A, m, k) * (1 - 1e-12)
    assert went_along


def test_where_the_user_wants_proofs_they_are(plain):
    path = path_of(uneven(), 2, ks=KS, certify_at=[6, 14])
    assert proved(path) == [6, 14]
    assert_band(path)


def test_other_levels_and_rules_take_the_proofs_they_had():
    for options in ({"certify": "fast"}, {"certify": False}):
        path = path_of(uneven(), 2, ks=KS, **options)
        assert not any(certificate.path for certificate in path.certificates)
        assert_band(path)
    one = path_of(uneven(), 2, ks=[6])
    assert proved(one) == [6]
    assert_band(one)


def stop_after(proofs, monkeypatch):
    """Let time be over after so many proofs along the split."""
    done, prove = [], along_module.Along.prove

    def counted(self, *args):
        certificate = prove(self, *args)
        done.append(certificate)
        if len(done) == proofs:
            self.monitor.deadline._end = 0.0
        return certificate

    monkeypatch.setattr(along_module.Along, "prove", counted)
    return done


@pytest.mark.parametrize("proofs", [1, 3, N_ALONG])
def test_time_that_is_up_leaves_a_band_that_holds(monkeypatch, plain, proofs):
    monkeypatch.setattr(band, "NARROW", 0.0)
    done = stop_after(proofs, monkeypatch)
    path = path_of(uneven(), 2, ks=KS, time_limit=600)
    assert len(done) == len(path.certificates) == proofs
    assert path.status == "time limit"
    assert_band(path)
    assert (path.upper >= plain.objective * (1 - 1e-12)).all()


def test_a_short_time_limit_is_kept():
    path = path_of(uneven(d=800), 2, ks=KS, time_limit=0.2)
    assert path.status == "time limit"
    assert_band(path)


def test_an_interrupt_ends_the_proofs():
    def callback(progress):
        if progress.solver.startswith("proof at k"):
            raise KeyboardInterrupt

    path = path_of(uneven(), 2, ks=KS, callback=callback)
    assert path.status == "interrupted"
    assert len(path.certificates) == 1
    assert_band(path)


@pytest.mark.parametrize("where", ["_along", "free_bounds"])
def test_an_interrupt_before_the_first_proof_leaves_the_path(monkeypatch, where):
    def interrupted(*args):
        monkeypatch.undo()  # the band needs it afterwards
        raise KeyboardInterrupt

    monkeypatch.setattr(band, where, interrupted)
    path = path_of(uneven(), 2, ks=KS)
    assert path.status == "interrupted"
    assert path.certificates == []
    assert_band(path)


def test_a_callback_ends_the_proofs():
    def callback(progress):
        return progress.solver.startswith("proof at k")

    path = path_of(uneven(), 2, ks=KS, callback=callback)
    assert path.status == "stopped by callback"
    assert len(path.certificates) == 1
    assert_band(path)


@pytest.mark.parametrize("m", [1, 2])
def test_even_variances_of_many_features_take_closed_forms(monkeypatch, m):
    """Of several components, whose relaxation would take too long; of one there are row sums."""
    asked = []
    prove, budgets = band.prove_point, band.Budgets

    def noted(problem, best, level, *args):
        asked.append(level)
        return prove(problem, best, "fast", *args)

    monkeypatch.setattr(band, "prove_point", noted)
    monkeypatch.setattr(band, "Budgets", lambda: budgets(newton_limit=D - 1))
    assert_band(path_of(even(), m, ks=[3, 6]))
    assert asked == ["tight" if m == 1 else "fast"]
    asked.clear()  # who says where is taken at their word
    assert_band(path_of(even(), m, ks=[3, 6], certify_at=[6]))
    assert asked == ["tight"]
    asked.clear()
    monkeypatch.setattr(band, "Budgets", lambda: budgets(newton_limit=D))
    path_of(even(), m, ks=[3, 6])
    assert asked == ["tight"]

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_wine

from kspan import as_covariance, selection_stability
from kspan.choosing_k import Stability
from kspan.choosing_k.stability import mean_jaccard, nogueira, resampled
from kspan.storage import load_file, save_file

X = load_wine().data


def stability_of(data=X, m=2, k=4, **options):
    return selection_stability(data, m, k, **{"n_resamples": 8, "random_state": 0, **options})


def test_frequencies_are_what_the_supports_say():
    found = stability_of(scale=True)
    assert found.supports.shape == (8, 4)
    assert found.frequencies.sum() == pytest.approx(4)
    assert found.frequencies[found.supports[0]].min() >= 1 / 8
    pairs = [
        len(set(a) & set(b)) / len(set(a) | set(b))
        for i, a in enumerate(found.supports.tolist())
        for b in found.supports.tolist()[:i]
    ]
    assert found.jaccard == pytest.approx(np.mean(pairs))


def test_the_same_seed_gives_the_same_answer_whatever_the_number_of_jobs():
    one = stability_of(scale=True)
    two = stability_of(scale=True, n_jobs=2)
    assert np.array_equal(one.supports, two.supports)
    assert one.seed == two.seed
    assert one.seed != stability_of(scale=True, random_state=1).seed


def test_a_share_of_the_rows_instead_of_the_bootstrap():
    half = stability_of(scale=True, sample_share=0.5)
    assert half.sample_share == 0.5
    assert not np.array_equal(half.supports, stability_of(scale=True).supports)


def test_a_prefix_of_the_resamples_is_the_same():
    few, many = stability_of(n_resamples=3), stability_of(n_resamples=8)
    assert np.array_equal(few.supports, many.supports[:3])


def test_no_global_random_state():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    stability_of(random_state=None)
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("shape", [(30, 6), (8, 12)])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_weights_are_the_covariance_of_repeated_rows(scale, shape, kind):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal(shape) + 100
    rows[1:, 0] = 7.0
    rows[0, 0] = 8.0  # constant unless the first row is drawn
    counts = np.bincount(rng.integers(1, shape[0], size=shape[0]), minlength=shape[0])
    repeated = np.repeat(rows, counts, axis=0)
    expected = np.cov(repeated, rowvar=False)
    if scale:
        divisors = np.where(np.diagonal(expected) > 1e-12, np.sqrt(np.diagonal(expected)), 1.0)
        expected = expected / np.outer(divisors, divisors)
    found = resampled(as_covariance(kind(rows)), counts, scale)
    assert found.diagonal()[0] == 0
    every = np.arange(shape[1])
    assert found.submatrix(every) == pytest.approx(expected, abs=1e-9)


def test_rows_without_variance_are_drawn_again():
    tiny = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0]])
    found = stability_of(tiny, 1, 1, n_resamples=20)
    assert found.n_resamples == 20


def test_include_exclude_and_names():
    frame = pd.DataFrame(X, columns=load_wine().feature_names)
    found = stability_of(frame, include=["hue"], exclude=["proline"])
    assert found.frequencies[list(frame.columns).index("hue")] == 1
    assert found.frequencies[list(frame.columns).index("proline")] == 0
    assert found.most_chosen(1)[0][1] == 1


def test_all_features_are_always_chosen():
    found = stability_of(k=13)
    assert found.nogueira == found.jaccard == 1


def test_nogueira_against_its_definition():
    rng = np.random.default_rng(0)
    Z = np.zeros((10, 20))
    for row in Z:
        row[rng.choice(20, 5, replace=False)] = 1
    spread = Z.var(axis=0, ddof=1).mean()
    expected = 1 - spread / (5 / 20 * (1 - 5 / 20))
    assert nogueira(Z.mean(axis=0), 5, 10) == pytest.approx(expected)
    assert abs(expected) < 0.3  # random supports: chance level
    assert mean_jaccard([np.arange(3)] * 4, 9) == 1


def test_stops_early_with_at_least_two_resamples():
    seen = []

    def callback(progress):
        seen.append(progress.objective)
        return True

    found = stability_of(callback=callback)
    assert found.status == "stopped by callback"
    assert found.n_resamples == 2
    assert seen == [1 / 8, 2 / 8]

    def interrupt(progress):
        raise KeyboardInterrupt

    assert stability_of(callback=interrupt).status == "interrupted"
    assert stability_of(time_limit=1e-9).status == "time limit"


def test_saved_and_loaded(tmp_path):
    found = stability_of()
    save_file(tmp_path / "stability.npz", found)
    loaded = load_file(tmp_path / "stability.npz", [Stability])
    assert np.array_equal(loaded.supports, found.supports)
    assert loaded.nogueira == found.nogueira


@pytest.mark.parametrize("scale", [False, True])
def test_a_covariance_of_data_in_memory_is_as_good_as_the_data(scale):
    one, other = (stability_of(data, scale=scale) for data in (X, as_covariance(X, scale=scale)))
    np.testing.assert_array_equal(one.supports, other.supports)
    with pytest.raises(ValueError, match="standardised"):
        stability_of(as_covariance(X, scale=scale), scale=not scale)


def test_data_on_disk_is_loaded_unless_it_is_large(tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", X)
    found = stability_of(tmp_path / "rows.npy")
    assert np.array_equal(found.supports, stability_of().supports)
    monkeypatch.setattr("kspan.choosing_k.stability.LOAD_BYTES", 100)
    with pytest.raises(ValueError, match="needs data in memory"):
        stability_of(tmp_path / "rows.npy")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": as_covariance(X.T @ X, kind="covariance")}, "needs the rows"),
        ({"covariance": "precomputed"}, "not a covariance matrix"),
        ({"n_resamples": 1}, "n_resamples must be a whole number, 2 or more"),
        ({"sample_share": 1.0}, "sample_share must be between"),
        ({"sample_share": 0.001}, "fewer than 2 rows"),
        ({"solver": "best"}, "solver must be one of"),
        ({"k": 1}, "n_features_to_select=1 must be between"),
        ({"data": np.full((5, 20), np.nan)}, "NaN"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        stability_of(**options)

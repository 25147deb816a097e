import numpy as np
import pytest

from kspan.datasets import (
    about,
    dataset_names,
    is_at_hand,
    load_dataset,
    load_pitprops,
    make_planted,
    make_scheme,
    make_sensors,
)


def test_pitprops_is_a_correlation_matrix():
    data = load_pitprops()
    A = data.covariance
    assert np.array_equal(A, A.T)
    assert np.all(np.diag(A) == 1)
    # The leading eigenvalues that every paper on this table quotes.
    np.testing.assert_allclose(np.linalg.eigvalsh(A)[::-1][:3], [4.219, 2.378, 1.878], atol=5e-4)
    assert data.feature_names[0] == "topdiam"


@pytest.mark.parametrize(
    ("scheme", "leading", "rest"),
    [
        ("A", [100, 100, 4], 1),
        ("B", [300, 180, 60], 1),
        ("C", [300, 180, 60], 0),
        ("D", [160, 80, 40, 20, 10, 5, 2], 1),
    ],
)
def test_spectra_of_the_schemes(scheme, leading, rest):
    values = np.linalg.eigvalsh(make_scheme(scheme, random_state=0))[::-1]
    np.testing.assert_allclose(values, [*leading, *[rest] * (20 - len(leading))], atol=1e-9)


def test_schemes_of_data():
    assert np.all(make_scheme("E", 8, random_state=0) > 0)
    assert np.any(make_scheme("F", 8, random_state=0) < 0)
    assert np.array_equal(make_scheme("F", 8, random_state=1), make_scheme("F", 8, random_state=1))
    with pytest.raises(ValueError, match="one of A to F"):
        make_scheme("G")


def test_planted_features_have_the_signal():
    X, support = make_planted(20_000, 30, 6, 2, signal=4.0, random_state=0)
    variances = X.var(axis=0)
    others = np.setdiff1d(np.arange(30), support)
    np.testing.assert_allclose(variances[others], 1.0, atol=0.06)
    assert variances[support].mean() > 2.5


@pytest.mark.parametrize("name", ["pitprops", "wine", "digits", "breast_cancer"])
def test_sets_that_need_no_folder(name):
    data = load_dataset(name)
    assert (data.X is None) != (data.covariance is None)
    values = data.covariance if data.X is None else data.X
    assert len(data.feature_names) == values.shape[1]


@pytest.mark.parametrize("name", ["pitprops", "wine", "digits", "breast_cancer"])
def test_sets_are_as_large_as_they_are_said_to_be(name):
    data, its = load_dataset(name), about(name)
    if data.X is None:
        assert (its.n_samples, its.n_features) == (None, len(data.covariance))
    else:
        assert (its.n_samples, its.n_features) == data.X.shape


def test_what_is_said_of_sets():
    for name in dataset_names():
        assert about(name).what
        assert about(name).origin
    with pytest.raises(ValueError, match="Unknown data set 'nope'"):
        about("nope")
    assert not is_at_hand("nope")


def test_without_the_folder_the_error_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.delenv("KSPAN_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"'duke'.*duke\.npz needs KSPAN_DATA"):
        load_dataset("duke")
    monkeypatch.setenv("KSPAN_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"duke\.npz is not in"):
        load_dataset("duke")
    with pytest.raises(ValueError, match=r"Unknown data set 'nope'; known are.*wine"):
        load_dataset("nope")


def test_files_of_the_folder(monkeypatch, tmp_path):
    import scipy.sparse

    monkeypatch.setenv("KSPAN_DATA", str(tmp_path))
    np.savez(tmp_path / "duke.npz", X=np.eye(2))
    np.savez(tmp_path / "lymphoma_cov.npz", A=np.eye(3))
    scipy.sparse.save_npz(tmp_path / "tdt2_sparse.npz", scipy.sparse.csr_array(np.eye(4)))
    assert load_dataset("duke").X.shape == (2, 2)
    assert load_dataset("lymphoma").covariance.shape == (3, 3)
    assert load_dataset("tdt2").X.nnz == 4


def test_openml_is_the_fallback(monkeypatch):
    import sklearn.datasets
    from sklearn.utils import Bunch

    def fetch(name, version, as_frame):
        assert (name, as_frame) == ("leukemia", False)
        return Bunch(data=np.eye(2), feature_names=["g1", "g2"])

    monkeypatch.delenv("KSPAN_DATA", raising=False)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    assert load_dataset("leukemia").feature_names == ("g1", "g2")


@pytest.mark.real_data
@pytest.mark.parametrize("name", dataset_names())
def test_every_name_loads(name):
    data, its = load_dataset(name), about(name)
    assert (data.X is None) != (data.covariance is None)
    values = data.covariance if data.X is None else data.X
    assert values.shape == (its.n_samples or its.n_features, its.n_features)


@pytest.mark.parametrize("eigenspace", ["uniform-svd", "uniform-qr", "haar"])
@pytest.mark.parametrize("scheme", "ABCD")
def test_schemes_have_their_spectrum_whatever_the_eigenspace(scheme, eigenspace):
    spectra = {"A": [100, 100, 4], "B": [300, 180, 60], "C": [300, 180, 60, 0]}
    expected = spectra.get(scheme, [160, 80, 40, 20, 10, 5, 2])
    A = make_scheme(scheme, eigenspace=eigenspace, random_state=3)
    values = np.linalg.eigvalsh(A)[::-1]
    floor = np.full(20 - len(expected), 0.0 if scheme == "C" else 1.0)
    np.testing.assert_allclose(values, [*expected, *floor], atol=1e-9)


def test_a_large_scheme_does_not_need_all_singular_vectors():
    A = make_scheme("D", 1100, random_state=0)
    values = np.linalg.eigvalsh(A)[::-1]
    np.testing.assert_allclose(values[:8], [160, 80, 40, 20, 10, 5, 2, 1], rtol=1e-9)
    # The leading left singular vector of positive numbers has one sign.
    vector = np.linalg.eigh(A)[1][:, -1]
    assert abs(np.sign(vector).sum()) == 1100


def test_unknown_eigenspace():
    with pytest.raises(ValueError, match="eigenspace must be one of"):
        make_scheme("A", eigenspace="flat")


def test_sensors_are_always_the_same_and_what_they_are_said_to_be():
    sensors = make_sensors()
    assert sensors.X.shape == (600, 48)
    assert len(set(sensors.names)) == 48
    for name, kind, site in zip(sensors.names, sensors.kinds, sensors.sites, strict=True):
        assert name == f"{kind} {site}"
    np.testing.assert_array_equal(sensors.X, make_sensors().X)
    assert not np.array_equal(sensors.X, make_sensors(random_state=1).X)
    # One price for a kind; several near copies, of temperature above all.
    assert len(set(zip(sensors.kinds, sensors.prices, strict=True))) == 6
    related = np.abs(np.triu(np.corrcoef(sensors.X.T), 1))
    assert np.count_nonzero(related > 0.95) >= 20
    warm = np.array([kind == "temperature" for kind in sensors.kinds])
    assert related[np.ix_(warm, warm)][np.triu_indices(8, 1)].min() > 0.95


def test_the_variance_of_a_sensor_is_that_of_its_model():
    sensors = make_sensors(50_000)
    place = sensors.names.index("NO2 harbour")
    expected = (1.0 * 0.5) ** 2 + (0.5 * 1.3) ** 2 + 0.2**2 + 0.4**2 + 0.5**2 + 0.25**2
    assert sensors.X[:, place].var() == pytest.approx(expected, rel=0.03)

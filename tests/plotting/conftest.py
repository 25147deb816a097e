import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from kspan import ElementSparsePCA, FeatureSparsePCA, NonnegativeSparsePCA
from kspan.choosing_k import selection_stability, sparsity_path
from kspan.records import FitRecord

NAMES = ["cost in $", "price $ per $", "<b>bold</b>", "x" * 60, "_hidden", "a^2_b", "g", "h"]


@pytest.fixture(autouse=True)
def tidy():
    """Agg, no figure left open, and nobody else's settings changed."""
    plt.switch_backend("Agg")
    before = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == before


@pytest.fixture
def ax():
    _, ax = plt.subplots()
    return ax


@pytest.fixture(scope="session")
def data():
    import pandas as pd

    rng = np.random.default_rng(0)
    hidden = rng.standard_normal((60, 3)) * [3.0, 2.0, 1.0]
    X = hidden @ rng.standard_normal((3, 8)) + 0.3 * rng.standard_normal((60, 8))
    return pd.DataFrame(X, columns=NAMES)


@pytest.fixture(scope="session")
def fitted(data):
    return FeatureSparsePCA(2, 5, certify="exact", random_state=0).fit(data)


@pytest.fixture(scope="session")
def nonnegative(data):
    return NonnegativeSparsePCA(2, 3, certify="fast", random_state=0).fit(data)


@pytest.fixture(scope="session")
def separate(data):
    return ElementSparsePCA(2, 3, certify="fast", random_state=0).fit(data)


@pytest.fixture(scope="session")
def nameless(data):
    return FeatureSparsePCA(2, 5, certify="fast", random_state=0).fit(data.to_numpy())


@pytest.fixture(scope="session")
def single(data):
    return FeatureSparsePCA(1, 3, certify="fast", random_state=0).fit(data)


@pytest.fixture(scope="session")
def path(data):
    return sparsity_path(data, 2, random_state=0)


@pytest.fixture(scope="session")
def stability(data):
    return selection_stability(data, 2, 5, random_state=0)


@pytest.fixture(scope="session")
def record(fitted, data, path, stability):
    return FitRecord.from_estimator(fitted, data, path=path, stability=stability)


@pytest.fixture(scope="session")
def bare_record(data):
    """Without certificate, path, stability and what plain PCA explains."""
    from dataclasses import replace

    fit = FeatureSparsePCA(2, 5, random_state=0).fit(data)
    return replace(FitRecord.from_estimator(fit, data), pca_variance=None, scores=None)

import os

# Tests run side by side and their matrices are small: a second BLAS thread only gets in the way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings

from tests.effort import examples

# Examples are drawn from a fixed seed, so that a failure in one run is a failure in the next.
settings.register_profile("default", examples(60), deadline=None, derandomize=True)
settings.load_profile("default")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "KSPAN_DATA" not in os.environ:
        skip = pytest.mark.skip(reason="set KSPAN_DATA to the folder of real data sets")
        for item in items:
            if "real_data" in item.keywords:
                item.add_marker(skip)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)

"""Proofs of wide data hold neither A nor anything else that grows with the square of d."""

import tracemalloc

import numpy as np
import pytest

from kspan import FeatureSparsePCA, RowSparseProblem, as_covariance
from kspan.proofs.check.row_sums import MATRIX_LIMIT, RowWitness


def peak_of(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def wide(n, d):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 3)) @ rng.standard_normal((3, d)) + rng.standard_normal((n, d))


@pytest.mark.parametrize("scale", [False, True])
def test_row_sums_read_the_matrix_in_blocks(scale):
    X = wide(12, 3 * MATRIX_LIMIT)
    problem = RowSparseProblem(as_covariance(X, scale=scale), 1, 10)
    assert peak_of(lambda: RowWitness().evaluate(problem)) < 8 * X.shape[1] ** 2 / 5


@pytest.mark.slow
@pytest.mark.parametrize("scale", [False, True])
def test_a_certified_fit_never_holds_the_matrix(scale):
    X = wide(60, 20_000)
    model = FeatureSparsePCA(2, 10, scale=scale, certify=True, random_state=0)
    assert peak_of(lambda: model.fit(X)) < 8 * X.shape[1] ** 2 / 10
    assert model.certificate_.upper >= model.objective_

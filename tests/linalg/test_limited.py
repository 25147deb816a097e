"""The nearest point under limits, against a quadratic program."""

import numpy as np
import pytest

from kspan.linalg.limited import LimitedBox


@pytest.mark.parametrize("seed", range(6))
def test_nearest_is_that_of_a_quadratic_program(seed):
    cvxpy = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(seed)
    unit_of = np.sort(rng.integers(0, 8, 14))
    unit_of = np.unique(unit_of, return_inverse=True)[1]
    n = int(unit_of.max()) + 1
    rows = np.vstack([np.ones(n), rng.random(n), rng.random((2, n)) < 0.4]).astype(float)
    most = np.array([2.5, 1.0, 1.0, 1.0])
    box, aim = LimitedBox(unit_of, rows, most), rng.normal(0.4, 0.5, unit_of.size)
    for _ in range(20):  # it goes on from where it ended
        found = box.nearest(aim)
    z = cvxpy.Variable(n)
    distance = cvxpy.sum_squares(z[unit_of] - aim)
    limits = [z >= 0, z <= 1, rows @ z <= most]
    cvxpy.Problem(cvxpy.Minimize(distance), limits).solve(solver="CLARABEL")
    np.testing.assert_allclose(found, z.value[unit_of], atol=1e-4)
    same = [len(set(found[unit_of == unit])) == 1 for unit in range(n)]
    assert all(same)

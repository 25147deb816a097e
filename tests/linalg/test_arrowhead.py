import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kspan.linalg.eigen import smallest_arrowhead_eigenvalue

number = st.floats(-5, 5, allow_subnormal=False)


@given(st.lists(st.tuples(number, number), min_size=1, max_size=6), number)
def test_an_upper_bound_close_to_the_eigenvalue(pairs, corner):
    poles, coupling = np.array(pairs).T
    matrix = np.diag(np.append(poles, corner))
    matrix[-1, :-1] = matrix[:-1, -1] = coupling
    exact = np.linalg.eigvalsh(matrix)[0]
    bound = smallest_arrowhead_eigenvalue(poles, coupling, np.array(corner), n_steps=3)
    rounding = 1e-13 * max(1.0, np.abs(matrix).max())
    assert bound >= exact - rounding
    start = smallest_arrowhead_eigenvalue(poles, coupling, np.array(corner), n_steps=0)
    assert bound <= start + rounding
    many = smallest_arrowhead_eigenvalue(poles, coupling, np.array(corner), n_steps=60)
    assert abs(many - exact) <= 1e-6


def test_one_pole_is_exact():
    bound = smallest_arrowhead_eigenvalue(np.array([2.0]), np.array([1.0]), np.array(3.0))
    assert abs(bound - np.linalg.eigvalsh([[2.0, 1.0], [1.0, 3.0]])[0]) < 1e-14

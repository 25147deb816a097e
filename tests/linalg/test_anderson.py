"""Anderson acceleration: exact on linear maps, harmless on others."""

import numpy as np
import pytest

from kspan.linalg.anderson import Anderson


def iterate(step, start, n_steps, accelerate=None):
    """Residuals of a fixed-point iteration."""
    point, residuals = start, []
    for _ in range(n_steps):
        image = step(point)
        residuals.append(float(np.linalg.norm(image - point)))
        point = image if accelerate is None else accelerate.propose(point, image)
    return point, residuals


def linear_map(rng, n, contraction):
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    M, b = (Q * np.linspace(-0.3, contraction, n)) @ Q.T, rng.standard_normal(n)
    return (lambda v: M @ v + b), np.linalg.solve(np.eye(n) - M, b)


def test_a_linear_map_is_solved_in_about_its_dimension():
    """With memory for all directions it is a Krylov method; the plain iteration needs hundreds."""
    rng = np.random.default_rng(0)
    step, answer = linear_map(rng, 6, 0.98)
    start = np.zeros(6)
    point, _ = iterate(step, start, 16, Anderson(8, 6, np.float64))
    plain, _ = iterate(step, start, 16)
    # The ridge of 1e-8 keeps it from being exact.
    assert np.linalg.norm(point - answer) < 1e-5 * np.linalg.norm(answer)
    assert np.linalg.norm(plain - answer) > 0.1 * np.linalg.norm(answer)


def test_the_first_steps_are_the_plain_ones():
    accelerate = Anderson(5, 3, np.float64)
    point, image = np.zeros(3), np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(accelerate.propose(point, image), image)
    second = np.array([1.5, 2.5, 3.5])
    np.testing.assert_array_equal(accelerate.propose(image, second), second)


def test_a_fixed_point_stays():
    accelerate = Anderson(5, 3, np.float64)
    point = np.array([1.0, 2.0, 3.0])
    for _ in range(6):
        proposed = accelerate.propose(point, point)
        np.testing.assert_array_equal(proposed, point)


def test_shape_and_type_are_kept():
    rng = np.random.default_rng(0)
    accelerate = Anderson(3, 12, np.float32)
    for _ in range(6):
        point, image = rng.standard_normal((2, 4, 3)).astype(np.float32)
        proposed = accelerate.propose(point, image)
        assert proposed.shape == (4, 3)
        assert proposed.dtype == np.float32


def test_a_residual_that_grew_leads_back_to_the_best_point():
    step, _ = linear_map(np.random.default_rng(0), 6, 0.9)
    accelerate = Anderson(8, 6, np.float64)
    point, _ = iterate(step, np.zeros(6), 4, accelerate)
    best = step(point)
    far = accelerate.propose(point, best)
    assert not np.array_equal(far, best)
    # The last step was the best so far: its plain image is where to go on from.
    np.testing.assert_array_equal(accelerate.propose(np.zeros(6), np.full(6, 1e6)), best)
    # And nothing is remembered.
    again = step(best)
    np.testing.assert_array_equal(accelerate.propose(best, again), again)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_handed_back_and_forgotten(bad):
    step, answer = linear_map(np.random.default_rng(0), 6, 0.9)
    accelerate = Anderson(8, 6, np.float64)
    iterate(step, np.zeros(6), 5, accelerate)
    image = np.full(6, bad)
    np.testing.assert_array_equal(accelerate.propose(np.zeros(6), image), image)
    point, _ = iterate(step, np.zeros(6), 25, accelerate)
    np.testing.assert_allclose(point, answer, rtol=1e-4, atol=1e-4)


def test_clear_forgets_everything():
    step, _ = linear_map(np.random.default_rng(0), 6, 0.9)
    accelerate = Anderson(8, 6, np.float64)
    iterate(step, np.zeros(6), 5, accelerate)
    accelerate.clear()
    point, image = np.zeros(6), np.ones(6)
    np.testing.assert_array_equal(accelerate.propose(point, image), image)


def test_a_nonlinear_iteration_converges_faster():
    """cos(x) in many coordinates, each at its own pace."""
    pace = np.linspace(0.2, 0.98, 20)

    def step(v):
        return pace * np.cos(v)

    _, plain = iterate(step, np.zeros(20), 15)
    _, fast = iterate(step, np.zeros(20), 15, Anderson(6, 20, np.float64))
    assert fast[-1] < 0.1 * plain[-1]

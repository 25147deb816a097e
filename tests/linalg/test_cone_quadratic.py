"""(P_d) against an enumeration of all active sets, and against feasible directions."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspan.linalg.cone_quadratic import leading_pair, narrow, search_cone
from kspan.linalg.machine import compiled
from tests.effort import examples
from tests.oracles import KINDS, cone_maximum_by_enumeration, draw_rows

seeds = st.integers(0, 2**32 - 1)


def cone_maximum(Q, R):
    """Return the largest c'Qc over unit vectors with Rc ≥ 0, and c; None if there is none."""
    best = np.zeros(len(Q))
    value = search_cone(np.ascontiguousarray(Q), np.ascontiguousarray(R), len(R), -np.inf, best)
    return None if value == -np.inf else (float(value), best)


@examples(600)
@given(seeds, st.integers(1, 4), st.integers(0, 6), st.sampled_from(KINDS), st.booleans())
def test_the_search_equals_an_enumeration_of_active_sets(seed, d, k, kind, gram):
    """With Q = R'R, as in the spannogram, and with any symmetric Q."""
    rng = np.random.default_rng(seed)
    R = draw_rows(rng, k, d, kind)
    Q = R.T @ R if gram else rng.standard_normal((d, d))
    Q = Q + Q.T
    found, expected = cone_maximum(Q, R), cone_maximum_by_enumeration(Q, R)
    assert (found is None) == (expected is None)
    if found is not None:
        value, c = found
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert np.linalg.norm(c) == pytest.approx(1)
        assert c @ Q @ c == pytest.approx(value, rel=1e-9, abs=1e-9)
        assert (R @ c >= -1e-9 * np.linalg.norm(R, axis=1)).all()


@given(seeds, st.integers(2, 5))
def test_no_feasible_direction_is_better(seed, d):
    rng = np.random.default_rng(seed)
    R = rng.standard_normal((4, d)) + 0.5
    C = rng.standard_normal((2000, d))
    C = C[(C @ R.T >= 0).all(axis=1)]
    C /= np.linalg.norm(C, axis=1, keepdims=True)
    Q = R.T @ R
    found = cone_maximum(Q, R)
    assert len(C) == 0 or found[0] >= np.einsum("ij,jk,ik->i", C, Q, C).max() - 1e-12


def test_two_opposite_rows_leave_a_line():
    Q = np.array([[1.0, 0.5], [0.5, 2.0]])
    value, c = cone_maximum(Q, np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, -1.0]]))
    assert value == pytest.approx(2)
    np.testing.assert_allclose(c, [0, -1])


def test_a_cone_of_zero_only():
    assert cone_maximum(np.eye(2), np.array([[1.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]])) is None
    assert cone_maximum(np.eye(1), np.array([[1.0], [-1.0]])) is None


def test_no_rows_and_zero_rows():
    assert cone_maximum(np.diag([1.0, 4.0]), np.empty((0, 2)))[0] == pytest.approx(4)
    assert cone_maximum(np.diag([1.0, 4.0]), np.zeros((3, 2)))[0] == pytest.approx(4)
    assert cone_maximum(np.zeros((3, 3)), np.eye(3))[0] == 0


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_huge_and_tiny_scales(rng, scale):
    R = rng.standard_normal((5, 3)) + 1
    value, _ = cone_maximum(R.T @ R, R)
    assert cone_maximum(scale * R.T @ R, scale * R)[0] == pytest.approx(scale * value, rel=1e-12)


@given(seeds, st.integers(1, 7))
def test_leading_pair_of_a_small_matrix(seed, p):
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((p, p))
    S = S + S.T
    u = np.empty(p)
    value = leading_pair(S.copy(), u)
    assert value == pytest.approx(np.linalg.eigvalsh(S)[-1], abs=1e-12)
    np.testing.assert_allclose(S @ u, value * u, atol=1e-12)


@given(seeds, st.integers(2, 6))
def test_narrowing_a_basis(seed, d):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, d + 1))
    B = np.zeros((d, d))
    B[:, :p] = np.linalg.qr(rng.standard_normal((d, p)))[0]
    row, out = rng.standard_normal(d), np.zeros((d, d))
    assert narrow(B, p, row, 1.0, out)
    N = out[:, : p - 1]
    np.testing.assert_allclose(N.T @ N, np.eye(p - 1), atol=1e-12)
    np.testing.assert_allclose(row @ N, 0, atol=1e-12)
    np.testing.assert_allclose(B @ (B.T @ N), N, atol=1e-12)


def test_no_place_for_the_compiled_code(monkeypatch):
    """Where nothing can be written numba refuses a cache; the code is compiled all the same."""
    njit = numba.njit

    def refuse(*args, cache=False, **options):
        if cache:
            return _no_locator
        return njit(*args, **options)

    monkeypatch.setattr(numba, "njit", refuse)

    @compiled
    def double(x):
        return 2 * x

    assert double(21) == 42


def _no_locator(function):
    raise RuntimeError("cannot cache function: no locator available")

"""Moves that are tried many at a time: the same as each of them on its own."""

import numpy as np
import pytest

from kspan.linalg.pattern_kernels import first_better, lone_overlap, raise_on_pattern
from kspan.problem import Patterns
from kspan.solvers.stiefel.pattern_moves import Guesses, joined


def climbed(S, mask, disjoint, rng):
    """Return what a pattern is worth: of disjoint supports by eigenvalues."""
    if disjoint:
        return sum(np.linalg.eigvalsh(S[np.ix_(m, m)])[-1] for m in mask.T)
    starts = [rng.standard_normal(mask.shape) for _ in range(8)]
    return max(raise_on_pattern(S, U, mask, 500, 1e-12, -1.0)[1] for U in starts)


def moved(mask, move):
    trial = mask.copy()
    for part in range(4):
        i, t = move[2 * part : 2 * part + 2]
        if i >= 0:
            trial[i, t] = part >= 2
    return trial


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("d", [9, 14])
def test_the_first_move_that_helps_is_found(rng, disjoint, d):
    n_found = 0
    for _ in range(10):
        X = rng.standard_normal((2 * d, d)) @ rng.standard_normal((d, d))
        S = np.cov(X.T)
        S /= np.linalg.eigvalsh(S)[-1]
        patterns = Patterns.of(d, 3, 3, disjoint=disjoint)
        mask = patterns.select(rng.uniform(0.1, 1.0, size=(d, 3)))
        U, value = raise_on_pattern(S, rng.standard_normal((d, 3)), mask, 500, 1e-12, -1.0)
        if not np.isfinite(value):
            continue
        value = climbed(S, mask, True, rng) if disjoint else value
        guesses = Guesses(S, U, mask, patterns)
        kinds = [guesses.single(500), guesses.between(500), guesses.double(100)]
        moves = joined(kinds).best(400)
        least = 1e-3
        number, V, pattern, reached = first_better(S, U, mask, value, moves, disjoint, least)
        if number >= 0:
            n_found += 1
            np.testing.assert_array_equal(pattern, moved(mask, moves[number]))
            np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-9)
            assert not V[~pattern].any()
            assert np.trace(V.T @ S @ V) == pytest.approx(reached, rel=1e-9)
            assert reached > value + least
        if disjoint:  # none before it helps, by the definition
            before = moves[: number if number >= 0 else len(moves)]
            values = [climbed(S, moved(mask, move), True, rng) for move in before]
            assert max(values, default=0.0) <= value + least + 1e-9
    assert n_found


def test_trials_leave_nothing_behind(rng):
    """Whatever was tried before it, a move is worth the same."""
    d = 12
    S = np.cov(rng.standard_normal((20, d)).T)
    S /= np.linalg.eigvalsh(S)[-1]
    patterns = Patterns.of(d, 3, 4)
    mask = patterns.select(rng.uniform(size=(d, 3)))
    while lone_overlap(mask):
        mask = patterns.select(rng.uniform(size=(d, 3)))
    U, value = raise_on_pattern(S, rng.standard_normal((d, 3)), mask, 500, 1e-12, -1.0)
    guesses = Guesses(S, U, mask, patterns)
    moves = joined([guesses.single(500), guesses.double(200)]).best(400)
    number, V, pattern, reached = first_better(S, U, mask, value, moves, False, 1e-9)
    assert number > 0
    alone = first_better(S, U, mask, value, moves[number : number + 1], False, 1e-9)
    assert alone[0] == 0
    assert alone[3] == reached
    np.testing.assert_array_equal(alone[1], V)
    np.testing.assert_array_equal(alone[2], pattern)

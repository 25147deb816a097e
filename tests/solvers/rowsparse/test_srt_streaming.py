import numpy as np
import pytest
import scipy.sparse as sp

from kspan import RowSparseProblem, as_covariance, solve
from kspan.datasets import make_planted


def by_the_listing(X, m, k, block_size, n_warm, W):
    """The streaming form on centred rows, block by block, as the paper prints it."""
    for i, start in enumerate(range(0, len(X), block_size), start=1):
        block = X[start : start + block_size]
        S = block.T @ (block @ W) / len(block)
        if i > n_warm:
            gone = np.argsort(-np.linalg.norm(S, axis=1), kind="stable")[k:]
            S[gone] = 0.0
        W = np.linalg.qr(S)[0]
    return np.flatnonzero(S.any(axis=1))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_it_is_the_listing_in_one_pass(kind):
    X, _ = make_planted(400, 30, 6, 2, random_state=1)
    rng = np.random.default_rng(5)
    W = np.linalg.qr(rng.standard_normal((30, 2)))[0]
    expected = by_the_listing(X - X.mean(axis=0), 2, 6, 50, 2, W)
    covariance = as_covariance(sp.csr_array(X) if kind == "sparse" else X)
    before = covariance.n_passes
    problem = RowSparseProblem(covariance, 2, 6)
    solution = solve(problem, "streaming-srt", random_state=5, block_size=50, warm_up=0.25)
    assert np.array_equal(solution.support, expected)
    assert solution.n_iter == 8
    # One over all rows, one over the k chosen columns.
    assert covariance.n_passes - before == 2


def test_it_finds_a_planted_support():
    X, support = make_planted(4000, 100, 8, 2, signal=6.0, random_state=0)
    problem = RowSparseProblem(as_covariance(X), 2, 8)
    solution = solve(problem, "streaming-srt", random_state=0)
    assert np.array_equal(solution.support, support)


def test_few_samples_make_few_blocks(rng):
    X = rng.standard_normal((9, 50))
    solution = solve(RowSparseProblem(as_covariance(X), 2, 20), "streaming-srt", random_state=0)
    assert solution.n_iter == 4  # of two or three rows: at least as many as components


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block_size": 0}, "block_size must be a whole number, 1 or more"),
        ({"block_size": 2.5}, "block_size must be a whole number"),
        ({"warm_up": 2.0}, "warm_up must be"),
    ],
)
def test_wrong_options(rng, options, message):
    problem = RowSparseProblem(as_covariance(rng.standard_normal((9, 5))), 1, 2)
    with pytest.raises(ValueError, match=message):
        solve(problem, "streaming-srt", **options)


def test_a_matrix_has_no_rows():
    problem = RowSparseProblem(as_covariance(np.eye(4), kind="covariance"), 1, 2)
    with pytest.raises(ValueError, match="no rows to stream; give the data"):
        solve(problem, "streaming-srt")


def test_blocks_that_tell_nothing_are_passed_over():
    X, support = make_planted(400, 20, 4, 1, signal=6.0, random_state=0)
    X -= X.mean(axis=0)
    X = np.vstack([X, np.zeros((80, 20))])  # rows at the mean
    problem = RowSparseProblem(as_covariance(X), 1, 4)
    solution = solve(problem, "streaming-srt", random_state=0, block_size=40)
    assert np.array_equal(solution.support, support)

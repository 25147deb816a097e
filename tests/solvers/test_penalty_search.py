"""The search for a penalty, with trials of our own."""

from functools import partial

import numpy as np
import pytest

from kspan import as_covariance
from kspan.progress import Monitor, Status
from kspan.solvers.penalty_search import Trial, bisect_penalty


def attempts(counts_of, d=10):
    """Trials whose numbers of features are a function of the penalty."""

    def attempt(penalties):
        Z = np.zeros((d, len(penalties)))
        for j, count in enumerate(counts_of(penalty) for penalty in penalties):
            Z[:count, j] = np.arange(count, 0, -1)
        return Trial(Z, Z, 1, True)

    return attempt


@pytest.mark.parametrize(("k", "at_least", "expected"), [(4, True, 4), (7, True, 9), (7, False, 4)])
def test_bisection_finds_k_or_its_neighbour_on_the_side_asked_for(k, at_least, expected):
    steps = {9: 0.31, 4: 0.62, 1: 1.0}

    def counts_of(penalty):
        return next(count for count, until in steps.items() if penalty < until)

    search = bisect_penalty(
        attempts(counts_of), as_covariance(np.eye(10), kind="covariance"), k, 1,
        at_least=at_least, width=1e-6, monitor=Monitor("x"),
    )  # fmt: skip
    assert search.trial.n_features.tolist() == [expected]
    assert len(search.history) == search.n_iter
    cut = search.trial.cut(k)[:, 0]
    assert np.flatnonzero(cut).tolist() == list(range(min(k, expected)))
    assert np.linalg.norm(cut) == pytest.approx(1)


def test_every_column_has_a_penalty_of_its_own():
    seen = []

    def attempt(penalties):
        seen.append(penalties)
        Z = np.zeros((10, 2))
        Z[: int(10 * (1 - penalties[0])), 0] = 1
        Z[: int(10 * (1 - penalties[1]) ** 2), 1] = 1
        return Trial(Z, Z, 1, True)

    search = bisect_penalty(
        attempt, as_covariance(np.eye(10), kind="covariance"), 3, 2,
        at_least=True, width=1e-6, monitor=Monitor("x"),
    )  # fmt: skip
    assert search.trial.n_features.tolist() == [3, 3]
    assert seen[-1][0] != seen[-1][1]


@pytest.mark.parametrize("failing", [1, 3])
def test_an_interrupt_in_the_search_keeps_the_nearest_trial(failing):
    calls = []

    def attempt(penalties):
        calls.append(1)
        if len(calls) == failing:
            raise KeyboardInterrupt
        return attempts(lambda penalty: 9)(penalties)

    monitor = Monitor("x")
    search = partial(
        bisect_penalty, attempt, as_covariance(np.eye(10), kind="covariance"), 4, 1,
        at_least=True, width=1e-6, monitor=monitor,
    )  # fmt: skip
    if failing == 1:
        with pytest.raises(KeyboardInterrupt):
            search()
    else:
        assert search().status is monitor.stopped is Status.INTERRUPTED

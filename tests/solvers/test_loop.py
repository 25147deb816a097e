import numpy as np
import pytest

from kspan.problem.solution import Candidate
from kspan.progress import Monitor, Status
from kspan.solvers.loop import iterate


def at(support, value):
    return Candidate(np.array([support]), np.ones((1, 1)), np.array([float(value)]))


def test_it_ends_when_the_support_repeats():
    values = {0: (1, 5.0), 1: (2, 6.0), 2: (2, 6.0)}
    run = iterate(
        [at(0, 1.0)],
        lambda batch: [at(*values[int(c.support[0])]) for c in batch],
        max_iter=10,
        monitor=Monitor("test"),
    )
    assert run.status is Status.CONVERGED
    assert run.history == [1.0, 5.0, 6.0, 6.0]
    assert run.n_iter == 3


def test_the_best_is_kept_when_a_method_is_not_monotone():
    values = {0: (1, 9.0), 1: (2, 6.0), 2: (2, 6.0)}
    run = iterate(
        [at(0, 1.0)],
        lambda batch: [at(*values[int(c.support[0])]) for c in batch],
        max_iter=10,
        monitor=Monitor("test"),
    )
    assert run.best.objective == 9.0
    assert run.history == [1.0, 9.0, 6.0, 6.0], "the history keeps every step"


def test_starts_that_meet_are_followed_once():
    seen = []

    def step(batch):
        seen.append(len(batch))
        return [at(min(int(c.support[0]) + 1, 5), 1.0) for c in batch]

    iterate([at(0, 1.0), at(1, 1.0), at(4, 1.0)], step, max_iter=50, monitor=Monitor("test"))
    assert seen[0] == 3
    assert seen[1:] == sorted(seen[1:], reverse=True)
    assert seen[-1] == 1


def test_the_keyboard_interrupts_without_losing_the_best():
    def step(batch):
        if batch[0].objective > 2:
            raise KeyboardInterrupt
        return [at(int(batch[0].support[0]) + 1, batch[0].objective + 1)]

    run = iterate([at(0, 1.0)], step, max_iter=50, monitor=Monitor("test"))
    assert run.status is Status.INTERRUPTED
    assert run.best.objective == 3.0


def test_callback_and_time_limit():
    def climb(batch):
        return [at(int(batch[0].support[0]) + 1, batch[0].objective + 1)]

    told = []

    def callback(progress):
        told.append(progress)
        return progress.iteration == 4

    run = iterate([at(0, 1.0)], climb, max_iter=50, monitor=Monitor("name", callback))
    assert run.status is Status.STOPPED
    assert [p.objective for p in told] == [1.0, 2.0, 3.0, 4.0]
    assert told[0].solver == "name"
    run = iterate([at(0, 1.0)], climb, max_iter=50, monitor=Monitor("name", deadline=1e-9))
    assert run.status is Status.TIME_LIMIT


@pytest.mark.parametrize("status", Status)
def test_every_status_has_advice(status):
    assert status.advice.endswith(".")


def test_a_subspace_must_repeat_and_not_only_its_support():
    """On one support the directions still turn: by half the angle each time."""

    def turn(batch):
        angle = np.arctan2(*batch[0].weights[::-1, 0]) / 2
        weights = np.array([[np.cos(angle)], [np.sin(angle)]])
        return [Candidate(np.array([0, 1]), weights, np.array([np.cos(angle)]))]

    first = Candidate(np.array([0, 1]), np.array([[0.0], [1.0]]), np.array([0.0]))
    run = iterate([first], turn, max_iter=100, monitor=Monitor("test"), monotone=False)
    assert run.status is Status.CONVERGED
    assert 15 < run.n_iter < 25
    assert run.best.objective == pytest.approx(1.0)


def test_a_method_that_goes_round_ends_at_the_limit():
    def swap(batch):
        return [at(1 - int(c.support[0]), 3.0 - c.objective) for c in batch]

    run = iterate([at(0, 1.0)], swap, max_iter=7, monitor=Monitor("test"), monotone=False)
    assert run.status is Status.MAX_ITER
    assert run.n_iter == 7
    assert run.best.objective == 2.0


def test_every_start_has_its_own_best_and_last():
    """0 falls from 9; 1 climbs; 2 meets 1 on the way and ends where that ends."""
    path = {0: (10, 2.0), 10: (10, 2.0), 1: (2, 5.0), 2: (3, 6.0), 3: (3, 6.0)}

    def step(batch):
        return [at(*path[int(c.support[0])]) for c in batch]

    starts = [at(0, 9.0), at(1, 1.0), at(2, 5.0)]
    run = iterate(starts, step, max_iter=20, monitor=Monitor("test"))
    assert [c.objective for c in run.last] == [2.0, 6.0, 6.0]
    assert [c.objective for c in run.best_of_each] == [9.0, 6.0, 6.0]
    apart = iterate(starts, step, max_iter=20, monitor=Monitor("test"), monotone=False)
    assert [c.objective for c in apart.last] == [2.0, 6.0, 6.0]
    assert [c.objective for c in apart.best_of_each] == [9.0, 6.0, 6.0]


def test_the_last_step_is_reported_and_reports_are_the_best_so_far():
    values = {0: (1, 9.0), 1: (2, 6.0), 2: (2, 6.0)}
    told = []
    iterate(
        [at(0, 1.0)],
        lambda batch: [at(*values[int(c.support[0])]) for c in batch],
        max_iter=10,
        monitor=Monitor("test", lambda progress: told.append(progress.objective)),
    )
    assert told == [1.0, 9.0, 9.0, 9.0]


@pytest.mark.parametrize("max_iter", [-1, 2.5, True, "3"])
def test_the_limit_must_be_a_count(max_iter):
    with pytest.raises(ValueError, match="max_iter must be a whole number, 0 or more"):
        iterate([at(0, 1.0)], lambda batch: batch, max_iter=max_iter, monitor=Monitor("test"))

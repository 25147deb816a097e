"""What a user sees while a long fit runs."""

import io
import math
import pickle
import time

import pytest

from kspan.progress import Deadline, Monitor, Reading, Status, log_reading, worst


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_bar_that_grows(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    for rows in (250_000, 1_000_000):
        log_reading(Reading("data.npy", 2, rows, 1_000_000, 0.5))
    first, last = screen.getvalue().split("\r")[1:]
    assert first.count("█") == 6
    assert first.count("░") == 18
    assert "pass   2" in first
    assert "250,000 of 1,000,000 rows" in first
    assert not first.endswith("\n"), "the bar is drawn over"
    assert last.endswith("\n")
    assert "░" not in last


def test_a_pipe_gets_a_line_for_each_pass(monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)
    for rows in (250_000, 1_000_000):
        log_reading(Reading("data.npy", 2, rows, 1_000_000, 0.5))
    assert pipe.getvalue() == "[kspan] pass   2   1,000,000 of 1,000,000 rows   0.5 s\n"


def test_every_status_has_advice():
    for status in Status:
        assert status.advice.endswith(".")
    assert {s for s in Status if s.stopped_early} == {
        Status.TIME_LIMIT, Status.INTERRUPTED, Status.STOPPED,
    }  # fmt: skip
    assert worst([Status.OPTIMAL, Status.TIME_LIMIT, Status.MAX_ITER]) is Status.TIME_LIMIT
    assert worst([Status.CONVERGED, Status.BOUNDED]) is Status.BOUNDED


def test_deadlines(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("kspan.progress.time.perf_counter", lambda: now[0])
    whole = Deadline(10)
    half = whole.part(0.5)
    assert (whole.left, half.left, Deadline().left) == (10, 5, float("inf"))
    assert Deadline().part(0.5).left == float("inf")
    assert whole.within(60).left == 10
    now[0] = 106.0
    assert half.passed
    assert half.left == 0
    assert not whole.passed
    with pytest.raises(ValueError, match="time_limit must be positive, got 0"):
        Deadline(0)


def test_a_part_that_is_out_of_time_does_not_stop_the_whole(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("kspan.progress.time.perf_counter", lambda: now[0])
    whole = Monitor("whole", deadline=10)
    part = whole.inner("part", share=0.5)
    now[0] = 6.0
    assert part.report(1.0)
    assert part.stopped is Status.TIME_LIMIT
    assert not whole.out_of_time()
    now[0] = 11.0
    assert whole.out_of_time()


@pytest.mark.parametrize("reason", [Status.INTERRUPTED, Status.STOPPED])
def test_whoever_stops_a_part_stops_the_whole(reason):
    whole = Monitor("whole")
    part = whole.inner().inner(quiet=True)
    sister = whole.inner()
    part.stopped = reason
    assert whole.stopped is reason
    assert sister.out_of_time()
    assert sister.stopped is reason


def test_reports_of_parts_are_in_the_users_units():
    told = []
    whole = Monitor("whole", told.append)
    whole.inner("part", unit=4.0).inner(unit=2.0).report(3.0, upper=5.0)
    whole.inner(quiet=True).report(1.0)
    (only,) = told
    assert (only.solver, only.objective, only.upper) == ("part", 24.0, 40.0)


def test_a_deadline_is_the_same_moment_in_a_process_with_another_counter(monkeypatch):
    sent, no_limit = pickle.dumps(Deadline(50)), pickle.dumps(Deadline())
    real = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: real() + 1e6)
    assert pickle.loads(sent).left == pytest.approx(50, abs=5)
    assert pickle.loads(no_limit).left == math.inf

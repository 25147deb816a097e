"""What a user sees while a long fit runs."""

import io

from kspan.progress import Reading, log_reading


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

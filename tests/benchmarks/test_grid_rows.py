"""Grid searches to be timed: all memories choose the same."""

from benchmarks.peers.grid_rows import grid_rows


def test_rows_of_a_search_agree():
    rows = dict(grid_rows(("breast cancer",)))
    assert len(rows) == 3
    answers = [run() for run in rows.values()]
    assert answers[0] == answers[1] == answers[2]

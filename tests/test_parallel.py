"""The same results in the same order, whoever computes them."""

import os
import subprocess
import sys
from operator import neg

import joblib
import pytest

from kspan.parallel import in_order, n_workers, threads


def test_none_is_one_or_what_joblib_was_told():
    assert n_workers(None) == n_workers(1) == 1
    assert n_workers(3) == 3
    assert n_workers(-1) == joblib.cpu_count()
    with joblib.parallel_config("threading", n_jobs=2):
        assert n_workers(None) == 2


def test_who_does_all_himself_does_not_wait_for_joblib():
    code = (
        "import sys; from kspan.parallel import in_order; "
        "assert list(in_order(abs, [-1, 2], None)) == [1, 2]; assert 'joblib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_results_come_in_order(backend):
    with joblib.parallel_config(backend):
        assert list(in_order(neg, range(9), 2)) == list(range(0, -9, -1))


def leave(number):
    if number == 2 and os.environ.get("KSPAN_TEST_HOME") != str(os.getpid()):
        os._exit(1)
    return -number


def test_what_a_dead_worker_leaves_is_done_here(monkeypatch):
    monkeypatch.setenv("KSPAN_TEST_HOME", str(os.getpid()))
    with pytest.warns(RuntimeWarning, match="A worker died"):
        assert list(in_order(leave, range(4), 2)) == [0, -1, -2, -3]


def test_an_error_of_the_work_is_raised():
    with joblib.parallel_config("threading"), pytest.raises(ZeroDivisionError):
        list(in_order((1).__truediv__, [1, 0, 1], 2))


def test_threads_are_there_when_they_are_asked_for():
    with threads(None) as none, threads(1) as one:
        assert none is None
        assert one is None
    with threads(2) as pool:
        assert list(pool.map(neg, [1, 2])) == [-1, -2]
    with pytest.raises(ValueError, match="n_jobs must not be 0"), threads(0):
        pass

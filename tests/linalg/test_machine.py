"""How the machine is used: what is limited is given back."""

import sys
import threading
from types import ModuleType

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kspan.linalg.machine import _Libraries, one_blas_thread, threads_for


def threads_by_library():
    return {
        found["filepath"]: found["num_threads"]
        for found in threadpool_info() if found["user_api"] == "blas"
    }  # fmt: skip


@pytest.fixture
def blas_threads():
    """Whatever the machine has, on two threads; libraries that other packages bring may refuse."""
    with threadpool_limits(limits=2, user_api="blas"):
        able = {path for path, count in threads_by_library().items() if count == 2}
        assert able
        yield lambda: {count for path, count in threads_by_library().items() if path in able}


def test_blocks_within_blocks(blas_threads):
    with one_blas_thread():
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}, "the outer block is not done"
    assert blas_threads() == {2}


def test_an_error_gives_the_threads_back(blas_threads):
    with pytest.raises(RuntimeError), one_blas_thread():
        raise RuntimeError
    assert blas_threads() == {2}


def test_threads_that_overlap_leave_the_process_as_it_was(blas_threads):
    """The first one in leaves before the second one does."""
    inside, leave = threading.Event(), threading.Event()

    def second():
        with one_blas_thread():
            inside.set()
            leave.wait(10)

    other = threading.Thread(target=second)
    with one_blas_thread():
        other.start()
        inside.wait(10)
    between = blas_threads()
    leave.set()
    other.join(10)
    assert between == {1}, "the second one still works"
    assert blas_threads() == {2}


def test_libraries_are_looked_for_again_after_an_import(monkeypatch):
    libraries = _Libraries()
    first = libraries.controller()
    assert libraries.controller() is first
    monkeypatch.setitem(sys.modules, "a_module_that_brings_a_library", ModuleType("one"))
    assert libraries.controller() is not first


def test_few_entries_are_worked_on_by_one_thread_and_many_by_all(blas_threads):
    with threads_for(1000):
        assert blas_threads() == {1}
    with threads_for(10**9):
        assert blas_threads() == {2}

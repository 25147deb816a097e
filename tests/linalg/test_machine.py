"""How the machine is used: what is limited is given back."""

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kspan.linalg.machine import one_blas_thread


def blas_threads():
    return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    """Whatever the machine has: a library that is on one thread already shows nothing."""
    with threadpool_limits(limits=2, user_api="blas"):
        assert blas_threads() == {2}
        yield


def test_blocks_within_blocks():
    with one_blas_thread():
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}, "the outer block is not done"
    assert blas_threads() == {2}


def test_an_error_gives_the_threads_back():
    with pytest.raises(RuntimeError), one_blas_thread():
        raise RuntimeError
    assert blas_threads() == {2}


def test_threads_that_overlap_leave_the_process_as_it_was():
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

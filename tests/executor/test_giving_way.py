"""Work that gives way to steps where processors are scarce."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from headrace.executor.threads import giving_way


def test_it_runs_in_a_thread_of_its_own_and_gives_what_comes_of_it():
    assert giving_way(lambda: threading.current_thread().name) == "headrace gives way"
    with pytest.raises(ZeroDivisionError):
        giving_way(lambda: 1 // 0)


@pytest.mark.skipif(sys.platform != "linux", reason="threads have niceness on Linux")
def test_only_that_thread_is_nice():
    def niceness():
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = niceness()
    assert giving_way(niceness) > before
    assert niceness() == before

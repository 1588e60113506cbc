"""Timing what runs in a test and nothing else."""

import contextlib
import gc
import time


@contextlib.contextmanager
def only_own_time():
    """The processor's seconds spent within, without the collector.

    It would walk whatever earlier tests of the process left behind: another time in each run.
    """
    gc.collect()
    gc.disable()
    start = time.process_time()
    end = None
    try:
        yield lambda: (time.process_time() if end is None else end) - start
    finally:
        end = time.process_time()
        gc.enable()

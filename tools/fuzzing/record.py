"""Calls functions of real TensorFlow and keeps what comes out: `tools/fuzz_ops.py record`."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from typing import Any

from fuzzing.store import Result, digest
from fuzzing.table import FOUND, UNKNOWN, Entry, build, entries, make_call

#: Calls whose result says that TensorFlow has no such kernel, or died: nothing to agree with.
_NOTHING = "nothing"
_NO_KERNEL = ("No OpKernel", "Could not find device", "Cannot assign a device", "Could not satisfy")
#: How many calls of each function are stored in which nothing is known of shapes.
STORED_UNKNOWN = 4


def result_of(tf: Any, entry: Entry, draw: int) -> Result:
    """Run one call in a graph and session of its own."""
    call = make_call(entry, draw)
    error, values = "", []
    with tf.Graph().as_default():
        try:
            built = build(entry, call, tf)
            rewriting = tf.ConfigProto()
            rewriting.graph_options.rewrite_options.disable_meta_optimizer = True
            with tf.Session(config=rewriting) as session:
                values = session.run(built.fetches, built.feeds)
        except tf.errors.UnimplementedError:
            error = _NOTHING
        except Exception as raised:
            no_kernel = any(sign in str(raised) for sign in _NO_KERNEL)
            error = _NOTHING if no_kernel else type(raised).__name__
    return Result(entry.name, draw, digest(call), error, _arrays(values))


def _arrays(values: Any) -> list[Any]:
    import numpy as np

    return [np.asarray(v, object) if isinstance(v, bytes) else np.asarray(v) for v in values]


def _child(tf: Any, entry: Entry, draws: Sequence[int], wanted: int, out: int) -> None:
    """Send results through a pipe until enough are there."""
    with os.fdopen(out, "wb") as pipe:
        for draw in draws:
            if wanted <= 0:
                break
            result = result_of(tf, entry, draw)
            wanted -= result.error != _NOTHING
            pickle.dump(result, pipe)
            pipe.flush()


def _some(tf: Any, entry: Entry, draws: Sequence[int], wanted: int) -> list[Result]:
    """So many results of calls that have one. Each runs in a child: some end the process."""
    found: list[Result] = []
    while len(found) < wanted and draws:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            try:
                _child(tf, entry, draws, wanted - len(found), write)
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            while True:
                try:
                    result = pickle.load(pipe)
                except EOFError:
                    break
                draws = draws[1:]
                if result.error != _NOTHING:
                    found.append(result)
        os.waitpid(pid, 0)
        draws = draws[1:]  # the call that ended the process
    return found


def record(tf: Any, entry: Entry, first: int, calls: int | None) -> list[Result]:
    """The results of one function: of its stored calls, or of others.

    Args:
        first: the number of the first call.
        calls: how many; None for those of the table.
    """
    count = entry.calls if calls is None else calls
    found = _some(tf, entry, range(first, first + 3 * count), count)
    if calls is None:
        found += _some(tf, entry, range(UNKNOWN, UNKNOWN + 3 * STORED_UNKNOWN), STORED_UNKNOWN)
        also = FOUND.get(entry.name, ())
        found += _some(tf, entry, also, len(also))
    return found


def record_all(tf: Any, names: list[str], first: int = 0, calls: int | None = None) -> list[Result]:
    """The results of all functions, or of those named; of which calls ``record`` says."""
    results: list[Result] = []
    for name, entry in entries().items():
        if not names or name in names:
            found = record(tf, entry, first, calls)
            failed = sum(1 for r in found if r.error)
            print(f"{name}: {len(found)} calls, {failed} fail", file=sys.stderr, flush=True)
            results.extend(found)
    return results

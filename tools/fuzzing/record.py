"""Calls functions of real TensorFlow and keeps what comes out: `tools/fuzz_ops.py record`."""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any

from fuzzing.store import Result, digest
from fuzzing.table import Entry, build, entries, make_call

#: Calls whose result says that TensorFlow has no such kernel, or died: nothing to agree with.
_NOTHING = "nothing"
_NO_KERNEL = ("No OpKernel", "Could not find device", "Cannot assign a device", "Could not satisfy")


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


def _child(tf: Any, entry: Entry, first: int, wanted: int, most: int, out: int) -> None:
    """Send results through a pipe until enough are there."""
    with os.fdopen(out, "wb") as pipe:
        for draw in range(first, most):
            if wanted <= 0:
                break
            result = result_of(tf, entry, draw)
            wanted -= result.error != _NOTHING
            pickle.dump(result, pipe)
            pipe.flush()


def record(tf: Any, entry: Entry) -> list[Result]:
    """The results of one function. Each runs in a child process: some calls end the process."""
    found: list[Result] = []
    first, most = 0, 3 * entry.calls
    while len(found) < entry.calls and first < most:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            try:
                _child(tf, entry, first, entry.calls - len(found), most, write)
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            while True:
                try:
                    result = pickle.load(pipe)
                except EOFError:
                    break
                first = result.draw + 1
                if result.error != _NOTHING:
                    found.append(result)
        os.waitpid(pid, 0)
        first += 1 if len(found) < entry.calls else 0  # the call that ended the process
    return found


def record_all(tf: Any, names: list[str]) -> list[Result]:
    """The results of all functions, or of those named."""
    results: list[Result] = []
    for name, entry in entries().items():
        if not names or name in names:
            found = record(tf, entry)
            failed = sum(1 for r in found if r.error)
            print(f"{name}: {len(found)} calls, {failed} fail", file=sys.stderr, flush=True)
            results.extend(found)
    return results

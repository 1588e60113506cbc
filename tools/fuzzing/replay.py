"""Headrace on the stored calls: interpreted as in a first run, and compiled as in later ones."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzzing.differences import Disagreement
from fuzzing.draws import Call
from fuzzing.store import Result, digest
from fuzzing.table import Built, Entry, build, entries, make_call

#: How many calls make one graph and one step.
BATCH = 40
#: The two forms in which a step runs; a first run is mostly interpreted, a tenth compiled.
FORMS = {"interpreted": "always", "compiled": "never"}
#: After so many batches the programs are given up: they take memory.
_BATCHES_KEPT = 50

RTOL = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-9, "complex64": 2e-5, "complex128": 1e-9}

#: What no message for users says: words of NumPy, JAX, XLA and of Python's own exceptions.
FOREIGN = re.compile(
    r"operands could not be broadcast|numpy|\bnp\.|jax|jnp|\blax\b|[Tt]racer|dot_general|ufunc|"
    r"conv_general|XlaRuntimeError|HloModule|negative dimensions are not allowed|"
    r"integer division or modulo|float division|index out of range|out of bounds for axis|"
    r"cannot reshape array|NoneType|object is not|has no attribute|unpack|"
    r"object cannot be interpreted"
)


@dataclass
class _Ready:
    """A call that has been built."""

    result: Result
    entry: Entry
    call: Call
    built: Built


class Replay:
    """Runs calls and collects where they disagree."""

    def __init__(self, tf: Any) -> None:
        self.tf = tf
        self.found: list[Disagreement] = []

    def build(self, result: Result) -> _Ready | None:
        """Build a call in the default graph; None if that fails, as it mostly should."""
        entry = entries()[result.name]
        call = make_call(entry, result.draw)
        if digest(call) != result.digest:
            raise ValueError(
                f"The arguments of {result.name} #{result.draw} are not those of the stored "
                "result: run tools/fuzz_ops.py record."
            )
        try:
            return _Ready(result, entry, call, build(entry, call, self.tf))
        except Exception as error:
            self.failed(result, call, "built", error)
            return None

    def failed(self, result: Result, call: Call, form: str, error: Exception) -> None:
        """A call has failed: TensorFlow's has to have failed too, and the error must be ours."""
        if not result.error:
            text = f"{type(error).__name__}: {error}"
            self.found.append(Disagreement(result, call, form, text))
        problem = _bad_error(self.tf, error, form)
        if problem is not None:
            self.found.append(Disagreement(result, call, form, problem))

    def batch(self, results: Sequence[Result]) -> None:
        """Run calls that have values together, in both forms."""
        with self.tf.Graph().as_default() as graph:
            ready = [r for r in map(self.build, results) if r is not None]
        for form, flag in FORMS.items():
            self.run(graph, ready, form, flag)

    def run(self, graph: Any, ready: list[_Ready], form: str, flag: str) -> None:
        """Run calls in one step; if that fails, in two halves."""
        from headrace.settings import flags

        if not ready:
            return
        feeds = {k: v for r in ready for k, v in r.built.feeds.items()}
        before, flags.interpret = flags.interpret, flag
        try:
            with self.tf.Session(graph=graph) as session:
                values = session.run([r.built.fetches for r in ready], feeds)
        except Exception as error:
            if len(ready) == 1:
                self.failed(ready[0].result, ready[0].call, form, error)
                return
            half = len(ready) // 2
            self.run(graph, ready[:half], form, flag)
            self.run(graph, ready[half:], form, flag)
            return
        finally:
            flags.interpret = before
        for one, got in zip(ready, values, strict=True):
            text = _outcome(one, got)
            if text is not None:
                found = Disagreement(one.result, one.call, form, text, True, tuple(got))
                self.found.append(found)


def _outcome(one: _Ready, got: list[Any]) -> str | None:
    """What is wrong with values, None if nothing."""
    if one.result.error:
        return f"gives {got}, where TensorFlow raises {one.result.error}"
    if len(got) != len(one.result.values):
        return f"gives {len(got)} values, not {len(one.result.values)}"
    for value, want in zip(got, one.result.values, strict=True):
        text = difference(value, want, one.entry.scale)
        if text is not None:
            return text
    return None


def _bad_error(tf: Any, error: Exception, form: str) -> str | None:
    """What is wrong with an error as such: its class, or words that are not ours."""
    classes = (ValueError, TypeError, tf.errors.OpError, NotImplementedError)
    if form != "built":
        classes = (tf.errors.OpError,)
    if not isinstance(error, classes):
        return f"a raw {type(error).__name__}: {error}"
    foreign = FOREIGN.search(str(error))
    return f"says {foreign.group()!r}: {error}" if foreign else None


def difference(got: Any, want: np.ndarray[Any, Any], scale: float = 1.0) -> str | None:
    """How a value differs from the stored one, None if it does not."""
    got = np.asarray(got, object) if isinstance(got, bytes) else np.asarray(got)
    if want.dtype.kind == "O":
        return None if np.array_equal(got, want) else f"gives {got!r}"
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"gives {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
    if want.dtype.kind in "biu":
        return None if np.array_equal(got, want) else f"gives {got!r}"
    rtol = RTOL[want.dtype.name] * scale
    parts = [(got, want)]
    if want.dtype.kind == "c":
        parts = [(got.real, want.real), (got.imag, want.imag)]
    size = np.abs(want.astype(np.complex128))
    largest = np.max(size[np.isfinite(size)], initial=0.0)
    atol = rtol * max(1.0, min(largest, 1e3))
    for a, b in parts:
        if not np.allclose(a.astype(float), b.astype(float), rtol, atol, equal_nan=True):
            return f"gives {got!r}"
    return None


def disagreements(results: Sequence[Result], tf: Any) -> list[Disagreement]:
    """Run every call in both forms."""
    import jax

    replay = Replay(tf)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        tf.logging.set_verbosity(tf.logging.FATAL)
        for number, batch in enumerate(_batches(results), 1):
            replay.batch(batch)
            if number % _BATCHES_KEPT == 0:
                jax.clear_caches()
    return replay.found


def _batches(results: Sequence[Result]) -> Iterator[list[Result]]:
    """Calls that have values in batches, the others alone."""
    good = [r for r in results if not r.error]
    for start in range(0, len(good), BATCH):
        yield good[start : start + BATCH]
    for result in results:
        if result.error:
            yield [result]

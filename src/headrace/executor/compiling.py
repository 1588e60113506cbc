"""What is told of compilations: one line for each that takes long, and spans in traces."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.executor.compilation_cache import seal_what_is_new
from headrace.executor.compile_notice import told_at_terminal
from headrace.settings import flags

if TYPE_CHECKING:
    from headrace.executor.program import Program

_log = logging.getLogger(__name__)

#: Programs that take so many seconds to compile are told of.
SLOW_SECONDS = 2.0
#: Tests put another one here.
clock = time.perf_counter
#: So many inputs are named with their shapes.
_NAMED_INPUTS = 4


class Compilation(NamedTuple):
    """When it began (seconds since the epoch), and how many seconds it took."""

    began: float
    seconds: float


def timed(program: Program, args: Any, compiles: Callable[[], Any], beside: bool = False) -> Any:
    """Do what compiles a program for the first time: JAX then only starts to run it.

    Args:
        beside: whether no step waits for it.
    """
    began, start = time.time(), clock()
    region = program.region
    with contextlib.nullcontext() if beside else told_at_terminal(region.label):
        results = compiles()
    done = Compilation(began, clock() - start)
    if not beside:
        region.compiled = done
    seal_what_is_new(done.seconds)
    if done.seconds >= SLOW_SECONDS:
        _log.info(
            "Compiled %s for %s in %.1f s%s, because %s. Inputs: %s",
            region.label,
            region.nodes[0].device or "the default device",
            done.seconds,
            " beside its steps" if beside else "",
            _why(program),
            _inputs(program, args),
        )
    return results


def _why(program: Program) -> str:
    waiting = program.region.waiting
    if waiting.kinds > 1:
        return f"its inputs have other sizes than before (kind {waiting.kinds} of this region)"
    if flags.interpret == "never":
        return "nothing is interpreted (HEADRACE_INTERPRET=never)"
    if waiting.first == 0:
        return "it costs too much to interpret even once"
    return f"it runs for the {_ordinal(waiting.runs)} time"


def _ordinal(number: int) -> str:
    last = 0 if number % 100 in (11, 12, 13) else number % 10
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"


def _inputs(program: Program, args: Any) -> str:
    edges = program.region.dynamic
    # Arguments are state, then what comes in, then arrays to be recycled and a token.
    values = args[len(program.region.donated) + len(program.region.kept) :][: len(edges)]
    named = [
        f"{node.name if ':' in node.name else f'{node.name}:{index}'} {tuple(value.shape)}"
        for (node, index), value in zip(edges, values, strict=False)
        if hasattr(value, "shape")
    ]
    more = len(named) - _NAMED_INPUTS
    shown = ", ".join(named[:_NAMED_INPUTS]) or "none"
    return f"{shown} and {more} more" if more > 0 else shown

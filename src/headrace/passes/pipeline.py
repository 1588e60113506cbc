"""The rewrite passes in their order.

Each pass keeps what a step promises: its fetches, its feeds, the order that control edges ask
for, and every effect. The verifier checks the graph around each pass in the tests.

In: a placed step graph. Out: how much each pass has changed it.

    >>> from headrace.passes.ir import build_step
    >>> with tf.Graph().as_default():
    ...     x = tf.placeholder(tf.float32, [2], name="x")
    ...     step = build_step([tf.multiply(x, tf.constant(3.0) - 2.0, name="y")], [x], [])
    >>> {name: count for name, count in optimize(step).items() if count}, step.nodes
    ({'fold constants': 1, 'algebra': 1}, [<x:0 = _Feed()>])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.passes import algebra, stability
from headrace.passes.control import drop_dead_control
from headrace.passes.cse import merge_common
from headrace.passes.ctc import split_ctc
from headrace.passes.fold import fold_constants
from headrace.passes.ir import StepGraph
from headrace.passes.materialize import materialize
from headrace.passes.mixed_precision import HalfTypes, reduce_precision
from headrace.passes.rewrite import Rewriter
from headrace.passes.sums import join_sums
from headrace.passes.verify import verify_step
from headrace.settings import flags

#: Above this size only the passes that change what is computed run: XLA does the others' work.
_LARGE = 50_000
_ALWAYS = ("numerical stability", "mixed precision")
#: The pass before which types are narrowed.
_FIRST_AFTER = "keep what has many users"
#: OptimizerOptions.L0
_NO_OPTIMIZATION = -1

PASSES: tuple[tuple[str, Callable[[StepGraph], int]], ...] = (
    ("drop dead control edges", drop_dead_control),
    ("fold constants", fold_constants),
    ("algebra", lambda step: Rewriter(step).apply(algebra.RULES)),
    ("join sums of products", join_sums),
    ("merge common subexpressions", merge_common),
    ("numerical stability", lambda step: Rewriter(step).apply(stability.RULES)),
    ("keep what has many users", materialize),
    ("split CTC losses", split_ctc),
)


def is_wanted(config: Any) -> bool:
    """Whether a session's ConfigProto (or None) wants the passes: all but ``opt_level = L0`` do."""
    return config is None or config.graph_options.optimizer_options.opt_level != _NO_OPTIMIZATION


def optimize(
    step: StepGraph, half_type: HalfTypes | None = None, is_wanted: bool = True
) -> dict[str, int]:
    """Run every pass once; returns how much each changed.

    Args:
        half_type: for mixed precision: the narrow type of operations on a device.
        is_wanted: whether the passes run that only save work.

    Raises:
        AssertionError: if ``flags.verify`` is on and a pass broke the graph.
    """
    changes = {}
    if flags.verify:
        verify_step(step, "before the passes")
    passes = PASSES if is_wanted else ()
    if half_type is not None:
        # What is rewritten for its safety comes first; barriers are on no list.
        at = [name for name, _ in passes].index(_FIRST_AFTER) if passes else 0
        mixed = ("mixed precision", lambda step: reduce_precision(step, half_type))
        passes = (*passes[:at], mixed, *passes[at:])
    for name, run in passes:
        if len(step.nodes) > _LARGE and name not in _ALWAYS:
            continue
        changes[name] = run(step)
        if flags.verify:
            verify_step(step, name)
    return changes

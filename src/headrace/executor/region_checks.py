"""Checks of a region: collected while it is traced, reported when one did not hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import numpy as jnp

from headrace.errors import InvalidArgumentError
from headrace.executor.evaluate import Tracing, Values
from headrace.executor.interpreting import Interpreting
from headrace.ops.core import checks
from headrace.passes.ir import Node


class CheckSink:
    """Collects the checks of a region while it is traced: code 0 means that all held.

    A program may be traced again for other shapes of its variables, with other checks; codes keep
    their meaning, because ``messages`` (of the program) only grows.
    """

    KEY = Tracing.checks_key

    def __init__(
        self, tracing: Tracing, checked: set[Node], messages: dict[tuple[Node | None, str], int]
    ) -> None:
        self.tracing = tracing
        #: Nodes whose checks were made before the program runs.
        self.checked = checked
        self.messages = messages
        #: Whether this trace has any check.
        self.used = False
        tracing.state[self.KEY] = jnp.zeros(1 + checks.DATA_SLOTS, jnp.int64)

    def __call__(self, ok: Any, message: str, data: tuple[Any, ...]) -> None:
        if self.tracing.current in self.checked:
            return
        self.used = True
        key = (self.tracing.current, message)
        code = self.messages.setdefault(key, len(self.messages) + 1)
        entries = [jnp.int64(code), *[jnp.asarray(d).astype(jnp.int64) for d in data]]
        entries += [jnp.int64(0)] * (1 + checks.DATA_SLOTS - len(entries))
        state = self.tracing.state[self.KEY]
        failed_now = (state[0] == 0) & ~ok
        self.tracing.write(self.KEY, jnp.where(failed_now, jnp.stack(entries), state))


def raise_failed(
    outcome: Any,
    messages: dict[tuple[Node | None, str], int],
    explain: Callable[[Node], None],
) -> None:
    """Raise InvalidArgumentError for the first check that did not hold, if any.

    Args:
        outcome: what the program handed back: a code of ``messages`` and the data of the check.
        explain: raises the error of an op whose message shows tensors, which it has to work out.
    """
    codes = np.asarray(outcome)
    if codes[0] == 0:
        return
    (node, message) = next(k for k, code in messages.items() if code == codes[0])
    if message == checks.SHOWS_TENSORS and node is not None:
        explain(node)
    op = node.op if node is not None else None
    raise InvalidArgumentError(None, op, message.format(*[int(c) for c in codes[1:]]))


def rerun(evaluation: Interpreting, nodes: Sequence[Node], failed: Node, values: Values) -> None:
    """Evaluate what ``failed`` depends on, and itself; all nodes if a body has it."""
    needed = {failed}
    if failed in nodes:
        for node in reversed(nodes):
            if node in needed:
                needed.update(source for source, _ in node.inputs)
                needed.update(node.control)
        nodes = [n for n in nodes if n in needed]
    with np.errstate(all="ignore"):
        evaluation.evaluate_all(nodes, values)


__all__ = ["CheckSink", "raise_failed", "rerun"]

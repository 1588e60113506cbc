"""Loops without a static bound that must keep a value of each iteration (for their gradient).

XLA needs to know how much to keep. Such a loop is compiled for a number of iterations that is
doubled until it suffices, and remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from headrace.executor.evaluate import NeedsHost
from headrace.executor.region import Region
from headrace.executor.region_options import RegionOptions
from headrace.executor.resources import ResourceHandle, ResourceStore
from headrace.executor.step_context import StepContext
from headrace.graph import dtypes
from headrace.passes.ir import Node
from headrace.settings import flags

_FIRST_BOUND = 32


class BoundedLoops:
    """The compiled forms of such loops, of one session.

    Args:
        host: the session's HostRunner.
    """

    def __init__(self, host: Any) -> None:
        self._host = host
        self._loops: WeakKeyDictionary[Any, _BoundedLoop] = WeakKeyDictionary()

    def run_loop(
        self, node: Node, args: Sequence[Any], store: ResourceStore, context: StepContext | None
    ) -> list[Any] | None:
        """The outputs of a loop; None if it has to be interpreted."""
        if flags.interpret == "always":
            return None
        # Plans come and go; the operation of the graph stays.
        key = node.op if node.op is not None else node.op_def
        loop = self._loops.get(key)
        if loop is None or loop.node.attrs != node.attrs:
            loop = self._loops[key] = _BoundedLoop(node, self._host)
        return loop.run_compiled(args, store, context)


class _Interpret(Exception):
    """A loop is not to be compiled for sizes that may not come again."""


class _LoopRegion(Region):
    """A region of one loop with a bound, which has no meaning where it is interpreted."""

    def interpret(self, *_: Any) -> list[Any]:
        raise _Interpret


class _BoundedLoop:
    def __init__(self, node: Node, host: Any) -> None:
        self.node = node
        self.host = host
        self.bound = _FIRST_BOUND
        self.impossible = False
        self._regions: dict[tuple[int, Any], Region] = {}

    def run_compiled(
        self, args: Sequence[Any], store: ResourceStore, context: StepContext | None
    ) -> list[Any] | None:
        while not self.impossible:
            # Each attempt starts from the same inputs, so what the last one gave can be dropped.
            region = self._region(args)
            if region.written:
                self.impossible = True  # a second attempt would write twice
                return None
            dynamic = [a for a in args if not isinstance(a, ResourceHandle)]
            try:
                *outputs, unfinished = region.run(store, dynamic, [], context)
            except NeedsHost:
                self.impossible = True
                return None
            except _Interpret:
                return None
            if not np.asarray(unfinished):
                return outputs
            self.bound *= 2
        return None

    def _region(self, args: Sequence[Any]) -> Region:
        handles = tuple(a for a in args if isinstance(a, ResourceHandle))
        region = self._regions.get((self.bound, handles))
        if region is None:
            region = self._regions[self.bound, handles] = self._compile(args)
        return region

    def _compile(self, args: Sequence[Any]) -> Region:
        node = self.node
        # The same loop with a bound, and one output more: whether it was to go on.
        bounded = Node(
            node.op_def,
            node.name,
            node.inputs,
            {**node.attrs, "_bound": self.bound},
            (*node.dtypes, dtypes.bool),
            (*node.dims, ()),
            node.op,
        )
        pairs = list(zip(node.inputs, args, strict=True))
        handles = {e: a for e, a in pairs if isinstance(a, ResourceHandle)}
        options = RegionOptions.at_once(host=self.host)
        return _LoopRegion(
            [bounded],
            [e for e, a in pairs if not isinstance(a, ResourceHandle)],
            [],
            [(bounded, i) for i in range(len(bounded.dtypes)) if _is_value(bounded, i)],
            handles,
            options,
        )


def _is_value(node: Node, index: int) -> bool:
    return node.dtypes[index] is not dtypes.resource

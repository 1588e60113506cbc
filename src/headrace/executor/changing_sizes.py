"""Taking out of a region what depends on sizes that change, so that the rest is compiled once.

How many ids of a batch a server has, how many sampled classes happen to be labels: few operations
depend on such numbers, but a program is compiled for the sizes of all that comes in. When a region
meets other sizes than before, the sizes of all values in it are compared. If those that differ are
few and cheap, they run on NumPy from then on, and the rest, whose sizes stay, is one program. Sizes
that data makes, such as the number of distinct ids, hardly ever come again: where those differ, a
program would be compiled at every step, so they run apart even if they are most of the region.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.executor.evaluate import NeedsHost
from headrace.executor.policy import seconds_to_compile
from headrace.executor.transfers import RECV
from headrace.graph.tensor import Dims
from headrace.ops.control import tensor_list_kernels as lists
from headrace.passes.ir import Edge, Node
from headrace.placement.cost import assumed_elements, node_cost

if TYPE_CHECKING:
    from headrace.executor.program import Program
    from headrace.executor.region import Region

#: So often a region that has met other sizes is looked at.
_MOST_LOOKS = 8
#: What runs apart may take such a share of the time that compiling everything takes; and if sizes
#: have not been seen to change, but are expected to.
_SHARE_APART, _SHARE_EXPECTED = 0.02, 0.002
#: The same if data makes the sizes that were seen to change: compiling is for one step then.
_SHARE_MADE = 0.5
#: The rest must be worth it: such a share of the time to compile everything.
_SHARE_LEFT = 0.5
#: Seconds that NumPy takes for one node apart, for an element that it reads or writes, and for an
#: operation.
_PER_NODE, _PER_ELEMENT, _PER_OPERATION = 2e-5, 5e-10, 1e-9

#: Of each edge: its shape; for values that a program is compiled for the values themselves.
Sizes = dict[Edge, Any]


class ChangingSizes:
    """The sizes that one region has met.

    Attributes:
        apart: the nodes that are to run apart from the rest.
    """

    def __init__(self, region: Region) -> None:
        self._region = region
        self._looks = _MOST_LOOKS
        self._last: tuple[Program, Sizes] | None = None
        self.apart: frozenset[Node] = frozenset()

    def note(self, program: Program, values: Mapping[Node, Sequence[Any]]) -> None:
        """The region runs, or is traced, for the sizes of a program; compares with those before."""
        if not self._looks or (self._last is not None and self._last[0] is program):
            return
        sizes = self._sizes(values)
        if self._last is None:
            if self._looks == _MOST_LOOKS:
                self.apart = self._worth_it(self._expected(), sizes, _SHARE_EXPECTED)
        else:
            self._looks -= 1
            changing = self._changing(self._last[1], sizes)
            self.apart = self._worth_it(changing, sizes, _SHARE_APART)
            if not self.apart and self._made_by_data(self._last[1], sizes):
                self.apart = self._worth_it(changing, sizes, _SHARE_MADE, left=0.0)
        self._last = (program, sizes) if self._looks and not self.apart else None

    def part(self) -> None:
        """Ask for the nodes to run apart.

        Raises:
            NeedsHost: always.
        """
        first, *others = sorted(self.apart, key=lambda n: n.name)
        self._looks, self.apart = 0, frozenset()
        raise NeedsHost(first, "its sizes change from run to run", others)

    def _sizes(self, values: Mapping[Node, Sequence[Any]]) -> Sizes:
        region = self._region
        found: Sizes = {}
        for edge in region.static:
            value = values[edge[0]][edge[1]]
            if isinstance(value, lists.TensorList):
                continue
            array = np.asarray(value)
            found[edge] = (array.shape, array.tobytes())
        for node, i in region.dynamic:
            found[node, i] = getattr(values[node][i], "shape", None)
        for node in region.nodes:
            for i, value in enumerate(values[node]):
                found[node, i] = getattr(value, "shape", None)
        return found

    def _changing(self, before: Sizes, after: Sizes) -> list[Node]:
        """The nodes that take or give other sizes than before."""
        differ = {edge for edge, size in after.items() if before.get(edge) != size}
        return [
            node
            for node in self._region.nodes
            if not differ.isdisjoint(node.inputs)
            or any((node, i) in differ for i in range(len(node.dtypes)))
        ]

    def _made_by_data(self, before: Sizes, after: Sizes) -> bool:
        """Whether the sizes that came in differ because data makes them: they may be other ones at
        each step. Of what is fed, or read from a dataset, there may be but one smaller batch."""
        differ = {node for node, i in self._region.dynamic if before[node, i] != after[node, i]}
        return any(node.op_def.traits.counts for node in differ) and all(
            node.op_def is RECV or (node.op_def.host is not None and node.op_def.effects.pure)
            for node in differ
        )

    def _expected(self) -> list[Node]:
        """The nodes whose sizes depend, as far as the graph tells, on sizes that data makes: those
        of what comes from operations on the host, or from other tasks."""
        unknown = {
            (node, i)
            for node, i in self._region.dynamic
            if (node.op_def.host is not None or node.op_def is RECV) and _is_open(node.dims[i])
        }
        found = []
        for node in self._region.nodes:
            if not unknown.isdisjoint(node.inputs):
                found.append(node)
                unknown.update((node, i) for i, dims in enumerate(node.dims) if _is_open(dims))
        return found

    def _worth_it(
        self, changing: Sequence[Node], sizes: Sizes, share: float, left: float = _SHARE_LEFT
    ) -> frozenset[Node]:
        """Those of the changing nodes that had better run apart; none if that does not pay.

        Args:
            share: of the time to compile everything, that they may take.
            left: the same, that the rest must take to compile.
        """
        region = self._region
        # Updates of rows stay in a program: they are filled up there (`executor.spare_rows`).
        apart = [n for n in changing if n.op_def.traits.row_updates is None]
        gone = set(changing)
        rest = [n for n in region.nodes if n not in gone]
        if not apart or not rest or not all(map(_runs_on_numpy, apart)):
            return frozenset()
        compiling = seconds_to_compile(region.nodes, region.outputs)
        remains = seconds_to_compile(rest, [e for e in region.outputs if e[0] not in gone])
        least = seconds_to_compile([], [])
        if remains - least < left * (compiling - least):
            return frozenset()
        seconds = sum(_seconds(node, sizes) for node in apart)
        return frozenset(apart) if seconds <= share * compiling else frozenset()


def _is_open(dims: Dims) -> bool:
    return dims is None or None in dims


def _runs_on_numpy(node: Node) -> bool:
    d = node.op_def
    effects = d.effects
    reads_only = effects.pure or not (effects.writes or effects.random or effects.external)
    return d.interpret is not None and d.lower is None and d.host is None and reads_only


def _seconds(node: Node, sizes: Sizes) -> float:
    """What a node takes on NumPy at these sizes."""
    given = sum(_elements(sizes.get(edge)) for edge in node.inputs)
    made = sum(_elements(sizes.get((node, i))) for i in range(len(node.dtypes)))
    expected = sum(assumed_elements(dims) for dims in node.dims)
    work = node_cost(node) * max(1.0, made / max(1.0, expected))
    return _PER_NODE + _PER_ELEMENT * (given + made) + _PER_OPERATION * work


def _elements(shape: Any) -> int:
    if isinstance(shape, tuple) and all(isinstance(d, int) for d in shape):
        return math.prod(shape)
    return 0


__all__ = ["ChangingSizes"]

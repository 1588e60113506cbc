"""Loops over sequences of changing length, as programs for any length up to a bound.

A program is made for the sizes of what it takes. A region whose sequences have another length at
each step is therefore interpreted (`executor.waiting`), and nearly all of that time goes into the
bodies of its loops, though these do the same at any length. So such a loop becomes a program of its
own: its lists come in buffers with room for a power of two of elements, of which the first ``size``
count, and ``size`` is data.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import OpError
from headrace.executor.evaluate import NeedsHost
from headrace.executor.policy import most_evaluations
from headrace.executor.resources import ResourceHandle, ResourceStore, StateKey
from headrace.graph import dtypes
from headrace.ops.control import tensor_list_kernels as lists
from headrace.ops.control.tensor_list_kernels import TensorList, Uniformity
from headrace.passes.ir import Node, function_step

if TYPE_CHECKING:
    from headrace.executor.interpreting import Interpreting
    from headrace.executor.region import Region
    from headrace.executor.region_options import RegionOptions
    from headrace.executor.step_context import StepContext

#: Lists have room for no fewer elements.
_LEAST_ROOM = 16
#: So often is the room that is needed doubled to find a program that is there already.
_SPARE_DOUBLINGS = 2
#: Iterations of a loop that knows no bound, at first.
_FIRST_BOUND = 32
#: For so many kinds of input it is known how much has been interpreted.
_MOST_KINDS = 256
#: A node of a body takes several times as long to interpret as `policy` assumes of large ones.
_EVALUATIONS_SHARE = 4


class ListLoops:
    """The loops of one region that are interpreted, and what programs they have become.

    Attributes:
        programs: for how many loops and kinds of input there is a program.
    """

    def __init__(self, options: RegionOptions) -> None:
        self.options = options
        self.programs = 0
        self._loops: dict[Node, _ListLoop] = {}

    def run_loop(
        self, context: StepContext | None, node: Node, args: list[Any], evaluation: Interpreting
    ) -> Sequence[Any]:
        """The outputs of a loop, whichever way it runs."""
        loop = self._loops.get(node)
        if loop is None:
            loop = self._loops[node] = _ListLoop(node, self)
        outputs = loop.run_compiled(args, evaluation.store, context)
        if outputs is not None:
            return outputs
        outputs = node.op_def.lower(evaluation, node, args)  # type: ignore[misc]
        loop.learn(args, outputs)
        result: Sequence[Any] = outputs
        return result


class _PrivateStore(ResourceStore):
    """The state that a loop touches until it has succeeded; open as long as the session's."""

    def __init__(self, base: ResourceStore) -> None:
        super().__init__()
        self._base = base

    def check_open(self) -> None:
        self._base.check_open()


class _ListLoop:
    """One loop.

    Its inputs are the loop variables (for a scan the carried values, sequences and captures), and
    the first of its outputs are what becomes of the first of these.
    """

    def __init__(self, node: Node, owner: ListLoops) -> None:
        self._node = node
        self._owner = owner
        attrs = node.attrs
        self._is_scan = "Txs" in attrs
        carried = len(attrs["Tcarry"]) if self._is_scan else len(node.inputs)
        self._carried = range(carried)
        self._sequences = range(carried, carried + len(attrs["Txs"]) if self._is_scan else carried)
        self._stacked = frozenset(
            carried + i for i, as_list in enumerate(attrs.get("y_lists", ())) if not as_list
        )
        body = attrs["f"] if self._is_scan else attrs["body"]
        self._body_nodes = 1 + len(function_step(body, tuple(attrs["_saved"])).nodes)
        self._impossible = False
        #: Of lists in which nothing is written yet: a row as it will be.
        self._rows: dict[int, np.ndarray] = {}
        self._regions: dict[Any, Region] = {}
        #: By kind of input: how many nodes of bodies were evaluated for it.
        self._evaluated: dict[Any, int] = {}
        self._bound = _FIRST_BOUND

    def learn(self, args: Sequence[Any], outputs: Sequence[Any]) -> None:
        """See what rows the lists get that had none."""
        for i in self._carried:
            if isinstance(args[i], TensorList) and i not in self._rows and args[i].unwritten:
                for item in outputs[i].to_items().items or ():
                    if isinstance(item, np.ndarray):
                        self._rows[i] = np.zeros_like(item)
                        break

    def run_compiled(
        self, args: Sequence[Any], store: ResourceStore, context: StepContext | None
    ) -> list[Any] | None:
        """The outputs; None if the loop is to be interpreted this time."""
        if self._impossible:
            return None
        try:
            given = [self._given(i, value) for i, value in enumerate(args)]
        except Uniformity:
            return None
        sizes = [g.size for g in given if isinstance(g, _Rows)]
        lengths = {given[i].size for i in self._sequences}
        # Without elements there is nothing to make room for; sequences of two lengths are an error.
        if not sizes or not all(sizes) or len(lengths) > 1:
            return None
        # What a program is made for, the number of elements apart.
        form = tuple([g.form if isinstance(g, _Rows) else np.shape(g) for g in given])
        room = self._room(form, max(sizes))
        if room is None:
            return None
        try:
            padded = [g.padded(room) if isinstance(g, _Rows) else g for g in given]
        except Uniformity:
            return None
        region = self._region(args, max(self._bound, room))
        results = self._call(region, [g for g in padded if not _is_handle(g)], store, context)
        return None if results is None else self._outputs(args, results)

    def _given(self, position: int, value: Any) -> Any:
        """An input, as rows where it is a list or a sequence.

        Raises:
            Uniformity: if the elements of a list have no shape in common.
        """
        if isinstance(value, TensorList):
            return _Rows.of(value, self._rows.get(position))
        if position in self._sequences:
            return _Rows(value, len(value), value[:1][0] if len(value) else None)
        return value

    def _room(self, form: Any, size: int) -> int | None:
        """How much room a program for such inputs has; None as long as it would not pay.

        One with more room than needed serves as well, if there is one.
        """
        least = max(_LEAST_ROOM, 1 << (size - 1).bit_length())
        for room in (least, *[least << i for i in range(1, _SPARE_DOUBLINGS + 1)]):
            done = self._evaluated.get((form, room), 0)
            if done > self._most:
                del self._evaluated[form, room]  # to the end: it is in use
                self._evaluated[form, room] = done
                return room
        kind = (form, least)
        done = self._evaluated.pop(kind, 0)
        if len(self._evaluated) >= _MOST_KINDS:
            del self._evaluated[next(iter(self._evaluated))]
        self._evaluated[kind] = done + size * self._body_nodes
        self._owner.programs += self._evaluated[kind] > self._most
        return None

    @cached_property
    def _most(self) -> int:
        """How many nodes of bodies are interpreted before a program pays."""
        node = self._node
        outputs = [(node, i) for i in range(len(node.dtypes))]
        return most_evaluations([node], outputs) // _EVALUATIONS_SHARE

    def _region(self, args: Sequence[Any], bound: int) -> Region:
        """The loop as a region, for at most ``bound`` iterations if it is no scan."""
        handles = tuple(a for a in args if _is_handle(a))
        key = (None if self._is_scan else bound, handles)
        region = self._regions.get(key)
        if region is None:
            region = self._regions[key] = self._make(args, bound)
        return region

    def _make(self, args: Sequence[Any], bound: int) -> Region:
        from headrace.executor.region import Region
        from headrace.executor.region_options import RegionOptions

        node, attrs = self._node, dict(self._node.attrs)
        types, dims = list(node.dtypes), list(node.dims)
        if self._is_scan:
            attrs["y_lists"] = [True] * len(attrs["y_lists"])
            for i in self._stacked:
                types[i], dims[i] = dtypes.variant, ()
        else:
            attrs["_bound"] = bound
            types.append(dtypes.bool)
            dims.append(())
        made = Node(node.op_def, node.name, node.inputs, attrs, tuple(types), tuple(dims), node.op)
        made.device = node.device
        pairs = list(zip(node.inputs, args, strict=True))
        options = self._owner.options
        region = Region(
            [made],
            [e for e, a in pairs if not _is_handle(a)],
            [],
            [(made, i) for i, t in enumerate(types) if t is not dtypes.resource],
            {e: a for e, a in pairs if _is_handle(a)},
            RegionOptions.at_once(options.device, compiler_options=options.compiler_options),
        )
        region.keep_old(True)  # it would give away what belongs to the session
        return region

    def _call(
        self,
        region: Region,
        dynamic: list[Any],
        base: ResourceStore,
        context: StepContext | None,
    ) -> list[Any] | None:
        """Run the program; None if it cannot be, or fails: then interpreting tells how."""
        store = _PrivateStore(base)
        # On copies of the references: if the program fails, the loop is interpreted from the start.
        state: list[StateKey] = list(dict.fromkeys([*region.touched.reads, *region.written]))
        for key in state:
            value = base.get(key)
            if value is not None:
                store.put(key, value)
        try:
            results = region.run(store, dynamic, [], context)
        except NeedsHost:
            self._impossible = True
            return None
        except OpError:
            return None
        results = list(results)
        # It was to go on beyond the bound: interpreted this time, with more room the next.
        if not self._is_scan and np.asarray(results.pop()):
            self._bound *= 2
            return None
        for key in region.written:
            base.put(key, np.asarray(store.get(key)))
        return results

    def _outputs(self, args: Sequence[Any], results: list[Any]) -> list[Any]:
        rest = iter(results)
        outputs: list[Any] = []
        for i, dtype in enumerate(self._node.dtypes):
            if dtype is dtypes.resource:
                outputs.append(args[i])
                continue
            value = next(rest)
            if isinstance(value, TensorList):
                value = _without_room(value)
                outputs.append(value.buffer if i in self._stacked else value)
            else:
                outputs.append(np.asarray(value))
        return outputs


class _Rows:
    """A list or a sequence whose elements are alike.

    Attributes:
        sample: one element.
    """

    def __init__(self, values: Any, size: int, sample: Any, whole: Any = None) -> None:
        self.values = values
        self.size = size
        self.sample = sample
        self._whole = whole

    @classmethod
    def of(cls, value: TensorList, sample: Any) -> _Rows:
        """The elements of a list; ``sample``: one of those that it will get, if it has none.

        Raises:
            Uniformity: if nobody knows what they are like, or they are no arrays.
        """
        size = int(value.size)
        if isinstance(value.buffer, np.ndarray):
            return cls(value.buffer, size, value.buffer[:1][0] if size else None, value.whole)
        items = value.to_items().items or ()
        found = next((i for i in items if i is not None), sample)
        if size and not isinstance(found, np.ndarray):
            raise Uniformity
        return cls(items, size, found)

    @property
    def form(self) -> Any:
        """What elements are like, where there are any."""
        return getattr(self.sample, "shape", None), getattr(self.sample, "dtype", None)

    def padded(self, room: int) -> TensorList:
        """A list with room for more, whose size is data.

        Raises:
            Uniformity: if the elements differ in shape.
        """
        size = np.int32(self.size)
        # The buffer of an earlier loop has that room already.
        if self._whole is not None and lists.capacity(self._whole) == room:
            return TensorList(buffer=self._whole, size=size)
        buffer = np.zeros((room, *self.sample.shape), self.sample.dtype)
        if isinstance(self.values, np.ndarray):
            buffer[: self.size] = self.values
        else:
            for t, item in enumerate(self.values):
                if item is not None:
                    if np.shape(item) != self.sample.shape:
                        raise Uniformity
                    buffer[t] = item
        return TensorList(buffer=buffer, size=size)


def _without_room(value: TensorList) -> TensorList:
    """A list that a program gave, on the host: its elements are those that count."""
    size = int(value.size)
    if value.repeated is not None:
        return TensorList.repeat(value.repeated, size)
    if value.items is not None:
        return value.to_items()
    found = TensorList.stack_of(np.asarray(value.buffer)[:size], size)
    found.whole = value.buffer
    return found


def _is_handle(value: Any) -> bool:
    return isinstance(value, ResourceHandle)


__all__ = ["ListLoops"]

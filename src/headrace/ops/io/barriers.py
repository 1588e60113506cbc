"""Barrier ops. The barriers are in ``headrace.ops.io.barriers_kernels``."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph import dtypes
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core.build import raw
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.core.static import static_value
from headrace.ops.io.barriers_kernels import BarrierResource, BarrierSpec
from headrace.ops.io.queues import BLOCKS, host_resource
from headrace.ops.state.variable_ops import handle_op
from headrace.ops.strings.each import items_of

__all__ = ["Barrier"]

_NO_GRADIENT = NotDifferentiable("a barrier hands over values between steps")


def _provide(store: Any, handle: Any, node: Any) -> None:
    attrs = node.attrs
    if attrs["capacity"] != -1:
        raise InvalidArgumentError(None, node.op, "Barrier only accepts capacity=-1.")
    shapes = tuple([s.as_tuple for s in attrs["shapes"]])
    types = tuple(attrs["component_types"])
    if shapes and len(shapes) != len(types):
        message = "All of the component shapes must be specified, or none of them."
        raise InvalidArgumentError(None, node.op, message)
    spec = BarrierSpec(types, shapes)
    found = store.object(handle, lambda: BarrierResource(spec, attrs["shared_name"] or node.name))
    if found.spec != spec:
        message = f"Shared barrier '{handle.name}' is another one: {found.spec}, not {spec}"
        raise InvalidArgumentError(None, node.op, message)


define_op(
    "Barrier() -> handle: resource",
    attrs="component_types: list(type) >= 1, shapes: list(shape) = [], capacity: int = -1, "
    "container: string = '', shared_name: string = ''",
    makes_handle="barrier",
    provide=_provide,
    shape=lambda op: [()],
    gradient=_NO_GRADIENT,
)


def _barrier(context: Any, handle: Any) -> BarrierResource:
    result: BarrierResource = host_resource(context, handle)
    return result


def _insert(context: Any, handle: Any, keys: Any, values: Any, *, component_index: int) -> Any:
    if np.ndim(keys) != 1:
        raise InvalidArgumentError(None, None, "keys must be a vector of strings")
    own = np.asarray(context.owned(values))
    _barrier(context, handle).insert(items_of(keys), component_index, own)
    return ()


def _take(context: Any, handle: Any, num_elements: Any, *, allow_small_batch: bool) -> Any:
    taken = _barrier(context, handle).take(int(num_elements), allow_small_batch, context.step)
    return taken[0], taken[1], taken[2:]


def _take_shape(op: Operation) -> list[Dims]:
    if op.attrs["timeout_ms"] != -1:
        raise ValueError("Timeout not supported yet: use tf.RunOptions(timeout_in_ms=...).")
    count = static_value(op.inputs[1])
    known = count is not None and not op.attrs["allow_small_batch"]
    batch = int(count) if known and count is not None else None
    maker = handle_op(op.inputs[0])
    shapes = () if maker is None else maker.attrs["shapes"]
    dims = [s.as_tuple for s in shapes] or [None] * len(op.attrs["component_types"])
    return [(batch,), (batch,), *[None if d is None else (batch, *d) for d in dims]]


def _close(context: Any, handle: Any, *, cancel_pending_enqueues: bool) -> Any:
    _barrier(context, handle).close(cancel_pending_enqueues)
    return ()


def _define(signature: str, attrs: str, shape: Any, host: Any) -> None:
    define_op(signature, attrs=attrs, shape=shape, host=host, effects=BLOCKS, gradient=_NO_GRADIENT)


_define(
    "BarrierInsertMany(handle: resource, keys: string, values: T)",
    "T: type, component_index: int",
    lambda op: [],
    _insert,
)
_define(
    "BarrierTakeMany(handle: resource, num_elements: int32) -> "
    "(indices: int64, keys: string, values: component_types)",
    "component_types: list(type) >= 1, allow_small_batch: bool = False, "
    "wait_for_incomplete: bool = False, timeout_ms: int = -1",
    _take_shape,
    _take,
)
_define(
    "BarrierClose(handle: resource)", "cancel_pending_enqueues: bool = False", lambda op: [], _close
)
for _i, _what in enumerate(("Ready", "Incomplete")):
    _define(
        f"Barrier{_what}Size(handle: resource) -> size: int32",
        "",
        lambda op: [()],
        lambda context, handle, *, i=_i: np.int32(_barrier(context, handle).sizes()[i]),
    )


class Barrier:
    """Puts tuples together from components that come at different times, under string keys.

    An element is ready when each of its components is there. Ready elements leave in the order in
    which their first components came, counted from -2**63.

    Args:
        types: the type of each component, or one type; shapes: their shapes, or None.
        shared_name: barriers of one shared name are one, in all sessions of a server.

    Raises:
        ValueError: if a shape has no elements, or there are not as many shapes as types.
    """

    def __init__(
        self, types: Any, shapes: Any = None, shared_name: str | None = None, name: str = "barrier"
    ) -> None:
        given = types if isinstance(types, (list, tuple)) else [types]
        self._types = [dtypes.as_dtype(t).base_dtype for t in given]
        self._shapes = [TensorShape(None) for _ in self._types]
        if shapes is not None:
            single = not isinstance(types, (list, tuple))
            self._shapes = [TensorShape(s) for s in ([shapes] if single else shapes)]
            if len(self._shapes) != len(self._types):
                raise ValueError("A barrier needs one shape for each component, or none.")
            for i, shape in enumerate(self._shapes):
                if shape.num_elements() == 0:
                    raise ValueError(
                        f"Empty tensors are not supported, but received shape '{shape}' at index "
                        f"{i}"
                    )
        self._barrier_ref: Tensor = raw.Barrier(
            component_types=self._types, shapes=self._shapes, shared_name=shared_name, name=name
        )
        self._short = self._barrier_ref.op.name.split("/")[-1]

    @property
    def barrier_ref(self) -> Tensor:
        """The handle of the barrier."""
        return self._barrier_ref

    @property
    def name(self) -> str:
        """The name of the op that makes the barrier."""
        return self._barrier_ref.op.name

    def insert_many(
        self, component_index: int, keys: Any, values: Any, name: str | None = None
    ) -> Operation:
        """An op that gives each of ``keys`` ``[n]`` its row of ``values`` ``[n, ...]``."""
        return raw.BarrierInsertMany(
            self._barrier_ref,
            keys,
            values,
            component_index=component_index,
            name=name or f"{self._short}_BarrierInsertMany",
        )

    def take_many(
        self,
        num_elements: Any,
        allow_small_batch: bool = False,
        timeout: int | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Indices, keys and components of ready elements, for ``num_elements`` of which it waits.

        Args:
            allow_small_batch: be content with fewer once the barrier is closed.
            timeout: not supported; use ``tf.RunOptions(timeout_in_ms=...)``.
        """
        found: tuple[Tensor, Tensor, list[Tensor]] = raw.BarrierTakeMany(
            self._barrier_ref,
            num_elements,
            component_types=self._types,
            allow_small_batch=allow_small_batch,
            timeout_ms=timeout,
            name=name or f"{self._short}_BarrierTakeMany",
        )
        return found

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """An op after which no new keys come; with the argument no more components either."""
        return raw.BarrierClose(
            self._barrier_ref,
            cancel_pending_enqueues=cancel_pending_enqueues,
            name=name or f"{self._short}_BarrierClose",
        )

    def ready_size(self, name: str | None = None) -> Tensor:
        """How many elements are ready: an int32 scalar."""
        return raw.BarrierReadySize(
            self._barrier_ref, name=name or f"{self._short}_BarrierReadySize"
        )

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many elements lack components: an int32 scalar."""
        return raw.BarrierIncompleteSize(
            self._barrier_ref, name=name or f"{self._short}_BarrierIncompleteSize"
        )

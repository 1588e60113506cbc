"""Queue ops: making queues, putting and taking elements, closing.

The queues themselves are in ``headrace.ops.io.queues_kernels``, the public classes in
``headrace.ops.io.queues_api``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError, NotFoundError
from headrace.graph import dtypes
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core.registry import Effects, HostResource, NotDifferentiable, define_op
from headrace.ops.core.static import static_value
from headrace.ops.core.traits import Traits
from headrace.ops.io.queues_kernels import KINDS, Queue, QueueSpec, shared_mismatch, type_names
from headrace.ops.state.variable_ops import handle_op

BLOCKS = Effects(blocks=True)
_READS = Effects(reads=(0,))
_NO_GRADIENT = NotDifferentiable(
    "a queue hands over values between steps; no gradient flows through it"
)

# -- queues -------------------------------------------------------------------------------------

#: Tells queues apart in messages that have a name of their own nowhere.
_numbers = itertools.count()


def spec_of(op_type: str, attrs: dict[str, Any]) -> QueueSpec:
    """What the attributes of an op that makes a queue say."""
    types = tuple(attrs["component_types"])
    shapes = tuple([s.as_tuple for s in attrs["shapes"]])
    if shapes and len(shapes) != len(types):
        raise InvalidArgumentError(
            None,
            None,
            f"{len(types)} component types, but {len(shapes)} shapes: a queue needs one for each, "
            "or none.",
        )
    if op_type == "PriorityQueueV2":
        types = (dtypes.int64, *types)
        shapes = ((), *shapes) if shapes else ()
    return QueueSpec(
        op_type,
        types,
        shapes,
        attrs["capacity"],
        attrs.get("min_after_dequeue", 0),
        (attrs.get("seed", 0), attrs.get("seed2", 0)),
    )


def _provide(store: Any, handle: Any, node: Any) -> None:
    """Make the queue behind a handle, unless it is there.

    Raises:
        InvalidArgumentError: if a queue of that name is there, but another one than ``node`` says.
    """

    def make() -> Queue:
        shared = node.attrs["shared_name"]
        return KINDS[node.type](spec, shared or f"_{next(_numbers)}_{node.name}")

    try:
        spec = spec_of(node.type, node.attrs)
        queue = store.object(handle, make)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(None, node.op, error.message) from None
    problem = shared_mismatch(queue, spec)
    if problem is not None:
        raise InvalidArgumentError(None, node.op, problem)


_COMMON = "capacity: int = -1, container: string = '', shared_name: string = ''"
_COMPONENTS = "component_types: list(type) >= 1, shapes: list(shape) = []"

for _name, _attrs in (
    ("FIFOQueueV2", _COMPONENTS),
    ("PaddingFIFOQueueV2", _COMPONENTS),
    ("PriorityQueueV2", "component_types: list(type) = [], shapes: list(shape)"),
    (
        "RandomShuffleQueueV2",
        f"{_COMPONENTS}, min_after_dequeue: int = 0, seed: int = 0, seed2: int = 0",
    ),
):
    define_op(
        f"{_name}() -> handle: resource",
        attrs=f"{_attrs}, {_COMMON}",
        makes_handle="queue",
        provide=_provide,
        shape=lambda op: [()],
        gradient=_NO_GRADIENT,
    )


def host_resource(context: Any, handle: Any) -> Any:
    """The host resource (queue, reader ...) behind a handle.

    Raises:
        NotFoundError: if its container has been cleared.
    """
    if isinstance(handle, np.ndarray):  # a handle that came through other ops
        handle = handle[()]
    found = context.store.get(handle)
    if found is None:

        def missing() -> HostResource:
            where = f"{handle.container or 'localhost'}/{handle.name}"
            raise NotFoundError(None, None, f"Resource {where} does not exist.")

        found = context.store.object(handle, missing)
    return found


def _queue(context: Any, handle: Any) -> Queue:
    result: Queue = host_resource(context, handle)
    return result


def _check_types(queue: Queue, types: Sequence[Any], takes: bool) -> None:
    own = queue.spec.types
    if own != types:
        given, wanted = f"resource, {type_names(types)}->", f"resource, {type_names(own)}->"
        if takes:
            given, wanted = f"resource->{type_names(types)}", f"resource->{type_names(own)}"
        message = f"Signature mismatch, have: {given} expected: {wanted}"
        raise InvalidArgumentError(None, None, message)


# -- putting ------------------------------------------------------------------------------------


def _no_timeout(op: Operation) -> None:
    if op.attrs["timeout_ms"] != -1:
        raise ValueError("Timeout not supported yet: use tf.RunOptions(timeout_in_ms=...).")


def _enqueue_shape(op: Operation) -> list[Dims]:
    _no_timeout(op)
    return []


def _enqueue(context: Any, handle: Any, components: list[Any], *, Tcomponents: Any) -> Any:
    queue = _queue(context, handle)
    _check_types(queue, Tcomponents, False)
    queue.put((queue.element(components, context.owned),), context.step)
    return ()


def _enqueue_many(context: Any, handle: Any, components: list[Any], *, Tcomponents: Any) -> Any:
    queue = _queue(context, handle)
    _check_types(queue, Tcomponents, False)
    elements = queue.elements(components)
    if elements:
        queue.put(elements, context.step)
    return ()


for _name, _host in (("QueueEnqueueV2", _enqueue), ("QueueEnqueueManyV2", _enqueue_many)):
    define_op(
        f"{_name}(handle: resource, components: Tcomponents)",
        attrs="Tcomponents: list(type) >= 1, timeout_ms: int = -1",
        shape=_enqueue_shape,
        host=_host,
        effects=BLOCKS,
        gradient=_NO_GRADIENT,
    )

# -- taking -------------------------------------------------------------------------------------


def _component_dims(handle: Tensor, count: int) -> list[Dims]:
    """The shapes of the components of the queue behind a handle, as far as the graph tells."""
    op = handle_op(handle)
    if op is not None and op.op_def.makes_handle == "queue":
        shapes = [s.as_tuple for s in op.attrs["shapes"]]
        if shapes and op.type == "PriorityQueueV2":
            shapes.insert(0, ())
        if len(shapes) == count:
            return shapes
    return [None] * count


def _dequeue_shape(op: Operation) -> list[Dims]:
    _no_timeout(op)
    return _component_dims(op.inputs[0], len(op.attrs["component_types"]))


def _batch_shape(op: Operation) -> list[Dims]:
    parts = _dequeue_shape(op)
    value = static_value(op.inputs[1])
    count = None if value is None else int(value)
    if count is not None and count < 0:
        raise ValueError(f"Input 'n' must be >= 0, but is {count}.")
    if op.type == "QueueDequeueUpToV2":
        count = None
    return [None if dims is None else (count, *dims) for dims in parts]


def _dequeue(context: Any, handle: Any, *, component_types: Any) -> Any:
    queue = _queue(context, handle)
    _check_types(queue, component_types, True)
    return queue.single(queue.take(1, False, queue.family, context.step)[0])


def _dequeue_batch(context: Any, handle: Any, n: Any, types: Any, fewer: bool) -> Any:
    queue = _queue(context, handle)
    _check_types(queue, types, True)
    count = int(n)
    if count < 0:
        name = "DequeueUpToOp" if fewer else "DequeueManyOp"
        raise InvalidArgumentError(None, None, f"{name} requested {count} < 0 elements")
    if not queue.spec.shapes:
        raise InvalidArgumentError(
            None,
            None,
            f"{queue.spec.kind}'s DequeueMany and DequeueUpTo require the components to have "
            "specified shapes.",
        )
    elements = queue.take(count, fewer, queue.spec.kind, context.step) if count else []
    return queue.batch(elements)


define_op(
    "QueueDequeueV2(handle: resource) -> components: component_types",
    attrs="component_types: list(type) >= 1, timeout_ms: int = -1",
    shape=_dequeue_shape,
    host=_dequeue,
    effects=BLOCKS,
    gradient=_NO_GRADIENT,
    traits=Traits(takes_out="element"),
)


def _dequeue_many(context: Any, handle: Any, n: Any, *, component_types: Any) -> Any:
    return _dequeue_batch(context, handle, n, component_types, False)


def _dequeue_up_to(context: Any, handle: Any, n: Any, *, component_types: Any) -> Any:
    return _dequeue_batch(context, handle, n, component_types, True)


for _name, _take in (("QueueDequeueManyV2", _dequeue_many), ("QueueDequeueUpToV2", _dequeue_up_to)):
    define_op(
        f"{_name}(handle: resource, n: int32) -> components: component_types",
        attrs="component_types: list(type) >= 1, timeout_ms: int = -1",
        shape=_batch_shape,
        host=_take,
        effects=BLOCKS,
        gradient=_NO_GRADIENT,
        traits=Traits(takes_out="rows"),
    )

# -- closing, state -----------------------------------------------------------------------------


def _close(context: Any, handle: Any, *, cancel_pending_enqueues: bool) -> Any:
    _queue(context, handle).close(cancel_pending_enqueues, context.step)
    return ()


define_op(
    "QueueCloseV2(handle: resource)",
    attrs="cancel_pending_enqueues: bool = False",
    shape=lambda op: [],
    host=_close,
    effects=BLOCKS,  # behind puts that wait
    gradient=_NO_GRADIENT,
)

define_op(
    "QueueIsClosedV2(handle: resource) -> is_closed: bool",
    shape=lambda op: [()],
    host=lambda context, handle: np.bool_(_queue(context, handle).is_closed),
    effects=_READS,
    gradient=_NO_GRADIENT,
)

define_op(
    "QueueSizeV2(handle: resource) -> size: int32",
    shape=lambda op: [()],
    host=lambda context, handle: np.int32(_queue(context, handle).size()),
    effects=_READS,
    gradient=_NO_GRADIENT,
)

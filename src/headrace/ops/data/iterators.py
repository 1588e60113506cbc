"""Iterators: what a session keeps of an iteration over a dataset, and the ops that use it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import (
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
)
from headrace.graph.tensor import Dims, Operation
from headrace.ops.control.tensor_list_kernels import TensorList
from headrace.ops.core.registry import EXTERNAL, HostResource, define_op
from headrace.ops.core.traits import Traits
from headrace.ops.data.pipeline import (
    ELEMENTS,
    NO_GRADIENT,
    TYPES,
    Element,
    Iteration,
    Source,
    Stream,
    as_string,
)
from headrace.ops.data.state import from_bytes, to_bytes
from headrace.ops.io.queues import BLOCKS, host_resource

KIND = "iterator"
_NOT_INITIALIZED = (
    "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
    "initializer operation for this iterator before getting the next element."
)


class IteratorResource(HostResource):
    """One iteration at a time over a dataset.

    Args:
        factory: gives the dataset of an iterator that needs no initialiser.

    Attributes:
        count: how many elements it has given.
    """

    count = 0

    def __init__(self, factory: Callable[[Any], Source] | None = None) -> None:
        self._factory = factory
        self._lock = threading.RLock()
        self._run: Iteration | None = None
        self._stream: Stream | None = None
        self._source: Source | None = None
        self._is_over = False
        self._is_gone = False

    def begin(self, source: Source, context: Any) -> None:
        """Iterate over ``source`` from its beginning."""
        old, run = self._run, Iteration(context.planned)
        if old is not None:
            old.close()
        with self._lock:
            if self._is_gone:
                raise CancelledError(None, None, "The session of the iterator has ended.")
            if self._stream is not None:
                self._stream.close()
            self._run, self._stream, self._is_over = run, source.stream(run), False
            self.count = 0
            self._source = source

    def _ready(self, context: Any) -> tuple[Iteration, Stream]:
        if self._stream is None and self._factory is not None:
            self.begin(self._factory(context), context)
        if self._stream is None or self._run is None:
            raise FailedPreconditionError(None, None, _NOT_INITIALIZED)
        return self._run, self._stream

    def next(self, context: Any) -> Element | None:
        """The next element, None at the end."""
        with self._lock:
            run, stream = self._ready(context)
            if self._is_over:
                return None
            try:
                element = run.pull(stream, context.step)
            except StopIteration:
                self._is_over = True
                stream.close()
                return None
            self.count += 1
            return element

    def stage_that_declares(self, component: int, shape: Any) -> Any:
        """The operation of the first stage that promises a component of this shape.

        Stages behind it repeat what it says; None if the last one says something else.
        """
        found = None
        stream = self._stream
        while stream is not None:
            shapes = stream.op.attrs.get("output_shapes", ()) if stream.op is not None else ()
            if component < len(shapes) and shapes[component].as_tuple != shape.as_tuple:
                break
            found = stream.op if shapes else found
            stream = stream.inputs[0] if len(stream.inputs) == 1 else None
        return found

    def save(self, context: Any) -> bytes:
        """What `restore` needs."""
        with self._lock:
            _, stream = self._ready(context)
            state = None if self._is_over else stream.save()
            return to_bytes({"over": self._is_over, "stream": state})

    def restore(self, content: bytes, context: Any) -> None:
        """Go on with the elements that came after the iterator was saved."""
        state = from_bytes(content)
        with self._lock:
            self._ready(context)
            assert self._source is not None
            self.begin(self._source, context)
            assert self._stream is not None
            self._is_over = state["over"]
            if not self._is_over:
                self._stream.restore(state["stream"])

    def abandon(self) -> None:
        """The session has ended: whoever waits is cancelled, threads end."""
        self._is_gone = True
        if self._run is not None:
            self._run.close()
        with self._lock:
            if self._stream is not None:
                self._stream.close()


_NAMES = "shared_name: string, container: string"


def _provide(store: Any, handle: Any, node: Any) -> None:
    store.object(handle, IteratorResource)


for _name in ("Iterator", "IteratorV2"):
    define_op(
        f"{_name}() -> handle: resource",
        attrs=f"{_NAMES}, {TYPES}",
        makes_handle=KIND,
        provide=_provide,
        shape=lambda op: [()],
        gradient=NO_GRADIENT,
    )


def _provide_one_shot(store: Any, handle: Any, node: Any) -> None:
    body = node.attrs["dataset_factory"]

    def made(context: Any) -> Source:
        (source,) = context.call(body, [])
        result: Source = source
        return result

    store.object(handle, lambda: IteratorResource(made))


define_op(
    "OneShotIterator() -> handle: resource",
    attrs=f"dataset_factory: func, {TYPES}, container: string = '', shared_name: string = ''",
    makes_handle=KIND,
    provide=_provide_one_shot,
    shape=lambda op: [()],
    gradient=NO_GRADIENT,
)


def _iterator(context: Any, handle: Any) -> IteratorResource:
    found = host_resource(context, handle)
    if not isinstance(found, IteratorResource):
        message = f"The resource is a {type(found).__name__}, not an iterator."
        raise InvalidArgumentError(None, None, message)
    return found


def _make(context: Any, dataset: Any, iterator: Any) -> Any:
    _iterator(context, iterator).begin(dataset, context)
    return ()


define_op(
    "MakeIterator(dataset: variant, iterator: resource)",
    shape=lambda op: [],
    host=_make,
    effects=EXTERNAL,
    gradient=NO_GRADIENT,
)


def _checked(context: Any, element: Element, iterator: IteratorResource | None = None) -> list[Any]:
    """An element of the types and shapes that the op declares.

    Args:
        iterator: what gave it, whose stages an error names.
    """
    attrs = context.node.attrs
    types, shapes = attrs["output_types"], attrs["output_shapes"]
    if len(element) != len(types):
        message = f"The iterator gives elements of {len(element)} components, not {len(types)}."
        raise InvalidArgumentError(None, None, message)
    for i, (value, dtype, shape) in enumerate(zip(element, types, shapes, strict=True)):
        given = np.shape(value)
        if dtype.name != "variant" and not shape.is_compatible_with(given):
            message = (
                f"Component {i} of the element has shape {list(given)}, which does not fit the "
                f"declared shape {shape}."
            )
            error = InvalidArgumentError(None, None, message)
            stage = None if iterator is None else iterator.stage_that_declares(i, shape)
            if iterator is not None and stage is not None:
                error.add_stage(stage, iterator.count - 1, " (in the order of the iterator)")
            raise error
    return list(element)


def _get_next(context: Any, handle: Any) -> Any:
    iterator = _iterator(context, handle)
    element = iterator.next(context)
    if element is None:
        raise OutOfRangeError(None, None, "End of sequence")
    return _checked(context, element, iterator)


def _shapes(op: Operation) -> list[Dims]:
    return [shape.as_tuple for shape in op.attrs["output_shapes"]]


def _last_stage(op: Operation) -> Operation | None:
    """The dataset of an iterator, where the graph has one for it."""
    handle = op.inputs[0]
    factory = handle.op.attrs.get("dataset_factory")
    if factory is not None:
        made: Operation = factory.outputs[0].op
        return made
    begins = [user for user in handle.consumers() if user.type == "MakeIterator"]
    return begins[0].inputs[0].op if len(begins) == 1 else None


for _name in ("IteratorGetNext", "IteratorGetNextSync"):
    define_op(
        f"{_name}(iterator: resource) -> components: output_types",
        attrs=TYPES,
        shape=_shapes,
        host=_get_next,
        effects=BLOCKS,
        gradient=NO_GRADIENT,
        traits=Traits(origin=_last_stage, takes_out="rows"),
    )


def _get_next_as_optional(context: Any, iterator: Any) -> Any:
    element = _iterator(context, iterator).next(context)
    return TensorList((None,) if element is None else tuple(_checked(context, element)))


define_op(
    "IteratorGetNextAsOptional(iterator: resource) -> optional: variant",
    attrs=TYPES,
    shape=lambda op: [()],
    host=_get_next_as_optional,
    effects=BLOCKS,
    gradient=NO_GRADIENT,
    traits=Traits(takes_out="rows"),
)

# -- handles as strings -------------------------------------------------------------------------


def _to_string(context: Any, handle: Any) -> Any:
    _iterator(context, handle)
    return as_string(json.dumps([handle.kind, handle.container, handle.name]).encode())


define_op(
    "IteratorToStringHandle(resource_handle: resource) -> string_handle: string",
    shape=lambda op: [()],
    host=_to_string,
    effects=BLOCKS,
    gradient=NO_GRADIENT,
)


def _from_string(context: Any, string_handle: Any) -> Any:
    content = bytes(np.asarray(string_handle)[()])
    try:
        handle = context.handle(*json.loads(content))
    except (ValueError, TypeError):
        message = (
            f"{content[:80]!r} is not the string handle of an iterator; "
            "sess.run(iterator.string_handle()) gives one."
        )
        raise InvalidArgumentError(None, None, message) from None
    _iterator(context, handle)
    return handle


for _name in ("IteratorFromStringHandle", "IteratorFromStringHandleV2"):
    define_op(
        f"{_name}(string_handle: string) -> resource_handle: resource",
        attrs="output_types: list(type) >= 0 = [], output_shapes: list(shape) >= 0 = []",
        shape=lambda op: [()],
        host=_from_string,
        effects=BLOCKS,
        gradient=NO_GRADIENT,
    )

# -- saving -------------------------------------------------------------------------------------


def _serialize(context: Any, handle: Any) -> Any:
    return as_string(_iterator(context, handle).save(context))


def _deserialize(context: Any, handle: Any, serialized: Any) -> Any:
    _iterator(context, handle).restore(bytes(np.asarray(serialized)[()]), context)
    return ()


_OURS = Traits(only_here="TensorFlow keeps where an iterator is in a form of its own")
define_op(
    "IteratorState(resource_handle: resource) -> state: string",
    shape=lambda op: [()],
    host=_serialize,
    effects=BLOCKS,
    gradient=NO_GRADIENT,
    traits=_OURS,
)
define_op(
    "RestoreIteratorState(resource_handle: resource, state: string)",
    shape=lambda op: [],
    host=_deserialize,
    effects=BLOCKS,
    gradient=NO_GRADIENT,
    traits=_OURS,
)

# -- datasets without an iterator ---------------------------------------------------------------


def _single(context: Any, dataset: Source) -> Sequence[Any]:
    run = Iteration(context.planned)
    stream = dataset.stream(run)
    try:
        element = run.pull(stream, context.step)
        if next(stream, None) is not None:
            raise InvalidArgumentError(None, None, "Dataset had more than one element.")
    except StopIteration:
        raise InvalidArgumentError(None, None, "Dataset was empty.") from None
    finally:
        stream.close()
    return _checked(context, element)


define_op(
    "DatasetToSingleElement(dataset: variant) -> components: output_types",
    attrs=TYPES,
    shape=_shapes,
    host=_single,
    effects=BLOCKS,
    gradient=NO_GRADIENT,
)


def _reduce(context: Any, dataset: Source, initial: Sequence[Any], others: Sequence[Any]) -> Any:
    run = Iteration(context.planned)
    function = run.function(context.node.attrs["f"], others)
    stream = dataset.stream(run)
    state = tuple(initial)
    try:
        while True:
            state = function(*state, *run.pull(stream, context.step))
    except StopIteration:
        return list(state)
    finally:
        stream.close()


define_op(
    "ReduceDataset(input_dataset: variant, initial_state: Tstate, other_arguments: Targuments)"
    " -> components: output_types",
    attrs="f: func, Tstate: list(type) >= 1, Targuments: list(type) >= 0, "
    "output_types: list(type) >= 1, output_shapes: list(shape) >= 1, "
    "use_inter_op_parallelism: bool = True",
    shape=_shapes,
    host=_reduce,
    effects=BLOCKS,
    gradient=NO_GRADIENT,
    traits=ELEMENTS,
)

__all__: list[str] = []

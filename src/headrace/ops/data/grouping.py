"""Datasets that gather elements by a key, and other ones that look at values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import CancelledError, InvalidArgumentError, OpError
from headrace.ops.data.batching import Given
from headrace.ops.data.functional import elsewhere
from headrace.ops.data.pipeline import (
    Element,
    Iteration,
    Source,
    Stream,
    define_dataset,
    scalar,
    whole,
)

_SIZED = "output_types: list(type) >= 1, output_shapes: list(shape) >= 1"


def _arguments(*names: str) -> tuple[str, str]:
    """The inputs and attributes of so many functions with captures."""
    inputs = ", ".join(f"{name}_other_arguments: T{name}_other_arguments" for name in names)
    attrs = ", ".join(f"{name}: func, T{name}_other_arguments: list(type) >= 0" for name in names)
    return inputs, attrs


class _Functions(Source):
    """A source that calls several functions, by name."""

    _stream_type: type[Any]

    def __init__(self, base: Source, functions: dict[str, tuple[Any, Any]]) -> None:
        self._base, self._functions = base, functions

    def _begin(self, run: Iteration) -> Stream:
        calls = {name: run.function(*function) for name, function in self._functions.items()}
        made: Stream = self._stream_type(whole(self._base, run), calls, run)
        return made


class _WindowsStream(Stream):
    """Groups that wait to be full, and the stream of a full one."""

    def __init__(self, stream: Stream, calls: dict[str, Any], run: Iteration) -> None:
        self._base, self._calls, self._run = stream, calls, run
        self._groups: OrderedDict[int, list[Element]] = OrderedDict()
        self._open: tuple[int, list[Element], Stream] | None = None
        self._is_over = False

    @property
    def inputs(self) -> Sequence[Stream]:  # type: ignore[override]
        return (self._base,) if self._open is None else (self._base, self._open[2])

    def __next__(self) -> Element:
        while True:
            if self._open is not None:
                try:
                    found: Element = next(self._open[2])
                except StopIteration:
                    self._open[2].close()
                    self._open = None
                else:
                    return found
            elif not self._is_over:
                self._gather()
            elif self._groups:
                self._emit(*self._groups.popitem(last=False))
            else:
                raise StopIteration

    def _gather(self) -> None:
        """Take one more element; open its group if it is full."""
        element = next(self._base, None)
        if element is None:
            self._is_over = True
            self._groups = OrderedDict(sorted(self._groups.items()))
            return
        self.count += 1
        try:
            self._put(element)
        except OpError as error:
            self.failed(error)
            raise

    def _put(self, element: Element) -> None:
        key = int(self._calls["key_func"](*element)[0])
        group = self._groups.setdefault(key, [])
        group.append(element)
        size = int(self._calls["window_size_func"](np.int64(key))[0])
        if size < 1:
            message = f"Window size must be greater than zero, but got {size}."
            raise InvalidArgumentError(None, None, message)
        if len(group) >= size:
            del self._groups[key]
            self._emit(key, group)

    def _emit(self, key: int, group: list[Element]) -> None:
        made = elsewhere(self._calls["reduce_func"](np.int64(key), Given(group)))
        self._open = key, group, whole(made, self._run)

    def save(self) -> Any:
        opened = None
        if self._open is not None:
            key, group, stream = self._open
            opened = [key, [list(e) for e in group], stream.save()]
        groups = [[key, [list(e) for e in group]] for key, group in self._groups.items()]
        own = [groups, opened, self._is_over]
        return {"own": own, "count": self.count, "inputs": [self._base.save()]}

    def restore(self, state: Any) -> None:
        groups, opened, self._is_over = state["own"]
        self.count = state["count"]
        self._base.restore(state["inputs"][0])
        self._groups = OrderedDict((key, [tuple(e) for e in group]) for key, group in groups)
        self._open = None
        if opened is not None:
            self._emit(opened[0], [tuple(e) for e in opened[1]])
            assert self._open is not None
            self._open[2].restore(opened[2])


class _Windows(_Functions):
    _stream_type = _WindowsStream


def _define(
    name: str, functions: Sequence[str], make: Callable[..., Source], others: str = ""
) -> None:
    inputs, attrs = _arguments(*functions)

    def made(context: Any, base: Source, *captured: Any) -> Source:
        bodies = context.node.attrs
        return make(base, {n: (bodies[n], c) for n, c in zip(functions, captured, strict=True)})

    define_dataset(
        f"{name}(input_dataset: variant, {inputs})", made, attrs=f"{attrs}, {_SIZED}{others}"
    )


_define(
    "GroupByWindowDataset",
    ("key_func", "reduce_func", "window_size_func"),
    _Windows,
)


class _ReducedStream(Stream):
    """One element for each key, once all elements have been seen."""

    def __init__(self, stream: Stream, calls: dict[str, Any], run: Iteration) -> None:
        self.inputs = (stream,)
        self._stream, self._calls = stream, calls
        self._states: list[tuple[int, Element]] | None = None

    def __next__(self) -> Element:
        if self._states is None:
            states: dict[int, Element] = {}
            for element in self._stream:
                self.count += 1
                try:
                    self._add(states, element)
                except OpError as error:
                    self.failed(error)
                    raise
            self._states = sorted(states.items(), key=lambda item: item[0], reverse=True)
        if not self._states:
            raise StopIteration
        made: Element = self._calls["finalize_func"](*self._states.pop()[1])
        return made

    def _add(self, states: dict[int, Element], element: Element) -> None:
        key = int(self._calls["key_func"](*element)[0])
        state = states.get(key)
        if state is None:
            state = self._calls["init_func"](np.int64(key))
        states[key] = self._calls["reduce_func"](*state, *element)

    def own_state(self) -> Any:
        return self._states and [[key, list(state)] for key, state in self._states]

    def set_own_state(self, state: Any) -> None:
        self._states = None if state is None else [(key, tuple(s)) for key, s in state]


class _Reduced(_Functions):
    _stream_type = _ReducedStream


_define(
    "GroupByReducerDataset",
    ("key_func", "init_func", "reduce_func", "finalize_func"),
    _Reduced,
)

# -- values -------------------------------------------------------------------------------------


class _Of(Source):
    """A source whose streams take the stream of another."""

    def __init__(self, base: Source, make: Callable[[Stream], Stream]) -> None:
        self._base, self._make = base, make

    def _begin(self, run: Iteration) -> Stream:
        return self._make(whole(self._base, run))


class _UniqueStream(Stream):
    def __init__(self, stream: Stream) -> None:
        self.inputs = (stream,)
        self._stream = stream
        self._seen: dict[Any, None] = {}

    def __next__(self) -> Element:
        while True:
            element: Element = next(self._stream)
            array = element[0]
            key = repr(array.tolist()) if array.dtype.hasobject else array.tobytes()
            if key not in self._seen:
                self._seen[key] = None
                return element

    def own_state(self) -> Any:
        is_text = any(isinstance(key, str) for key in self._seen)
        return [is_text, [key if is_text else key.hex() for key in self._seen]]

    def set_own_state(self, state: Any) -> None:
        is_text, keys = state
        self._seen = {key if is_text else bytes.fromhex(key): None for key in keys}


define_dataset(
    "UniqueDataset(input_dataset: variant)", lambda context, base: _Of(base, _UniqueStream)
)


class _IgnoreErrorsStream(Stream):
    def __init__(self, stream: Stream) -> None:
        self.inputs = (stream,)
        self._stream = stream

    def __next__(self) -> Element:
        while True:
            try:
                found: Element = next(self._stream)
                return found
            except CancelledError:
                raise
            except OpError:
                continue


define_dataset(
    "IgnoreErrorsDataset(input_dataset: variant)",
    lambda context, base: _Of(base, _IgnoreErrorsStream),
    attrs=f"log_warning: newer bool = False, {_SIZED}",
)

# -- sparse batches -----------------------------------------------------------------------------


class _SparseBatchStream(Stream):
    """Each batch as three serialised tensors: indices, values and shape of a sparse one."""

    def __init__(self, stream: Stream, size: int, shape: Sequence[int]) -> None:
        self.inputs = (stream,)
        self._stream, self._size, self._shape = stream, size, shape

    def __next__(self) -> Element:
        found = [element[0] for element in self._stream.next_many(self._size)]
        if not found:
            raise StopIteration
        self.count += 1
        largest = [max(sizes) for sizes in zip(*[f.shape for f in found], strict=True)]
        if len(largest) != len(self._shape):
            message = (
                f"Dimensions of the elements ({len(largest)}) and of row_shape "
                f"({len(self._shape)}) differ."
            )
            raise self.failed(InvalidArgumentError(None, None, message))
        for size, most in zip(largest, self._shape, strict=True):
            if most >= 0 and size > most:
                message = f"An element of size {size} does not fit row_shape {list(self._shape)}."
                raise self.failed(InvalidArgumentError(None, None, message))
        row_shape = [size if m < 0 else m for size, m in zip(largest, self._shape, strict=True)]
        places = [
            np.column_stack([np.full(f.size, i), *map(np.ravel, np.indices(f.shape))])
            for i, f in enumerate(found)
        ]
        indices = np.concatenate(places).astype(np.int64)
        values = np.concatenate([f.reshape(-1) for f in found])
        return (_serialized(indices, values, np.array([len(found), *row_shape], np.int64)),)


def _serialized(*parts: Any) -> Any:
    from headrace.graph.tensor_proto import make_tensor_proto

    result = np.empty(len(parts), object)
    result[:] = [make_tensor_proto(part).SerializeToString() for part in parts]
    return result


define_dataset(
    "DenseToSparseBatchDataset(input_dataset: variant, batch_size: int64, row_shape: int64)",
    lambda context, base, size, shape: _Of(
        base,
        lambda stream: _SparseBatchStream(
            stream, scalar(size, "batch_size", 1), [int(s) for s in shape]
        ),
    ),
)

__all__: list[str] = []

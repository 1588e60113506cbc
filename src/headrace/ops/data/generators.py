"""Datasets of Python generators."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from headrace.errors import InvalidArgumentError, OpError, UnimplementedError, UnknownError
from headrace.graph.dtypes import DType
from headrace.graph.tensor_proto import to_ndarray
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.core.traits import Traits
from headrace.ops.data.pipeline import (
    TYPES,
    Element,
    Iteration,
    Source,
    Stream,
    define_dataset,
    whole,
)

#: Makes an iterable of flat elements, of the values of the arguments.
Generator = Callable[..., Iterable[Sequence[Any]]]
_IN_PROCESS = Traits(only_here="Python functions are not part of graph files")


class Registered:
    """A generator function; it lives as long as the graph that has the dataset."""

    __slots__ = ("__weakref__", "function", "token")

    def __init__(self, function: Generator) -> None:
        self.function = function
        self.token = f"generator_{next(_numbers)}"
        _registered[self.token] = self


_registered: weakref.WeakValueDictionary[str, Registered] = weakref.WeakValueDictionary()
_numbers = itertools.count()


class _Generated(Source):
    def __init__(
        self,
        function: Generator,
        args: Sequence[Any],
        types: Sequence[DType],
        shapes: Sequence[Any],
    ) -> None:
        self._function, self._args = function, args
        self._types, self._shapes = types, shapes

    def _begin(self, run: Iteration) -> Stream:
        return _GeneratedStream(self._function, self._args, self._types, self._shapes)


class _GeneratedStream(Stream):
    """Saved as the number of elements given: who restores it runs the generator so far again."""

    def __init__(
        self,
        function: Generator,
        args: Sequence[Any],
        types: Sequence[DType],
        shapes: Sequence[Any],
    ) -> None:
        self._function, self._args = function, args
        self._types, self._shapes = types, shapes
        self._iterator: Iterator[Sequence[Any]] | None = None

    def __next__(self) -> Element:
        index = self.count
        try:
            if self._iterator is None:
                self._iterator = iter(self._function(*self._args))
            values = next(self._iterator)
            self.count += 1
            return tuple(map(self._component, range(len(self._types)), values))
        except StopIteration:
            raise
        except OpError as error:
            self.failed(error, index)
            raise
        except Exception as error:
            message = f"The generator failed at element {index}: {type(error).__name__}: "
            made = UnknownError(None, None, f"{message}{error}")
            raise self.failed(made, index) from error

    def _component(self, index: int, value: Any) -> Any:
        dtype, shape = self._types[index], self._shapes[index]
        try:
            array = to_ndarray(value, dtype)
        except (TypeError, ValueError) as error:
            message = (
                f"`generator` yielded an element that could not be converted to the expected type. "
                f"The expected type was {dtype.name}, but element {self.count - 1} has "
                f"{value!r:.80} as component {index}: {error}"
            )
            raise InvalidArgumentError(None, None, message) from error
        if not shape.is_compatible_with(array.shape):
            message = (
                f"`generator` yielded an element of shape {list(array.shape)} where an element of "
                f"shape {shape} was expected (element {self.count - 1}, component {index})."
            )
            raise InvalidArgumentError(None, None, message)
        return array

    def own_state(self) -> Any:
        return self.count

    def set_own_state(self, state: Any) -> None:
        self.close()
        while self.count < int(state):
            next(self)

    def close(self) -> None:
        close = getattr(self._iterator, "close", None)
        if close is not None:
            close()
        self._iterator, self.count = None, 0


def _function(token: str) -> Generator:
    found = _registered.get(token)
    if found is None:
        message = (
            f"The generator {token} is not in this process: Python functions are not part "
            "of graph files. Build the graph again with Dataset.from_generator."
        )
        raise UnimplementedError(None, None, message)
    return found.function


def _generator(context: Any, args: Sequence[Any]) -> Source:
    attrs = context.node.attrs
    function = _function(attrs["token"])
    source = _Generated(function, args, attrs["output_types"], attrs["output_shapes"])
    source.op = context.node.op
    return source


define_op(
    "PythonGeneratorDataset(args: Targs) -> handle: variant",
    attrs="token: string, Targs: list(type) >= 0, output_types: list(type) >= 1, "
    "output_shapes: list(shape) >= 1",
    shape=lambda op: [()],
    host=_generator,
    gradient=NotDifferentiable("a generator gives values"),
    traits=_IN_PROCESS,
)


class _Staged(Source):
    """A source whose elements pass a Python function: ``function(elements, *args)``."""

    def __init__(self, base: Source, function: Generator, args: Sequence[Any]) -> None:
        self._base, self._function, self._args = base, function, args

    def _begin(self, run: Iteration) -> Stream:
        return _StagedStream(whole(self._base, run), self._function, self._args)


class _StagedStream(Stream):
    def __init__(self, stream: Stream, function: Generator, args: Sequence[Any]) -> None:
        self.inputs = (stream,)
        self._iterator = iter(function(stream, *args))

    def __next__(self) -> Element:
        self.count += 1
        return tuple(next(self._iterator))

    def own_state(self) -> Any:
        message = "A stage that is Python code has no state that could be saved."
        raise self.failed(UnimplementedError(None, None, message))


def _stage(context: Any, base: Any, args: Sequence[Any]) -> Source:
    return _Staged(base, _function(context.node.attrs["token"]), args)


define_dataset(
    "PythonStageDataset(input_dataset: variant, args: Targs)",
    _stage,
    attrs=f"token: string, Targs: list(type) >= 0, {TYPES}",
    traits=_IN_PROCESS,
)

__all__ = ["Registered"]

"""What ``Session.run`` accepts as fetches and feeds, turned into flat lists of graph elements."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.errors import suggest
from headrace.graph import dtypes, nest
from headrace.graph.composite import CompositeTensor
from headrace.graph.graph import Graph
from headrace.graph.shape_errors import foreign_tensor
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.graph.tensor_proto import to_ndarray
from headrace.session.handles import TensorHandle

#: Types of the user's own: how they are fetched and fed, the newest first.
_conversions: list[tuple[type, Callable[..., Any], Any, Any]] = []


def register_session_run_conversion_functions(
    tensor_type: type,
    fetch_function: Callable[[Any], tuple[Sequence[Any], Callable[[list[Any]], Any]]],
    feed_function: Callable[[Any, Any], Sequence[tuple[Any, Any]]] | None = None,
    feed_function_for_partial_run: Callable[[Any], Sequence[Any]] | None = None,
) -> None:
    """Let sessions fetch and feed objects of a type of the program's own.

    Args:
        tensor_type: the type; its subclasses are meant, too.
        fetch_function: gives for an object what to fetch in its place, and a function that makes
            the result of the list of values.
        feed_function: gives for an object and its value the pairs of what to feed and its value.
        feed_function_for_partial_run: gives for an object what is fed in its place; without it,
            ``feed_function`` is asked, with None for the value.

    Raises:
        ValueError: if there are such functions for the type, or for one below it.
    """
    if any(issubclass(known, tensor_type) for known, *_ in _conversions):
        raise ValueError(f"{tensor_type} has already been registered so ignore it.")
    _conversions.insert(
        0, (tensor_type, fetch_function, feed_function, feed_function_for_partial_run)
    )


def _conversion(value: Any) -> Any:
    """The functions of the type of ``value``, or None."""
    return next((c for c in _conversions if isinstance(value, c[0])), None)


class Fetches:
    """One fetch structure: the distinct elements in it and how to put the values back.

    Attributes:
        tensors: tensors to compute; ``targets``: operations to run.
        last: positions among ``tensors`` of variables. Their values are those at the step's end, as
            with the reference variables of TensorFlow 1.x, which most updates changed in place. A
            tensor, also one that reads a variable, has its value where the program computes it.

    Args:
        session: that whose steps these are; None if they keep no tensors in it.
    """

    def __init__(self, graph: Graph, structure: Any, session: Any = None) -> None:
        self._graph = graph
        # The session keeps this object with its plan: it must not be kept alive by it.
        self._session = None if session is None else weakref.ref(session)
        self._index: dict[tuple[Tensor, bool], int] = {}
        self._targets: dict[Operation, None] = {}
        self.rebuild = self._compile(structure)
        self.tensors = [tensor for tensor, _ in self._index]
        self.last = tuple([i for (_, last), i in self._index.items() if last])
        self.targets = list(self._targets)

    def _compile(self, fetch: Any) -> Callable[[list[Any]], Any]:
        """A function from the values of ``tensors`` to the structure."""
        if fetch is None:
            raise TypeError(f"Fetch argument {fetch!r} has invalid type {type(fetch).__name__}.")
        if isinstance(fetch, (Tensor, Operation)):
            return self._leaf(fetch)
        if isinstance(fetch, (list, tuple)):
            return self._sequence(fetch)
        if isinstance(fetch, Mapping):
            keys = list(fetch)
            parts = [self._compile(fetch[k]) for k in keys]
            make: Any = type(fetch) if isinstance(fetch, OrderedDict) else dict
            return lambda v: make((k, p(v)) for k, p in zip(keys, parts, strict=True))
        own = _conversion(fetch)
        if own is not None:
            expanded, contract = own[1](fetch)
            pieces = [self._compile(e) for e in expanded]
            return lambda v: contract([p(v) for p in pieces])
        if isinstance(fetch, CompositeTensor) and fetch._fetchable:
            inner = [self._compile(p) for p in fetch._parts()]
            return lambda v: fetch._value([p(v) for p in inner])
        element = self._element(fetch)
        # A variable, or its name: the name of the read itself means the read.
        is_read = isinstance(element, Tensor) and element.op.type == "ReadVariableOp"
        return self._leaf(
            element, is_read and not (isinstance(fetch, str) and fetch == element.name)
        )

    def _sequence(self, fetch: Any) -> Callable[[list[Any]], Any]:
        parts = [self._compile(f) for f in fetch]
        if isinstance(fetch, list):
            return lambda v: [p(v) for p in parts]
        if hasattr(fetch, "_fields"):
            return lambda v: type(fetch)(*[p(v) for p in parts])
        return lambda v: tuple([p(v) for p in parts])

    def _element(self, fetch: Any) -> Tensor | Operation:
        try:
            return self._graph.as_graph_element(fetch)
        except TypeError as error:
            raise TypeError(
                f"Fetch argument {fetch!r} has invalid type {type(fetch).__name__}, must be a "
                f"string or Tensor. ({error})"
            ) from None
        except (ValueError, KeyError) as error:
            text = error.args[0] if error.args else str(error)
            raise ValueError(
                f"Fetch argument {fetch!r} cannot be interpreted as a Tensor. ({text})"
            ) from None

    def _leaf(self, element: Tensor | Operation, last: bool = False) -> Callable[[list[Any]], Any]:
        if element.graph is not self._graph:
            if isinstance(element, Tensor) and element.graph.building_function:
                raise ValueError(
                    f"Fetch argument {element!r} cannot be fetched. {foreign_tensor(element)}"
                )
            raise ValueError(
                f"Fetch argument {element!r} cannot be interpreted as a Tensor. ({element!r} is "
                "not an element of this graph.)"
            )
        if not self._graph.is_fetchable(element):
            raise ValueError(f"{element!r} has been marked as not fetchable.")
        if isinstance(element, Operation):
            self._targets[element] = None
            return lambda v: None
        # A variable and a read of it have one tensor, but are two fetches: the one has its value
        # at the end of the step, the other that of its moment.
        index = self._index.setdefault((element, last), len(self._index))
        session = self._session
        if element.op.type == "GetSessionHandle" and session is not None:
            kept = element.op.inputs[0].dtype
            return lambda v: TensorHandle(v[index], kept, session())
        return lambda v: v[index]


class Feeds:
    """Tensors that are fed, and the conversion of their values.

    Attributes:
        tensors: each fed tensor once, in the order of the graph whatever the order of ``keys``.
    """

    def __init__(self, graph: Graph, keys: list[Any]) -> None:
        self._given: list[Tensor] = []
        self._composite: list[tuple[Any, Callable[[Any], Sequence[Any]] | None, int]] = []
        for key in keys:
            self._add(graph, key)
        self.simple = all(split is None for _, split, _ in self._composite)
        self._checks = [(np.dtype(t.dtype.np_dtype), t, t.dims) for t in self._given]
        # In the order of the graph: feeding the same tensors in another order finds the same plan.
        # A tensor may be given twice, say by name and as an object: the last value counts.
        position = {t: i for i, t in enumerate(self._given)}
        self.tensors = sorted(position, key=lambda t: (t.op._id, t.value_index))
        self._order: list[int] | None = [position[t] for t in self.tensors]
        if self.tensors == self._given:
            self._order = None

    def _add(self, graph: Graph, key: Any) -> None:
        if isinstance(key, CompositeTensor) and key._fetchable:
            parts = key._parts()
            self._composite.append((key, key._fed, len(parts)))
            self._given.extend(self._element(graph, part) for part in parts)
            return
        own = _conversion(key)
        if own is not None and own[2] is not None:
            _, _, feed, parts_of = own
            fed = parts_of(key) if parts_of is not None else [t for t, _ in feed(key, None)]
            self._composite.append((key, lambda value: [v for _, v in feed(key, value)], len(fed)))
            self._given.extend(self._element(graph, tensor) for tensor in fed)
            return
        if isinstance(key, tuple):
            leaves = nest.flatten(key)
            self._composite.append((key, lambda value: _leaves(key, value), len(leaves)))
            self._given.extend(self._element(graph, leaf) for leaf in leaves)
            return
        self._composite.append((key, None, 1))
        self._given.append(self._element(graph, key))

    @staticmethod
    def _element(graph: Graph, key: Any) -> Tensor:
        try:
            element = graph.as_graph_element(key, allow_operation=False)
        except (TypeError, ValueError, KeyError) as error:
            text = error.args[0] if error.args else str(error)
            if isinstance(key, str):
                text += _what_can_be_fed(graph, key)
            raise TypeError(f"Cannot interpret feed_dict key as Tensor: {text}") from None
        assert isinstance(element, Tensor)
        if not graph.is_feedable(element):
            raise ValueError(f"Tensor {element!r} may not be fed.")
        return element

    def convert(self, values: list[Any]) -> list[Any]:
        """Arrays for ``tensors`` from the values of the feed dictionary.

        Raises:
            ValueError: if a value's shape does not fit; TypeError: if its type does not.
        """
        if not self.simple:
            flat: list[Any] = []
            for (_, split, count), value in zip(self._composite, values, strict=True):
                flat.extend(split(value)[:count] if split is not None else [value])
            values = flat
        result = []
        for value, (dtype, tensor, dims) in zip(values, self._checks, strict=True):
            if isinstance(value, np.ndarray) and value.dtype == dtype:
                array = value  # as most are: not copied, and hardly looked at
            else:
                array = _convert_feed(value, dtype, tensor)
                if not isinstance(array, np.ndarray):  # a resource handle
                    result.append(array)
                    continue
            if array.shape != dims and not _fits(tensor.dims, array.shape):
                raise ValueError(
                    f"Cannot feed value of shape {array.shape!r} for Tensor '{tensor.name}', which "
                    f"has shape '{tensor.shape}'"
                )
            result.append(array)
        return result if self._order is None else [result[i] for i in self._order]


def _what_can_be_fed(graph: Graph, key: str) -> str:
    """The placeholders of a graph, for whoever has fed a name that is none of them."""
    operations = graph.get_operations()
    text = ""
    if ":" not in key:
        known = {op.name for op in operations}
        text = (
            "" if key in known else f" There is no operation {key!r} either.{suggest(key, known)}"
        )
    names = [op.outputs[0].name for op in operations if op.type.startswith("Placeholder")]
    if not names:
        return f"{text} The graph has no placeholders."
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{text} The graph's placeholders are {', '.join(names[:_MOST_NAMED])}{more}."


#: So many placeholders are named in an error.
_MOST_NAMED = 10


def _leaves(structure: Any, value: Any) -> list[Any]:
    """The parts of ``value`` in the places where a nested tuple of fed tensors has its leaves."""
    if not isinstance(structure, (tuple, list)):
        return [value]
    if not isinstance(value, (tuple, list)) or len(value) != len(structure):
        raise ValueError(
            f"A feed has a tuple of {len(structure)} tensors as its key: its value must be a "
            f"tuple of as many values, not {type(value).__name__}"
            + (f" of {len(value)}." if isinstance(value, (tuple, list)) else ".")
        )
    return [leaf for part, v in zip(structure, value, strict=True) for leaf in _leaves(part, v)]


def _fits(dims: Any, shape: tuple[int, ...]) -> bool:
    if dims is None:
        return True
    if len(dims) != len(shape):
        return False
    return all(d is None or d == s for d, s in zip(dims, shape, strict=True))


def _convert_feed(value: Any, dtype: np.dtype[Any], tensor: Tensor) -> Any:
    if value is None:
        raise TypeError(
            f"None was fed to '{tensor.name}' ({tensor.dtype.name}, shape "
            f"{TensorShape.of(tensor.dims)}): feed a value, or leave the tensor out."
        )
    if isinstance(value, (Tensor, Operation)):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include "
            f"Python scalars, strings, lists, numpy ndarrays. For reference, the tensor object was "
            f"{value!r} which was passed to the feed with key {tensor!r}."
        )
    if isinstance(value, TensorHandle):
        is_name = tensor.dtype is dtypes.string and value.dtype is not dtypes.string
        value = value.handle if is_name else value.eval()
    if dtype.kind == "O" and tensor.dtype is not dtypes.string:
        return value
    if tensor.dtype is dtypes.string:
        return to_ndarray(value, dtypes.string, None)
    if isinstance(value, int) and dtype.kind in "iu":
        info = np.iinfo(dtype)
        if not info.min <= value <= info.max:
            raise TypeError(
                f"Type of feed value {value} with type {type(value)} is not compatible with Tensor "
                f"type {tensor.dtype.name}. Try explicitly setting the type of the feed tensor to "
                "a larger type (e.g. int64)."
            )
    try:
        nest.check_depth(value)
        return np.asarray(value, dtype=dtype)
    except NotImplementedError:  # a tensor among the elements
        raise TypeError(
            f"A list that is fed to '{tensor.name}' holds a tensor. Feed arrays, numbers or "
            "strings: the value of a tensor is what session.run gives."
        ) from None
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"Cannot convert the value fed to '{tensor.name}' ({tensor.dtype.name}, shape "
            f"{TensorShape.of(tensor.dims)}): {error}"
        ) from None

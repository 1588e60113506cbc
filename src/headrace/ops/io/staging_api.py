"""``tf.contrib.staging``: values that one step leaves for another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph import dtypes as types
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import convert_to_tensor, raw

__all__ = ["BaseStagingArea", "MapStagingArea", "StagingArea"]


class BaseStagingArea:
    """What both kinds of areas share.

    Args:
        dtypes: types of the components; shapes: their shapes, or None; names: their names, with
            which tuples are dictionaries.
        shared_name: areas of one shared name are one.
        capacity: how many tuples fit; memory_limit: how many bytes; 0 is no limit.

    Raises:
        ValueError: if there are not as many shapes or names as types, or a limit is negative.
    """

    def __init__(
        self,
        dtypes: Sequence[Any],
        shapes: Any = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        graph = get_default_graph()
        self._name = shared_name or graph.unique_name(type(self).__name__)
        self._dtypes = [types.as_dtype(t) for t in dtypes]
        if shapes is not None and len(shapes) != len(self._dtypes):
            raise ValueError("StagingArea shapes must be the same length as dtypes")
        if names and len(names) != len(self._dtypes):
            raise ValueError("StagingArea names must be the same length as dtypes")
        if capacity < 0 or memory_limit < 0:
            raise ValueError("The capacity and the memory limit of a StagingArea are not negative.")
        given = [None] * len(self._dtypes) if shapes is None else shapes
        self._shapes = [TensorShape(s) for s in given]
        self._names = list(names) if names else None
        self._capacity = capacity
        self._memory_limit = memory_limit
        with graph.name_scope(f"{self._name}_root"):
            self._place: Operation = raw.NoOp()

    @property
    def name(self) -> str:
        """The name by which areas are shared."""
        return self._name

    @property
    def dtypes(self) -> list[types.DType]:
        """The types of the components."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """The shapes of the components."""
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        """The names of the components."""
        return self._names

    @property
    def capacity(self) -> int:
        """How many tuples fit; 0 is no limit."""
        return self._capacity

    @property
    def memory_limit(self) -> int:
        """How many bytes fit; 0 is no limit."""
        return self._memory_limit

    def _add(
        self, op: str, what: str, name: str | None, *inputs: Any, of: Sequence[int] | None = None
    ) -> Any:
        places = range(len(self._dtypes)) if of is None else of
        with get_default_graph().colocate_with(self._place):
            return getattr(raw, op)(
                *inputs,
                dtypes=[self._dtypes[place] for place in places],
                shared_name=self._name,
                capacity=self._capacity,
                memory_limit=self._memory_limit,
                name=name or f"{self._name}_{what}",
            )

    def _named(self, values: Any) -> dict[int, Any] | None:
        """The components of a dictionary by their places; None for values without names."""
        if not isinstance(values, dict):
            if self._names:
                raise ValueError("You must enqueue a dictionary in a staging area with names")
            return None
        if not self._names:
            raise ValueError("Staging areas must have names to enqueue a dictionary")
        if not set(values) <= set(self._names):
            raise ValueError(
                "Keys in dictionary to put do not match names of staging area. Dictionary: "
                f"({sorted(values)}), Queue: ({sorted(self._names)})"
            )
        return {i: values[name] for i, name in enumerate(self._names) if name in values}

    def _tensors(self, components: dict[int, Any]) -> list[Tensor]:
        """Tensors of components by their places, whose types and shapes are those of the area."""
        tensors = []
        for i, value in components.items():
            if not 0 <= i < len(self._dtypes):
                raise ValueError(f"Index {i} is none of {len(self._dtypes)} components.")
            dtype = self._dtypes[i]
            own = getattr(value, "dtype", dtype)
            if types.as_dtype(own).base_dtype is not dtype.base_dtype:
                raise ValueError(f"Datatypes do not match. '{own}' != '{dtype}'")
            tensor = convert_to_tensor(value, dtype, name=f"component_{i}")
            tensor.shape.assert_is_compatible_with(self._shapes[i])
            tensors.append(tensor)
        return tensors

    def _result(self, found: Any, indices: Sequence[int]) -> Any:
        tensors = list(found)
        for tensor, index in zip(tensors, indices, strict=True):
            tensor.set_shape(self._shapes[index])
        if self._names:
            return {self._names[i]: tensor for i, tensor in zip(indices, tensors, strict=True)}
        return tensors


class StagingArea(BaseStagingArea):
    """Holds tuples of tensors between steps, first in, first out.

    Several steps may put and get at once; each tuple is taken once. ``get`` and ``peek`` wait for
    what they ask for, ``put`` for room if there is a capacity or memory limit. The arguments are
    those of `BaseStagingArea`.

    >>> area = tf.contrib.staging.StagingArea([tf.float32], shapes=[[]])
    >>> put, value = area.put([tf.constant(1.5)]), area.get()
    >>> with tf.Session() as sess:
    ...     sess.run(put)
    ...     float(sess.run(value[0]))
    1.5
    """

    def put(self, values: Any, name: str | None = None) -> Operation:
        """An operation that leaves a tuple (or a dictionary, if components have names).

        Raises:
            ValueError: if the values are not those of the area: their number, names, types or
                shapes.
        """
        named = self._named(values)
        if named is None:
            named = dict(enumerate(values if isinstance(values, (list, tuple)) else [values]))
        if len(named) != len(self._dtypes):
            raise ValueError(f"Unexpected number of inputs {len(named)} vs {len(self._dtypes)}")
        result: Operation = self._add("Stage", "put", name, self._tensors(named))
        return result

    def get(self, name: str | None = None) -> Any:
        """The next tuple, which is taken: a list, or a dictionary."""
        return self._result(self._add("Unstage", "get", name), range(len(self._dtypes)))

    def peek(self, index: Any, name: str | None = None) -> Any:
        """The tuple at ``index``, which stays."""
        return self._result(self._add("StagePeek", "peek", name, index), range(len(self._dtypes)))

    def size(self, name: str | None = None) -> Tensor:
        """How many tuples there are: an int32 scalar."""
        result: Tensor = self._add("StageSize", "size", name)
        return result

    def clear(self, name: str | None = None) -> Operation:
        """An operation that empties the area."""
        result: Operation = self._add("StageClear", "clear", name)
        return result


class MapStagingArea(BaseStagingArea):
    """Holds tuples of tensors between steps, each with a key.

    ``put`` and ``get`` may be of some components: a tuple is there once all have been put, and gone
    once all are taken. What is not there is waited for. Values that are not complete count towards
    the memory limit, not towards the capacity.

    Args:
        ordered: ``get`` without a key takes the tuple of the lowest key, else any.

    The others are those of `BaseStagingArea`. Keys are int64 scalars.

    >>> area = tf.contrib.staging.MapStagingArea([tf.float32], shapes=[[]])
    >>> key = tf.constant(7, tf.int64)
    >>> put, (found, values) = area.put(key, [tf.constant(1.5)], [0]), area.get(key)
    >>> with tf.Session() as sess:
    ...     sess.run(put)
    ...     int(sess.run(found))
    7
    """

    def __init__(
        self,
        dtypes: Sequence[Any],
        shapes: Any = None,
        names: Sequence[str] | None = None,
        shared_name: str | None = None,
        ordered: bool = False,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        super().__init__(dtypes, shapes, names, shared_name, capacity, memory_limit)
        self._kind = "OrderedMap" if ordered else "Map"

    def put(
        self, key: Any, vals: Any, indices: Sequence[int] | None = None, name: str | None = None
    ) -> Operation:
        """An operation that leaves components of a tuple.

        Args:
            key: int64 scalar.
            vals: a dictionary, if components have names; else tensors, with their places.

        Raises:
            ValueError: if values do not fit the area or the indices.
            InvalidArgumentError: in the step, if a component of that key is there already.
        """
        components = self._named(vals)
        if components is None:
            if indices is None:
                raise ValueError("Indices must be supplied when inserting a list of tensors")
            given = vals if isinstance(vals, (list, tuple)) else [vals]
            if len(indices) != len(given):
                raise ValueError(
                    f"Number of indices '{len(indices)}' doesn't match number of values "
                    f"'{len(given)}'"
                )
            components = dict(zip(indices, given, strict=True))
        tensors = self._tensors(components)
        result: Operation = self._add(
            f"{self._kind}Stage", "put", name, key, list(components), tensors
        )
        return result

    def get(
        self, key: Any = None, indices: Sequence[Any] | None = None, name: str | None = None
    ) -> tuple[Any, Any]:
        """``(key, components)``: what is taken, a list or dictionary.

        Args:
            key: int64 scalar; without it, of a tuple that is there.
            indices: places, or names, of the components; all if left out.

        Raises:
            ValueError, TypeError: for indices that are none.
            InvalidArgumentError: in the step, if one of the components has been taken.
        """
        places = self._places(indices)
        if key is None:
            found, values = self._add(
                f"{self._kind}UnstageNoKey", "get_nokey", name, places, of=places
            )
            return found, self._result(values, places)
        values = self._add(f"{self._kind}Unstage", "get", name, key, places, of=places)
        return key, self._result(values, places)

    def peek(self, key: Any, indices: Sequence[Any] | None = None, name: str | None = None) -> Any:
        """The components of a key, which stay; otherwise as `get`."""
        places = self._places(indices)
        values = self._add(f"{self._kind}Peek", "pop", name, key, places, of=places)
        return self._result(values, places)

    def size(self, name: str | None = None) -> Tensor:
        """How many tuples there are: an int32 scalar."""
        result: Tensor = self._add(f"{self._kind}Size", "size", name)
        return result

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many tuples lack components that are still to be put: an int32 scalar."""
        result: Tensor = self._add(f"{self._kind}IncompleteSize", "incomplete_size", name)
        return result

    def clear(self, name: str | None = None) -> Operation:
        """An operation that empties the area."""
        result: Operation = self._add(f"{self._kind}Clear", "clear", name)
        return result

    def _places(self, indices: Any) -> list[int]:
        if indices is None:
            return list(range(len(self._dtypes)))
        if not isinstance(indices, (tuple, list)):
            raise TypeError(f"Invalid indices type '{type(indices)}'")
        if not indices:
            raise ValueError("Empty indices")
        if all(isinstance(index, int) for index in indices):
            strangers = [index for index in indices if not 0 <= index < len(self._dtypes)]
            if strangers:
                raise ValueError(f"Index {strangers[0]} is none of {len(self._dtypes)} components.")
            return list(indices)
        if not all(isinstance(index, str) for index in indices):
            raise TypeError(f"Mixed types in indices '{indices}'. May only be str or int")
        names = self._names
        if names is None:
            raise ValueError(
                f"String indices provided '{indices}', but this Staging Area was not created with "
                "names."
            )
        unknown = [index for index in indices if index not in names]
        if unknown:
            raise ValueError(f"Named index '{unknown[0]}' not in Staging Area names '{names}'")
        return [names.index(index) for index in indices]

"""``tf.contrib.staging.StagingArea``: values that one step leaves for another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph import dtypes as types
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.build import convert_to_tensor, raw

__all__ = ["StagingArea"]


class StagingArea:
    """Holds tuples of tensors between steps, first in, first out.

    Several steps may put and get at once; each tuple is taken once. ``get`` and ``peek`` wait for
    what they ask for, ``put`` for room if there is a capacity or memory limit.

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
        self._name = shared_name or graph.unique_name("StagingArea")
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

    def put(self, values: Any, name: str | None = None) -> Operation:
        """An operation that leaves a tuple (or a dictionary, if components have names).

        Raises:
            ValueError: if the values are not those of the area: their number, names, types or
                shapes.
        """
        tensors = self._tensors(values)
        return self._add("Stage", "put", name, tensors)  # type: ignore[no-any-return]

    def get(self, name: str | None = None) -> Any:
        """The next tuple, which is taken: a list, or a dictionary."""
        return self._result(self._add("Unstage", "get", name))

    def peek(self, index: Any, name: str | None = None) -> Any:
        """The tuple at ``index``, which stays."""
        return self._result(self._add("StagePeek", "peek", name, index))

    def size(self, name: str | None = None) -> Tensor:
        """How many tuples there are: an int32 scalar."""
        return self._add("StageSize", "size", name)  # type: ignore[no-any-return]

    def clear(self, name: str | None = None) -> Operation:
        """An operation that empties the area."""
        return self._add("StageClear", "clear", name)  # type: ignore[no-any-return]

    def _add(self, op: str, what: str, name: str | None, *inputs: Any) -> Any:
        with get_default_graph().colocate_with(self._place):
            return getattr(raw, op)(
                *inputs,
                dtypes=self._dtypes,
                shared_name=self._name,
                capacity=self._capacity,
                memory_limit=self._memory_limit,
                name=name or f"{self._name}_{what}",
            )

    def _tensors(self, values: Any) -> list[Tensor]:
        if isinstance(values, dict):
            if not self._names:
                raise ValueError("Staging areas must have names to enqueue a dictionary")
            if set(values) != set(self._names):
                raise ValueError(
                    "Keys in dictionary to put do not match names of staging area. Dictionary: "
                    f"({sorted(values)}), Queue: ({sorted(self._names)})"
                )
            values = [values[name] for name in self._names]
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a staging area with names")
        elif not isinstance(values, (list, tuple)):
            values = [values]
        if len(values) != len(self._dtypes):
            raise ValueError(f"Unexpected number of inputs {len(values)} vs {len(self._dtypes)}")
        tensors = []
        for i, (value, dtype) in enumerate(zip(values, self._dtypes, strict=True)):
            own = getattr(value, "dtype", dtype)
            if types.as_dtype(own).base_dtype is not dtype.base_dtype:
                raise ValueError(f"Datatypes do not match. '{own}' != '{dtype}'")
            tensor = convert_to_tensor(value, dtype, name=f"component_{i}")
            tensor.shape.assert_is_compatible_with(self._shapes[i])
            tensors.append(tensor)
        return tensors

    def _result(self, found: Any) -> Any:
        tensors = list(found)
        for tensor, shape in zip(tensors, self._shapes, strict=True):
            tensor.set_shape(shape)
        if self._names:
            return dict(zip(self._names, tensors, strict=True))
        return tensors

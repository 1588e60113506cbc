"""The value of a tensor list: what TensorArrays and the saved values of loops are made of.

A list is immutable. It has one of three forms:

* ``items``: a Python tuple, None where nothing has been written; the length is known. Interpreted
  steps use only this form, so elements may differ in shape.
* ``buffer``: all elements stacked along a new first axis (a pytree of arrays when the elements are
  lists themselves), of which the first ``size`` count. Compiled loops need it.
* ``repeated``: one value known while compiling, ``size`` times.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp


class Uniformity(Exception):
    """The elements of a list differ in shape, so they cannot be stacked."""


class TensorList:
    """An immutable list of tensors. Exactly one of ``items``, ``buffer``, ``repeated`` is set.

    Attributes:
        whole: what ``buffer`` is the beginning of, with room for more, if a program gave that.
    """

    __slots__ = ("buffer", "items", "repeated", "size", "whole")

    def __init__(
        self,
        items: tuple[Any, ...] | None = None,
        buffer: Any = None,
        size: Any = None,
        repeated: Any = None,
    ) -> None:
        self.items = items
        self.buffer = buffer
        self.repeated = repeated
        self.whole: Any = None
        self.size = len(items) if items is not None else size

    @classmethod
    def stack_of(cls, buffer: Any, size: Any = None) -> TensorList:
        """A list of the rows of ``buffer``."""
        return cls(buffer=buffer, size=capacity(buffer) if size is None else size)

    @classmethod
    def repeat(cls, value: Any, size: Any) -> TensorList:
        """``value``, known while compiling, ``size`` times."""
        return cls(repeated=value, size=size)

    @property
    def has_static_size(self) -> bool:
        return isinstance(self.size, int)

    @property
    def unwritten(self) -> bool:
        """Whether no element has been written, so that not even their shape is known."""
        return self.items is not None and all(i is None for i in self.items)

    def stacked(self) -> TensorList:
        """The same list in stacked form; a list whose element shape is unknown stays as it is.

        Raises:
            Uniformity: if elements differ in shape.
        """
        if self.buffer is not None or self.unwritten:
            return self
        if self.repeated is not None:
            if not self.has_static_size:
                raise Uniformity
            rows: list[Any] = [self.repeated] * self.size
            return self if not rows else TensorList.stack_of(_stack(rows))
        assert self.items is not None
        sample = next(i for i in self.items if i is not None)
        rows = [zeros_like(sample) if i is None else i for i in self.items]
        return TensorList.stack_of(_stack(rows))

    def to_items(self) -> TensorList:
        """The same list as NumPy items, for interpreted steps."""
        if self.items is not None:
            return TensorList(tuple(to_host(i) for i in self.items))
        size = int(self.size)
        if self.repeated is not None:
            return TensorList((self.repeated,) * size)
        # Lists inside are one stacked list here; only its rows can become items.
        buffer = _map_rows(np.asarray, self.buffer)
        return TensorList(tuple(to_host(row(buffer, t)) for t in range(size)))

    @property
    def shape(self) -> Any:
        """A hashable description of form and sizes: programs are compiled for it."""
        leaves, tree = jax.tree.flatten(self)
        return (tree, tuple(leaf.shape for leaf in leaves))

    def __repr__(self) -> str:
        form = "items" if self.items is not None else "buffer" if self.buffer is not None else "="
        return f"<TensorList {form} of {self.size}>"


class _Known:
    """A NumPy value as hashable static data of a pytree."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def _key(self) -> Any:
        array = np.asarray(self.value)
        return (array.dtype.str, array.shape, array.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _flatten(value: TensorList) -> tuple[tuple[Any, ...], Any]:
    if value.items is not None:
        return value.items, ("items",)
    static = value.size if value.has_static_size else None
    dynamic = () if value.has_static_size else (value.size,)
    if value.repeated is not None:
        return dynamic, ("repeated", static, _Known(value.repeated))
    return (value.buffer, *dynamic), ("buffer", static)


def _unflatten(aux: Any, children: tuple[Any, ...]) -> TensorList:
    if aux[0] == "items":
        return TensorList(tuple(children))
    size = aux[1] if aux[1] is not None else children[-1]
    if aux[0] == "repeated":
        return TensorList(repeated=aux[2].value, size=size)
    return TensorList(buffer=children[0], size=size)


jax.tree_util.register_pytree_node(TensorList, _flatten, _unflatten)


def to_host(value: Any) -> Any:
    """A value as interpreted steps hold it: NumPy arrays, and lists of them."""
    if isinstance(value, TensorList):
        return value.to_items()
    return np.asarray(value) if isinstance(value, jax.Array) else value


def to_program(value: Any) -> Any:
    """A value as compiled programs take it: lists stacked where they can be."""
    if isinstance(value, TensorList):
        try:
            return value.stacked()
        except Uniformity:
            return value
    return value


def capacity(buffer: Any) -> int:
    """The number of rows of a stacked buffer."""
    return int(jax.tree.leaves(buffer)[0].shape[0])


def row(buffer: Any, index: Any) -> Any:
    """One element of a stacked buffer; ``index`` may be traced."""
    if isinstance(index, (int, np.integer)):
        return _map_rows(lambda b: b[index], buffer)
    return _map_rows(
        lambda b: jax.lax.dynamic_index_in_dim(jnp.asarray(b), index, 0, keepdims=False), buffer
    )


def rows(buffer: Any, count: int) -> Any:
    """The first ``count`` elements of a stacked buffer."""
    return _map_rows(lambda b: b[:count], buffer)


def joined(first: Any, second: Any) -> Any:
    """Two stacked buffers, one behind the other.

    Raises:
        Uniformity: if their elements differ in shape.
    """
    leaves = [jax.tree.flatten(b) for b in (first, second)]
    shapes = [(tree, [np.shape(x)[1:] for x in flat]) for flat, tree in leaves]
    if shapes[0] != shapes[1]:
        raise Uniformity
    return jax.tree.map(lambda a, b: jnp.concatenate([a, b]), first, second)


def are_rows(buffer: Any, value: Any) -> bool:
    """Whether ``value`` has the form of the rows of a stacked buffer, which are not nothing."""
    (rows, tree), (leaves, own_tree) = jax.tree.flatten(buffer), jax.tree.flatten(value)
    return (
        bool(leaves)
        and bool(tree == own_tree)  # type: ignore[operator]
        and all(np.shape(r)[1:] == np.shape(v) for r, v in zip(rows, leaves, strict=True))
    )


def set_row(buffer: Any, index: Any, value: Any) -> Any:
    """A stacked buffer with one element replaced."""
    return jax.tree.map(
        lambda b, v: jax.lax.dynamic_update_index_in_dim(jnp.asarray(b), v, index, 0),
        buffer,
        value,
    )


def _map_rows(function: Any, buffer: Any) -> Any:
    if isinstance(buffer, (np.ndarray, jax.Array)):
        return function(buffer)
    return jax.tree.map(function, buffer)


def zeros_like(value: Any) -> Any:
    """Zeros in the form of ``value`` (an array or a list)."""
    if isinstance(value, TensorList):
        if value.repeated is not None:
            return TensorList.repeat(np.zeros_like(value.repeated), value.size)
        if value.items is not None:
            return TensorList(tuple(None if i is None else zeros_like(i) for i in value.items))
        return TensorList(buffer=jax.tree.map(jnp.zeros_like, value.buffer), size=value.size)
    if isinstance(value, (np.ndarray, np.generic)):
        return np.zeros_like(value)
    return jnp.zeros_like(value)


def empty_rows(shape: Any, size: int) -> Any:
    """A zero buffer of ``size`` rows, each like ``shape`` (a pytree of ShapeDtypeStructs)."""
    return jax.tree.map(lambda s: jnp.zeros((size, *s.shape), s.dtype), shape)


def _stack(rows: list[Any]) -> Any:
    """Rows stacked along a new first axis.

    Raises:
        Uniformity: if they differ in shape, or are lists without elements.
    """
    if isinstance(rows[0], TensorList):
        rows = [r.stacked() for r in rows]
    leaves = [jax.tree.flatten(r) for r in rows]
    shapes = {(tree, tuple(np.shape(x) for x in flat)) for flat, tree in leaves}
    if len(shapes) != 1 or not leaves[0][0]:
        raise Uniformity
    if all(isinstance(x, (np.ndarray, np.generic)) for flat, _ in leaves for x in flat):
        return jax.tree.map(lambda *xs: np.stack(xs), *rows)
    return jax.tree.map(lambda *xs: jnp.stack([jnp.asarray(x) for x in xs]), *rows)


def add(a: Any, b: Any) -> Any:
    """The sum of two lists (or arrays), element by element; unwritten elements count as zero."""
    if not isinstance(a, TensorList):
        return a + b
    if a.unwritten or b.unwritten:
        longer = b if a.unwritten else a
        return longer
    if a.items is not None and b.items is not None:
        # A list that grew later is the longer one: what it has more is no part of the other.
        pairs = zip_longest(a.items, b.items)
        return TensorList(
            tuple(y if x is None else x if y is None else add(x, y) for x, y in pairs)
        )
    left, right = a.stacked(), b.stacked()
    size = left.size if left.has_static_size else right.size
    return TensorList(buffer=jax.tree.map(jnp.add, left.buffer, right.buffer), size=size)


def _add_items(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return add(a, b)

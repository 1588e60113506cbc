"""Static shapes of tensors: what is known before a graph runs.

Three levels of knowledge: nothing (unknown rank), the rank with some dimensions unknown, or all.
The engine works on plain tuples, `tuple[int | None, ...] | None` with None for what is unknown
(`StaticShape`); `TensorShape` and `Dimension` are TensorFlow 1.x's view of the same.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NoReturn

from headrace.graph.dtypes import DType

Dims = tuple[int | None, ...]
StaticShape = Dims | None


class Dimension:
    """The size of one dimension, or None where it is not known.

    Arithmetic with an unknown operand is unknown, and comparison with one returns None: neither
    equal nor different. Immutable.

    >>> d = tf.Dimension(3)
    >>> d + 1, d * tf.Dimension(None), d.is_compatible_with(None)
    (Dimension(4), Dimension(None), True)
    >>> print(tf.Dimension(None) == d)  # not known: neither true nor false
    None
    """

    __slots__ = ("_value",)

    _value: int | None

    def __init__(self, value: Any) -> None:
        object.__setattr__(self, "_value", _dimension_value(value))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"Dimension is immutable: cannot set '{name}'.")

    @property
    def value(self) -> int | None:
        """The size, or None."""
        return self._value

    def __repr__(self) -> str:
        return f"Dimension({self._value!r})"

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def __int__(self) -> int:
        return self._known("int()")

    def __index__(self) -> int:
        return self._known("An index")

    def _known(self, use: str) -> int:
        if self._value is None:
            raise TypeError(f"{use} needs a known dimension, but this one is unknown.")
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> tuple[Callable[[Any], Dimension], tuple[int | None]]:
        return Dimension, (self._value,)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether the two sizes are equal or one of them is unknown."""
        value = _dimension_value(other)
        return self._value is None or value is None or self._value == value

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError when both sizes are known and differ."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {as_dimension(other)} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        """What is known from either. Raises ValueError when both are known and differ."""
        other = as_dimension(other)
        self.assert_is_compatible_with(other)
        return Dimension(other._value if self._value is None else self._value)

    def _arith(self, other: Any, fn: Callable[[int, int], int], swap: bool = False) -> Any:
        try:
            value = _dimension_value(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self._value is None or value is None:
            return _UNKNOWN_DIMENSION
        return Dimension(fn(value, self._value) if swap else fn(self._value, value))

    def __add__(self, other: Any) -> Dimension:
        result: Dimension = self._arith(other, operator.add)
        return result

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dimension:
        result: Dimension = self._arith(other, operator.sub)
        return result

    def __rsub__(self, other: Any) -> Dimension:
        result: Dimension = self._arith(other, operator.sub, swap=True)
        return result

    def __mul__(self, other: Any) -> Dimension:
        result: Dimension = self._arith(other, operator.mul)
        return result

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Dimension:
        result: Dimension = self._arith(other, operator.floordiv)
        return result

    def __rfloordiv__(self, other: Any) -> Dimension:
        result: Dimension = self._arith(other, operator.floordiv, swap=True)
        return result

    def __truediv__(self, other: Any) -> NoReturn:
        raise TypeError(_no_division("Dimension", type(other).__name__))

    def __rtruediv__(self, other: Any) -> NoReturn:
        raise TypeError(_no_division(type(other).__name__, "Dimension"))

    def __mod__(self, other: Any) -> Dimension:
        result: Dimension = self._arith(other, operator.mod)
        return result

    def __rmod__(self, other: Any) -> Dimension:
        result: Dimension = self._arith(other, operator.mod, swap=True)
        return result

    def _compare(self, other: Any, fn: Callable[[int, int], bool]) -> Any:
        try:
            value = _dimension_value(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self._value is None or value is None:
            return None
        return fn(self._value, value)

    def __eq__(self, other: object) -> Any:
        return self._compare(other, operator.eq)

    def __ne__(self, other: object) -> Any:
        return self._compare(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, operator.ge)


def _no_division(left: str, right: str) -> str:
    return f"unsupported operand type(s) for /: '{left}' and '{right}', please use // instead"


def _dimension_value(value: Any) -> int | None:
    """The checked size of anything that can be one dimension."""
    if value is None:
        return None
    if value.__class__ is int:
        size: int = value
    elif isinstance(value, Dimension):
        return value._value
    else:
        size = _whole(value)
    if size < 0:
        raise ValueError(f"Dimension {size} must be >= 0")
    return size


def _whole(value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        pass
    # Old programs compute sizes with floats: 6.0 / 2 is a size, 0.5 is not.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, float):
        raise ValueError(f"Ambiguous dimension: {value}")
    raise TypeError(
        f"A dimension must be an int, a Dimension or None, not {value!r} "
        f"of type {type(value).__name__}."
    )


def as_dimension(value: Any) -> Dimension:
    """Returns `value` as a Dimension.

    Raises:
      TypeError: it is neither an int, nor None, nor a Dimension.
      ValueError: it is negative or a fraction.
    """
    return value if isinstance(value, Dimension) else Dimension(value)


_UNKNOWN_DIMENSION: Final = Dimension(None)


class TensorShape:
    """The static shape of a tensor: unknown, of known rank, or fully known. Immutable.

    `TensorShape(dims)` takes None (unknown rank), a sequence of sizes, None and Dimensions, one
    int (a vector), another TensorShape, or a TensorShapeProto. Equality is of knowledge: two
    shapes are equal when the same is known of both, so an unknown rank equals an unknown rank;
    ask `is_compatible_with` whether they can be the same when the graph runs.

    >>> a, b = tf.TensorShape([None, 3]), tf.TensorShape([2, None])
    >>> a.is_compatible_with(b), a.merge_with(b).as_list()
    (True, [2, 3])
    >>> a.ndims, a[1].value, a.is_fully_defined()
    (2, 3, False)
    """

    __slots__ = ("_sizes",)

    _sizes: StaticShape

    def __init__(self, dims: Any) -> None:
        object.__setattr__(self, "_sizes", as_static(dims))

    @classmethod
    def of(cls, dims: StaticShape) -> TensorShape:
        """A shape of a tuple of ints and Nones, or None for unknown rank; nothing is checked."""
        shape = cls.__new__(cls)
        object.__setattr__(shape, "_sizes", dims)
        return shape

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"TensorShape is immutable: cannot set '{name}'.")

    def __reduce__(self) -> tuple[Callable[[StaticShape], TensorShape], tuple[StaticShape]]:
        return TensorShape.of, (self._sizes,)

    @property
    def as_tuple(self) -> StaticShape:
        """The shape as the engine uses it: a tuple of ints and Nones, or None."""
        return self._sizes

    @property
    def dims(self) -> list[Dimension] | None:
        """The dimensions, or None when the rank is unknown."""
        return None if self._sizes is None else [Dimension(size) for size in self._sizes]

    @property
    def rank(self) -> int | None:
        """The number of dimensions, or None."""
        return None if self._sizes is None else len(self._sizes)

    @property
    def ndims(self) -> int | None:
        """The same as `rank`."""
        return None if self._sizes is None else len(self._sizes)

    def as_proto(self) -> Any:
        """The TensorShapeProto of this shape."""
        return shape_to_proto(self.as_tuple)

    def as_list(self) -> list[int | None]:
        """The sizes, None for the unknown ones. Raises ValueError when the rank is unknown."""
        if self._sizes is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._sizes)

    def num_elements(self) -> int | None:
        """The product of the sizes, or None unless all are known."""
        return num_elements_static(self._sizes)

    def is_fully_defined(self) -> bool:
        """Whether the rank and every size are known."""
        return self._sizes is not None and None not in self._sizes

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError unless the rank and every size are known."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def __repr__(self) -> str:
        if self._sizes is None:
            return "TensorShape(None)"
        return f"TensorShape([{', '.join(f'Dimension({size})' for size in self._sizes)}])"

    def __str__(self) -> str:
        return shape_text(self._sizes)

    def __bool__(self) -> bool:
        return self._sizes is not None

    def __len__(self) -> int:
        if self._sizes is None:
            raise ValueError("Cannot take the length of a shape with unknown rank.")
        return len(self._sizes)

    def __iter__(self) -> Iterator[Dimension]:
        if self._sizes is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter([Dimension(size) for size in self._sizes])

    def __getitem__(self, key: Any) -> Any:
        """A Dimension for an int, a TensorShape for a slice.

        With unknown rank an int gives an unknown Dimension, and a slice gives as many of them as
        the slice surely has, or an unknown shape. Raises IndexError past the last dimension.
        """
        if self._sizes is not None:
            picked = self._sizes[key]
            return TensorShape.of(picked) if isinstance(picked, tuple) else Dimension(picked)
        if not isinstance(key, slice):
            return _UNKNOWN_DIMENSION
        start = 0 if key.start is None else operator.index(key.start)
        if key.step not in (None, 1):
            raise ValueError("A slice with a step needs a shape of known rank.")
        if key.stop is None or start < 0 or operator.index(key.stop) < 0:
            return UNKNOWN
        return TensorShape.of((None,) * max(0, operator.index(key.stop) - start))

    def __eq__(self, other: object) -> Any:
        if other.__class__ is TensorShape:
            return self._sizes == other._sizes
        try:
            return self._sizes == as_static(other)
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._sizes)

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return as_shape(other).concatenate(self)

    def concatenate(self, other: Any) -> TensorShape:
        """This shape's dimensions, then the other's; unknown when either rank is."""
        dims = as_static(other)
        if self._sizes is None or dims is None:
            return UNKNOWN
        return TensorShape.of(self._sizes + dims)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether some fully known shape fits both. Symmetric, not transitive."""
        return compatible_static(self._sizes, as_static(other))

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError when no shape fits both."""
        dims = as_static(other)
        if not compatible_static(self._sizes, dims):
            raise ValueError(f"Shapes {self} and {shape_text(dims)} are incompatible")

    def merge_with(self, other: Any) -> TensorShape:
        """What is known from either. Raises ValueError when the shapes contradict each other."""
        dims = merge_static(self._sizes, as_static(other))
        return self if dims is self._sizes else TensorShape.of(dims)

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """What is known of both: a dimension stays where the two agree, else it is unknown."""
        return TensorShape.of(common_static(self._sizes, as_static(other)))

    def assert_same_rank(self, other: Any) -> None:
        """Raises ValueError when both ranks are known and differ."""
        dims = as_static(other)
        if self._sizes is not None and dims is not None and len(self._sizes) != len(dims):
            raise ValueError(f"Shapes {self} and {shape_text(dims)} must have the same rank")

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError when the rank is known and is not `rank`."""
        if self._sizes is not None and len(self._sizes) != rank:
            raise ValueError(f"Shape {self} must have rank {rank}")

    def with_rank(self, rank: int) -> TensorShape:
        """This shape with its rank known to be `rank`. Raises ValueError when it is another."""
        self.assert_has_rank(rank)
        return unknown_shape(rank) if self._sizes is None else self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """This shape. Raises ValueError when its rank is known and less than `rank`."""
        if self._sizes is not None and len(self._sizes) < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """This shape. Raises ValueError when its rank is known and greater than `rank`."""
        if self._sizes is not None and len(self._sizes) > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self


UNKNOWN: Final = TensorShape.of(None)
SCALAR: Final = TensorShape.of(())


def as_static(value: Any) -> StaticShape:
    """The tuple form of anything that `TensorShape` accepts.

    Raises:
      TypeError: `value` is no shape, or one of its dimensions is no number.
      ValueError: a dimension is negative or a fraction.
    """
    if value is None:
        return None
    if isinstance(value, TensorShape):
        return value._sizes
    if hasattr(value, "unknown_rank"):
        if value.unknown_rank:
            return None
        return tuple(None if dim.size == -1 else _dimension_value(dim.size) for dim in value.dim)
    if isinstance(value, str | bytes):
        raise TypeError(f"A shape cannot be made from the text {value!r}.")
    if isinstance(value, Iterable) and getattr(value, "ndim", 1) != 0:
        return tuple([_dimension_value(size) for size in value])
    return (_dimension_value(value),)


def as_shape(value: Any) -> TensorShape:
    """Returns `value` as a TensorShape; one that is a TensorShape already is returned itself."""
    return value if isinstance(value, TensorShape) else TensorShape(value)


def unknown_shape(rank: int | None = None, ndims: int | None = None) -> TensorShape:
    """A shape of which at most the rank is known; `ndims` is the older name of `rank`."""
    rank = ndims if rank is None else rank
    return UNKNOWN if rank is None else TensorShape.of((None,) * rank)


def scalar() -> TensorShape:
    """The shape of a scalar."""
    return SCALAR


def vector(length: Any) -> TensorShape:
    """The shape of a vector; `length` may be None."""
    return TensorShape([length])


def matrix(rows: Any, cols: Any) -> TensorShape:
    """The shape of a matrix; either size may be None."""
    return TensorShape([rows, cols])


def dimension_value(dimension: Any) -> Any:
    """The int or None in a Dimension; anything else is returned as it is."""
    return dimension._value if isinstance(dimension, Dimension) else dimension


def shape_text(dims: StaticShape) -> str:
    """A shape as messages show it: "(2, ?)", "(3,)", "()" or "<unknown>"."""
    if dims is None:
        return "<unknown>"
    sizes = ["?" if size is None else str(size) for size in dims]
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


def num_elements_static(dims: StaticShape) -> int | None:
    """The product of the sizes, or None unless all are known."""
    if dims is None:
        return None
    product = 1
    for size in dims:
        if size is None:
            return None
        product *= size
    return product


def compatible_static(a: StaticShape, b: StaticShape) -> bool:
    """Whether some fully known shape fits both."""
    if a is None or b is None or a == b:
        return True
    if len(a) != len(b):
        return False
    return all(x is None or y is None or x == y for x, y in zip(a, b, strict=True))


def merge_static(a: StaticShape, b: StaticShape) -> StaticShape:
    """What is known from either shape; `a` itself when `b` adds nothing.

    Raises:
      ValueError: no shape fits both.
    """
    if b is None or a == b:
        return a
    if a is None:
        return b
    if not compatible_static(a, b):
        raise ValueError(f"Shapes {shape_text(a)} and {shape_text(b)} are not compatible")
    return tuple([y if x is None else x for x, y in zip(a, b, strict=True)])


def common_static(a: StaticShape, b: StaticShape) -> StaticShape:
    """What is known of both shapes: the most specific shape that fits whatever fits either."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple([x if x == y else None for x, y in zip(a, b, strict=True)])


def broadcast_static(a: StaticShape, b: StaticShape) -> StaticShape:
    """The shape of an elementwise op on tensors of shapes `a` and `b`, by NumPy's rules.

    An unknown size against a known one other than 1 gives the known one, for nothing else is
    legal when the step runs; against 1 or another unknown it stays unknown.

    Raises:
      ValueError: two known sizes differ and neither is 1.
    """
    if a is None or b is None:
        return None
    if a == b or not b:
        return a
    if not a:
        return b
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    lead = len(longer) - len(shorter)
    result = list(longer)
    for i, y in enumerate(shorter, lead):
        x = longer[i]
        if x == y or y == 1:
            continue
        if x == 1 or x is None:
            result[i] = y
        elif y is not None:
            p, q = (x, y) if longer is a else (y, x)
            raise ValueError(
                f"Dimensions must be equal, but are {p} and {q}. Incompatible shapes: "
                f"{_sizes(a)} vs. {_sizes(b)}"
            )
    return tuple(result)


def _sizes(dims: tuple[int | None, ...]) -> str:
    return f"[{','.join('?' if d is None else str(d) for d in dims)}]"


def static_bytes(dtype: DType, dims: StaticShape) -> int | None:
    """The size of a tensor in bytes; None where its static shape does not tell it."""
    if dims is None or None in dims or dtype.as_numpy_dtype is object:
        return None
    return math.prod(dims) * max(1, dtype.size)  # type: ignore[arg-type]


def shape_to_proto(dims: Any) -> Any:
    """A static shape (tuple, TensorShape or None for unknown rank) as a message."""
    from headrace.graph.proto import TensorShapeProto  # protobuf is imported on first use

    if isinstance(dims, TensorShape):
        dims = dims.as_tuple
    proto = TensorShapeProto()
    if dims is None:
        proto.unknown_rank = True
        return proto
    for size in dims:
        proto.dim.add(size=-1 if size is None else size)
    return proto

"""The element types of tensors.

A `DType` is one of a fixed set of interned objects, so `is` compares types and a type is a cheap
dictionary key. Names, enum numbers and rules are those of TensorFlow's DataType; numbers above
100 are the reference types, which exist for old graph files and are never made by Headrace itself.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np

from headrace.errors import suggest

#: What `tf` and `tf.dtypes` show.
__all__ = [
    "DType",
    "as_dtype",
    "bfloat16",
    "bool",
    "complex64",
    "complex128",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "qint8",
    "qint16",
    "qint32",
    "quint8",
    "quint16",
    "resource",
    "string",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "variant",
]

_REF_OFFSET: Final = 100

# Names and numbers are TensorFlow's. For a quantised type the third column is the type whose
# values an array of it holds: kernels and fetches see plain integers.
_TABLE: Final[tuple[tuple[str, int, Any], ...]] = (
    ("float32", 1, np.float32),
    ("float64", 2, np.float64),
    ("int32", 3, np.int32),
    ("uint8", 4, np.uint8),
    ("int16", 5, np.int16),
    ("int8", 6, np.int8),
    ("string", 7, object),
    ("complex64", 8, np.complex64),
    ("int64", 9, np.int64),
    ("bool", 10, np.bool_),
    ("qint8", 11, np.int8),
    ("quint8", 12, np.uint8),
    ("qint32", 13, np.int32),
    ("bfloat16", 14, ml_dtypes.bfloat16),
    ("qint16", 15, np.int16),
    ("quint16", 16, np.uint16),
    ("uint16", 17, np.uint16),
    ("complex128", 18, np.complex128),
    ("float16", 19, np.float16),
    ("resource", 20, object),
    ("variant", 21, object),
    ("uint32", 22, np.uint32),
    ("uint64", 23, np.uint64),
)

_FLOATS: Final = frozenset({"float16", "bfloat16", "float32", "float64"})
_COMPLEX: Final = frozenset({"complex64", "complex128"})
_SIGNED: Final = frozenset({"int8", "int16", "int32", "int64"})
_UNSIGNED: Final = frozenset({"uint8", "uint16", "uint32", "uint64"})
_QUANTIZED: Final = frozenset({"qint8", "quint8", "qint16", "quint16", "qint32"})
_HANDLES: Final = frozenset({"resource", "variant"})

_interned: dict[int, DType] = {}


class DType:
    """The type of the elements of a tensor; `DType(enum)` returns the one object of that number.

    Attributes:
      name: "float32", "int64", "string", "float32_ref" ...
      as_datatype_enum: TensorFlow's number of the type.
      as_numpy_dtype: the NumPy type class, as in TensorFlow: `object` for string, resource and
        variant, `ml_dtypes.bfloat16`, and for the quantised types a record of one field, such as
        `np.dtype([("qint8", np.int8)])`.
      np_dtype: the `np.dtype` of arrays of this type; for quantised types the plain integer one.
      is_floating, is_complex, is_integer, is_unsigned, is_bool, is_quantized: the kind of number.
        Quantised types are not integers. Reference types have the kind of their base.
      is_numpy_compatible: false for resource and variant.
      size: bytes of one element; the size of a pointer for string, 1 for resource and variant.

    >>> tf.float32.as_numpy_dtype, tf.float32.size, tf.float32.is_floating
    (<class 'numpy.float32'>, 4, True)
    >>> tf.as_dtype("int64"), tf.int8.min, tf.int8.max
    (tf.int64, -128, 127)
    """

    __slots__ = (
        "_base_enum",
        "_is_ref_dtype",
        "_repr",
        "as_datatype_enum",
        "as_numpy_dtype",
        "is_bool",
        "is_complex",
        "is_floating",
        "is_integer",
        "is_numpy_compatible",
        "is_quantized",
        "is_unsigned",
        "name",
        "np_dtype",
        "size",
    )

    _base_enum: int
    _is_ref_dtype: builtins.bool
    _repr: str
    as_datatype_enum: int
    as_numpy_dtype: Any
    is_bool: builtins.bool
    is_complex: builtins.bool
    is_floating: builtins.bool
    is_integer: builtins.bool
    is_numpy_compatible: builtins.bool
    is_quantized: builtins.bool
    is_unsigned: builtins.bool
    name: str
    np_dtype: np.dtype[Any]
    size: int

    def __new__(cls, type_enum: int) -> DType:
        try:
            return _interned[int(type_enum)]
        except KeyError:
            raise TypeError(
                f"{type_enum!r} is not the number of a data type; valid numbers are 1 to 23, "
                "and 101 to 123 for the reference types."
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"DType is immutable: cannot set '{name}' of {self!r}.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"DType is immutable: cannot delete '{name}' of {self!r}.")

    @property
    def base_dtype(self) -> DType:
        """The type without the reference mark."""
        return _interned[self._base_enum]

    @property
    def _as_ref(self) -> DType:
        return _interned[self._base_enum + _REF_OFFSET]

    @property
    def real_dtype(self) -> DType:
        """The type of the real part: float32 for complex64, float64 for complex128, else self."""
        if self.is_complex:
            return float32 if self.base_dtype is complex64 else float64
        return self

    @property
    def min(self) -> Any:
        """The least finite value. Raises TypeError unless the type is integer or floating."""
        return self._extreme("minimum")

    @property
    def max(self) -> Any:
        """The greatest finite value. Raises TypeError unless the type is integer or floating."""
        return self._extreme("maximum")

    def _extreme(self, which: str) -> Any:
        if self.is_floating:
            info: Any = ml_dtypes.finfo(self.np_dtype)  # type: ignore[no-untyped-call]
        elif self.is_integer:
            info = np.iinfo(self.np_dtype)
        else:
            raise TypeError(f"Cannot find {which} value of {self!r}.")
        return info.min if which == "minimum" else info.max

    @property
    def limits(self) -> tuple[Any, Any]:
        """The range of an image channel of this type: (0, 1) for floats, (0, max) for integers.

        Raises:
          ValueError: the type has no order or is quantised.
        """
        if self.is_floating:
            return 0, 1
        if self.is_integer:
            return 0, self.max
        if self.is_bool:
            return 0, True
        raise ValueError(f"{self!r} does not have defined limits.")

    def is_compatible_with(self, other: Any) -> builtins.bool:
        """Whether a tensor of type `other` can be used where this type is asked for.

        True for the same type and for the reference type of this one. Raises TypeError when
        `other` is no type.
        """
        dtype = as_dtype(other)
        return self is dtype or self.as_datatype_enum == dtype._base_enum

    def __eq__(self, other: object) -> builtins.bool:
        if self is other:
            return True
        if other is None or isinstance(other, DType):
            return False
        return _lookup(other) is self

    def __ne__(self, other: object) -> builtins.bool:
        return not self.__eq__(other)

    def __hash__(self) -> int:
        return self.as_datatype_enum

    def __int__(self) -> int:
        return self.as_datatype_enum

    def __repr__(self) -> str:
        return self._repr

    def __str__(self) -> str:
        return f"<dtype: '{self.name}'>"

    def __reduce__(self) -> tuple[Callable[[int], DType], tuple[int]]:
        return DType, (self.as_datatype_enum,)

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> DType:
        return self


def _make(base_name: str, base_enum: int, numpy_type: Any, is_ref: builtins.bool) -> DType:
    dtype = object.__new__(DType)
    name = base_name + "_ref" if is_ref else base_name
    quantized = base_name in _QUANTIZED
    np_dtype = np.dtype(numpy_type)
    fields = {
        "_base_enum": base_enum,
        "_is_ref_dtype": is_ref,
        "_repr": f"tf.{name}",
        "name": name,
        "as_datatype_enum": base_enum + (_REF_OFFSET if is_ref else 0),
        "as_numpy_dtype": np.dtype([(base_name, numpy_type)]) if quantized else numpy_type,
        "np_dtype": np_dtype,
        "is_floating": base_name in _FLOATS,
        "is_complex": base_name in _COMPLEX,
        "is_integer": base_name in _SIGNED or base_name in _UNSIGNED,
        "is_unsigned": base_name in _UNSIGNED,
        "is_bool": base_name == "bool",
        "is_quantized": quantized,
        "is_numpy_compatible": base_name not in _HANDLES,
        "size": 1 if base_name in _HANDLES else np_dtype.itemsize,
    }
    for field, value in fields.items():
        object.__setattr__(dtype, field, value)
    _interned[dtype.as_datatype_enum] = dtype
    return dtype


for _row in _TABLE:
    _make(*_row, is_ref=False)
    _make(*_row, is_ref=True)

float32: Final = _interned[1]
float64: Final = _interned[2]
int32: Final = _interned[3]
uint8: Final = _interned[4]
int16: Final = _interned[5]
int8: Final = _interned[6]
string: Final = _interned[7]
complex64: Final = _interned[8]
int64: Final = _interned[9]
bool: Final = _interned[10]  # the public name is tf.bool; builtins.bool is spelt out below
qint8: Final = _interned[11]
quint8: Final = _interned[12]
qint32: Final = _interned[13]
bfloat16: Final = _interned[14]
qint16: Final = _interned[15]
quint16: Final = _interned[16]
uint16: Final = _interned[17]
complex128: Final = _interned[18]
float16: Final = _interned[19]
resource: Final = _interned[20]
variant: Final = _interned[21]
uint32: Final = _interned[22]
uint64: Final = _interned[23]
half: Final = float16
double: Final = float64

float32_ref: Final = _interned[101]
float64_ref: Final = _interned[102]
int32_ref: Final = _interned[103]
uint8_ref: Final = _interned[104]
int16_ref: Final = _interned[105]
int8_ref: Final = _interned[106]
string_ref: Final = _interned[107]
complex64_ref: Final = _interned[108]
int64_ref: Final = _interned[109]
bool_ref: Final = _interned[110]
qint8_ref: Final = _interned[111]
quint8_ref: Final = _interned[112]
qint32_ref: Final = _interned[113]
bfloat16_ref: Final = _interned[114]
qint16_ref: Final = _interned[115]
quint16_ref: Final = _interned[116]
uint16_ref: Final = _interned[117]
complex128_ref: Final = _interned[118]
float16_ref: Final = _interned[119]
resource_ref: Final = _interned[120]
variant_ref: Final = _interned[121]
uint32_ref: Final = _interned[122]
uint64_ref: Final = _interned[123]
half_ref: Final = float16_ref
double_ref: Final = float64_ref

# Sets for the type constraints of ops; each holds base types only.
ALL_TYPES: Final = frozenset(_interned[enum] for _, enum, _ in _TABLE)
FLOAT_TYPES: Final = frozenset(t for t in ALL_TYPES if t.is_floating)
COMPLEX_TYPES: Final = frozenset(t for t in ALL_TYPES if t.is_complex)
INTEGER_TYPES: Final = frozenset(t for t in ALL_TYPES if t.is_integer)
SIGNED_INTEGER_TYPES: Final = frozenset(t for t in INTEGER_TYPES if not t.is_unsigned)
UNSIGNED_INTEGER_TYPES: Final = frozenset(t for t in INTEGER_TYPES if t.is_unsigned)
QUANTIZED_TYPES: Final = frozenset(t for t in ALL_TYPES if t.is_quantized)
INDEX_TYPES: Final = frozenset({int32, int64})
REAL_TYPES: Final = FLOAT_TYPES | INTEGER_TYPES
INEXACT_TYPES: Final = FLOAT_TYPES | COMPLEX_TYPES
NUMBER_TYPES: Final = REAL_TYPES | COMPLEX_TYPES
NUMERIC_TYPES: Final = NUMBER_TYPES | QUANTIZED_TYPES
# What an XLA program can hold; the others live on the host.
XLA_TYPES: Final = NUMERIC_TYPES | {bool}

_NP_CLASS_TO_TF: Final[dict[Any, DType]] = {
    **{t.np_dtype.type: t for t in NUMBER_TYPES},
    # np.intc, np.longlong and their like are classes of their own on some platforms.
    **{
        extra: _interned[enum]
        for extra in (np.byte, np.short, np.intc, np.long, np.longlong)
        for enum in [{1: 6, 2: 5, 4: 3, 8: 9}[np.dtype(extra).itemsize]]
    },
    **{
        extra: _interned[enum]
        for extra in (np.ubyte, np.ushort, np.uintc, np.ulong, np.ulonglong)
        for enum in [{1: 4, 2: 17, 4: 22, 8: 23}[np.dtype(extra).itemsize]]
    },
    np.bool_: bool,
    np.object_: string,
    np.str_: string,
    np.bytes_: string,
}

_NAMES: Final[dict[str, DType]] = {
    **{t.name: t for t in _interned.values()},
    "half": half,
    "float": float32,
    "double": double,
    "half_ref": half_ref,
    "float_ref": float32_ref,
    "double_ref": double_ref,
}

# The one table behind as_dtype: everything hashable that names a type.
_ANY_TO_TF: Final[dict[Any, DType]] = {
    **_interned,
    **_NAMES,
    **_NP_CLASS_TO_TF,
    **{np.dtype(cls): t for cls, t in _NP_CLASS_TO_TF.items()},
    **{t.as_numpy_dtype: t for t in QUANTIZED_TYPES},
    float: float32,
    int: int32,
    builtins.bool: bool,
    complex: complex128,
    str: string,
    bytes: string,
    object: string,
}


def as_dtype(type_value: Any) -> DType:
    """Converts what names a type to the `DType`.

    Accepts a DType, a NumPy dtype or scalar class, a name ("float32", "float", "half",
    "int32_ref"), TensorFlow's number, and Python's float (float32), int (int32), bool, complex
    (complex128), str, bytes and object (string). Byte order of a NumPy dtype is ignored.

    Raises:
      TypeError: `type_value` names no type; the message suggests the nearest name.
    """
    if type_value.__class__ is DType:
        return type_value
    found = _lookup(type_value)
    if found is not None:
        return found
    near = suggest(type_value, _NAMES) if isinstance(type_value, str) else ""
    raise TypeError(f"Cannot convert {type_value!r} to a headrace DType.{near}")


def _lookup(type_value: Any) -> DType | None:
    # bool is a subclass of int: True would otherwise be read as the enum of float32.
    if type_value is True or type_value is False:
        return None
    try:
        return _ANY_TO_TF[type_value]
    except (KeyError, TypeError):
        return _from_np_dtype(type_value) if isinstance(type_value, np.dtype) else None


def _from_np_dtype(dtype: np.dtype[Any]) -> DType | None:
    """The slow path for dtypes that are no key of the table: '<U5', 'S3', '>f4'."""
    if dtype.names is not None:
        return None
    return _NP_CLASS_TO_TF.get(dtype.type)


def np_array_dtype(array: np.ndarray[Any, Any] | np.generic) -> DType:
    """The DType of a NumPy array or scalar.

    Raises:
      TypeError: no tensor can hold the elements (datetimes, records, long doubles).
    """
    dtype = array.dtype
    try:
        return _ANY_TO_TF[dtype]
    except KeyError:
        found = _from_np_dtype(dtype)
    if found is None:
        raise TypeError(f"A tensor cannot hold elements of NumPy type {dtype!r}.")
    return found

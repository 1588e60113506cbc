"""Python values to arrays, and arrays to and from ``TensorProto``.

``to_ndarray`` holds the conversion rules: Python floats become float32, Python integers int32
(int64 when they do not fit), text becomes UTF-8 bytes, NumPy arrays keep their type. Strings are
object arrays of ``bytes``. ``make_tensor_proto`` and ``MakeNdarray`` add the wire format.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from headrace.graph import dtypes, nest
from headrace.graph.dtypes import DType, as_dtype

if TYPE_CHECKING:
    from headrace.graph.proto import TensorProto

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_FLOAT32 = np.dtype(np.float32)
_FLOAT64 = np.dtype(np.float64)
_INT32 = np.dtype(np.int32)
_INT64 = np.dtype(np.int64)
_OBJECT = np.dtype(object)

_NESTED = (list, tuple, range, np.ndarray)
_TEXT = (str, bytes)

#: A tensor in protocol-buffer form must stay below this size (a limit of the format).
_MAX_CONTENT_BYTES = 1 << 31

#: What a value must be, as NumPy kind codes, before it may become each kind of type.
_ACCEPTS = {"b": "b", "i": "biu", "u": "biu", "f": "biuf", "c": "biufc", "S": "SU"}
_KIND_OF_SCALAR = {bool: "b", int: "i", float: "f", complex: "c"}


class _Target(NamedTuple):
    """What conversion needs to know of a DType."""

    dtype: DType
    numpy: np.dtype[Any]
    accepts: str
    #: The range of an integer type, else None.
    bounds: tuple[int, int] | None

    def holds(self, value: Any) -> bool:
        """Whether a number is in the range of the type (true for all that are not integers)."""
        return self.bounds is None or self.bounds[0] <= value <= self.bounds[1]


#: Filled on first use; reference types share the record of their base.
_TARGETS: dict[DType, _Target] = {}
#: NumPy types that are tensor types as they are (native byte order, not text).
_NATIVE: Final = frozenset(t.np_dtype for t in dtypes.XLA_TYPES)


def to_ndarray(values: Any, dtype: DType | None = None, shape: Any = None) -> Array:
    """Convert ``values`` to a new array, by the rules of ``tf.constant``.

    Args:
        values: a Python scalar, a rectangular nest of lists and tuples, or anything NumPy reads.
        dtype: the wanted type, or None to infer it.
        shape: the wanted shape, or None for that of ``values``. Fewer elements than the shape
            needs are filled up with the last one.

    Returns:
        A C-ordered array that shares no memory with ``values``; strings are objects (``bytes``).

    Raises:
        TypeError: if an element is of the wrong kind for ``dtype`` or does not fit into it.
        ValueError: if ``values`` is None, is not rectangular, or has too many elements.
    """
    if shape is None:
        return _convert(values, dtype, copy=True)
    dims = _static_dims(shape)
    if 0 in dims and not isinstance(values, np.ndarray | np.generic):
        return np.zeros(dims, _FLOAT32 if dtype is None else _target(dtype).numpy)
    return _fit(_convert(values, dtype, copy=True), dims)


def _convert(values: Any, dtype: DType | None, *, copy: bool) -> Array:
    kind = _KIND_OF_SCALAR.get(type(values))
    if kind is not None:
        return _from_scalar(values, kind, dtype)
    if isinstance(values, np.ndarray | np.generic):
        return _from_numpy(values, dtype, copy=copy)
    if isinstance(values, _TEXT):
        if dtype is not None:
            target = _TARGETS.get(dtype) or _target(dtype)
            if "S" not in target.accepts:
                raise _mismatch(target, values)
        array = np.empty((), object)
        array[()] = values.encode() if isinstance(values, str) else bytes(values)
        return array
    if values is None:
        raise ValueError("None values not supported.")
    if isinstance(values, _NESTED):
        return _from_sequence(values, dtype)
    if hasattr(values, "as_list"):  # a TensorShape
        return _from_sequence(values.as_list(), dtype)
    if hasattr(values, "__array__"):
        return _from_numpy(np.asarray(values), dtype, copy=True)
    return _from_sequence(values, dtype)


def _from_scalar(value: Any, kind: str, dtype: DType | None) -> Array:
    if dtype is None:
        if kind == "f":
            return np.array(value, _FLOAT32)
        if kind == "i":
            if -0x80000000 <= value <= 0x7FFFFFFF:
                return np.array(value, _INT32)
            if not -(1 << 63) <= value < 1 << 64:
                raise TypeError(f"Cannot convert {value}: it does not fit into 64 bits.")
        return np.array(value)
    target = _TARGETS.get(dtype) or _target(dtype)
    if kind not in target.accepts:
        raise _mismatch(target, value)
    if not target.holds(value):
        raise _out_of_range(target, value)
    return np.array(value, target.numpy)


def _from_numpy(values: Any, dtype: DType | None, *, copy: bool) -> Array:
    source = values.dtype
    if dtype is None:
        if source not in _NATIVE:
            return _from_foreign(values)
        wanted = source
    else:
        wanted = (_TARGETS.get(dtype) or _target(dtype)).numpy
    if wanted is _OBJECT:
        return _string_array(np.asarray(values, object).ravel().tolist(), np.shape(values))
    if copy or wanted != source:
        return np.array(values, wanted, order="C")
    return np.asarray(values, order="C")


def _from_foreign(values: Any) -> Array:
    """An array whose NumPy type is not a tensor type as it stands: text, objects, swapped bytes."""
    if values.dtype.kind in "OSU":
        return _string_array(np.asarray(values, object).ravel().tolist(), np.shape(values))
    wanted = values.dtype.newbyteorder("=")
    as_dtype(wanted)  # raises TypeError for a type that tensors cannot have
    return np.array(values, wanted, order="C")


def _from_sequence(values: Any, dtype: DType | None) -> Array:
    target = None if dtype is None else _target(dtype)
    nest.check_depth(values)
    first = _first_leaf(values)
    if isinstance(first, _TEXT) and (target is None or "S" in target.accepts):
        return _string_array(*_leaves(values))
    try:
        natural = np.array(values, order="C")
    except Exception as error:
        raise _explain(values, target) from error
    if natural.size == 0 and natural.dtype.kind == "f":
        return natural.astype(_FLOAT32 if target is None else target.numpy)
    kind = natural.dtype.kind
    if kind == "O":
        return _from_objects(values, target)
    if target is None:
        return _by_default_rules(natural, values)
    if natural.dtype == target.numpy:
        return natural
    if kind not in target.accepts and not (kind == "V" and "f" in target.accepts):  # V: bfloat16
        if kind == "f" and target.bounds:
            return _from_wide_integers(values, target)
        raise _explain(values, target)
    if natural.size and target.bounds and not _all_held(natural, target):
        raise _explain(values, target)
    return natural.astype(target.numpy)


def _all_held(natural: Array, target: _Target) -> bool:
    return target.holds(int(natural.min())) and target.holds(int(natural.max()))


def _from_wide_integers(values: Any, target: _Target) -> Array:
    """Integers of which some need 64 bits and no sign: NumPy takes such a mixture for floats."""
    leaves, dims = _leaves(values)
    if not all(isinstance(leaf, int | np.integer) and target.holds(int(leaf)) for leaf in leaves):
        raise _explain(values, target)
    return np.array(leaves, target.numpy).reshape(dims)


def _by_default_rules(natural: Array, values: Any) -> Array:
    source = natural.dtype
    if source == _FLOAT64:
        return natural.astype(_FLOAT32)
    if source == _INT64:
        narrow = natural.astype(_INT32)
        return narrow if (narrow == natural).all() else natural
    if source.kind in "SU":  # text after something else: text alone has a path of its own
        raise _explain(values, None)
    as_dtype(source)
    return natural


def _from_objects(values: Any, target: _Target | None) -> Array:
    """A nest that NumPy keeps as objects: lets index-like elements (dimensions) count as ints."""
    leaves, dims = _leaves(values)
    try:
        numbers = [leaf.__index__() if hasattr(leaf, "__index__") else leaf for leaf in leaves]
        natural = np.array(numbers).reshape(dims)
    except Exception as error:
        raise _explain(values, target) from error
    if natural.dtype.kind not in "biufc":
        raise _explain(values, target)
    return _from_sequence(natural.tolist(), None if target is None else target.dtype)


def _string_array(leaves: Sequence[Any], dims: tuple[int, ...]) -> Array:
    array = np.empty(len(leaves), object)
    for index, leaf in enumerate(leaves):
        if isinstance(leaf, str):
            array[index] = leaf.encode()
        elif isinstance(leaf, bytes):
            array[index] = bytes(leaf)
        else:
            raise TypeError(
                f"Expected binary or unicode string, got {leaf!r} of type '{type(leaf).__name__}' "
                f"at {_position(index, dims)}."
            )
    return array.reshape(dims)


def _target(dtype: DType) -> _Target:
    base = as_dtype(dtype).base_dtype
    if not base.is_numpy_compatible:
        raise TypeError(f"A value cannot be converted to a tensor of type {base.name}.")
    numpy = base.np_dtype
    # NumPy sees text as objects and bfloat16 as void.
    kind = {dtypes.string: "S", dtypes.bfloat16: "f"}.get(base, numpy.kind)
    bounds = None
    if kind in "iu":
        bounds = int(np.iinfo(numpy).min), int(np.iinfo(numpy).max)
    target = _TARGETS[dtype] = _Target(base, numpy, _ACCEPTS[kind], bounds)
    return target


def _first_leaf(values: Any) -> Any:
    while _is_nested(values) and len(values):
        values = values[0]
    return values


def _is_nested(value: Any) -> bool:
    return isinstance(value, _NESTED) and not (isinstance(value, np.ndarray) and value.ndim == 0)


def _leaves(values: Any) -> tuple[list[Any], tuple[int, ...]]:
    """The elements of a nest in row-major order, and its shape.

    Raises:
        ValueError: if the nest is not rectangular; the text names the first odd position.
    """
    dims: tuple[int, ...] = ()
    level = [values]
    while level and _is_nested(level[0]):
        size = len(level[0])
        below: list[Any] = []
        for index, node in enumerate(level):
            if not _is_nested(node) or len(node) != size:
                got = f"{len(node)} elements" if _is_nested(node) else f"the single value {node!r}"
                raise ValueError(
                    f"Argument must be a dense tensor: {_brief(values)} - got {got} at "
                    f"{_position(index, dims)}, but wanted {size} as at {_position(0, dims)}."
                )
            below.extend(node)
        dims += (size,)
        level = below
    for index, node in enumerate(level):
        if _is_nested(node):
            raise ValueError(
                f"Argument must be a dense tensor: {_brief(values)} - got {len(node)} elements at "
                f"{_position(index, dims)}, but wanted a single value as at {_position(0, dims)}."
            )
    return level, dims


def _position(index: int, dims: tuple[int, ...]) -> str:
    where = np.unravel_index(index, dims) if dims else ()
    return "values" + "".join(f"[{int(i)}]" for i in where)


def _brief(values: Any) -> str:
    text = repr(values)
    return text if len(text) <= 200 else text[:197] + "..."


def _mismatch(target: _Target, value: Any) -> TypeError:
    name = type(value).__name__
    return TypeError(f"Expected {target.dtype.name}, got {value!r} of type '{name}' instead.")


def _out_of_range(target: _Target, value: Any) -> TypeError:
    return TypeError(
        f"Cannot convert {value} to {target.dtype.name}: it is outside {list(target.bounds or ())}."
    )


def _explain(values: Any, target: _Target | None) -> Exception:
    """The error for a nest that could not be converted; looks for the element at fault."""
    try:
        leaves, _ = _leaves(values)
    except ValueError as error:
        return error
    for leaf in leaves:
        if hasattr(leaf, "op") and hasattr(leaf, "value_index"):
            return TypeError("List of Tensors when single Tensor expected")
        if target is None:
            continue
        if _kind_of(leaf) not in target.accepts:
            return _mismatch(target, leaf)
        if not target.holds(leaf):
            return _out_of_range(target, leaf)
    return TypeError(
        f"Failed to convert object of type {type(values)} to Tensor. Contents: {_brief(values)}. "
        "Consider casting elements to a supported type."
    )


def _kind_of(leaf: Any) -> str:
    if isinstance(leaf, int):
        return "i" if not isinstance(leaf, bool) else "b"
    try:
        return np.asarray(leaf).dtype.kind
    except Exception:
        return "O"


def _static_dims(shape: Any) -> tuple[int, ...]:
    """``shape`` (a TensorShape, a sequence of sizes) as a tuple of ints.

    Raises:
        ValueError: if a size is unknown or negative.
    """
    sizes = shape.as_list() if hasattr(shape, "as_list") else shape
    dims = []
    for size in sizes:
        value = getattr(size, "value", size)
        if value is None or int(value) < 0:
            raise ValueError(f"Expected a fully defined shape of sizes >= 0, got {shape}.")
        dims.append(int(value))
    return tuple(dims)


def _fit(array: Array, dims: tuple[int, ...]) -> Array:
    """``array`` in the shape ``dims``, filled up with its last element."""
    if array.shape == dims:
        return array
    size = math.prod(dims)
    missing = size - array.size
    if missing < 0:
        raise ValueError(
            f"Too many elements provided. Needed at most {size}, but received {array.size}."
        )
    if missing == 0:
        return array.reshape(dims)
    filled = np.zeros(size, array.dtype)
    flat = array.ravel()
    filled[: flat.size] = flat
    if flat.size:
        filled[flat.size :] = flat[-1]
    elif array.dtype == _OBJECT:
        filled[:] = b""
    return filled.reshape(dims)


def make_tensor_proto(
    values: Any,
    dtype: Any = None,
    shape: Any = None,
    verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> TensorProto:
    """The protocol-buffer form of ``values``, by the rules of ``to_ndarray``.

    With a ``shape`` that has more elements than ``values``, only the given elements are stored;
    readers repeat the last one.

    Args:
        values: what ``to_ndarray`` takes; a TensorProto is returned as it is.
        dtype: the wanted type, or None to infer it.
        shape: the wanted shape, or None for that of ``values``.
        verify_shape: whether ``values`` must have exactly the shape ``shape``.
        allow_broadcast: whether ``values`` must be one element or have as many as ``shape``.

    Raises:
        TypeError: as ``to_ndarray``, and if the shapes do not agree as asked.
        ValueError: as ``to_ndarray``, if both flags are set, and for more than 2 GB of content.
    """
    if allow_broadcast and verify_shape:
        raise ValueError("allow_broadcast and verify_shape are not both allowed.")
    from headrace.graph.proto import TensorProto  # loaded on first use

    if isinstance(values, TensorProto):
        return values
    wanted = None if dtype is None else as_dtype(dtype).base_dtype
    if shape is None:
        array = _convert(values, wanted, copy=False)
        return _fill_proto(TensorProto(), array, wanted, array.shape)
    dims = _static_dims(shape)
    if 0 in dims and not isinstance(values, np.ndarray | np.generic):
        array = to_ndarray(values, wanted, dims)
    else:
        array = _convert(values, wanted, copy=False)
    _check_shape(array, dims, verify_shape=verify_shape, allow_broadcast=allow_broadcast)
    return _fill_proto(TensorProto(), array, wanted, dims)


def _check_shape(
    array: Array, dims: tuple[int, ...], *, verify_shape: bool, allow_broadcast: bool
) -> None:
    size = math.prod(dims)
    broadcasts = array.shape in ((), (1,)) or array.size == size
    if (verify_shape and array.shape != dims) or (allow_broadcast and not broadcasts):
        raise TypeError(f"Expected Tensor's shape: {dims}, got {array.shape}.")
    if not allow_broadcast and array.size > size:
        raise ValueError(
            f"Too many elements provided. Needed at most {size}, but received {array.size}."
        )


#: Types whose values of two and more elements are written as raw bytes.
_AS_CONTENT: Final = (
    dtypes.FLOAT_TYPES | dtypes.QUANTIZED_TYPES | (dtypes.INTEGER_TYPES - {dtypes.uint16})
)


class _Field(NamedTuple):
    """The list of TensorProto that holds the elements of a type, and how they stand in it."""

    name: str
    #: Elements are stored as numbers of this type, of the same bytes or (``widen``) the same value.
    numpy: np.dtype[Any]
    widen: bool = False


def _typed_fields() -> dict[DType, _Field]:
    bits = _Field("half_val", np.dtype(np.uint16))
    fields = {
        dtypes.float32: _Field("float_val", _FLOAT32),
        dtypes.float64: _Field("double_val", _FLOAT64),
        dtypes.complex64: _Field("scomplex_val", _FLOAT32),
        dtypes.complex128: _Field("dcomplex_val", _FLOAT64),
        dtypes.int64: _Field("int64_val", _INT64),
        dtypes.uint32: _Field("uint32_val", np.dtype(np.uint32)),
        dtypes.uint64: _Field("uint64_val", np.dtype(np.uint64)),
        dtypes.bool: _Field("bool_val", np.dtype(np.bool_)),
        dtypes.float16: bits,
        dtypes.bfloat16: bits,
    }
    for dtype in dtypes.INTEGER_TYPES | dtypes.QUANTIZED_TYPES:
        fields.setdefault(dtype, _Field("int_val", _INT32, widen=True))
    return fields


_FIELDS: Final = _typed_fields()


def _fill_proto(
    proto: TensorProto, array: Array, dtype: DType | None, dims: tuple[int, ...]
) -> TensorProto:
    dtype = dtypes.np_array_dtype(array) if dtype is None else dtype
    proto.dtype = dtype.as_datatype_enum  # type: ignore[assignment]
    proto.tensor_shape.SetInParent()
    for size in dims:
        proto.tensor_shape.dim.add().size = size
    if array.nbytes >= _MAX_CONTENT_BYTES:
        raise ValueError(
            f"Cannot create a tensor proto whose content is larger than 2GB: {array.nbytes} bytes."
        )
    flat = array.ravel()
    if dtype is dtypes.string:
        proto.string_val.extend(flat.tolist())
    elif dtype in _AS_CONTENT and 1 < array.size == math.prod(dims):
        proto.tensor_content = flat.tobytes()
    else:
        field = _FIELDS[dtype]
        stored = flat.astype(field.numpy) if field.widen else flat.view(field.numpy)
        getattr(proto, field.name).extend(stored.tolist())
    return proto


def MakeNdarray(tensor: TensorProto) -> Array:
    """The array that a TensorProto stands for: new, writable, strings as objects (``bytes``).

    Raises:
        TypeError: if the tensor holds handles (resource, variant) or is of an unknown type.
        ValueError: if its shape is not fully known, or its content does not match its shape.
    """
    if not hasattr(tensor, "tensor_content"):
        raise TypeError(f"Expected a TensorProto, not {tensor!r:.100}.")
    dtype = DType(tensor.dtype).base_dtype
    if not dtype.is_numpy_compatible:
        raise TypeError(f"Unsupported tensor type: {dtype.name} has no value outside a program.")
    dims = tuple(dim.size for dim in tensor.tensor_shape.dim)
    if tensor.tensor_shape.unknown_rank or any(size < 0 for size in dims):
        raise ValueError(f"A tensor proto needs a fully known shape, got {list(dims)}.")
    size = math.prod(dims)
    if tensor.tensor_content:
        return _from_content(tensor.tensor_content, dtype, size).reshape(dims)
    if dtype is dtypes.string:
        flat = np.empty(len(tensor.string_val), object)
        flat[:] = list(tensor.string_val)
    else:
        field = _FIELDS[dtype]
        stored = np.array(getattr(tensor, field.name), field.numpy)
        if dtype.is_complex and stored.size % 2:
            raise ValueError(f"{field.name} holds {stored.size} numbers; complex ones need pairs.")
        if dtype in (dtypes.float16, dtypes.bfloat16) or dtype.is_complex:
            flat = stored.view(dtype.np_dtype)
        else:
            flat = stored.astype(dtype.np_dtype)
    if flat.size > size:
        raise ValueError(
            f"A tensor proto of shape {list(dims)} has {flat.size} elements: at most {size} fit."
        )
    return _fit(flat, dims)


def stored_elements(tensor: TensorProto, dtype: DType) -> int:
    """How many elements of type ``dtype`` a TensorProto holds, whatever shape it claims.

    Raises:
        ValueError: if it holds them as raw strings, or as a part of a number.
    """
    if dtype is dtypes.string:
        if tensor.tensor_content:
            raise ValueError("its strings are raw content")
        return len(tensor.string_val)
    if tensor.tensor_content:
        count, rest = divmod(len(tensor.tensor_content), dtype.size)
    elif dtype in _FIELDS:
        values = len(getattr(tensor, _FIELDS[dtype].name))
        count, rest = divmod(values, 2) if dtype.is_complex else (values, 0)
    else:
        return 0  # handles
    if rest:
        raise ValueError(f"it ends in the middle of a {dtype.name}")
    return count


def _from_content(content: bytes, dtype: DType, size: int) -> Array:
    if dtype is dtypes.string:
        return _strings_from_content(content, size)
    expected = size * dtype.np_dtype.itemsize
    if len(content) != expected:
        raise ValueError(
            f"tensor_content has {len(content)} bytes: {size} elements of {dtype.name} need "
            f"{expected}."
        )
    return np.frombuffer(content, dtype.np_dtype.newbyteorder("<")).astype(dtype.np_dtype)


def _strings_from_content(content: bytes, size: int) -> Array:
    """Strings as raw content: all lengths (base-128 varints), then all bytes."""
    lengths: list[int] = []
    at = 0
    while len(lengths) < size and at < len(content):
        length = shift = 0
        while at < len(content):
            byte = content[at]
            length |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        lengths.append(length)
    if len(lengths) != size or at + sum(lengths) != len(content):
        raise ValueError(f"tensor_content of {len(content)} bytes does not hold {size} strings.")
    flat = np.empty(size, object)
    for index, length in enumerate(lengths):
        flat[index] = content[at : at + length]
        at += length
    return flat

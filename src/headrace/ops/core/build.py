"""Building operations: from Python arguments to a node of the default graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from headrace.errors import suggest
from headrace.graph import dtypes, nest
from headrace.graph.composite import CompositeOperand, CompositeTensor
from headrace.graph.dtypes import DType
from headrace.graph.func_graph import FuncGraph
from headrace.graph.graph import Graph, default_graph_stack, get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.graph.tensor_proto import to_ndarray
from headrace.ops.core.public import public
from headrace.ops.core.raw_ops import RawOps
from headrace.ops.core.registry import ArgDef, AttrDef, OpDef, define_op, get_op_def

# -- constants and conversion -------------------------------------------------------------------


def _const_shape(op: Operation) -> list[tuple[int, ...]]:
    return [op.attrs["value"].shape]


CONST = define_op(
    "Const() -> output: dtype",
    attrs="value: tensor, dtype: type",
    shape=_const_shape,
    kernel=lambda *, value: value,
    interpret=lambda *, value: value,
    gradient=lambda op, grad: [],
)


@public("constant")
def constant(
    value: Any,
    dtype: Any = None,
    shape: Any = None,
    name: str | None = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """A constant tensor.

    Args:
        value: number, string, nested list or array.
        dtype: type of the result; by default that of ``value`` (float -> float32, int -> int32).
        shape: shape of the result; a short value is extended with its last element.
        verify_shape: refuse a value whose shape is not exactly ``shape``.

    Raises:
        TypeError: if the value does not fit ``dtype``.
        ValueError: if the value is ragged or has more elements than ``shape``.

    >>> constant([1, 2, 3]).dtype
    tf.int32
    """
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(value, Tensor):
        raise TypeError(f"tf.constant needs a value, but {value.name} is a symbolic tensor.")
    array = to_ndarray(value, wanted, None)
    if shape is not None:
        dims = tuple(TensorShape(shape).as_list())
        if verify_shape and array.shape != dims:
            raise TypeError(f"Expected Tensor's shape: {dims}, got {array.shape}.")
        if array.shape != dims:
            array = to_ndarray(value, wanted, dims)
    return constant_of(array, wanted or dtypes.np_array_dtype(array), name)


def constant_of(array: np.ndarray[Any, Any], dtype: DType, name: str | None) -> Tensor:
    """A Const op in the current graph; the array, of the NumPy type of `dtype`, belongs to it."""
    graph = default_graph_stack.current()
    op = graph.add_op(CONST, (), {"value": array, "dtype": dtype}, (dtype,), name or "Const")
    return op.outputs[0]


_converters: list[tuple[int, Any, Callable[..., Any]]] = []


@public("register_tensor_conversion_function")
def register_tensor_conversion_function(
    base_type: Any, conversion_func: Callable[..., Any], priority: int = 100
) -> None:
    """Let ``convert_to_tensor`` accept ``base_type`` (a class or tuple of classes).

    ``conversion_func(value, dtype=None, name=None, as_ref=False)`` returns a tensor, of any shape,
    or NotImplemented. Lower priorities are asked first.

    Raises:
        TypeError: if ``base_type`` is no class, or ``conversion_func`` cannot be called.
    """
    classes = base_type if isinstance(base_type, tuple) else (base_type,)
    if not all(isinstance(c, type) for c in classes):
        raise TypeError(f"base_type must be a class or a tuple of classes, got {base_type!r}.")
    if not callable(conversion_func):
        raise TypeError(f"conversion_func must be callable, got {conversion_func!r}.")
    _converters.append((priority, base_type, conversion_func))
    _converters.sort(key=lambda entry: entry[0])


@public("convert_to_tensor")
def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
) -> Tensor:
    """``value`` as a tensor: itself, a variable's value, a packed list, or a constant.

    Args:
        value: a number, string, (nested) list or array, whose shape the result has.
        dtype: of the result; by default int32, float32 and so on as ``value`` suggests.
        preferred_dtype: a type to take if ``value`` fits it. ``dtype_hint`` is its newer name.

    Raises:
        ValueError: if ``value`` is None, a list whose rows differ in length, or a tensor of another
            type than ``dtype``.
        TypeError: if ``value`` cannot be converted, or does not fit ``dtype``.

    >>> convert_to_tensor([[1, 2, 3], [4, 5, 6]], tf.float32).shape.as_list()
    [2, 3]
    """
    wanted = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
    if isinstance(value, Tensor):
        if wanted is not None and value.dtype is not wanted:
            raise ValueError(
                f"Tensor conversion requested dtype {wanted.name} for Tensor with dtype "
                f"{value.dtype.name}: {value!r}. Use tf.cast to convert."
            )
        return value
    to_tensor = getattr(value, "_to_tensor", None)
    if to_tensor is not None:
        result: Tensor = to_tensor(wanted, name)
        return result
    for _, base, function in _converters:
        if isinstance(value, base):
            converted = function(value, dtype=wanted, name=name, as_ref=False)
            if converted is not NotImplemented:
                found: Tensor = converted
                return found
    if isinstance(value, CompositeTensor):
        raise CompositeOperand(value)
    if isinstance(value, (list, tuple)):
        try:
            if holds_tensor(value):
                return _pack(value, wanted, name)
        except RecursionError:
            raise nest.too_deep(value) from None
    hint = preferred_dtype if preferred_dtype is not None else dtype_hint
    if wanted is None and hint is not None:
        try:
            preferred = dtypes.as_dtype(hint).base_dtype
            return constant_of(to_ndarray(value, preferred, None), preferred, name)
        except (TypeError, ValueError):
            pass
    array = to_ndarray(value, wanted, None)
    return constant_of(array, wanted or dtypes.np_array_dtype(array), name)


def holds_tensor(value: Any) -> bool:
    return any(
        isinstance(v, (Tensor, CompositeTensor))
        or hasattr(v, "_to_tensor")
        or (isinstance(v, (list, tuple)) and holds_tensor(v))
        for v in value
    )


def first_dtype(value: Any) -> DType | None:
    """The type of the first tensor-like inside nested lists."""
    found = getattr(value, "dtype", None)
    if found is not None and not isinstance(value, np.generic):
        return dtypes.as_dtype(found).base_dtype
    if isinstance(value, (list, tuple)):
        for item in value:
            inner = first_dtype(item)
            if inner is not None:
                return inner
    return None


def _pack(value: Any, dtype: DType | None, name: str | None) -> Tensor:
    wanted = dtype or first_dtype(value)
    parts = [convert_to_tensor(v, wanted) for v in value]
    packed = apply_op(get_op_def("Pack"), (parts,), {"name": name or "packed"})
    assert isinstance(packed, Tensor)
    return packed


# -- ops ----------------------------------------------------------------------------------------


class _Builder:
    """What building one op type needs, worked out once: when the first such op is built, since
    importing defines all op types and a program uses a few dozen.
    """

    __slots__ = ("attr_defs", "inferred", "input_names", "known_kwargs", "op_def", "simple")

    def __init__(self, op_def: OpDef) -> None:
        self.op_def = op_def
        self.input_names = [a.name for a in op_def.inputs]
        self.inferred = {
            attr
            for a in op_def.inputs
            for attr in (a.type_attr, a.number_attr, a.type_list_attr)
            if attr
        }
        self.attr_defs = list(op_def.attrs.values())
        self.known_kwargs = {*self.input_names, *op_def.attrs, "name"}
        self.simple = not any(a.is_list for a in op_def.inputs)


def apply_op(op_def: OpDef, args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
    """Add an op of type ``op_def`` to the default graph.

    Positional arguments are inputs in order; keywords name inputs, attributes or ``name``.

    Returns:
        The output tensor; a tuple for several outputs (list outputs as lists); the operation
        itself when there are none.
    """
    try:
        op = add_node(op_def, args, kwargs)
    except CompositeOperand as operand:
        # A SparseTensor or RaggedTensor says itself what the op means for it. It is asked only
        # here, so that calls with tensors alone do not pay for it.
        result = operand.value._apply_op(op_def, list(args), kwargs)
        if result is NotImplemented:
            raise
        return result
    return group_outputs(op)


def group_outputs(op: Operation) -> Any:
    """Outputs as declared: one tensor, a tuple of tensors and lists, or the op if none."""
    declared = op.op_def.outputs
    if len(declared) == 1 and not declared[0].is_list:
        return op.outputs[0]
    if not declared:
        return op
    grouped: list[Any] = []
    position = 0
    for arg in declared:
        if arg.is_list:
            size = arg.size(op.attrs)
            grouped.append(list(op.outputs[position : position + size]))
            position += size
        else:
            grouped.append(op.outputs[position])
            position += 1
    return grouped[0] if len(grouped) == 1 else tuple(grouped)


def add_node(op_def: OpDef, args: Iterable[Any], kwargs: dict[str, Any]) -> Operation:
    """Like apply_op, returning the operation."""
    builder = op_def.builder
    if builder is None:
        builder = op_def.builder = _Builder(op_def)
    values = list(args)
    name = kwargs.get("name")
    if len(values) > len(op_def.inputs):
        raise TypeError(
            f"{op_def.name} takes {len(op_def.inputs)} inputs ({', '.join(builder.input_names)}); "
            f"{len(values)} were given."
        )
    for arg_name in builder.input_names[len(values) :]:
        if arg_name not in kwargs:
            raise TypeError(f"{op_def.name} needs a value for input '{arg_name}'.")
        values.append(kwargs[arg_name])
    unknown = kwargs.keys() - builder.known_kwargs
    if unknown:
        bad = sorted(unknown)[0]
        raise TypeError(
            f"{op_def.name} got an unexpected argument '{bad}'.{suggest(bad, builder.known_kwargs)}"
        )
    # What is given comes first, for inputs are converted to the types that it says; what the inputs
    # tell comes next; defaults come last.
    attrs: dict[str, Any] = {}
    for attr in builder.attr_defs:
        if attr.name in kwargs and kwargs[attr.name] is not None:
            attrs[attr.name] = normalize_attr(attr, kwargs[attr.name], op_def.name)
    graph = default_graph_stack.current()
    name = name or op_def.name
    if all(map(_is_plain, values)):
        inputs = _convert_inputs(op_def, values, attrs)
    else:
        _refuse_composites(values)  # before a name is used up
        # Constants made of the arguments are named after the op: "Greater/y".
        with graph.name_scope(name) as name:
            inputs = _convert_inputs(op_def, values, attrs)
    for attr in builder.attr_defs:
        if attr.name not in attrs:
            if not attr.has_default:
                raise TypeError(f"{op_def.name} needs a value for attribute '{attr.name}'.")
            attrs[attr.name] = attr.default
        elif attr.allowed is not None or attr.minimum is not None:
            check_attr(attr, attrs[attr.name], op_def.name)
    return graph.add_op(op_def, inputs, attrs, output_types(op_def, attrs), name)


def _refuse_composites(values: Sequence[Any]) -> None:
    for value in nest.flatten(values):
        if isinstance(value, CompositeTensor) and not hasattr(value, "_to_tensor"):
            raise CompositeOperand(value)


def _is_plain(value: Any) -> bool:
    """Whether an argument needs no conversion: a tensor, or a list of tensors."""
    if isinstance(value, (list, tuple)):
        return all(isinstance(v, Tensor) for v in value)
    return isinstance(value, Tensor)


def output_types(op_def: OpDef, attrs: dict[str, Any]) -> list[DType]:
    """The types of all outputs, given every attribute."""
    types: list[DType] = []
    for arg in op_def.outputs:
        if arg.type_list_attr is not None:
            types.extend(attrs[arg.type_list_attr])
            continue
        dtype = arg.dtype if arg.dtype is not None else attrs[str(arg.type_attr)]
        if arg.number_attr is not None:
            types.extend([dtype] * attrs[arg.number_attr])
        else:
            types.append(dtype)
    return types


def _convert_inputs(op_def: OpDef, values: list[Any], attrs: dict[str, Any]) -> list[Tensor]:
    # Tensors settle the types before any number is converted, on whichever side it stands: in
    # `2 / x` the number takes the type of x.
    for arg, value in zip(op_def.inputs, values, strict=True):
        if arg.type_attr is not None and arg.type_attr not in attrs:
            found = first_dtype(value)
            if found is not None:
                attrs[arg.type_attr] = found
    inputs: list[Tensor] = []
    for arg, value in zip(op_def.inputs, values, strict=True):
        if arg.type_list_attr is not None:
            tensors = _convert_type_list(op_def, arg, value, attrs)
            inputs.extend(tensors)
        elif arg.number_attr is not None:
            inputs.extend(_convert_number_list(op_def, arg, value, attrs))
        else:
            inputs.append(_convert_one(op_def, arg, value, attrs))
    return inputs


def _convert_one(op_def: OpDef, arg: ArgDef, value: Any, attrs: dict[str, Any]) -> Tensor:
    wanted = arg.dtype
    preferred = None
    if wanted is None:
        wanted = attrs.get(arg.type_attr)  # type: ignore[arg-type]
        if wanted is None:
            default = op_def.attrs[arg.type_attr].default  # type: ignore[index]
            preferred = default if isinstance(default, DType) else None
    if isinstance(value, Tensor):
        tensor = value
        if wanted is not None and tensor.dtype is not wanted:
            raise _input_type_error(op_def, arg, tensor, wanted, attrs)
    else:
        try:
            tensor = convert_to_tensor(value, wanted, arg.name, preferred_dtype=preferred)
        except CompositeOperand:
            raise
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error} (input '{arg.name}' of {op_def.name})") from None
    if arg.type_attr is not None:
        attrs.setdefault(arg.type_attr, tensor.dtype)
    return tensor


def _input_type_error(
    op_def: OpDef, arg: ArgDef, tensor: Tensor, wanted: DType, attrs: dict[str, Any]
) -> TypeError:
    if arg.dtype is not None:
        reason = f"that does not match expected type of {wanted.name}"
    else:
        others = [a.name for a in op_def.inputs if a.type_attr == arg.type_attr and a is not arg]
        where = f"argument '{others[0]}'" if others else f"attribute '{arg.type_attr}'"
        reason = f"that does not match type {wanted.name} of {where}"
    return TypeError(
        f"Input '{arg.name}' of '{op_def.name}' Op has type {tensor.dtype.name} {reason} "
        f"({tensor!r}). Use tf.cast to convert."
    )


def _convert_number_list(
    op_def: OpDef, arg: ArgDef, value: Any, attrs: dict[str, Any]
) -> list[Tensor]:
    if not isinstance(value, (list, tuple)):
        raise TypeError(
            f"Expected list for '{arg.name}' argument to '{op_def.name}' Op, not {value!r}."
        )
    tensors = [_convert_one(op_def, arg, v, attrs) for v in value]
    assert arg.number_attr is not None
    # Another list of the op may count by the same attribute.
    count = attrs.setdefault(arg.number_attr, len(tensors))
    if count != len(tensors):
        raise ValueError(
            f"List '{arg.name}' of '{op_def.name}' Op has {len(tensors)} entries, but attribute "
            f"'{arg.number_attr}' says {count}: lists that it counts have one length."
        )
    return tensors


def _convert_type_list(
    op_def: OpDef, arg: ArgDef, value: Any, attrs: dict[str, Any]
) -> list[Tensor]:
    if not isinstance(value, (list, tuple)):
        raise TypeError(
            f"Expected list for '{arg.name}' argument to '{op_def.name}' Op, not {value!r}."
        )
    wanted = attrs.get(arg.type_list_attr)  # type: ignore[arg-type]
    if wanted is not None and len(wanted) == len(value):
        tensors = [convert_to_tensor(v, t) for v, t in zip(value, wanted, strict=True)]
    else:
        tensors = [convert_to_tensor(v) for v in value]
    attrs[arg.type_list_attr] = tuple(t.dtype for t in tensors)  # type: ignore[index]
    return tensors


def normalize_attr(attr: AttrDef, value: Any, op_name: str) -> Any:
    """An attribute value in the form in which ops hold it.

    Raises:
        TypeError: if the value is of another kind.
    """
    kind = attr.kind
    try:
        if kind.startswith("list("):
            if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
                raise TypeError
            normalize = _NORMALIZERS[kind[5:-1]]
            return tuple([normalize(v) for v in value])
        return _NORMALIZERS[kind](value)
    except (TypeError, ValueError):
        raise TypeError(
            f"Expected {kind} for argument '{attr.name}' of {op_name}, not {value!r}."
        ) from None


def _as_int(value: Any) -> int:
    if isinstance(value, (bool, float)):
        raise TypeError
    return int(value)


def _as_bool(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError
    return bool(value)


def _as_text(value: Any) -> str | bytes:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if not isinstance(value, str):
        raise TypeError
    return value


_NORMALIZERS: dict[str, Callable[[Any], Any]] = {
    "int": _as_int,
    "float": float,
    "bool": _as_bool,
    "string": _as_text,
    "type": lambda v: dtypes.as_dtype(v).base_dtype,
    "shape": TensorShape,
    "tensor": np.asarray,
    "func": lambda v: v,
}


def check_attr(attr: AttrDef, value: Any, op_name: str) -> None:
    """Refuse a value that an attribute of an op does not allow.

    Raises:
        TypeError: for a type that it does not allow.
        ValueError: for another value, or less than its minimum.
    """
    values = value if attr.kind.startswith("list(") else (value,)
    if attr.allowed is not None:
        for item in values:
            if item not in attr.allowed:
                names = sorted(a.name if isinstance(a, DType) else repr(a) for a in attr.allowed)
                got = item.name if isinstance(item, DType) else repr(item)
                error = TypeError if "type" in attr.kind else ValueError
                raise error(
                    f"Value passed to parameter '{attr.name}' of {op_name} is {got}, which is not "
                    f"in the list of allowed values: {', '.join(names)}"
                )
    if attr.minimum is not None:
        size = len(value) if attr.kind.startswith("list(") else value
        if size < attr.minimum:
            raise ValueError(
                f"Attr '{attr.name}' of '{op_name}' Op passed {size} less than minimum "
                f"{attr.minimum}."
            )


# -- raw ops ------------------------------------------------------------------------------------


raw = RawOps(apply_op)


def _create_by_name(
    graph: Graph,
    op_type: str,
    inputs: Any,
    types: Any,
    name: str | None,
    attrs: dict[str, Any],
) -> Operation:
    """``Graph.create_op``: attributes are inferred from the inputs where not given."""
    op_def = get_op_def(op_type)
    values: list[Any] = []
    rest = list(inputs)
    single = len(op_def.inputs) == 1
    for arg in op_def.inputs:
        if arg.is_list:
            size = len(rest) if single else arg.size(attrs)
            values.append(rest[:size])
            rest = rest[size:]
        else:
            values.append(rest.pop(0))
    with graph.as_default():
        return add_node(op_def, values, {**attrs, "name": name})


# Handed to the graph, whose package comes before this one and does not know the definitions.
Graph._create_by_name = _create_by_name

PLACEHOLDER = define_op(
    "Placeholder() -> output: dtype",
    attrs="dtype: type, shape: shape = None",
    shape=lambda op: [None if op.attrs["shape"] is None else op.attrs["shape"].as_tuple],
    host=lambda context: context.missing_feed(),
)


def function_placeholder(graph: FuncGraph, dtype: DType, dims: Any, name: str) -> Tensor:
    """The placeholder for an input or capture of a function body."""
    attrs = {"dtype": dtype, "shape": TensorShape.of(dims)}
    return graph.add_op(PLACEHOLDER, (), attrs, (dtype,), name).outputs[0]


@public("placeholder")
def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor whose value is fed: ``session.run(fetches, feed_dict={p: value})``.

    Args:
        dtype: of what is fed.
        shape: what is known of its shape: None, or a list with None for each unknown size.

    Raises:
        TypeError: if ``dtype`` is no type, or ``shape`` no shape.
        InvalidArgumentError: from ``run``, if the tensor is needed and not fed.

    >>> x = placeholder(dtypes.float32, [None, 2])
    >>> with tf.Session() as session:
    ...     session.run(x * 2, {x: [[1.0, 2.0]]}).tolist()
    [[2.0, 4.0]]
    """
    kind = dtypes.as_dtype(dtype).base_dtype
    attrs = {"dtype": kind, "shape": TensorShape(shape)}
    op = get_default_graph().add_op(PLACEHOLDER, (), attrs, (kind,), name or "Placeholder")
    return op.outputs[0]

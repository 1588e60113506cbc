"""Graphs as text, one line per operation, for people and for golden tests.

    %y = MatMul[T=float32, transpose_a=false](%x, %w:1) ^init @/device:CPU:0 : float32[?,10]

Attributes stand in order of name, as literals that tell their kind: ``3``, ``0.5``, ``true``,
``"text"``, ``float32``, ``<2,?>`` (a shape; ``<*>`` of unknown rank), ``float32<2>{1.0, 2.0}``
(a tensor), ``@name[...]`` (a function) and ``[...]``. Function bodies follow the operations.
`parse` reads it all back into a GraphDef; `from_text` of `headrace.graph_files.import_graph` makes
the graph.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from headrace.graph.attr_proto import decode, encode, read_tensor
from headrace.graph.dtypes import DType, as_dtype
from headrace.graph.graph import Graph
from headrace.graph.graph_def import (
    function_to_function_def,
    functions_of,
    graph_versions,
    write_attrs,
)
from headrace.graph.proto import AttrValue, FunctionDef, GraphDef, NodeDef
from headrace.graph.shapes import shape_to_proto
from headrace.graph.tensor_proto import make_tensor_proto

#: Tensors of more elements are written as the hexadecimal digits of their bytes.
_LITERAL_ELEMENTS = 64


# -- writing ------------------------------------------------------------------------------------


def to_text(graph: Any) -> str:
    """A Graph, or the step graph of `headrace.passes.ir`, in the text form of this module."""
    if isinstance(graph, Graph):
        ops = graph.get_operations()
        lines = [_op_line(op) for op in ops]
        functions = [function_to_function_def(f) for f in functions_of(ops)]
        return "".join(f"{line}\n" for line in lines) + "".join(map(_function_text, functions))
    return "".join(f"{_step_line(node)}\n" for node in graph.nodes)


def _op_line(op: Any) -> str:
    attrs = NodeDef()
    write_attrs(attrs, op.op_def, op.attrs)
    if op.colocation:
        attrs.attr["_class"].list.s.extend(f"loc:@{n}".encode() for n in op.colocation)
    inputs = [_reference(t.op.name, t.value_index) for t in op.inputs]
    controls = [c.name for c in op.control_inputs]
    types = [_type_text(t.dtype, t.dims) for t in op.outputs]
    return _line(op.name, op.type, attrs, inputs, controls, op.device, types)


def _step_line(node: Any) -> str:
    attrs = NodeDef()
    write_attrs(attrs, node.op_def, node.attrs)
    inputs = [_reference(source.name, index) for source, index in node.inputs]
    controls = [c.name for c in node.control]
    types = [_type_text(t, d) for t, d in zip(node.dtypes, node.dims, strict=True)]
    return _line(node.name, node.type, attrs, inputs, controls, node.device, types)


def _reference(name: str, index: int) -> str:
    return f"{name}:{index}" if index else name


def _line(
    name: str,
    op_type: str,
    attrs: NodeDef,
    inputs: Iterable[str],
    controls: Iterable[str],
    device: str,
    types: Sequence[str] = (),
) -> str:
    settings = _settings(attrs.attr)
    line = f"%{name} = {op_type}{f'[{settings}]' if settings else ''}"
    line += f"({', '.join('%' + i for i in inputs)})"
    line += "".join(f" ^{c}" for c in controls)
    if device:
        line += f" @{device}"
    return f"{line} : {', '.join(types)}" if types else line


def _settings(attrs: Any) -> str:
    return ", ".join(f"{name}={_literal(attrs[name])}" for name in sorted(attrs))


def _sizes(dims: Sequence[int | None] | None) -> str:
    if dims is None:
        return "*"
    return ",".join("?" if d is None else str(d) for d in dims)


def _type_text(dtype: DType, dims: Sequence[int | None] | None) -> str:
    return f"{dtype.name}[{_sizes(dims)}]"


def _literal(value: AttrValue) -> str:
    field = value.WhichOneof("value")
    if field == "list":
        for name, write in _WRITERS.items():
            items = getattr(value.list, name)
            if items:
                return f"[{', '.join(write(i) for i in items)}]"
        return "[]"
    if field not in _WRITERS:
        return "?"
    return _WRITERS[field](getattr(value, field))


def _float_text(value: Any) -> str:
    text = str(value)
    return text if re.search(r"[.en]", text) else f"{text}.0"


def _string_text(value: bytes) -> str:
    """Bytes as a literal in double quotes; each byte that is not ASCII as ``\\u00xx``."""
    return json.dumps(value.decode("latin-1"))


def _shape_text(proto: Any) -> str:
    if proto.unknown_rank:
        return "<*>"
    return f"<{_sizes([None if d.size < 0 else d.size for d in proto.dim])}>"


def _tensor_text(proto: Any) -> str:
    array = read_tensor(proto)
    dtype = DType(proto.dtype)
    head = f"{dtype.name}<{_sizes(array.shape)}>"
    if array.dtype == object:
        body = ", ".join(_string_text(v) for v in array.ravel())
    elif array.size > _LITERAL_ELEMENTS:
        body = f"0x{array.tobytes().hex()}"
    elif dtype.is_complex:
        body = ", ".join(f"({float(v.real)}{float(v.imag):+}j)" for v in array.ravel())
    elif array.dtype.kind in "biu":
        body = ", ".join(str(int(v)) for v in array.ravel())
    else:
        body = ", ".join(_float_text(v) for v in array.ravel())
    return f"{head}{{{body}}}"


def _func_text(func: Any) -> str:
    settings = _settings(func.attr)
    return f"@{func.name}[{settings}]" if settings else f"@{func.name}"


_WRITERS: dict[str, Callable[[Any], str]] = {
    "s": _string_text,
    "i": str,
    "f": lambda v: _float_text(np.float32(v)),
    "b": lambda v: "true" if v else "false",
    "type": lambda v: DType(v).name,
    "shape": _shape_text,
    "tensor": _tensor_text,
    "func": _func_text,
}


def _function_text(function: FunctionDef) -> str:
    arguments = []
    for i, arg in enumerate(function.signature.input_arg):
        shapes = function.arg_attr[i].attr["_output_shapes"].list.shape
        dims = decode(AttrValue(shape=shapes[0])).as_tuple
        arguments.append(f"%{arg.name}: {_type_text(DType(arg.type), dims)}")
    results = [
        f"{arg.name}: {DType(arg.type).name} = %{function.ret[arg.name]}"
        for arg in function.signature.output_arg
    ]
    name = function.signature.name
    text = f"function {name}({', '.join(arguments)}) -> ({', '.join(results)}) {{\n"
    for node in function.node_def:
        data = [i for i in node.input if not i.startswith("^")]
        controls = [i[1:] for i in node.input if i.startswith("^")]
        text += f"  {_line(node.name, node.op, node, data, controls, node.device)}\n"
    return text + "}\n"


# -- reading ------------------------------------------------------------------------------------

_TOKENS = re.compile(
    r"""\s*(?:
    (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<reference>%[A-Za-z0-9_.\\/>-]+(?::[A-Za-z0-9_:]+)?)
  | (?P<control>\^[A-Za-z0-9_.\\/>-]+)
  | (?P<device>@[^\s,\[\]{}()]+)
  | (?P<arrow>->)
  | (?P<hex>0x[0-9a-f]*)
  | (?P<complex>\([^()]*j\))
  | (?P<number>[-+]?(?:inf|nan|[0-9][0-9.]*(?:e[-+]?[0-9]+)?)(?![A-Za-z_]))
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<sign>[][(){}<>=,:?*])
    )""",
    re.VERBOSE,
)


class _Line:
    """The tokens of one line, and how far they are read."""

    def __init__(self, text: str, number: int) -> None:
        self.text = text
        self.number = number
        self.tokens: list[tuple[str, str]] = []
        position = 0
        end = len(text.rstrip())
        while position < end:
            match = _TOKENS.match(text, position)
            if match is None:
                raise self.error(f"cannot read {text[position : position + 20]!r}")
            self.tokens.append((match.lastgroup or "", match.group(match.lastgroup or 0)))
            position = match.end()
        self.at = 0

    def error(self, why: str) -> ValueError:
        return ValueError(f"line {self.number}: {why}: {self.text.strip()[:200]}")

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def take(self, kind: str, value: str | None = None) -> str:
        found, text = self.peek()
        if found != kind or (value is not None and text != value):
            raise self.error(f"expected {value or kind}, got {text or 'the end'}")
        self.at += 1
        return text

    def accept(self, value: str) -> bool:
        if self.peek()[1] == value and self.peek()[0] in ("sign", "arrow"):
            self.at += 1
            return True
        return False

    def sequence(self, end: str, item: Callable[[], Any]) -> list[Any]:
        """Items between commas up to the sign ``end``, which is consumed."""
        items: list[Any] = []
        while not self.accept(end):
            if items:
                self.take("sign", ",")
            items.append(item())
        return items


def parse(text: str) -> GraphDef:
    """The GraphDef that ``text`` describes.

    Raises:
        ValueError: if the text is malformed; the message shows the line.
    """
    message = GraphDef(versions=graph_versions())
    function: FunctionDef | None = None
    for number, line_text in enumerate(text.splitlines(), 1):
        if not line_text.strip() or line_text.lstrip().startswith("#"):
            continue
        line = _Line(line_text, number)
        if line.peek() == ("word", "function"):
            function = message.library.function.add()
            _read_function(line, function)
        elif line.peek() == ("sign", "}"):
            function = None
        else:
            nodes = message.node if function is None else function.node_def
            _read_node(line, nodes.add())
    return message


def _read_node(line: _Line, node: NodeDef) -> None:
    node.name = line.take("reference")[1:]
    line.take("sign", "=")
    node.op = line.take("word")
    if line.accept("["):
        line.sequence("]", lambda: _read_setting(line, node.attr))
    line.take("sign", "(")
    node.input.extend(line.sequence(")", lambda: line.take("reference")[1:]))
    while line.peek()[0] == "control":
        node.input.append(line.take("control"))
    if line.peek()[0] == "device":
        node.device = line.take("device")[1:]
    if line.accept(":"):
        node.attr["_output_shapes"].CopyFrom(encode(_read_types(line), "list(shape)"))
    if line.peek()[0] != "end":
        raise line.error(f"nothing should follow, got {line.peek()[1]}")


def _read_types(line: _Line) -> list[Any]:
    shapes = [_read_type(line)[1]]
    while line.accept(","):
        shapes.append(_read_type(line)[1])
    return shapes


def _read_type(line: _Line) -> tuple[DType, Any]:
    dtype = as_dtype(line.take("word"))
    line.take("sign", "[")
    return dtype, _read_sizes(line, "]")


def _read_sizes(line: _Line, end: str) -> tuple[int | None, ...] | None:
    if line.accept("*"):
        line.take("sign", end)
        return None
    return tuple(line.sequence(end, lambda: None if line.accept("?") else int(line.take("number"))))


def _read_setting(line: _Line, attrs: Any) -> None:
    name = line.take("word")
    line.take("sign", "=")
    attrs[name].CopyFrom(_read_value(line))


def _read_value(line: _Line) -> AttrValue:
    value = AttrValue()
    if line.accept("["):
        value.list.SetInParent()
        for item in line.sequence("]", lambda: _read_value(line)):
            field = item.WhichOneof("value")
            held = getattr(value.list, field)
            single = getattr(item, field)
            held.append(single)
        return value
    kind, text = line.peek()
    if line.accept("<"):
        value.shape.CopyFrom(shape_to_proto(_read_sizes(line, ">")))
        return value
    line.at += 1
    if kind == "string":
        value.s = json.loads(text).encode("latin-1")
    elif kind == "number":
        _set_number(value, text)
    elif kind == "device":
        value.func.name = text[1:]
        if line.accept("["):
            line.sequence("]", lambda: _read_setting(line, value.func.attr))
    elif kind == "word":
        _read_word(line, text, value)
    else:
        raise line.error(f"expected a value, got {text or 'the end'}")
    return value


def _set_number(value: AttrValue, text: str) -> None:
    if re.fullmatch(r"[-+]?[0-9]+", text):
        value.i = int(text)
    else:
        value.f = float(text)


def _read_word(line: _Line, text: str, value: AttrValue) -> None:
    """``true``, ``false``, a type, or a tensor that begins with its type."""
    if text in ("true", "false"):
        value.b = text == "true"
        return
    if text in ("inf", "nan"):
        value.f = float(text)
        return
    try:
        dtype = as_dtype(text)
    except TypeError:
        raise line.error(f"{text} is no value") from None
    if line.accept("<"):
        dims = _read_sizes(line, ">")
        line.take("sign", "{")
        elements = line.sequence("}", lambda: _read_element(line))
        value.tensor.CopyFrom(make_tensor_proto(_array(elements, dtype, dims), dtype))
    else:
        value.type = dtype.as_datatype_enum  # type: ignore[assignment]


def _read_element(line: _Line) -> Any:
    kind, text = line.peek()
    line.at += 1
    if kind == "string":
        return json.loads(text).encode("latin-1")
    if kind == "hex":
        return bytes.fromhex(text[2:])
    if kind == "complex":
        return complex(text)
    if kind != "number":
        raise line.error(f"expected an element, got {text or 'the end'}")
    return int(text) if re.fullmatch(r"[-+]?[0-9]+", text) else float(text)


def _array(elements: list[Any], dtype: DType, dims: Any) -> Any:
    if dtype.np_dtype.kind == "O":
        array = np.empty(len(elements), object)
        array[:] = elements
    elif len(elements) == 1 and isinstance(elements[0], bytes):
        array = np.frombuffer(elements[0], dtype.np_dtype)
    else:
        array = np.array(elements).astype(dtype.np_dtype)
    return array.reshape(dims)


def _read_function(line: _Line, function: FunctionDef) -> None:
    line.take("word", "function")
    signature = function.signature
    signature.name = line.take("word")
    line.take("sign", "(")

    def argument() -> None:
        name = line.take("reference")[1:]
        line.take("sign", ":")
        dtype, dims = _read_type(line)
        index = len(signature.input_arg)
        signature.input_arg.add(name=name, type=dtype.as_datatype_enum)
        function.arg_attr[index].attr["_output_shapes"].list.shape.append(shape_to_proto(dims))

    def result() -> None:
        name = line.take("word")
        line.take("sign", ":")
        dtype = as_dtype(line.take("word"))
        line.take("sign", "=")
        signature.output_arg.add(name=name, type=dtype.as_datatype_enum)
        function.ret[name] = line.take("reference")[1:]

    line.sequence(")", argument)
    line.take("arrow")
    line.take("sign", "(")
    line.sequence(")", result)
    line.take("sign", "{")

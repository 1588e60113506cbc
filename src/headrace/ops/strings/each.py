"""String ops that give one element for each: joining, cutting, cases, patterns, base64.

A string tensor holds bytes. All of this runs on the host.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.graph.shapes import broadcast_static, merge_static, shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.array_util import like_first
from headrace.ops.core.checks import invalid
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.core.traits import ELEMENTWISE
from headrace.ops.strings import regex
from headrace.ops.strings.regex import as_bytes

NO_GRADIENT = NotDifferentiable("it works on strings")
_UNIT = "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"


def items_of(strings: Any) -> list[bytes]:
    """All elements of a string tensor, in order."""
    items = np.asarray(strings, object).reshape(-1).tolist()
    if set(map(type, items)) <= {bytes}:
        return items
    return [as_bytes(s) for s in items]


def shaped(items: Sequence[Any], shape: Any, dtype: Any = object) -> Any:
    """Elements in order as an array of a shape."""
    result = np.empty(len(items), dtype)
    result[:] = items
    return result.reshape(shape)


# -- joining ------------------------------------------------------------------------------------


def _join_shape(op: Operation) -> list[Dims]:
    dims: Dims = None
    scalars = 0
    for tensor in op.inputs:
        if tensor.dims == ():
            scalars += 1
            continue
        try:
            dims = merge_static(dims, tensor.dims)
        except ValueError:
            raise ValueError(
                f"StringJoin needs inputs of one shape, or scalars; there are "
                f"{shape_text(dims)} and {shape_text(tensor.dims)}."
            ) from None
    return [() if scalars == len(op.inputs) else dims]


def _join(context: Any, inputs: Sequence[Any], *, separator: str) -> Any:
    shapes = {np.shape(x) for x in inputs} - {()}
    if len(shapes) > 1:
        raise invalid(
            f"StringJoin needs inputs of one shape, or scalars; got {sorted(shapes, key=str)}."
        )
    shape = shapes.pop() if shapes else ()
    columns = [items_of(np.broadcast_to(np.asarray(x, object), shape)) for x in inputs]
    glue = as_bytes(separator)
    return shaped(list(map(glue.join, zip(*columns, strict=True))), shape)


define_op(
    "StringJoin(inputs: N * string) -> output: string",
    attrs="N: int, separator: string = ''",
    shape=_join_shape,
    host=_join,
    gradient=NO_GRADIENT,
    traits=ELEMENTWISE,
)

# -- element by element -------------------------------------------------------------------------


def _each(function: Callable[[bytes], Any], strings: Any, dtype: Any = object) -> Any:
    return shaped([function(s) for s in items_of(strings)], np.shape(strings), dtype)


def characters(string: bytes) -> int:
    """How many UTF-8 characters there are; bytes that go on with one do not count."""
    return sum([byte & 0xC0 != 0x80 for byte in string])


def _length(context: Any, input: Any, *, unit: str) -> Any:
    return _each(len if unit == "BYTE" else characters, input, np.int32)


define_op(
    "StringLength(input: string) -> output: int32",
    attrs=_UNIT,
    shape=like_first,
    host=_length,
    gradient=NO_GRADIENT,
    traits=ELEMENTWISE,
)

define_op(
    "StringStrip(input: string) -> output: string",
    shape=like_first,
    host=lambda context, input: _each(lambda s: s.strip(b" \t\n\v\f\r"), input),
    gradient=NO_GRADIENT,
    traits=ELEMENTWISE,
)


def _cased(method: str) -> Callable[..., Any]:
    change_bytes: Callable[[bytes], bytes] = getattr(bytes, method)
    change_text: Callable[[str], str] = getattr(str, method)

    def convert(context: Any, input: Any, *, encoding: str) -> Any:
        if encoding == "":
            return _each(change_bytes, input)
        if encoding.lower() != "utf-8":
            raise invalid(f"only utf-8 or '' (no encoding) is supported, received {encoding}")
        return _each(lambda s: change_text(s.decode("utf-8", "replace")).encode(), input)

    return convert


for _name in ("Lower", "Upper"):
    define_op(
        f"String{_name}(input: string) -> output: string",
        attrs="encoding: string = ''",
        shape=like_first,
        host=_cased(_name.lower()),
        traits=ELEMENTWISE,
        gradient=NO_GRADIENT,
    )


def _encode_base64(context: Any, input: Any, *, pad: bool) -> Any:
    def encode(string: bytes) -> bytes:
        coded = base64.urlsafe_b64encode(string)
        return coded if pad else coded.rstrip(b"=")

    return _each(encode, input)


_WEB_SAFE = re.compile(rb"[0-9A-Za-z_-]*")


def _decode(string: bytes) -> bytes:
    body = string.rstrip(b"=")
    padding = len(string) - len(body)
    missing = -len(body) % 4
    if _WEB_SAFE.fullmatch(body) is None:
        raise invalid("Invalid character found in base64.")
    if missing == 3 or padding not in (0, missing):
        raise invalid(f"Invalid base64: {len(body)} characters, {padding} of padding.")
    try:
        return base64.urlsafe_b64decode(body + b"=" * missing)
    except binascii.Error as error:
        raise invalid(f"Invalid base64: {error}.") from None


define_op(
    "EncodeBase64(input: string) -> output: string",
    attrs="pad: bool = False",
    shape=like_first,
    host=_encode_base64,
    gradient=NO_GRADIENT,
    traits=ELEMENTWISE,
)

define_op(
    "DecodeBase64(input: string) -> output: string",
    shape=like_first,
    host=lambda context, input: _each(_decode, input),
    gradient=NO_GRADIENT,
    traits=ELEMENTWISE,
)

# -- parts --------------------------------------------------------------------------------------


def _substr_shape(op: Operation) -> list[Dims]:
    input, pos, length = (t.dims for t in op.inputs)
    try:
        merge_static(pos, length)
    except ValueError:
        raise ValueError(
            f"pos and len must have the same shape; they have {shape_text(pos)} and "
            f"{shape_text(length)}."
        ) from None
    return [broadcast_static(input, pos)]


def _character_starts(string: bytes) -> list[int]:
    """Where characters begin, and the end of the string."""
    return [*[i for i, byte in enumerate(string) if byte & 0xC0 != 0x80], len(string)]


def _substr(context: Any, input: Any, pos: Any, len: Any, *, unit: str) -> Any:
    if np.shape(pos) != np.shape(len):
        raise invalid(
            f"pos and len should have the same shape, got: {np.shape(pos)} vs. {np.shape(len)}"
        )
    if np.shape(pos) == () and unit == "BYTE" and pos >= 0 and len >= 0:
        first, last = int(pos), int(pos) + int(len)
        items, part = items_of(input), slice(first, last)
        if min(map(bytes.__len__, items), default=first) >= first:
            return shaped([item[part] for item in items], np.shape(input))
    try:
        strings, starts, sizes = np.broadcast_arrays(np.asarray(input, object), pos, len)
    except ValueError:
        raise invalid(
            f"Substr cannot broadcast input {np.shape(input)} and pos {np.shape(pos)}."
        ) from None
    rows = zip(
        strings.reshape(-1).tolist(),
        starts.reshape(-1).tolist(),
        sizes.reshape(-1).tolist(),
        strict=True,
    )
    cut = [_cut(as_bytes(s), i, n, at, unit) for at, (s, i, n) in enumerate(rows)]
    return shaped(cut, strings.shape)


def _cut(string: bytes, start: int, size: int, place: int, unit: str) -> bytes:
    places = None if unit == "BYTE" else _character_starts(string)
    total = len(string) if places is None else len(places) - 1
    first = start + total if start < 0 else start
    if not 0 <= first <= total:
        raise invalid(f"pos {start} out of range for string b'{_shown(string)}' at index {place}")
    last = total if size < 0 else min(first + size, total)
    return string[first:last] if places is None else string[places[first] : places[last]]


def _shown(string: bytes) -> str:
    return repr(string)[2:-1]


define_op(
    "Substr(input: string, pos: T, len: T) -> output: string",
    attrs=f"T: {{int32, int64}}, {_UNIT}",
    shape=_substr_shape,
    host=_substr,
    gradient=NO_GRADIENT,
    traits=ELEMENTWISE,
)

# -- patterns -----------------------------------------------------------------------------------


def _matches(input: Any, pattern: Any) -> Any:
    expression = regex.compiled(pattern)
    return _each(lambda s: regex.full_match(expression, s), input, bool)


def _replaced(input: Any, pattern: Any, rewrite: Any, everywhere: bool) -> Any:
    expression = regex.compiled(pattern)
    new = regex.parsed_rewrite(rewrite, expression.groups)
    return _each(lambda s: regex.replace(expression, new, s, everywhere), input)


def _scalar(value: Any, what: str) -> bytes:
    if np.shape(value) != ():
        raise invalid(f"{what} must be scalar, but received shape {np.shape(value)}")
    return items_of(value)[0]


def _regex_shape(op: Operation) -> list[Dims]:
    for arg, tensor in zip(op.op_def.inputs[1:], op.inputs[1:], strict=True):
        if tensor.dims not in (None, ()):
            raise ValueError(f"{arg.name} must be a scalar; it is {shape_text(tensor.dims)}.")
    return [op.inputs[0].dims]


def _static_full_match(context: Any, input: Any, *, pattern: str) -> Any:
    return _matches(input, pattern)


def _static_replace(
    context: Any, input: Any, *, pattern: str, rewrite: str, replace_global: bool
) -> Any:
    return _replaced(input, pattern, rewrite, replace_global)


def _regex_replace(
    context: Any, input: Any, pattern: Any, rewrite: Any, *, replace_global: bool
) -> Any:
    pattern, rewrite = _scalar(pattern, "Pattern"), _scalar(rewrite, "Rewrite")
    return _replaced(input, pattern, rewrite, replace_global)


define_op(
    "StaticRegexFullMatch(input: string) -> output: bool",
    attrs="pattern: string",
    shape=like_first,
    host=_static_full_match,
    gradient=NO_GRADIENT,
    traits=ELEMENTWISE,
)

define_op(
    "RegexFullMatch(input: string, pattern: string) -> output: bool",
    shape=_regex_shape,
    host=lambda context, input, pattern: _matches(input, _scalar(pattern, "Pattern")),
    gradient=NO_GRADIENT,
    traits=ELEMENTWISE,
)

define_op(
    "StaticRegexReplace(input: string) -> output: string",
    attrs="pattern: string, rewrite: string, replace_global: bool = True",
    shape=like_first,
    host=_static_replace,
    gradient=NO_GRADIENT,
    traits=ELEMENTWISE,
)

define_op(
    "RegexReplace(input: string, pattern: string, rewrite: string) -> output: string",
    attrs="replace_global: bool = True",
    shape=_regex_shape,
    host=_regex_replace,
    gradient=NO_GRADIENT,
    traits=ELEMENTWISE,
)

"""Strings from and to numbers, encodings, and buckets of hashes. All of this runs on the host."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np

from headrace.graph.shapes import num_elements_static
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core import string_hashes
from headrace.ops.core.array_util import like_first
from headrace.ops.core.checks import invalid
from headrace.ops.core.registry import define_op
from headrace.ops.core.traits import ELEMENTWISE
from headrace.ops.strings.each import NO_GRADIENT, items_of, shaped

# -- to strings ---------------------------------------------------------------------------------


def _number_format(
    kind: str, precision: int, scientific: bool, shortest: bool, width: int, fill: str
) -> str:
    """The printf format of one number."""
    is_float = kind in "fcV"
    if not is_float and (scientific or shortest):
        raise invalid("scientific and shortest format not supported for this datatype")
    if not is_float and precision >= 0:
        raise invalid("precision not supported for this datatype")
    if scientific and shortest:
        raise invalid("Cannot select both scientific and shortest notation")
    if len(fill) > 1:
        raise invalid(f'Fill string must be one or fewer characters, not "{fill}"')
    if fill not in (" ", "+", "-", "0", "#", ""):
        raise invalid(f'Fill argument not supported: "{fill}"')
    text = f"%{fill}{width}" if width > -1 else "%"
    if precision > -1:
        text += f".{precision}"
    if not is_float:
        return text + "d"
    return text + ("e" if scientific else "g" if shortest else "f")


def _as_string(
    context: Any,
    input: Any,
    *,
    precision: int,
    scientific: bool,
    shortest: bool,
    width: int,
    fill: str,
) -> Any:
    array = np.asarray(input)
    kind = "V" if array.dtype.name == "bfloat16" else array.dtype.kind
    if kind in "OSU":
        pad = f"%{fill}{width}s" if width > -1 else "%s"
        texts = [pad.encode() % s for s in items_of(array)]
        return shaped(texts, array.shape)
    form = _number_format(kind, precision, scientific, shortest, width, fill)
    items = (array.astype(np.float32) if kind == "V" else array).reshape(-1).tolist()
    if kind == "b":
        texts = [b"true" if item else b"false" for item in items]
    elif kind == "c":
        texts = [f"({form % z.real},{form % z.imag})".encode() for z in items]
    else:
        texts = [_printed(form, item) for item in items]
    return shaped(texts, array.shape)


def _printed(form: str, item: Any) -> bytes:
    if isinstance(item, float) and not np.isfinite(item):
        form = form.replace("%0", "%")  # what is no number is not filled with zeros
    text: str = form % item
    return text.encode()


_STRINGABLE = (
    "float32, float64, int32, uint8, int16, int8, int64, bfloat16, uint16, float16, uint32, "
    "uint64, complex64, complex128, bool, string"
)

define_op(
    "AsString(input: T) -> output: string",
    attrs=f"T: {{{_STRINGABLE}}}, precision: int = -1, scientific: bool = False, "
    "shortest: bool = False, width: int = -1, fill: string = ''",
    shape=like_first,
    host=_as_string,
    gradient=NO_GRADIENT,
    traits=ELEMENTWISE,
)

# -- to numbers ---------------------------------------------------------------------------------

_INTEGER = re.compile(rb"[ \t\n\v\f\r]*([+-]?[0-9]+)[ \t\n\v\f\r]*")
_FLOAT = re.compile(
    rb"[ \t\n\v\f\r]*"
    rb"([+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan))"
    rb"[ \t\n\v\f\r]*",
    re.IGNORECASE,
)
_HEXADECIMAL = re.compile(
    rb"[ \t\n\v\f\r]*([+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?)[ \t\n\v\f\r]*",
    re.IGNORECASE,
)
#: The bits of a double beyond those of a float32, and their value half way between two.
_BEYOND, _HALF_WAY = (1 << 29) - 1, 1 << 28


def _double(string: bytes) -> tuple[float, str] | None:
    """The nearest double, and the number as text."""
    found = _FLOAT.fullmatch(string)
    if found is not None:
        return float(found[1]), found[1].decode()
    found = _HEXADECIMAL.fullmatch(string)
    if found is None:
        return None
    try:
        double = float.fromhex(found[1].decode())
    except OverflowError:
        double = float("-inf" if found[1].startswith(b"-") else "inf")
    return double, str(Decimal(double))


def _single(double: float, text: str) -> Any:
    """The float32 nearest to a number whose nearest double is known."""
    bits = int(np.float64(double).view(np.int64))
    if bits & _BEYOND == _HALF_WAY and np.isfinite(double):
        # Rounding twice may go the wrong way: step off the middle to the side of the number.
        exact, middle = Decimal(text), Decimal(double)
        if exact != middle:
            double = float(np.nextafter(double, np.inf if exact > middle else -np.inf))
    return np.float32(double)


def _parser(dtype: Any) -> Callable[[bytes], Any]:
    """A function that gives the number that a string says, or None."""
    if dtype.is_floating:
        is_single = dtype.size == 4

        def parse_float(string: bytes) -> Any:
            found = _double(string)
            if found is None:
                return None
            return _single(*found) if is_single else found[0]

        return parse_float
    limits = np.iinfo(dtype.as_numpy_dtype)
    low, high = int(limits.min), int(limits.max)

    def parse_integer(string: bytes) -> Any:
        found = _INTEGER.fullmatch(string)
        value = None if found is None or len(found[1]) > 40 else int(found[1])
        return value if value is not None and low <= value <= high else None

    return parse_integer


#: Longer strings are parsed one by one.
_SHORT = 48


def _all_at_once(strings: list[bytes], dtype: Any) -> Any:
    """Numbers in plain notation as NumPy reads them; None where anything needs a closer look."""
    joined = b"".join(strings)
    # NumPy would take 1_000 for a number, and does not see zeros at the end of a string.
    if b"_" in joined or b"\0" in joined or max(map(len, strings), default=0) > _SHORT:
        return None
    wide = np.float64 if dtype.is_floating else np.int64
    try:
        numbers = np.array(strings, f"S{_SHORT}").astype(wide)
    except (ValueError, OverflowError):
        return None
    if dtype.is_integer:
        limits = np.iinfo(dtype.as_numpy_dtype)
        if ((numbers < limits.min) | (numbers > limits.max)).any():
            return None
    elif dtype.size == 4:
        bits = numbers.view(np.int64)
        for i in np.flatnonzero((bits & _BEYOND) == _HALF_WAY).tolist():
            found = _double(strings[i])
            if found is None:
                return None
            numbers[i] = _single(*found)
    return numbers.astype(dtype.as_numpy_dtype)


def _to_number(context: Any, string_tensor: Any, *, out_type: Any) -> Any:
    strings = items_of(string_tensor)
    parse = _parser(out_type)
    with np.errstate(over="ignore"):
        together = _all_at_once(strings, out_type)
        if together is not None:
            return together.reshape(np.shape(string_tensor))
        numbers = [parse(s) for s in strings]
    for number, string in zip(numbers, strings, strict=True):
        if number is None:
            shown = string.decode(errors="backslashreplace")
            raise invalid(f"StringToNumberOp could not correctly convert string: {shown}")
    return np.array(numbers, out_type.as_numpy_dtype).reshape(np.shape(string_tensor))


define_op(
    "StringToNumber(string_tensor: string) -> output: out_type",
    attrs="out_type: {float32, float64, int32, int64, uint32, uint64} = float32",
    shape=like_first,
    host=_to_number,
    gradient=NO_GRADIENT,
    traits=ELEMENTWISE,
)

# -- to buckets ---------------------------------------------------------------------------------


def _buckets(hashes: Any, strings: Any, num_buckets: int) -> Any:
    ids = hashes % np.uint64(num_buckets)
    return ids.astype(np.int64).reshape(np.shape(strings))


def _hash_bucket(context: Any, string_tensor: Any, *, num_buckets: int) -> Any:
    hashes = string_hashes.murmur_hash64(items_of(string_tensor))
    return _buckets(hashes, string_tensor, num_buckets)


def _hash_bucket_fast(context: Any, input: Any, *, num_buckets: int) -> Any:
    return _buckets(string_hashes.fingerprint64(items_of(input)), input, num_buckets)


def _hash_bucket_strong(context: Any, input: Any, *, num_buckets: int, key: Any) -> Any:
    if len(key) != 2:
        raise invalid(f"Key must have 2 elements; it has {len(key)}")
    low, high = (int(k) & (1 << 64) - 1 for k in key)
    return _buckets(string_hashes.keyed_hash(items_of(input), (low, high)), input, num_buckets)


define_op(
    "StringToHashBucket(string_tensor: string) -> output: int64",
    attrs="num_buckets: int >= 1",
    shape=like_first,
    host=_hash_bucket,
    gradient=NO_GRADIENT,
    traits=ELEMENTWISE,
)
define_op(
    "StringToHashBucketFast(input: string) -> output: int64",
    attrs="num_buckets: int >= 1",
    shape=like_first,
    host=_hash_bucket_fast,
    gradient=NO_GRADIENT,
    traits=ELEMENTWISE,
)
define_op(
    "StringToHashBucketStrong(input: string) -> output: int64",
    attrs="num_buckets: int >= 1, key: list(int)",
    shape=like_first,
    host=_hash_bucket_strong,
    gradient=NO_GRADIENT,
    traits=ELEMENTWISE,
)

# -- encodings ----------------------------------------------------------------------------------

_OUTPUTS = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}
_ERRORS = "errors: {'strict', 'replace', 'ignore'} = 'replace', replacement_char: int = 65533"


#: Encodings whose text may tell the order of its bytes by a mark at the beginning.
_MARKS = {
    "utf-16": (b"\xff\xfe", b"\xfe\xff"),
    "utf-32": (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff"),
}


def _marked(string: bytes, codec: str) -> tuple[str, int]:
    """The codec with an order of bytes, and where the text begins; by default high bytes first."""
    for mark, order in zip(_MARKS[codec], ("le", "be"), strict=True):
        if string.startswith(mark):
            return f"{codec}-{order}", len(mark)
    return f"{codec}-be", 0


def input_codec(encoding: str) -> str:
    """Python's name of an encoding.

    Raises:
        InvalidArgumentError: if it has none.
    """
    try:
        b"a".decode(encoding, "replace")
    except LookupError:
        message = f"Could not create converter for input encoding: {encoding}"
        raise invalid(message) from None
    name = encoding.lower().replace("_", "-")
    return name if name in _MARKS else encoding


def decoded(
    string: bytes, codec: str, errors: str, replacement: str, replace_controls: bool
) -> list[tuple[str, int]]:
    """The characters of encoded text, and the byte at which each begins.

    Raises:
        InvalidArgumentError: for bytes that are no text, if ``errors`` is "strict".
    """
    result: list[tuple[str, int]] = []
    at = 0
    if codec in _MARKS:
        codec, at = _marked(string, codec)
    while at < len(string):
        rest = string[at:]
        try:
            text, bad = rest.decode(codec), 0
        except UnicodeDecodeError as error:
            text, bad = rest[: error.start].decode(codec), error.end - error.start
        for char in text:
            result.append((char, at))
            at += len(char.encode(codec))
        if bad:
            if errors == "strict":
                raise invalid("Invalid formatting on input string")
            if errors == "replace":
                result.append((replacement, at))
            at += bad
    if replace_controls and errors != "strict":
        keep = errors == "replace"
        result = [
            (replacement if _is_control(c) else c, i)
            for c, i in result
            if keep or not _is_control(c)
        ]
    return result


def _is_control(char: str) -> bool:
    return char < " "


def replacement_text(code: int) -> str:
    """A replacement character.

    Raises:
        InvalidArgumentError: if it is no code point.
    """
    if not 0 <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise invalid("replacement_char out of unicode codepoint range")
    return chr(code)


def _transcode(
    context: Any,
    input: Any,
    *,
    input_encoding: str,
    output_encoding: str,
    errors: str,
    replacement_char: int,
    replace_control_characters: bool,
) -> Any:
    codec, target = input_codec(input_encoding), _OUTPUTS[output_encoding]
    replacement = replacement_text(replacement_char)

    def convert(string: bytes) -> bytes:
        pairs = decoded(string, codec, errors, replacement, replace_control_characters)
        return "".join([c for c, _ in pairs]).encode(target)

    return shaped([convert(s) for s in items_of(input)], np.shape(input))


define_op(
    "UnicodeTranscode(input: string) -> output: string",
    attrs="input_encoding: string, output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}, "
    f"{_ERRORS}, replace_control_characters: bool = False",
    shape=like_first,
    host=_transcode,
    gradient=NO_GRADIENT,
    traits=ELEMENTWISE,
)


def _decode_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    elements = num_elements_static(dims)
    count = None if elements is None else elements + 1
    return [(count,), *[(None,)] * (len(op.op_def.outputs) - 1)]


def _decode(input: Any, attrs: dict[str, Any]) -> tuple[Any, Any, Any]:
    codec = input_codec(attrs["input_encoding"])
    replacement = replacement_text(attrs["replacement_char"])
    controls = attrs["replace_control_characters"]
    rows = [decoded(s, codec, attrs["errors"], replacement, controls) for s in items_of(input)]
    splits = np.zeros(len(rows) + 1, attrs["Tsplits"].as_numpy_dtype)
    splits[1:] = np.cumsum([len(row) for row in rows])
    codes = np.array([ord(c) for row in rows for c, _ in row], np.int32)
    starts = np.array([i for row in rows for _, i in row], np.int64)
    return splits, codes, starts


def _unicode_encode(
    context: Any,
    input_values: Any,
    input_splits: Any,
    *,
    errors: str,
    output_encoding: str,
    replacement_char: int,
) -> Any:
    replacement = replacement_text(replacement_char)
    splits = np.asarray(input_splits).tolist()
    if not splits or splits[0] != 0 or splits[-1] != len(input_values) or sorted(splits) != splits:
        raise invalid("Invalid splits: they must rise from 0 to the number of values.")

    def character(code: int) -> str:
        if 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
            return chr(code)
        if errors == "strict":
            raise invalid("Code point is out of range for Unicode, or a noncharacter.")
        return replacement if errors == "replace" else ""

    texts = [character(code) for code in np.asarray(input_values).tolist()]
    rows = ["".join(texts[a:b]) for a, b in pairwise(splits)]
    return shaped([row.encode(_OUTPUTS[output_encoding]) for row in rows], (len(rows),))


def _encode_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[1].dims
    return [(None,) if not dims or dims[0] is None else (dims[0] - 1,)]


define_op(
    "UnicodeEncode(input_values: int32, input_splits: Tsplits) -> output: string",
    attrs=f"{_ERRORS}, output_encoding: {{'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}}, "
    "Tsplits: {int32, int64} = int64",
    shape=_encode_shape,
    host=_unicode_encode,
    gradient=NO_GRADIENT,
)


def _unicode_decode(context: Any, input: Any) -> Any:
    return _decode(input, context.node.attrs)[:2]


def _unicode_decode_with_offsets(context: Any, input: Any) -> Any:
    return _decode(input, context.node.attrs)


_DECODE_ATTRS = (
    f"input_encoding: string, {_ERRORS}, replace_control_characters: bool = False, "
    "Tsplits: {int32, int64} = int64"
)

define_op(
    "UnicodeDecode(input: string) -> (row_splits: Tsplits, char_values: int32)",
    attrs=_DECODE_ATTRS,
    shape=_decode_shape,
    host=_unicode_decode,
    gradient=NO_GRADIENT,
)
define_op(
    "UnicodeDecodeWithOffsets(input: string) -> "
    "(row_splits: Tsplits, char_values: int32, char_to_byte_starts: int64)",
    attrs=_DECODE_ATTRS,
    shape=_decode_shape,
    host=_unicode_decode_with_offsets,
    gradient=NO_GRADIENT,
)

"""Functions of ``tf.strings`` that give rows of different lengths: RaggedTensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.ragged.ragged_tensor import RaggedTensor
from headrace.ops.state.scopes_api import scope_or

#: From a vector of strings: the parts of all of them, and where those of each begin and end.
_Flat = Callable[[Tensor], tuple[Tensor, Tensor]]


def _input(value: Any, dtype: Any = None) -> Any:
    """A RaggedTensor as it is, anything else as a Tensor of known rank.

    Raises:
        ValueError: if the rank is not known.
    """
    if isinstance(value, RaggedTensor):
        return value
    tensor = convert_to_tensor(value, dtype, "input")
    if tensor.dims is None:
        raise ValueError("Rank of `input` must be statically known.")
    return tensor


def _each(strings: Any, parts_of: _Flat) -> Any:
    """The parts of each string: one dimension more than ``strings``; of a scalar a vector."""
    if isinstance(strings, RaggedTensor):
        return strings.with_flat_values(_each(strings.flat_values, parts_of))
    rank = len(strings.dims)
    if rank > 1:
        ragged = RaggedTensor.from_tensor(strings, ragged_rank=rank - 1)
        return ragged.with_flat_values(_each(ragged.flat_values, parts_of))
    values, splits = parts_of(raw.Reshape(strings, [-1]))
    if rank == 0:
        return values
    return RaggedTensor.from_row_splits(values, splits, validate=False)


def _splits_of(indices: Tensor, count: Any) -> Tensor:
    """Row splits from the indices of a sparse matrix in row-major order."""
    rows = raw.Squeeze(raw.Slice(indices, [0, 0], [-1, 1]), squeeze_dims=[1])
    lengths = raw.Bincount(raw.Cast(rows, DstT=dtypes.int32), count, np.zeros(0, np.int64))
    return raw.ConcatV2([np.zeros(1, np.int64), raw.Cumsum(lengths, 0)], 0)


@public("strings.bytes_split")
def bytes_split(input: Any, name: str | None = None) -> Any:
    """The bytes of each string, as strings of length 1.

    Args:
        input: strings, a Tensor of known rank or a RaggedTensor.

    Returns:
        A RaggedTensor with one dimension more; of a scalar a vector.

    Raises:
        ValueError: if the rank is not known.
    """

    def parts_of(flat: Tensor) -> tuple[Tensor, Tensor]:
        indices, values, _ = raw.StringSplit(flat, "", skip_empty=False)
        return values, _splits_of(indices, raw.Size(flat))

    with scope_or(name, "StringsByteSplit"):
        return _each(_input(input, dtypes.string), parts_of)


def ragged_split(input: Any, sep: Any, maxsplit: int, name: str | None = None) -> Any:
    """The parts of each string as ``tf.strings.split`` gives them, as a RaggedTensor."""

    def parts_of(flat: Tensor) -> tuple[Tensor, Tensor]:
        indices, values, _ = raw.StringSplitV2(flat, "" if sep is None else sep, maxsplit=maxsplit)
        return values, _splits_of(indices, raw.Size(flat))

    with scope_or(name, "StringSplit"):
        return _each(_input(input, dtypes.string), parts_of)


def ragged_reduce_join(
    inputs: RaggedTensor, axis: Any, keepdims: bool, separator: str, name: str | None = None
) -> Any:
    """``tf.reduce_join`` of a RaggedTensor: along all axes, or one after the first.

    Raises:
        NotImplementedError: for other axes, or ``keepdims``.
    """
    if keepdims:
        raise NotImplementedError("reduce_join of a RaggedTensor drops the axes: keepdims=False.")
    if axis is None:
        flat = raw.Reshape(inputs.flat_values, [-1])
        return raw.ReduceJoin(flat, np.array([0], np.int32), separator=separator, name=name)
    rank = inputs.shape.ndims
    if isinstance(axis, int) and axis < 0 and rank is not None:
        axis += rank
    if not isinstance(axis, int) or axis < 1:
        raise NotImplementedError(
            f"reduce_join of a RaggedTensor takes one axis after the first; axis is {axis}."
        )
    values = inputs.values
    if axis == 1 and not isinstance(values, RaggedTensor):
        rows, count = inputs.value_rowids(), inputs.nrows()
        return raw.UnsortedSegmentJoin(values, rows, count, separator=separator, name=name)
    if axis == 1:
        raise NotImplementedError("reduce_join of a RaggedTensor joins innermost rows only.")
    if isinstance(values, RaggedTensor):
        joined = ragged_reduce_join(values, axis - 1, False, separator, name)
    else:
        last = np.array([axis - 1], np.int32)
        joined = raw.ReduceJoin(values, last, separator=separator, name=name)
    return inputs.with_values(joined)


# -- characters ---------------------------------------------------------------------------------


def _decode(input: Any, options: dict[str, Any], parts: Callable[..., Tensor]) -> Any:
    def parts_of(flat: Tensor) -> tuple[Tensor, Tensor]:
        splits, codes, starts = raw.UnicodeDecodeWithOffsets(flat, **options)
        return parts(codes, starts), splits

    return _each(_input(input, dtypes.string), parts_of)


def _options(
    input_encoding: str, errors: str, replacement_char: int, replace_controls: bool = False
) -> dict[str, Any]:
    return {
        "input_encoding": input_encoding,
        "errors": errors,
        "replacement_char": replacement_char,
        "replace_control_characters": replace_controls,
    }


@public("strings.unicode_decode")
def unicode_decode(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """The code points of each string, int32.

    Args:
        input: strings, a Tensor of known rank or a RaggedTensor.
        input_encoding: any that Python knows.
        errors: what becomes of bytes that are no text: "replace" (by ``replacement_char``),
            "ignore" or "strict".
        replace_control_characters: treats control characters (below 32) so too.

    Returns:
        A RaggedTensor with one dimension more; of a scalar a vector.

    Raises:
        ValueError: if the rank is not known.
        InvalidArgumentError: when run, for an unknown encoding, or by "strict".
    """
    options = _options(input_encoding, errors, replacement_char, replace_control_characters)
    with scope_or(name, "UnicodeDecode"):
        return _decode(input, options, lambda codes, starts: codes)


@public("strings.unicode_decode_with_offsets")
def unicode_decode_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The code points of each string, and the byte (int64) at which each begins.

    Arguments are those of ``unicode_decode``.

    Returns:
        Two RaggedTensors with one dimension more than ``input``; of a scalar two vectors.

    Raises:
        ValueError, InvalidArgumentError: as ``unicode_decode``.
    """
    options = _options(input_encoding, errors, replacement_char, replace_control_characters)
    with scope_or(name, "UnicodeDecodeWithOffsets"):
        codes = _decode(input, options, lambda codes, starts: codes)
        return codes, _decode(input, options, lambda codes, starts: starts)


def _encoder(encoding: str, errors: str, replacement_char: int) -> Callable[..., Tensor]:
    """Makes a string of each code point."""

    def encode(codes: Tensor, starts: Tensor) -> Tensor:
        splits = raw.Range(0, raw.Add(raw.Size(codes), 1), 1)
        return raw.UnicodeEncode(
            codes,
            splits,
            output_encoding=encoding,
            errors=errors,
            replacement_char=replacement_char,
            Tsplits=dtypes.int32,
        )

    return encode


@public("strings.unicode_split")
def unicode_split(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    name: str | None = None,
) -> Any:
    """The characters of each string, as strings of their encoding.

    Arguments are those of ``unicode_decode``; the encoding is "UTF-8", "UTF-16-BE" or "UTF-32-BE".

    Returns:
        A RaggedTensor with one dimension more than ``input``; of a scalar a vector.

    Raises:
        TypeError: if ``input`` holds no strings.
        ValueError: for another encoding, or if the rank of ``input`` is not known.
        InvalidArgumentError: when run, by "strict".
    """
    with scope_or(name, "UnicodeSplit"):
        options = _options(input_encoding, errors, replacement_char)
        return _decode(input, options, _encoder(input_encoding, errors, replacement_char))


@public("strings.unicode_split_with_offsets")
def unicode_split_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The characters of each string, and the byte (int64) at which each begins.

    Arguments are those of ``unicode_split``.

    Returns:
        Two RaggedTensors with one dimension more than ``input``; of a scalar two vectors.

    Raises:
        TypeError, ValueError, InvalidArgumentError: as ``unicode_split``.
    """
    with scope_or(name, "UnicodeSplitWithOffsets"):
        options = _options(input_encoding, errors, replacement_char)
        encode = _encoder(input_encoding, errors, replacement_char)
        return _decode(input, options, encode), _decode(
            input, options, lambda codes, starts: starts
        )


@public("strings.unicode_encode")
def unicode_encode(
    input: Any,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """Strings from code points: the last dimension of ``input``.

    Args:
        input: int32, a Tensor of known rank of at least 1, or a RaggedTensor.
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: what becomes of numbers that are no code points: "replace" (by
            ``replacement_char``), "ignore" or "strict".

    Returns:
        Strings with one dimension less.

    Raises:
        ValueError: if the rank is not known or 0.
        InvalidArgumentError: when run, by "strict".
    """
    with scope_or(name, "UnicodeEncode"):
        codes = _input(input, dtypes.int32)

        def encode(values: Tensor, splits: Tensor) -> Tensor:
            return raw.UnicodeEncode(
                values,
                splits,
                output_encoding=output_encoding,
                errors=errors,
                replacement_char=replacement_char,
            )

        return _joined(codes, encode)


def _joined(codes: Any, encode: Callable[[Tensor, Tensor], Tensor]) -> Any:
    """Strings in place of the last dimension."""
    if isinstance(codes, RaggedTensor):
        if isinstance(codes.values, RaggedTensor) or len(codes.values.dims or ()) > 1:
            return codes.with_values(_joined(codes.values, encode))
        return encode(codes.values, raw.Cast(codes.row_splits, DstT=dtypes.int64))
    if codes.dims == ():
        raise ValueError("input_tensor's rank must be at least 1.")
    shape = raw.Shape(codes)
    last = len(codes.dims) - 1
    outer, width = (
        raw.Slice(shape, [0], [last]),
        raw.Cast(raw.Squeeze(raw.Slice(shape, [last], [1])), DstT=dtypes.int64),
    )
    rows = raw.Prod(raw.Cast(outer, DstT=dtypes.int64), [0])
    splits = raw.Mul(raw.Range(np.int64(0), raw.Add(rows, np.int64(1)), np.int64(1)), width)
    return raw.Reshape(encode(raw.Reshape(codes, [-1]), splits), outer)


# -- n-grams ------------------------------------------------------------------------------------


@public("strings.ngrams")
def ngrams(
    data: Any,
    ngram_width: Any,
    separator: str = " ",
    pad_values: Any = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """Every ``ngram_width`` strings that follow each other, joined.

    Args:
        data: strings, sequences in the last dimension: a Tensor of known rank of at least 1, or a
            RaggedTensor.
        ngram_width: a width, or several.
        separator: what stands between strings.
        pad_values: what is put before and behind each sequence: a text, or a pair of them.
        padding_width: how much of it, by default one less than the width, which is the most.
        preserve_short_sequences: a sequence that is too short gives one n-gram of all of it.

    Returns:
        Strings; as many dimensions as ``data``. Of a Tensor a Tensor, of a RaggedTensor one.

    Raises:
        TypeError: if ``pad_values`` are no texts.
        ValueError: if the rank is not known or 0, or a width is below 1.
    """
    left, right = _padding(pad_values, padding_width)
    widths = list(ngram_width) if isinstance(ngram_width, (list, tuple)) else [ngram_width]
    if any(width < 1 for width in widths):
        raise ValueError(f"All ngram_widths must be greater than 0. Got {ngram_width}")
    missing = 0 if pad_values is None else -1
    options = {
        "separator": separator,
        "ngram_widths": widths,
        "left_pad": left,
        "right_pad": right,
        "pad_width": missing if padding_width is None else padding_width,
        "preserve_short_sequences": preserve_short_sequences,
    }
    with scope_or(name, "StringNGrams"):
        strings = _input(data, dtypes.string)
        if isinstance(strings, RaggedTensor):
            return _ragged_ngrams(strings, options)
        if strings.dims == ():
            raise ValueError("Data must have rank>0")
        if len(strings.dims) == 1:
            splits = raw.Pack([np.int64(0), raw.Size(strings, out_type=dtypes.int64)])
            return raw.StringNGrams(strings, splits, **options)[0]
        ragged = RaggedTensor.from_tensor(strings, ragged_rank=len(strings.dims) - 1)
        grams = _ragged_ngrams(ragged, options).flat_values
        outer = raw.Slice(raw.Shape(strings), [0], [len(strings.dims) - 1])
        return raw.Reshape(grams, raw.ConcatV2([outer, [-1]], 0))


def _ragged_ngrams(ragged: RaggedTensor, options: dict[str, Any]) -> Any:
    if isinstance(ragged.values, RaggedTensor):
        return ragged.with_values(_ragged_ngrams(ragged.values, options))
    grams, splits = raw.StringNGrams(ragged.values, ragged.row_splits, **options)
    return RaggedTensor.from_row_splits(grams, splits, validate=False)


def _padding(pad_values: Any, padding_width: int | None) -> tuple[Any, Any]:
    if padding_width is not None and padding_width < 1:
        raise ValueError("padding_width must be greater than 0.")
    if padding_width is not None and pad_values is None:
        raise ValueError("pad_values must be provided if padding_width is set.")
    if pad_values is None:
        return "", ""
    pair = pad_values if isinstance(pad_values, (list, tuple)) else (pad_values, pad_values)
    if len(pair) != 2 or not all(isinstance(p, (str, bytes)) for p in pair):
        raise TypeError("pad_values must be a string, tuple of strings, or None.")
    return pair[0], pair[1]

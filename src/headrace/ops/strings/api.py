"""Public functions on strings, under ``tf`` and ``tf.strings``."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.composite import CompositeTensor
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.math.reduction_api import either, one_of
from headrace.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue


def _strings(value: Any, name: str = "input") -> Tensor:
    if isinstance(value, (Tensor, CompositeTensor)):
        return value  # type: ignore[return-value]  # an op checks the type itself
    return convert_to_tensor(value, dtypes.string, name)


@public("string_join", "strings.join")
def string_join(inputs: Any, separator: str = "", name: str | None = None) -> Tensor:
    """The strings of several tensors joined element by element.

    Args:
        inputs: a list of string tensors of one shape, or scalars.
        separator: what stands between two strings.

    Raises:
        ValueError: if the shapes do not fit.
    """
    return raw.StringJoin([_strings(x) for x in inputs], separator=separator, name=name)


@public("as_string", "strings.as_string")
def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Numbers as C's printf writes them: ``%d``, ``%f``, ``true`` and ``false``.

    Args:
        input: numbers or booleans of any shape.
        precision: digits after the point of a floating point number; -1 gives six.
        scientific: with an exponent (``%e``); ``shortest``: the shorter of both (``%g``).
        width: pads numbers to this many characters.
        fill: how to pad: "", " ", "0", "-" (on the right), "+" or "#".

    Raises:
        InvalidArgumentError: when run, for a combination that printf does not have.
    """
    return raw.AsString(
        input,
        precision=precision,
        scientific=scientific,
        shortest=shortest,
        width=width,
        fill=fill,
        name=name,
    )


@public("string_to_number", "strings.to_number")
def string_to_number(
    string_tensor: Any = None,
    out_type: Any = dtypes.float32,
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """The numbers that strings say; white space around them does not count.

    Args:
        string_tensor: strings of any shape; ``input`` is another name for it.
        out_type: float32, float64, int32, int64, uint32 or uint64.

    Raises:
        InvalidArgumentError: when run, if a string is no number, or no integer in range.
    """
    strings = either("input", input, "string_tensor", string_tensor)
    return raw.StringToNumber(_strings(strings), out_type=out_type, name=name)


@public("string_to_hash_bucket", "strings.to_hash_bucket")
def string_to_hash_bucket(
    string_tensor: Any = None, num_buckets: Any = None, name: str | None = None, input: Any = None
) -> Tensor:
    """A hash of each string modulo ``num_buckets``, int64; the first of TensorFlow's hashes.

    The strings may have any shape; the result has the same.

    Raises:
        ValueError: if ``num_buckets`` is below 1.
    """
    strings = either("input", input, "string_tensor", string_tensor)
    return raw.StringToHashBucket(_strings(strings), num_buckets=num_buckets, name=name)


@public("string_to_hash_bucket_fast", "strings.to_hash_bucket_fast")
def string_to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """FarmHash's Fingerprint64 of each string modulo ``num_buckets``, int64.

    The strings may have any shape; the result has the same.

    Raises:
        ValueError: if ``num_buckets`` is below 1.
    """
    return raw.StringToHashBucketFast(_strings(input), num_buckets=num_buckets, name=name)


@public("string_to_hash_bucket_strong", "strings.to_hash_bucket_strong")
def string_to_hash_bucket_strong(
    input: Any, num_buckets: int, key: Any, name: str | None = None
) -> Tensor:
    """SipHash-2-4 of each string modulo ``num_buckets``, int64.

    The strings may have any shape; the result has the same.

    Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012), section 2.

    Args:
        key: two integers; who does not know them cannot make strings meet in one bucket.

    Raises:
        ValueError: if ``num_buckets`` is below 1.
        InvalidArgumentError: when run, if ``key`` has not two elements.
    """
    return raw.StringToHashBucketStrong(
        _strings(input), num_buckets=num_buckets, key=key, name=name
    )


@public("strings.length")
def string_length(input: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """The length of each string, int32, in bytes or in characters (``unit="UTF8_CHAR"``).

    Takes strings of any shape and gives lengths of the same shape.

    Raises:
        TypeError: if ``input`` holds no strings.
        ValueError: if ``unit`` is neither.
    """
    return raw.StringLength(_strings(input), unit=unit, name=name)


@public("string_strip", "strings.strip")
def string_strip(input: Any, name: str | None = None) -> Tensor:
    """Each string without ASCII white space at its ends.

    Takes strings of any shape and gives strings of the same shape.

    Raises:
        TypeError: if ``input`` holds no strings.
    """
    return raw.StringStrip(_strings(input), name=name)


@public("strings.lower")
def lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Each string in lower case: ASCII letters, or all with ``encoding="utf-8"``.

    Takes strings of any shape and gives strings of the same shape.

    Raises:
        TypeError: if ``input`` holds no strings.
    """
    return raw.StringLower(_strings(input), encoding=encoding, name=name)


@public("strings.upper")
def upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Each string in upper case: ASCII letters, or all with ``encoding="utf-8"``.

    Takes strings of any shape and gives strings of the same shape.

    Raises:
        TypeError: if ``input`` holds no strings.
    """
    return raw.StringUpper(_strings(input), encoding=encoding, name=name)


@public("substr", "strings.substr")
def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """A part of each string.

    Args:
        input: strings; ``pos``: where the part begins (below 0: from the end); ``len``: its
            length, cut at the end of the string. ``pos`` and ``len`` have one shape, which
            broadcasts with that of ``input``.
        unit: what both count, "BYTE" or "UTF8_CHAR".

    Raises:
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if a position is beyond its string.
    """
    return raw.Substr(_strings(input), pos, len, unit=unit, name=name)


@public("regex_replace", "strings.regex_replace")
def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    r"""Each string with what matches ``pattern`` replaced by ``rewrite``.

    Args:
        pattern: a regular expression in RE2's syntax, a text or a scalar tensor.
        rewrite: what replaces a match; ``\0`` is the match, ``\1`` its first group.
        replace_global: all matches, or only the first.

    Raises:
        InvalidArgumentError: when run, if ``pattern`` is no regular expression.
    """
    if isinstance(pattern, (str, bytes)) and isinstance(rewrite, (str, bytes)):
        return raw.StaticRegexReplace(
            _strings(input),
            pattern=pattern,
            rewrite=rewrite,
            replace_global=replace_global,
            name=name,
        )
    return raw.RegexReplace(
        _strings(input), pattern, rewrite, replace_global=replace_global, name=name
    )


@public("strings.regex_full_match")
def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """Whether all of each string matches a regular expression in RE2's syntax, bool.

    The strings may have any shape, the result has the same; ``pattern`` is a scalar string.

    Raises:
        InvalidArgumentError: when run, if ``pattern`` is no regular expression.
    """
    if isinstance(pattern, (str, bytes)):
        return raw.StaticRegexFullMatch(_strings(input), pattern=pattern, name=name)
    return raw.RegexFullMatch(_strings(input), pattern, name=name)


@public("encode_base64", "io.encode_base64")
def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Each string in base64 for the web (``-`` and ``_``), with ``=`` at the end if ``pad``.

    Takes strings of any shape and gives strings of the same shape.

    Raises:
        TypeError: if ``input`` holds no strings.
    """
    return raw.EncodeBase64(_strings(input), pad=pad, name=name)


@public("decode_base64", "io.decode_base64")
def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """What ``encode_base64`` encoded, padded or not.

    Strings of any shape; the result has the same shape and dtype.

    Raises:
        InvalidArgumentError: when run, if a string is no base64 for the web.
    """
    return raw.DecodeBase64(_strings(input), name=name)


@public("string_split")
def string_split(
    source: Any,
    sep: Any = None,
    skip_empty: bool = True,
    delimiter: Any = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> SparseTensor | Any:
    """The parts of each string between delimiters.

    Args:
        source: strings ``[n]``.
        sep: the delimiter, " " by default; each byte of it is one, and without any each byte is a
            part. ``delimiter`` is its older name.
        skip_empty: leaves empty parts out.
        result_type: "SparseTensor" or "RaggedTensor".

    Returns:
        A SparseTensor ``[n, most parts]``, or a RaggedTensor.

    Raises:
        ValueError: if ``source`` has another rank, or for another ``result_type``.
    """
    sep = one_of("sep", sep, "delimiter", delimiter)
    if result_type not in ("SparseTensor", "RaggedTensor"):
        raise _unknown_result(result_type)
    with get_default_graph().name_scope(name or "StringSplit"):
        parts = raw.StringSplit(
            _strings(source), _strings(" " if sep is None else sep), skip_empty=skip_empty
        )
        sparse = SparseTensor(*parts)
        if result_type == "SparseTensor":
            return sparse
        from headrace.ops.ragged.ragged_tensor import RaggedTensor

        return RaggedTensor.from_sparse(sparse)


@public("strings.split")
def split(
    input: Any = None,
    sep: Any = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> Any:
    """The parts of each string, as Python's ``str.split`` gives them (``tf.strings.split``).

    Args:
        input: strings of any known rank; ``source`` is another name for it.
        sep: what stands between parts; by default white space, of any length.
        maxsplit: at most this many splits, if not below 0.
        result_type: "SparseTensor" or "RaggedTensor".

    Returns:
        A SparseTensor of one more dimension, or a RaggedTensor. Of a scalar: a SparseTensor
        ``[1, parts]``, or a Tensor ``[parts]``. A RaggedTensor is taken too.

    Raises:
        ValueError: for another ``result_type``.
    """
    from headrace.ops.ragged.ragged_tensor import RaggedTensor
    from headrace.ops.strings.ragged import ragged_split

    value = one_of("input", input, "source", source)
    separator = None if sep is None else _strings(sep)
    if result_type == "RaggedTensor" or isinstance(value, RaggedTensor):
        ragged = ragged_split(value, separator, maxsplit, name)
        return ragged if result_type == "RaggedTensor" else ragged.to_sparse()
    if result_type != "SparseTensor":
        raise _unknown_result(result_type)
    strings = _strings(value)
    with get_default_graph().name_scope(name or "StringSplit"):
        rank = 1 if strings.dims is None else len(strings.dims)
        flat = strings if rank == 1 else raw.Reshape(strings, [-1])
        parts = raw.StringSplitV2(flat, "" if sep is None else separator, maxsplit=maxsplit)
        sparse = SparseTensor(*parts)
        return _deeper(sparse, strings, rank) if rank > 1 else sparse


def _deeper(sparse: SparseTensor, strings: Tensor, rank: int) -> SparseTensor:
    """Rows of a matrix at the places that they have in a tensor of ``rank`` dimensions."""
    outer = raw.Shape(strings, out_type=dtypes.int64)
    row, column = raw.Unpack(sparse.indices, num=2, axis=1)
    places = raw.UnravelIndex(row, outer)
    indices = raw.ConcatV2([raw.Transpose(places, [1, 0]), raw.ExpandDims(column, 1)], 1)
    indices.set_shape([None, rank + 1])
    width = raw.Slice(sparse.dense_shape, [1], [1])
    return SparseTensor(indices, sparse.values, raw.ConcatV2([outer, width], 0))


def _unknown_result(result_type: Any) -> ValueError:
    return ValueError(
        f"result_type must be 'RaggedTensor' or 'SparseTensor'; it is {result_type!r}."
    )


@public("reduce_join", "strings.reduce_join")
def reduce_join(
    inputs: Any,
    axis: Any = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Strings joined along axes.

    Args:
        inputs: strings of any shape.
        axis: an axis, or several: the first of them changes fastest; all by default.
        keepdims: keeps each axis with size 1.
        separator: what stands between two strings.
        keep_dims, reduction_indices: older names of ``keepdims`` and ``axis``.

    Raises:
        ValueError: if an axis is out of range or given twice.
    """
    keep = one_of("keepdims", keepdims, "keep_dims", keep_dims)
    axis = one_of("axis", axis, "reduction_indices", reduction_indices)
    if isinstance(inputs, CompositeTensor):
        from headrace.ops.ragged.ragged_tensor import RaggedTensor
        from headrace.ops.strings.ragged import ragged_reduce_join

        if isinstance(inputs, RaggedTensor):
            result: Tensor = ragged_reduce_join(inputs, axis, bool(keep), separator, name)
            return result
    with get_default_graph().name_scope("ReduceJoin"):
        strings = _strings(inputs, "inputs")
        if axis is None:
            if strings.dims is None:
                axis = raw.Range(raw.Sub(raw.Rank(strings), 1), -1, -1)
            else:
                axis = np.arange(len(strings.dims) - 1, -1, -1, dtype=np.int32)
        return raw.ReduceJoin(
            strings,
            convert_to_tensor(axis, dtypes.int32),
            keep_dims=bool(keep),
            separator=separator,
            name=name,
        )


@public("strings.unsorted_segment_join")
def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: str = "", name: str | None = None
) -> Tensor:
    """The strings of each segment joined, in order.

    Args:
        inputs: strings ``[..., inner]``; ``segment_ids``: integers ``[...]`` in
            ``[0, num_segments)``.

    Returns:
        Strings ``[num_segments, inner]``.

    Raises:
        InvalidArgumentError: when run, if an id is out of range.
    """
    return raw.UnsortedSegmentJoin(
        _strings(inputs), segment_ids, num_segments, separator=separator, name=name
    )


@public("strings.format")
def format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Tensor:
    """A text with the values of tensors in it, a string scalar.

    Args:
        template: the text; each ``placeholder`` in it stands for one tensor.
        inputs: a tensor or a list of tensors.
        summarize: how many elements of each dimension are shown at each end; -1 shows all.

    Raises:
        TypeError: if ``template`` or ``placeholder`` is no string.
        ValueError: if there are not as many tensors as placeholders.
    """
    tensors = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    if not isinstance(template, str) or not isinstance(placeholder, str):
        raise TypeError(f"template and placeholder are strings, not {template!r}, {placeholder!r}.")
    count = template.count(placeholder)
    if count != len(tensors):
        raise ValueError(
            f"{count} placeholder(s) in template do not match {len(tensors)} tensor(s) provided "
            "as input"
        )
    return raw.StringFormat(
        tensors, template=template, placeholder=placeholder, summarize=summarize, name=name
    )


@public("edit_distance")
def edit_distance(
    hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """The Levenshtein distance of sequences: the last dimension of two SparseTensors.

    Wagner and Fischer, "The string-to-string correction problem" (1974).

    Args:
        hypothesis, truth: of one type and rank; sequences with equal other indices are compared.
        normalize: divides by the length of the true sequence.

    Returns:
        float32, one dimension less; without any truth the normalised distance is infinite, and 0
        where both are absent.

    Raises:
        TypeError: if one is no SparseTensor.
        InvalidArgumentError: when run, if ranks differ or an index is out of bounds.
    """
    for what, value in (("Hypothesis", hypothesis), ("Truth", truth)):
        if not isinstance(value, (SparseTensor, SparseTensorValue)):
            raise TypeError(f"{what} must be a SparseTensor; it is {value!r}.")
    return raw.EditDistance(
        hypothesis.indices,
        hypothesis.values,
        hypothesis.dense_shape,
        truth.indices,
        truth.values,
        truth.dense_shape,
        normalize=normalize,
        name=name,
    )


@public("strings.unicode_transcode")
def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor:
    """Each string in another encoding.

    Strings of any shape; the result has the same shape and dtype.

    Args:
        input_encoding: any that Python knows; ``output_encoding``: "UTF-8", "UTF-16-BE" or
            "UTF-32-BE".
        errors: what becomes of bytes that are no text: "replace" (by ``replacement_char``),
            "ignore" or "strict".
        replace_control_characters: treats control characters (below 32) so too.

    Raises:
        InvalidArgumentError: when run, for an unknown encoding, or by "strict".
    """
    return raw.UnicodeTranscode(
        _strings(input),
        input_encoding=input_encoding,
        output_encoding=output_encoding,
        errors=errors,
        replacement_char=replacement_char,
        replace_control_characters=replace_control_characters,
        name=name,
    )

"""Parsing Example and SequenceExample messages: ``tf.parse_example`` and its kin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.parsing.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RawFeatures,
    SparseFeature,
    VarLenFeature,
    index_keys,
    raw_features,
    with_unknown_length,
)
from headrace.ops.sparse.api import sparse_merge
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.state.scopes_api import scope_or

_EXAMPLE_FEATURES = (VarLenFeature, SparseFeature, FixedLenFeature, FixedLenSequenceFeature)
_CONTEXT_FEATURES = (VarLenFeature, FixedLenFeature)
_SEQUENCE_FEATURES = (VarLenFeature, FixedLenSequenceFeature)

Values = dict[str, Any]


@public("parse_example", "io.parse_example")
def parse_example(
    serialized: Any,
    features: Mapping[str, Any],
    name: str | None = None,
    example_names: Any = None,
) -> Values:
    """Parse a batch of serialized Example messages.

    Args:
        serialized: strings ``[batch]``.
        features: how to parse each feature, by key: `FixedLenFeature` and
            `FixedLenSequenceFeature` give dense tensors ``[batch, ...]``, `VarLenFeature` and
            `SparseFeature` SparseTensors.
        example_names: strings ``[batch]`` for the messages of errors.

    Returns:
        Tensors and SparseTensors by key.

    Raises:
        ValueError: if a feature is not well defined.
        InvalidArgumentError: when the graph runs, for a message that is malformed, lacks a feature
            without default, or has values of another type or number.
    """
    if not features:
        raise ValueError(f"Missing: features was {features}.")
    features = with_unknown_length(features)
    found = raw_features(features, _EXAMPLE_FEATURES)
    with scope_or(name, "ParseExample"):
        defaults = _dense_defaults(found)
        outputs = raw.ParseExample(
            serialized,
            _no_strings() if example_names is None else example_names,
            found.sparse_keys,
            found.dense_keys,
            defaults,
            sparse_types=found.sparse_types,
            Tdense=found.dense_types,
            dense_shapes=found.dense_shapes,
            name=name,
        )
    return _merged(features, _by_key(found, *outputs))


@public("parse_single_example", "io.parse_single_example")
def parse_single_example(
    serialized: Any,
    features: Mapping[str, Any],
    name: str | None = None,
    example_names: Any = None,
) -> Values:
    """Parse one serialized Example message.

    Like `parse_example`, but ``serialized`` is a scalar and the results have no batch dimension.

    Args:
        example_names: a scalar string for the messages of errors.

    Raises:
        ValueError: if a feature is not well defined.
        InvalidArgumentError: when the graph runs; see `parse_example`.
    """
    if not features:
        raise ValueError("Missing features.")
    if example_names is not None:
        return _parse_named_example(serialized, features, name, example_names)
    features = with_unknown_length(features)
    found = raw_features(features, _EXAMPLE_FEATURES)
    with scope_or(name, "ParseSingleExample"):
        serialized = convert_to_tensor(serialized, name="serialized")
        defaults = _dense_defaults(found)
        outputs = raw.ParseSingleExample(
            serialized,
            defaults,
            num_sparse=len(found.sparse_keys),
            sparse_keys=found.sparse_keys,
            dense_keys=found.dense_keys,
            sparse_types=found.sparse_types,
            Tdense=found.dense_types,
            dense_shapes=found.dense_shapes,
            name=name,
        )
    return _merged(features, _by_key(found, *outputs))


def _parse_named_example(
    serialized: Any, features: Mapping[str, Any], name: str | None, example_name: Any
) -> Values:
    """One message as a batch of one, whose errors give its name."""
    with scope_or(name, "ParseSingleExample"):
        batch = [
            raw.ExpandDims(_scalar(value, text), 0)
            for value, text in ((serialized, "serialized"), (example_name, "names"))
        ]
        values = parse_example(batch[0], features, "ParseExample", batch[1])
        return {key: _without_batch(value) for key, value in values.items()}


def _without_batch(value: Any) -> Any:
    if not isinstance(value, SparseTensor):
        return raw.Squeeze(value, squeeze_dims=[0])
    indices = raw.Slice(value.indices, [0, 1], [-1, -1])
    return SparseTensor(indices, value.values, raw.Slice(value.dense_shape, [1], [-1]))


@public("io.parse_sequence_example")
def parse_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[Values, Values, dict[str, Tensor]]:
    """Parse a batch of serialized SequenceExample messages.

    Args:
        serialized: strings ``[batch]``.
        context_features: how to parse each context feature: `FixedLenFeature`, `VarLenFeature`.
        sequence_features: how to parse each feature list: `FixedLenSequenceFeature` gives
            ``[batch, longest, ...]`` (shorter ones padded with zeros or empty strings),
            `VarLenFeature` SparseTensors of dense shape ``[batch, longest, most values]``.
        example_names: strings ``[batch]`` for the messages of errors.

    Returns:
        Values of the context, values of the feature lists, and lengths ``[batch]`` of the dense
        feature lists, all by key.

    Raises:
        ValueError: if a feature is not well defined.
        InvalidArgumentError: when the graph runs; see `parse_example`.
    """
    context, lists = _sequence_features(context_features, sequence_features)
    with scope_or(name, "ParseSequenceExample"):
        outputs = raw.ParseSequenceExample(
            serialized,
            _no_strings() if example_names is None else example_names,
            _context_defaults(context),
            Nfeature_list_dense=len(lists.dense_keys),
            feature_list_dense_missing_assumed_empty=list(lists.dense_defaults),
            context_sparse_keys=context.sparse_keys,
            context_dense_keys=context.dense_keys,
            feature_list_sparse_keys=lists.sparse_keys,
            feature_list_dense_keys=lists.dense_keys,
            Ncontext_dense=len(context.dense_keys),
            name=name,
            **_counts(context, lists),
        )
    lengths = dict(zip(lists.dense_keys, outputs[8], strict=True))
    return _by_key(context, *outputs[:4]), _by_key(lists, *outputs[4:8]), lengths


@public("parse_single_sequence_example", "io.parse_single_sequence_example")
def parse_single_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[Values, Values]:
    """Parse one serialized SequenceExample message.

    Like `parse_sequence_example`, without the batch dimension: dense feature lists are ``[length,
    ...]``, sparse ones have dense shape ``[length, most values]``.

    Args:
        serialized: a scalar string.
        example_name: a scalar string for the messages of errors.

    Returns:
        Values of the context and values of the feature lists, by key.

    Raises:
        ValueError: if a feature is not well defined.
        InvalidArgumentError: when the graph runs; see `parse_example`.
    """
    context, lists = _sequence_features(context_features, sequence_features)
    with scope_or(name, "ParseSingleSequenceExample"):
        outputs = raw.ParseSingleSequenceExample(
            serialized,
            _strings(list(lists.dense_defaults)),
            context.sparse_keys,
            context.dense_keys,
            lists.sparse_keys,
            lists.dense_keys,
            _context_defaults(context),
            "" if example_name is None else example_name,
            name=name,
            **_counts(context, lists),
        )
    return _by_key(context, *outputs[:4]), _by_key(lists, *outputs[4:])


def _no_strings() -> Any:
    return np.empty(0, object)


def _strings(items: Sequence[str]) -> Any:
    result = np.empty(len(items), object)
    result[:] = [item.encode() for item in items]
    return result


def _scalar(value: Any, what: str) -> Tensor:
    tensor = convert_to_tensor(value, name=what)
    if tensor.dims is not None and tensor.dims != ():
        raise ValueError(f"Input {what} must be a scalar")
    return tensor


def _by_key(found: RawFeatures, indices: Any, values: Any, shapes: Any, dense: Any) -> Values:
    """The outputs of an op by key."""
    result: Values = {}
    for key, *parts in zip(found.sparse_keys, indices, values, shapes, strict=True):
        result[key] = SparseTensor(*parts)
    return result | dict(zip(found.dense_keys, dense, strict=True))


def _merged(features: Mapping[str, Any], values: Values) -> Values:
    """The values of just these features: those of SparseFeatures are put together."""
    result = {key: value for key, value in values.items() if key in features}
    for key in sorted(features):
        feature = features[key]
        if isinstance(feature, SparseFeature):
            ids: Any = [values[k] for k in index_keys(feature)]
            if isinstance(feature.index_key, str):
                ids = ids[0]
            result[key] = sparse_merge(
                ids,
                values[feature.value_key],
                vocab_size=feature.size,
                already_sorted=feature.already_sorted,
            )
    return result


def _check_disjoint(found: RawFeatures) -> None:
    both = set(found.dense_keys) & set(found.sparse_keys)
    if both:
        raise ValueError(f"Dense and sparse keys must not intersect; intersection: {both}")


def _named(prefix: str, key: str) -> str:
    return prefix + re.sub(r"[^A-Za-z0-9_.\-/]", "_", key)


def _no_default(dtype: DType) -> Tensor:
    empty = np.empty(0, object if dtype == dtypes.string else dtype.np_dtype)
    return convert_to_tensor(empty, dtype, name="Const")


def _dense_defaults(found: RawFeatures) -> list[Any]:
    """What the op takes for each dense feature: no elements stand for no default."""
    _check_disjoint(found)
    result = []
    for key, dtype, shape in zip(
        found.dense_keys, found.dense_types, found.dense_shapes, strict=True
    ):
        value = found.dense_defaults.get(key)
        dims = shape.as_tuple
        if dims and dims[0] is None:
            if value is None:
                zero = "" if dtype == dtypes.string else 0
                result.append(convert_to_tensor(zero, dtype, name="Const"))
                continue
            name = _named("padding_", key)
            result.append(_reshaped(convert_to_tensor(value, dtype, name=name), TensorShape(())))
        else:
            result.append(_default(key, value, dtype, shape))
    return result


def _context_defaults(found: RawFeatures) -> list[Any]:
    parts = zip(found.dense_keys, found.dense_types, found.dense_shapes, strict=True)
    return [_default(k, found.dense_defaults.get(k), t, s) for k, t, s in parts]


def _default(key: str, value: Any, dtype: DType, shape: TensorShape) -> Any:
    if value is None:
        return _no_default(dtype)
    if isinstance(value, Tensor):
        return value
    return _reshaped(convert_to_tensor(value, dtype, name=_named("key_", key)), shape)


def _reshaped(value: Tensor, shape: TensorShape) -> Any:
    if value.dims == shape.as_tuple:
        return value
    return raw.Reshape(value, np.array(shape.as_list(), np.int32))


def _sequence_features(
    context_features: Mapping[str, Any] | None, sequence_features: Mapping[str, Any] | None
) -> tuple[RawFeatures, RawFeatures]:
    if not (context_features or sequence_features):
        raise ValueError("Missing features.")
    context = raw_features(context_features, _CONTEXT_FEATURES)
    lists = raw_features(sequence_features, _SEQUENCE_FEATURES)
    for found in (context, lists):
        _check_disjoint(found)
    for key, value in lists.dense_defaults.items():
        if value is not None:
            raise ValueError(f"Value feature_list_dense_defaults[{key}] must be None")
    return context, lists


def _counts(context: RawFeatures, lists: RawFeatures) -> dict[str, Any]:
    """The attributes that both ops for SequenceExample messages have."""
    return {
        "Ncontext_sparse": len(context.sparse_keys),
        "Nfeature_list_sparse": len(lists.sparse_keys),
        "context_sparse_types": context.sparse_types,
        "Tcontext_dense": context.dense_types,
        "context_dense_shapes": context.dense_shapes,
        "feature_list_sparse_types": lists.sparse_types,
        "feature_list_dense_types": lists.dense_types,
        "feature_list_dense_shapes": lists.dense_shapes,
    }


__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "SparseFeature",
    "VarLenFeature",
    "parse_example",
    "parse_single_example",
    "parse_single_sequence_example",
]

"""How a feature of Example messages is parsed: FixedLenFeature and its kin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.shapes import TensorShape
from headrace.ops.core.public import public


@public("VarLenFeature", "io.VarLenFeature")
class VarLenFeature(NamedTuple):
    """A feature with any number of values; it becomes a SparseTensor of type ``dtype``.

    >>> feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[7, 8]))
    >>> example = tf.train.Example(features=tf.train.Features(feature={"words": feature}))
    >>> parsed = tf.parse_example(
    ...     [example.SerializeToString(), b""], {"words": tf.VarLenFeature(tf.int64)}
    ... )
    >>> tf.Session().run(tf.sparse_tensor_to_dense(parsed["words"])).tolist()
    [[7, 8], [0, 0]]
    """

    dtype: Any


@public("SparseFeature", "io.SparseFeature")
class SparseFeature(NamedTuple):
    """A sparse vector (or tensor) that is written as two (or more) features.

    Attributes:
        index_key: the key of the indices, or a list of keys, one for each dimension.
        value_key: the key of the values.
        dtype: the type of the values.
        size: the size of the dimension, or a list of sizes; larger indices are not refused.
        already_sorted: the indices are sorted in every Example, so sorting is left out.

    >>> kind = tf.SparseFeature(index_key="at", value_key="x", dtype=tf.float32, size=100)
    >>> at = tf.train.Feature(int64_list=tf.train.Int64List(value=[7, 42]))
    >>> x = tf.train.Feature(float_list=tf.train.FloatList(value=[1.5, 2.5]))
    >>> example = tf.train.Example(features=tf.train.Features(feature={"at": at, "x": x}))
    >>> parsed = tf.parse_single_example(example.SerializeToString(), {"row": kind})
    >>> tf.Session().run(tf.sparse_tensor_to_dense(parsed["row"]))[42]
    np.float32(2.5)
    """

    index_key: Any
    value_key: Any
    dtype: Any
    size: Any
    already_sorted: bool = False


@public("FixedLenFeature", "io.FixedLenFeature")
class FixedLenFeature(NamedTuple):
    """A feature with as many values as ``shape`` says.

    Attributes:
        default_value: stands in where the feature is missing; without it that is an error.

    >>> feature = tf.train.Feature(float_list=tf.train.FloatList(value=[1.5, 2.5]))
    >>> example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
    >>> parsed = tf.parse_single_example(
    ...     example.SerializeToString(), {"x": tf.FixedLenFeature([2], tf.float32)}
    ... )
    >>> tf.Session().run(parsed)
    {'x': array([1.5, 2.5], dtype=float32)}
    """

    shape: Any
    dtype: Any
    default_value: Any = None


@public("FixedLenSequenceFeature", "io.FixedLenSequenceFeature")
class FixedLenSequenceFeature(NamedTuple):
    """A feature with any number of entries of one shape; shorter ones of a batch are padded.

    Attributes:
        shape: of one entry.
        allow_missing: whether a missing feature stands for no entries.
        default_value: the padding, one value; 0 or the empty string by default.

    >>> feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2, 3, 4]))
    >>> example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
    >>> kinds = {"x": tf.FixedLenSequenceFeature([2], tf.int64, allow_missing=True)}
    >>> tf.Session().run(tf.parse_single_example(example.SerializeToString(), kinds))["x"].tolist()
    [[1, 2], [3, 4]]
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


_TYPES = (dtypes.float32, dtypes.int64, dtypes.string)


class RawFeatures(NamedTuple):
    """Features as the ops take them, sorted by key."""

    sparse_keys: list[str]
    sparse_types: list[DType]
    dense_keys: list[str]
    dense_types: list[DType]
    #: By key; None as a value says that the feature may be missing.
    dense_defaults: dict[str, Any]
    dense_shapes: list[TensorShape]


def raw_features(features: Mapping[str, Any] | None, allowed: Sequence[type]) -> RawFeatures:
    """Sort features by what the ops do with them.

    Raises:
        ValueError: for a feature that is not of the ``allowed`` classes, lacks something, or
            conflicts with another.
        TypeError: for another type than float32, int64 and string.
    """
    raw = RawFeatures([], [], [], [], {}, [])
    for key in sorted(features or {}):
        feature: Any = (features or {})[key]
        if type(feature) not in _ADD:
            raise ValueError(f"Invalid feature {key}:{feature}.")
        if type(feature) not in allowed:
            raise ValueError(f"Unsupported {type(feature).__name__} {feature}.")
        if isinstance(feature, SparseFeature):
            for name in ("index_key", "value_key"):
                if not getattr(feature, name):
                    raise ValueError(f"Missing {name} for SparseFeature {feature}.")
        if not feature.dtype:
            raise ValueError(f"Missing type for feature {key}.")
        dtype = dtypes.as_dtype(feature.dtype)
        if dtype not in _TYPES:
            raise TypeError(
                f"Feature {key} has DataType {dtype.name} not in list of allowed values: float32, "
                "int64, string"
            )
        _ADD[type(feature)](raw, key, feature, dtype)
    return raw


def _add_sparse_key(raw: RawFeatures, key: str, dtype: DType) -> None:
    if key in raw.sparse_keys:
        known = raw.sparse_types[raw.sparse_keys.index(key)]
        if known != dtype:
            raise ValueError(f"Conflicting type {known} vs {dtype.name} for feature {key}.")
        return
    raw.sparse_keys.append(key)
    raw.sparse_types.append(dtype)


def _add_var_len(raw: RawFeatures, key: str, feature: VarLenFeature, dtype: DType) -> None:
    _add_sparse_key(raw, key, dtype)


def _add_sparse(raw: RawFeatures, key: str, feature: SparseFeature, dtype: DType) -> None:
    for index_key in sorted(index_keys(feature)):
        _add_sparse_key(raw, index_key, dtypes.int64)
    _add_sparse_key(raw, feature.value_key, dtype)


def index_keys(feature: SparseFeature) -> list[str]:
    """The keys of the indices of a SparseFeature."""
    keys = feature.index_key
    return [keys] if isinstance(keys, str) else list(keys)


def _add_fixed(raw: RawFeatures, key: str, feature: FixedLenFeature, dtype: DType) -> None:
    if feature.shape is None:
        raise ValueError(f"Missing shape for feature {key}.")
    shape = TensorShape(feature.shape)
    dims = shape.as_tuple
    if dims and dims[0] is None:
        raise ValueError(
            f"First dimension of shape for feature {key} unknown. Consider using "
            "FixedLenSequenceFeature."
        )
    if dims is None or None in dims:
        raise ValueError(
            f"All dimensions of shape for feature {key} need to be known but received "
            f"{feature.shape}."
        )
    _add_dense(raw, key, dtype, shape)
    if feature.default_value is not None:
        raw.dense_defaults[key] = feature.default_value


def _add_sequence(
    raw: RawFeatures, key: str, feature: FixedLenSequenceFeature, dtype: DType
) -> None:
    if feature.shape is None:
        raise ValueError(f"Missing shape for feature {key}.")
    _add_dense(raw, key, dtype, TensorShape(feature.shape))
    if feature.allow_missing:
        raw.dense_defaults[key] = None
    if feature.default_value is not None:
        raw.dense_defaults[key] = feature.default_value


def _add_dense(raw: RawFeatures, key: str, dtype: DType, shape: TensorShape) -> None:
    raw.dense_keys.append(key)
    raw.dense_types.append(dtype)
    raw.dense_shapes.append(shape)


_ADD: dict[type, Any] = {
    VarLenFeature: _add_var_len,
    SparseFeature: _add_sparse,
    FixedLenFeature: _add_fixed,
    FixedLenSequenceFeature: _add_sequence,
}


def with_unknown_length(features: Mapping[str, Any]) -> dict[str, Any]:
    """The features, with an unknown first dimension before the shapes of sequence features.

    Raises:
        ValueError: if a sequence feature may not be missing: Example messages do not tell.
    """
    result = dict(features)
    for key, feature in features.items():
        if isinstance(feature, FixedLenSequenceFeature):
            if not feature.allow_missing:
                raise ValueError(
                    "Unsupported: FixedLenSequenceFeature requires allow_missing to be True."
                )
            result[key] = feature._replace(shape=[None, *_dims_of(feature.shape)])
    return result


def _dims_of(shape: Any) -> list[Any]:
    if shape is None:
        return []
    return TensorShape(shape).as_list()

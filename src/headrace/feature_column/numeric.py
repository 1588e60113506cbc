"""Columns of numbers, and of the buckets that numbers fall into."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import headrace as tf
from headrace.feature_column.arguments import (
    checked_default,
    checked_key,
    checked_normalizer,
    checked_shape,
    numeric_dtype,
)
from headrace.feature_column.columns import CategoricalColumn, DenseColumn, IdWeightPair
from headrace.feature_column.state import StateManager
from headrace.ops.core.build import raw


@dataclass(frozen=True)
class NumericColumn(DenseColumn):
    """Made by `numeric_column`.

    >>> tf.feature_column.numeric_column("price").key
    'price'
    """

    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: tf.DType
    normalizer_fn: Any

    @property
    def name(self) -> str:
        """The name of the feature."""
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A FixedLenFeature."""
        return {self.key: tf.FixedLenFeature(self.shape, self.dtype, self.default_value)}

    def transform_feature(self, transformation_cache: Any, state_manager: StateManager) -> Any:
        """The numbers, normalised, as float32.

        Raises:
            ValueError: if the feature is sparse, or holds no numbers.
        """
        tensor = transformation_cache.get(self.key, state_manager)
        if isinstance(tensor, tf.SparseTensor):
            raise ValueError(
                "The corresponding Tensor of numerical column must be a Tensor. SparseTensor is "
                f"not supported. key: {self.key}"
            )
        if self.normalizer_fn is not None:
            tensor = tf.convert_to_tensor(self.normalizer_fn(tensor))
        if tensor.dtype == tf.string:
            raise ValueError(
                f"The feature of numeric column {self.key} holds strings, not numbers: {tensor}. "
                "Convert it with tf.string_to_number, or use a categorical column."
            )
        return tf.cast(tensor, tf.float32)

    @property
    def variable_shape(self) -> tf.TensorShape:
        """The shape of the feature of one example."""
        return tf.TensorShape(self.shape)

    def get_dense_tensor(self, transformation_cache: Any, state_manager: StateManager) -> Any:
        """The numbers."""
        return transformation_cache.get(self, state_manager)

    @property
    def parents(self) -> list[Any]:
        """The name of the feature."""
        return [self.key]


def numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: Any = None,
    dtype: Any = tf.float32,
    normalizer_fn: Any = None,
) -> NumericColumn:
    """A column of numbers.

    Args:
        key: the name of the feature: numbers ``[batch]`` or ``[batch, ...]``.
        shape: the shape of the feature of one example: an int or several.
        default_value: for examples of a file that lack the feature: a number, or numbers of
            ``shape``; None makes the feature required.
        dtype: the type in the file; the column gives float32.
        normalizer_fn: function of the whole feature, before it becomes float32.

    Raises:
        TypeError: if the shape is not of integers, ``default_value`` of another type, or
            ``normalizer_fn`` not callable.
        ValueError: if a size is not positive, ``default_value`` of another shape, or the type
            no number.

    >>> price = tf.feature_column.numeric_column("price", normalizer_fn=lambda x: x / 10.0)
    >>> layer = tf.feature_column.input_layer({"price": [10.0, 25.0]}, [price])
    >>> with tf.Session() as session:
    ...     session.run(layer).tolist()
    [[1.0], [2.5]]
    """
    sizes = checked_shape(shape, key)
    kind = numeric_dtype(dtype, key)
    default = checked_default(sizes, default_value, kind, key)
    return NumericColumn(checked_key(key), sizes, default, kind, checked_normalizer(normalizer_fn))


@dataclass(frozen=True)
class BucketizedColumn(DenseColumn, CategoricalColumn):
    """Made by `bucketized_column`.

    >>> ages = tf.feature_column.numeric_column("age")
    >>> tf.feature_column.bucketized_column(ages, [18, 65]).num_buckets
    3
    """

    source_column: NumericColumn
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:
        """``<source>_bucketized``."""
        return f"{self.source_column.name}_bucketized"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """That of the numbers."""
        return self.source_column.parse_example_spec

    def transform_feature(self, transformation_cache: Any, state_manager: StateManager) -> Any:
        """The bucket of each number, int32."""
        numbers = transformation_cache.get(self.source_column, state_manager)
        return raw.Bucketize(numbers, boundaries=self.boundaries)

    @property
    def variable_shape(self) -> tf.TensorShape:
        """The shape of the numbers, and the buckets."""
        return tf.TensorShape((*self.source_column.shape, len(self.boundaries) + 1))

    def get_dense_tensor(self, transformation_cache: Any, state_manager: StateManager) -> Any:
        """A one at the bucket of each number."""
        buckets = transformation_cache.get(self, state_manager)
        return tf.one_hot(tf.cast(buckets, tf.int64), len(self.boundaries) + 1, 1.0, 0.0)

    @property
    def num_buckets(self) -> int:
        """The buckets of all numbers of an example: each place has its own."""
        return (len(self.boundaries) + 1) * self.source_column.shape[0]

    def get_sparse_tensors(
        self, transformation_cache: Any, state_manager: StateManager
    ) -> IdWeightPair:
        """The buckets as ids; those of the second number come after those of the first.

        Raises:
            ValueError: if the feature has another number of elements than the column.
        """
        buckets = transformation_cache.get(self, state_manager)
        width = self.source_column.shape[0]
        dims = buckets.shape.as_tuple
        if dims is not None and len(dims) == 2 and dims[1] not in (None, width):
            raise ValueError(
                f"Column {self.name} takes {width} numbers for each example, but its feature has "
                f"{dims[1]}: a tensor of shape {buckets.shape}."
            )
        batch = tf.shape(buckets)[0]
        rows = tf.reshape(tf.tile(tf.expand_dims(tf.range(0, batch), 1), [1, width]), [-1])
        places = tf.tile(tf.range(0, width), [batch])
        ids = tf.reshape(buckets, [-1]) + (len(self.boundaries) + 1) * places
        indices = tf.cast(tf.stack([rows, places], axis=1), tf.int64)
        shape = tf.cast(tf.stack([batch, width]), tf.int64)
        return IdWeightPair(tf.SparseTensor(indices, ids, shape), None)

    @property
    def parents(self) -> list[Any]:
        """The column of numbers."""
        return [self.source_column]


def bucketized_column(source_column: Any, boundaries: Any) -> BucketizedColumn:
    """The bucket into which a number falls: dense (a one among zeros), or categorical.

    Args:
        source_column: a numeric column of shape ``[n]``; dense, the result has shape
            ``[batch, n, buckets]``.
        boundaries: rising numbers; bucket ``i`` has what is less than ``boundaries[i]`` and not
            less than the boundary before. NaN falls into the last one.

    Raises:
        ValueError: if the column is of another kind, or the boundaries do not rise.

    >>> age = tf.feature_column.bucketized_column(tf.feature_column.numeric_column("age"), [18, 65])
    >>> layer = tf.feature_column.input_layer({"age": [17.0, 18.0, 80.0]}, [age])
    >>> with tf.Session() as session:
    ...     session.run(layer).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    if not isinstance(source_column, NumericColumn):
        raise ValueError(
            "source_column must be a column generated with numeric_column(). "
            f"Given: {source_column}"
        )
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    if not isinstance(boundaries, (list, tuple)):
        raise ValueError("boundaries must be a sorted list.")
    if not boundaries:
        raise ValueError("boundaries must not be empty.")
    if any(not a < b for a, b in pairwise(boundaries)):
        raise ValueError("boundaries must be a sorted list.")
    return BucketizedColumn(source_column, tuple(boundaries))

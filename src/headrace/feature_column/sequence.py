"""Columns of sequences: categories for each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace as tf
from headrace.feature_column.categorical import SequenceCategoricalColumn
from headrace.feature_column.columns import (
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
    categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_list,
)

__all__ = [
    "sequence_categorical_column_with_hash_bucket",
    "sequence_categorical_column_with_identity",
    "sequence_categorical_column_with_vocabulary_file",
    "sequence_categorical_column_with_vocabulary_list",
]


def sequence_categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> SequenceCategoricalColumn:
    """`categorical_column_with_identity` for the steps of sequences ``[batch, steps]``.

    Raises:
        ValueError: as there.

    >>> tf.feature_column.sequence_categorical_column_with_identity("watches", 10).name
    'watches'
    """
    return SequenceCategoricalColumn(
        categorical_column_with_identity(key, num_buckets, default_value)
    )


def sequence_categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = tf.string
) -> SequenceCategoricalColumn:
    """`categorical_column_with_hash_bucket` for the steps of sequences ``[batch, steps]``.

    Raises:
        ValueError: as there.
    """
    return SequenceCategoricalColumn(
        categorical_column_with_hash_bucket(key, hash_bucket_size, dtype)
    )


def sequence_categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = tf.string,
) -> SequenceCategoricalColumn:
    """`categorical_column_with_vocabulary_file` for the steps of sequences ``[batch, steps]``.

    Raises:
        ValueError: as there.
    """
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_file(
            key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype
        )
    )


def sequence_categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: Any = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> SequenceCategoricalColumn:
    """`categorical_column_with_vocabulary_list` for the steps of sequences ``[batch, steps]``.

    Raises:
        ValueError: as there.
    """
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_list(
            key, vocabulary_list, dtype, default_value, num_oov_buckets
        )
    )

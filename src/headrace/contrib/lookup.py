"""``tf.contrib.lookup``: lookup tables, vocabularies and what fills them."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.lookup import vocabulary
from headrace.lookup.initializers import (
    KeyValueTensorInitializer,
    TableInitializerBase,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileInitializer,
    TextFileStringTableInitializer,
)
from headrace.lookup.tables import (
    HashTable,
    InitializableLookupTableBase,
    LookupInterface,
    MutableDenseHashTable,
    MutableHashTable,
)
from headrace.lookup.tables import InitializableLookupTableBase as InitializableLookupTableBaseV1
from headrace.lookup.vocabulary import (
    FastHashSpec,
    HasherSpec,
    IdTableWithHashBuckets,
    StrongHashSpec,
    index_table_from_file,
    index_to_string_table_from_file,
)
from headrace.ops.core.old_arguments import note

__all__ = [
    "FastHashSpec",
    "HashTable",
    "HasherSpec",
    "IdTableWithHashBuckets",
    "InitializableLookupTableBase",
    "InitializableLookupTableBaseV1",
    "KeyValueTensorInitializer",
    "LookupInterface",
    "MutableDenseHashTable",
    "MutableHashTable",
    "StrongHashSpec",
    "TableInitializerBase",
    "TextFileIdTableInitializer",
    "TextFileIndex",
    "TextFileInitializer",
    "TextFileStringTableInitializer",
    "index_table_from_file",
    "index_table_from_tensor",
    "index_to_string",
    "index_to_string_table_from_file",
    "index_to_string_table_from_tensor",
    "string_to_index",
    "string_to_index_table_from_file",
    "string_to_index_table_from_tensor",
]

_NEW_FILE = "tf.contrib.lookup.index_table_from_file"
_NEW_TENSOR = "tf.contrib.lookup.index_table_from_tensor"
_NEW_STRINGS = "tf.contrib.lookup.index_to_string_table_from_tensor"


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    dtype: Any = tf.string,
    name: str | None = None,
) -> Any:
    """A table from the elements of a 1-D tensor to their places (int64).

    Looking up keys of any shape gives places of that shape.

    Args:
        mapping: words, or integers.
        num_oov_buckets: how many ids unknown words share.
        default_value: the id of unknown words when there is no bucket.
        hasher_spec: how words go into buckets.
        dtype: the type of the keys that will be looked up.

    Raises:
        ValueError: if there is no mapping, or its type does not fit, or for a negative number of
            buckets.
        TypeError: for keys of another type.
        InvalidArgumentError: when the table is filled, if the mapping has another rank than 1.
    """
    if mapping is None:
        raise ValueError("mapping must be specified.")
    return vocabulary.index_table_from_tensor(
        mapping, num_oov_buckets, default_value, hasher_spec, dtype, name
    )


def index_to_string_table_from_tensor(
    mapping: Any, default_value: Any = "UNK", name: str | None = None
) -> Any:
    """A table from places (int64) to the elements of a 1-D string tensor.

    Looking up places of any shape gives strings of that shape.

    Raises:
        TypeError: if the mapping holds no strings.
        ValueError: if there is no mapping.
    """
    if mapping is None:
        raise ValueError("mapping must be specified.")
    return vocabulary.index_to_string_table_from_tensor(mapping, default_value, name)


def string_to_index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    name: str | None = None,
) -> Any:
    """The older form of ``index_table_from_file``, for strings.

    Looking up strings of any shape gives numbers of lines (int64) of that shape.

    Raises:
        TypeError: if the file name is no string.
        ValueError: if there is no file name, or ``vocab_size`` is below 1.
    """
    note("tf.contrib.lookup.string_to_index_table_from_file", _NEW_FILE)
    return index_table_from_file(
        vocabulary_file, num_oov_buckets, vocab_size, default_value, hasher_spec, tf.string, name
    )


def string_to_index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    name: str | None = None,
) -> Any:
    """The older form of ``index_table_from_tensor``, for strings: ``mapping`` is a vector of them.

    Raises:
        ValueError: if ``mapping`` holds no strings.
    """
    note("tf.contrib.lookup.string_to_index_table_from_tensor", _NEW_TENSOR)
    with tf.name_scope(name, "string_to_index") as scope:
        words = tf.convert_to_tensor(mapping)
    if words.dtype.base_dtype != tf.string:
        raise ValueError("string_to_index_table_from_tensor requires string.")
    return index_table_from_tensor(words, num_oov_buckets, default_value, hasher_spec, name=scope)


def string_to_index(
    tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None
) -> Any:
    """The places (int64) in ``mapping``, a vector, of the strings of ``tensor``, in its shape.

    Raises:
        TypeError: if ``tensor`` holds no strings.
        ValueError: if ``mapping`` holds none, or is missing.
    """
    note("tf.contrib.lookup.string_to_index", _NEW_TENSOR)
    table = index_table_from_tensor(mapping, default_value=default_value, name=name)
    return table.lookup(tensor)


def index_to_string(
    tensor: Any, mapping: Any, default_value: Any = "UNK", name: str | None = None
) -> Any:
    """The strings of ``mapping``, a vector, at the places (int64) in ``tensor``; the shape stays.

    Raises:
        TypeError: if ``tensor`` is not int64, or ``mapping`` holds no strings.
        ValueError: if ``mapping`` is missing.
    """
    note("tf.contrib.lookup.index_to_string", _NEW_STRINGS)
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tensor)

"""Tables from words to ids and back, with hash buckets for words that are not known."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import headrace as tf
from headrace.lookup.initializers import (
    KeyValueTensorInitializer,
    TableInitializerBase,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileStringTableInitializer,
)
from headrace.lookup.tables import LookupInterface, StaticHashTable, _like


class HasherSpec(NamedTuple):
    """How strings go into buckets: "fasthash", "legacy" or "stronghash", and a key.

    >>> tf.contrib.lookup.StrongHashSpec([1, 2])
    HasherSpec(hasher='stronghash', key=[1, 2])
    """

    hasher: str
    key: Any


FastHashSpec = HasherSpec("fasthash", None)


def StrongHashSpec(key: Any) -> HasherSpec:
    """A hash under a secret key, a vector of two integers.

    Raises:
        ValueError: if there are not two.
        TypeError: if they are no integers.
    """
    if len(key) != 2:
        raise ValueError(f"key must have size 2, got {len(key)}.")
    if not all(isinstance(k, int) for k in key):
        raise TypeError(f"Invalid key {key}. Must be unsigned integer values.")
    return HasherSpec("stronghash", key)


def _to_bucket(spec: HasherSpec) -> Any:
    if spec.hasher == "fasthash":
        return tf.string_to_hash_bucket_fast
    if spec.hasher == "legacy":
        return tf.string_to_hash_bucket
    if spec.hasher == "stronghash":
        return partial(tf.string_to_hash_bucket_strong, key=spec.key)
    raise ValueError(f"Unknown hasher {spec.hasher}")


class IdTableWithHashBuckets(LookupInterface):
    """A table whose unknown keys have ids too: the size of the table plus a hash of the key.

    Args:
        table: from strings or int64 to int64, or None for buckets only.
        num_oov_buckets: how many buckets unknown keys have.
        hasher_spec: how keys go into buckets.
        name: of the table.
        key_dtype: the type of the keys, by default that of the table.

    Raises:
        ValueError: if there is neither a table nor a bucket.
        TypeError: if types do not fit.

    >>> words = tf.lookup.KeyValueTensorInitializer(
    ...     ["cat", "dog"], tf.constant([0, 1], tf.int64)
    ... )
    >>> table = tf.contrib.lookup.HashTable(words, default_value=-1)
    >>> table = tf.contrib.lookup.IdTableWithHashBuckets(table, num_oov_buckets=1)
    >>> with tf.Session() as sess:
    ...     sess.run(table.initializer)
    ...     sess.run(table.lookup(tf.constant(["dog", "cow"]))).tolist()
    [1, 2]
    """

    def __init__(
        self,
        table: Any,
        num_oov_buckets: int,
        hasher_spec: HasherSpec = FastHashSpec,
        name: str | None = None,
        key_dtype: Any = None,
    ) -> None:
        name = name.rstrip("/") if name else name
        kind = None if key_dtype is None else tf.as_dtype(key_dtype)
        if table is None:
            if num_oov_buckets <= 0:
                raise ValueError("oov_buckets must be > 0 if no table is supplied.")
            kind = tf.string if kind is None else kind
        else:
            kind = table.key_dtype if kind is None else kind
            _check_id_table(table, kind)
        if not kind.is_integer and kind != tf.string:
            raise TypeError(f"Invalid key_dtype, expected integer or string, got {kind}.")
        if not isinstance(hasher_spec, HasherSpec):
            raise TypeError(f"hasher_spec must be of type HasherSpec, got {hasher_spec}")
        super().__init__(kind, tf.int64)
        self._table = table
        self._num_oov_buckets = num_oov_buckets
        self._hasher_spec = hasher_spec
        own = "hash_bucket" if table is None else table.name
        self._table_name = (name or own).split("/")[-1]

    @property
    def initializer(self) -> Any:
        """The operation that fills the table; without any table one that does nothing."""
        if self._table is not None:
            return self._table.initializer
        with tf.name_scope(None, "init"):
            return tf.no_op()

    @property
    def init(self) -> Any:
        """The older name of ``initializer``."""
        return self.initializer

    @property
    def resource_handle(self) -> Any:
        return None if self._table is None else self._table.resource_handle

    @property
    def name(self) -> str:
        return self._table_name

    def size(self, name: str | None = None) -> Any:
        """How many ids there are, an int64 scalar."""
        with tf.name_scope(name, f"{self.name}_Size"):
            known = tf.constant(0, tf.int64) if self._table is None else self._table.size()
            return known + self._num_oov_buckets

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The ids of ``keys``, a Tensor, SparseTensor or RaggedTensor, as such.

        Raises:
            TypeError: if the keys are of another type.
        """
        if isinstance(keys, tf.RaggedTensor):
            return keys.with_flat_values(self.lookup(keys.flat_values, name))
        if not isinstance(keys, (tf.Tensor, tf.SparseTensor)):
            keys = tf.convert_to_tensor(keys, self._key_dtype)
        self._check_keys(keys)
        values = keys.values if isinstance(keys, tf.SparseTensor) else keys
        if self._table is not None and self._table.key_dtype == tf.int64:
            values = tf.cast(values, tf.int64)
        if self._num_oov_buckets == 0:
            return _like(keys, self._table.lookup(values, name=name))
        with tf.name_scope(name, f"{self.name}_Lookup"):
            texts = values if values.dtype == tf.string else tf.as_string(values)
            ids = _to_bucket(self._hasher_spec)(
                texts, num_buckets=self._num_oov_buckets, name="hash_bucket"
            )
            if self._table is not None:
                known = self._table.lookup(values)
                is_known = tf.not_equal(known, self._table.default_value)
                ids = tf.where(is_known, known, tf.add(ids, self._table.size()))
        return _like(keys, ids)


def _check_id_table(table: Any, key_dtype: tf.DType) -> None:
    supported = (tf.int64, tf.string)
    if table.key_dtype not in supported:
        raise TypeError(
            f"Invalid key dtype, expected one of {supported}, but got {table.key_dtype}."
        )
    if table.key_dtype.is_integer != key_dtype.is_integer:
        wanted = "integer" if key_dtype.is_integer else "non-integer"
        raise TypeError(f"Invalid key dtype, expected {wanted} but got {table.key_dtype}.")
    if table.value_dtype != tf.int64:
        raise TypeError(f"Invalid value dtype, expected {tf.int64} but got {table.value_dtype}.")


class StaticVocabularyTable(IdTableWithHashBuckets):
    """``tf.lookup.StaticVocabularyTable``: IdTableWithHashBuckets on an initializer.

    Args:
        initializer: from strings or int64 to int64, or None for buckets only.
        num_oov_buckets: how many buckets unknown keys have, at least 1.
        lookup_key_dtype: the type of the keys, by default that of the initializer.
        name: of the table.

    Raises:
        ValueError: if there is no bucket.
        TypeError: if types do not fit.

    >>> words = tf.lookup.KeyValueTensorInitializer(
    ...     ["cat", "dog"], tf.constant([0, 1], tf.int64)
    ... )
    >>> table = tf.lookup.StaticVocabularyTable(words, num_oov_buckets=1)
    >>> with tf.Session() as sess:
    ...     sess.run(table.initializer)
    ...     sess.run(table.lookup(tf.constant(["dog", "cow"]))).tolist()
    [1, 2]
    """

    def __init__(
        self,
        initializer: TableInitializerBase | None,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
    ) -> None:
        if num_oov_buckets <= 0:
            raise ValueError("oov_buckets must be > 0.")
        table = None
        if initializer is not None:
            wanted = lookup_key_dtype or initializer.key_dtype
            _check_id_table(initializer, tf.as_dtype(wanted))
            table = StaticHashTable(initializer, -1)
        super().__init__(table, num_oov_buckets, FastHashSpec, name, lookup_key_dtype)


# -- functions ----------------------------------------------------------------------------------


def _check_buckets(num_oov_buckets: int) -> None:
    if num_oov_buckets < 0:
        raise ValueError(f"num_oov_buckets must be greater or equal than 0, got {num_oov_buckets}.")


def _check_file(vocabulary_file: Any, vocab_size: int | None) -> None:
    if vocabulary_file is None or (isinstance(vocabulary_file, str) and not vocabulary_file):
        raise ValueError("vocabulary_file must be specified and must not be empty.")
    if vocab_size is not None and vocab_size < 1:
        raise ValueError(
            f"vocab_size must be greater than 0, got {vocab_size}. "
            f"vocabulary_file: {vocabulary_file}"
        )


def _key_type(dtype: Any) -> tf.DType:
    kind = tf.as_dtype(dtype).base_dtype
    if not kind.is_integer and kind != tf.string:
        raise TypeError("Only integer and string keys are supported.")
    return kind


def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    key_dtype: Any = tf.string,
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """A table from the lines of a file to their numbers (int64).

    Args:
        vocabulary_file: a path or a string scalar, one word in a line.
        num_oov_buckets: how many ids unknown words share.
        vocab_size: how many lines count, by default all.
        default_value: the id of unknown words when there is no bucket.
        hasher_spec: how words go into buckets.
        key_dtype: string or an integer type.
        key_column_index, value_column_index, delimiter: see TextFileInitializer.

    Raises:
        ValueError: if there is no file name, or a number is out of range.
        TypeError: for keys of another type.
    """
    _check_file(vocabulary_file, vocab_size)
    _check_buckets(num_oov_buckets)
    kind = _key_type(key_dtype)
    with tf.name_scope(name, "string_to_index"):
        with tf.name_scope(None, "hash_table"):
            initializer = TextFileIdTableInitializer(
                vocabulary_file,
                vocab_size=vocab_size,
                key_dtype=tf.int64 if kind.is_integer else kind,
                name="table_init",
                key_column_index=key_column_index,
                value_column_index=value_column_index,
                delimiter=delimiter,
            )
            table = StaticHashTable(initializer, default_value)
        if not num_oov_buckets:
            return table
        return IdTableWithHashBuckets(table, num_oov_buckets, hasher_spec, key_dtype=kind)


def index_table_from_tensor(
    vocabulary_list: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    dtype: Any = tf.string,
    name: str | None = None,
) -> Any:
    """A table from the elements of a 1-D tensor to their places (int64).

    Args:
        vocabulary_list: words, or integers.
        dtype: the type of the keys that will be looked up.
        (others): see index_table_from_file.

    Raises:
        ValueError: if there is no list, or its type does not fit.
        TypeError: for keys of another type.
    """
    if vocabulary_list is None:
        raise ValueError("vocabulary_list must be specified.")
    _check_buckets(num_oov_buckets)
    kind = _key_type(dtype)
    with tf.name_scope(name, "string_to_index"):
        keys = tf.convert_to_tensor(vocabulary_list)
        if keys.dtype.is_integer != kind.is_integer:
            wanted = "integer" if kind.is_integer else "non-integer"
            raise ValueError(f"Expected {wanted}, got {keys.dtype}.")
        if not kind.is_integer and keys.dtype.base_dtype != kind:
            raise ValueError(f"Expected {kind}, got {keys.dtype}.")
        values = tf.cast(tf.range(tf.size(keys)), tf.int64)
        with tf.name_scope(None, "hash_table"):
            if keys.dtype.is_integer:
                keys = tf.cast(keys, tf.int64)
            initializer = KeyValueTensorInitializer(
                keys, values, keys.dtype.base_dtype, tf.int64, name="table_init"
            )
            table = StaticHashTable(initializer, default_value)
        if not num_oov_buckets:
            return table
        return IdTableWithHashBuckets(table, num_oov_buckets, hasher_spec, key_dtype=kind)


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: Any = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> StaticHashTable:
    """A table from the numbers of lines (int64) to the lines of a file.

    Looking up numbers of any shape gives strings of that shape. Arguments as for
    index_table_from_file; ``default_value`` is for numbers without a line.

    Raises:
        ValueError: if there is no file name, or ``vocab_size`` is out of range.
    """
    _check_file(vocabulary_file, vocab_size)
    with tf.name_scope(name, "index_to_string"):
        initializer = TextFileStringTableInitializer(
            vocabulary_file,
            vocab_size=vocab_size,
            name="table_init",
            key_column_index=key_column_index,
            value_column_index=value_column_index,
            delimiter=delimiter,
        )
        return StaticHashTable(initializer, default_value)


def index_to_string_table_from_tensor(
    vocabulary_list: Any, default_value: Any = "UNK", name: str | None = None
) -> StaticHashTable:
    """A table from places (int64) to the elements of a 1-D string tensor.

    Raises:
        ValueError: if there is no list.
    """
    if vocabulary_list is None:
        raise ValueError("vocabulary_list must be specified.")
    with tf.name_scope(name, "index_to_string"):
        words = tf.convert_to_tensor(vocabulary_list, tf.string)
        keys = tf.cast(tf.range(tf.size(words)), tf.int64)
        initializer = KeyValueTensorInitializer(keys, words, tf.int64, tf.string, name="table_init")
        return StaticHashTable(initializer, default_value)

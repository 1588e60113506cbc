"""What fills lookup tables: tensors, and the lines of text files."""

from __future__ import annotations

from typing import Any

import headrace as tf
from headrace.ops.core.build import raw


class TableInitializerBase:
    """What fills a table: it makes an op for that, in the collection ``TABLE_INITIALIZERS``.

    Args:
        key_dtype, value_dtype: the types of keys and values.

    >>> words = tf.lookup.KeyValueTensorInitializer(["cat"], tf.constant([7]))
    >>> isinstance(words, tf.contrib.lookup.TableInitializerBase), words.key_dtype
    (True, tf.string)
    """

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype = tf.as_dtype(key_dtype)
        self._value_dtype = tf.as_dtype(value_dtype)

    @property
    def key_dtype(self) -> tf.DType:
        """The type of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> tf.DType:
        """The type of the values."""
        return self._value_dtype

    @property
    def _shared_name(self) -> str:
        """The name under which tables with these contents share them; "" if they do not."""
        return ""

    def initialize(self, table: Any) -> Any:
        """The operation that fills ``table``."""
        raise NotImplementedError

    def _check_table(self, table: Any) -> None:
        for what, own in (("key", self._key_dtype), ("value", self._value_dtype)):
            wanted = getattr(table, f"{what}_dtype")
            if own.base_dtype != wanted:
                raise TypeError(f"Invalid {what} dtype, expected {wanted} but got {own}.")


class KeyValueTensorInitializer(TableInitializerBase):
    """Fills a table with the elements of two tensors.

    Args:
        keys, values: of one shape.
        key_dtype, value_dtype: their types, by default those they have.
        name: of the name scope of the ops, by default "key_value_init".

    >>> words = tf.lookup.KeyValueTensorInitializer(["cat", "dog"], tf.constant([7, 8]))
    >>> table = tf.lookup.StaticHashTable(words, default_value=-1)
    >>> with tf.Session() as sess:
    ...     sess.run(tf.tables_initializer())
    ...     sess.run(table.lookup(tf.constant(["dog", "cow"]))).tolist()
    [8, -1]
    """

    def __init__(
        self,
        keys: Any,
        values: Any,
        key_dtype: Any = None,
        value_dtype: Any = None,
        name: str | None = None,
    ) -> None:
        with tf.init_scope():
            self._keys = tf.convert_to_tensor(keys, key_dtype, name="keys")
            self._values = tf.convert_to_tensor(values, value_dtype, name="values")
        self._name = name if name is not None else "key_value_init"
        super().__init__(self._keys.dtype, self._values.dtype)

    def initialize(self, table: Any) -> Any:
        """The operation that fills ``table``.

        Raises:
            TypeError: if the types are not those of the table.
        """
        self._check_table(table)
        with tf.name_scope(self._name), tf.colocate_with(table.resource_handle):
            init_op = raw.LookupTableImportV2(table.resource_handle, self._keys, self._values)
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, init_op)
        return init_op


class TextFileIndex:
    """Where a key or value is, when it is in no column: the line itself, or its number.

    >>> with open("words.txt", "w") as file:
    ...     for word in ("cat", "dog"):
    ...         print(word, file=file)
    >>> index = tf.lookup.TextFileIndex
    >>> words = tf.lookup.TextFileInitializer(
    ...     "words.txt", tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    ... )
    >>> table = tf.lookup.StaticHashTable(words, default_value=-1)
    >>> with tf.Session() as sess:
    ...     sess.run(table.initializer)
    ...     sess.run(table.lookup(tf.constant(["dog"]))).tolist()
    [1]
    """

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer(TableInitializerBase):
    """Fills a table with the lines of a text file.

    Args:
        filename: a path, or a string scalar; a constant is also put into ``ASSET_FILEPATHS``.
        key_dtype, value_dtype: the types of keys and values.
        key_index, value_index: the column of each, TextFileIndex.WHOLE_LINE or LINE_NUMBER.
        vocab_size: how many lines count, by default all.
        delimiter: the byte between columns.
        name: of the name scope of the ops, by default "text_file_init".

    Raises:
        ValueError: if there is no file name, or types and indices do not fit.

    >>> with open("colours.csv", "w") as file:
    ...     for line in ("red,3", "blue,4"):
    ...         print(line, file=file)
    >>> columns = tf.lookup.TextFileInitializer(
    ...     "colours.csv", tf.string, 0, tf.int64, 1, delimiter=","
    ... )
    >>> table = tf.lookup.StaticHashTable(columns, default_value=-1)
    >>> with tf.Session() as sess:
    ...     sess.run(table.initializer)
    ...     sess.run(table.lookup(tf.constant(["blue"]))).tolist()
    [4]
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
    ) -> None:
        if not isinstance(filename, tf.Tensor) and not filename:
            raise ValueError(f"Filename required for {name}.")
        super().__init__(key_dtype, value_dtype)
        _check_index("key", key_index, self._key_dtype)
        _check_index("value", value_index, self._value_dtype)
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError(f"Invalid vocab_size {vocab_size}.")
        self._filename = filename
        self._key_index = key_index
        self._value_index = value_index
        self._vocab_size = vocab_size
        self._delimiter = delimiter
        self._name = name

    def initialize(self, table: Any) -> Any:
        """The operation that fills ``table``.

        Raises:
            TypeError: if the types are not those of the table.
        """
        self._check_table(table)
        with tf.name_scope(self._name, "text_file_init"), tf.colocate_with(table.resource_handle):
            filename = tf.convert_to_tensor(self._filename, tf.string, name="asset_filepath")
            init_op = raw.InitializeTableFromTextFileV2(
                table.resource_handle,
                filename,
                key_index=self._key_index,
                value_index=self._value_index,
                vocab_size=-1 if self._vocab_size is None else self._vocab_size,
                delimiter=self._delimiter,
            )
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, init_op)
        if filename.op.type == "Const":
            tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, filename)
        return init_op

    @property
    def _shared_name(self) -> str:
        size = f"_{self._vocab_size}" if self._vocab_size else ""
        return f"hash_table_{self._filename}{size}_{self._key_index}_{self._value_index}"


def _check_index(what: str, index: int, dtype: tf.DType) -> None:
    """Whether a key or value of a type can be there.

    Raises:
        ValueError: if it cannot.
    """
    if index < -2:
        raise ValueError(f"Invalid {what} index {index}.")
    name = f"Signature mismatch. {what.capitalize()}s must be"
    if index == TextFileIndex.LINE_NUMBER and dtype != tf.int64:
        raise ValueError(f"{name} dtype {tf.int64}, got {dtype}.")
    if index == TextFileIndex.WHOLE_LINE and dtype != tf.string:
        if what == "value":
            raise ValueError(f"{name} dtype {tf.string}, got {dtype}.")
        if not dtype.is_integer:
            raise ValueError(f"{name} integer or string, got {dtype}.")


class TextFileStringTableInitializer(TextFileInitializer):
    """From the number of a line (int64) to the line; arguments as for TextFileInitializer.

    >>> with open("words.txt", "w") as file:
    ...     for word in ("cat", "dog"):
    ...         print(word, file=file)
    >>> lines = tf.contrib.lookup.TextFileStringTableInitializer("words.txt")
    >>> table = tf.contrib.lookup.HashTable(lines, default_value="UNKNOWN")
    >>> with tf.Session() as sess:
    ...     sess.run(table.initializer)
    ...     sess.run(table.lookup(tf.constant([1, 5], tf.int64))).tolist()
    [b'dog', b'UNKNOWN']
    """

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.LINE_NUMBER,
        value_column_index: int = TextFileIndex.WHOLE_LINE,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str = "text_file_string_table_init",
    ) -> None:
        super().__init__(
            filename,
            tf.int64,
            key_column_index,
            tf.string,
            value_column_index,
            vocab_size=vocab_size,
            delimiter=delimiter,
            name=name,
        )


class TextFileIdTableInitializer(TextFileInitializer):
    """From a line to its number (int64); arguments as for TextFileInitializer.

    >>> with open("words.txt", "w") as file:
    ...     for word in ("cat", "dog"):
    ...         print(word, file=file)
    >>> lines = tf.contrib.lookup.TextFileIdTableInitializer("words.txt")
    >>> table = tf.contrib.lookup.HashTable(lines, default_value=-1)
    >>> with tf.Session() as sess:
    ...     sess.run(table.initializer)
    ...     sess.run(table.lookup(tf.constant(["dog", "cow"]))).tolist()
    [1, -1]
    """

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.WHOLE_LINE,
        value_column_index: int = TextFileIndex.LINE_NUMBER,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str = "text_file_id_table_init",
        key_dtype: Any = tf.string,
    ) -> None:
        super().__init__(
            filename,
            key_dtype,
            key_column_index,
            tf.int64,
            value_column_index,
            vocab_size=vocab_size,
            delimiter=delimiter,
            name=name,
        )

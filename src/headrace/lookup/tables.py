"""The classes of lookup tables: what ``tf.lookup`` and ``tf.contrib.lookup`` have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as tf
from headrace.lookup.initializers import TableInitializerBase
from headrace.ops.core.build import raw
from headrace.train.saveable import SaveableObject, SaveSpec


class LookupInterface:
    """What every lookup table has.

    Args:
        key_dtype, value_dtype: the types of keys and values.

    >>> table = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, default_value=-1)
    >>> isinstance(table, tf.contrib.lookup.LookupInterface), table.key_dtype, table.value_dtype
    (True, tf.string, tf.int64)
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
    def name(self) -> Any:
        """The name of the table."""
        raise NotImplementedError

    @property
    def resource_handle(self) -> Any:
        """The handle of the table."""
        raise NotImplementedError

    def size(self, name: str | None = None) -> Any:
        """How many entries there are, an int64 scalar."""
        raise NotImplementedError

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of ``keys``."""
        raise NotImplementedError

    def _check_keys(self, keys: Any) -> None:
        if keys.dtype.base_dtype != self._key_dtype:
            raise TypeError(
                f"Signature mismatch. Keys must be dtype {self._key_dtype}, got {keys.dtype}."
            )


def _short_name(handle: Any) -> str:
    return str(handle.op.name).split("/")[-1]


class InitializableLookupTableBase(LookupInterface):
    """A table that an initializer fills once, from ``tf.tables_initializer()``.

    Args:
        default_value: what keys that are not there give, a scalar.
        initializer: makes the op that fills the table.

    Raises:
        ValueError: if the default value is no scalar.

    >>> words = tf.lookup.KeyValueTensorInitializer(["cat"], tf.constant([7]))
    >>> table = tf.lookup.StaticHashTable(words, default_value=-1)
    >>> isinstance(table, tf.contrib.lookup.InitializableLookupTableBase)
    True
    >>> tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS) == [table.initializer]
    True
    """

    def __init__(self, default_value: Any, initializer: TableInitializerBase) -> None:
        super().__init__(initializer.key_dtype, initializer.value_dtype)
        self._default_value = tf.convert_to_tensor(default_value, self._value_dtype)
        self._default_value.shape.assert_is_compatible_with(tf.TensorShape([]))
        self._initializer = initializer
        with tf.init_scope():
            self._resource_handle = self._create_resource()
            self._init_op = initializer.initialize(self)

    def _create_resource(self) -> Any:
        raise NotImplementedError

    @property
    def default_value(self) -> Any:
        """What keys that are not there give."""
        return self._default_value

    @property
    def resource_handle(self) -> Any:
        return self._resource_handle

    @property
    def initializer(self) -> Any:
        """The operation that fills the table."""
        return self._init_op

    @property
    def init(self) -> Any:
        """The older name of ``initializer``."""
        return self._init_op

    @property
    def name(self) -> str:
        return _short_name(self._resource_handle)

    def size(self, name: str | None = None) -> Any:
        with tf.name_scope(name, f"{self.name}_Size"), tf.colocate_with(self._resource_handle):
            return raw.LookupTableSizeV2(self._resource_handle)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of ``keys``, a Tensor, SparseTensor or RaggedTensor, as such.

        Raises:
            TypeError: if the keys are of another type.
            FailedPreconditionError: when run, if the table has not been initialized.
        """
        if isinstance(keys, tf.RaggedTensor):
            return keys.with_flat_values(self.lookup(keys.flat_values, name))
        if not isinstance(keys, (tf.Tensor, tf.SparseTensor)):
            keys = tf.convert_to_tensor(keys, self._key_dtype)
        self._check_keys(keys)
        places = keys.values if isinstance(keys, tf.SparseTensor) else keys
        with tf.name_scope(name, f"{self.name}_Lookup"), tf.colocate_with(self._resource_handle):
            values = raw.LookupTableFindV2(self._resource_handle, places, self._default_value)
        return _like(keys, values)

    def export(self, name: str | None = None) -> tuple[Any, Any]:
        """All keys and all values, in one order."""
        with tf.name_scope(name, f"{self.name}_Export"), tf.colocate_with(self._resource_handle):
            return raw.LookupTableExportV2(
                self._resource_handle, Tkeys=self._key_dtype, Tvalues=self._value_dtype
            )


def _like(keys: Any, values: Any) -> Any:
    """Values in the places of keys."""
    if isinstance(keys, tf.SparseTensor):
        return tf.SparseTensor(keys.indices, values, keys.dense_shape)
    return values


class HashTable(InitializableLookupTableBase):
    """A table that never changes once it has been filled.

    Args:
        initializer: KeyValueTensorInitializer, TextFileInitializer or another.
        default_value: what keys that are not there give.
        shared_name: tables of one shared name are one.
        name: of the op that makes the table, by default "hash_table".

    >>> import headrace as tf
    >>> table = tf.contrib.lookup.HashTable(
    ...     tf.contrib.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1)
    >>> with tf.Session() as session:
    ...     session.run(tf.tables_initializer())
    ...     session.run(table.lookup(tf.constant(["b", "c"])))
    array([ 2, -1], dtype=int32)
    """

    def __init__(
        self,
        initializer: TableInitializerBase,
        default_value: Any,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        self._shared_name = shared_name
        self._name = name or "hash_table"
        super().__init__(default_value, initializer)

    def _create_resource(self) -> Any:
        return raw.HashTableV2(
            shared_name=self._shared_name,
            container=tf.get_default_graph()._container,
            key_dtype=self._key_dtype,
            value_dtype=self._value_dtype,
            name=self._name,
        )


class StaticHashTable(HashTable):
    """``tf.lookup.StaticHashTable``: a HashTable; tables of one file share their contents.

    >>> words = tf.lookup.KeyValueTensorInitializer(tf.constant([1, 2]), ["one", "two"])
    >>> table = tf.lookup.StaticHashTable(words, default_value="many")
    >>> with tf.Session() as sess:
    ...     sess.run(table.initializer)
    ...     sess.run(table.lookup(tf.constant([2, 5]))).tolist()
    [b'two', b'many']
    """

    def __init__(
        self, initializer: TableInitializerBase, default_value: Any, name: str | None = None
    ) -> None:
        super().__init__(initializer, default_value, initializer._shared_name, name)


# -- tables that change -------------------------------------------------------------------------


class _TableSaveable(SaveableObject):
    """Saves a table as two tensors, its keys and its values."""

    def __init__(self, table: MutableHashTable, name: str) -> None:
        keys, values = table.export()
        super().__init__(
            table,
            [SaveSpec(keys, "", f"{name}-keys"), SaveSpec(values, "", f"{name}-values")],
            name,
        )

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        with tf.name_scope(None, f"{self.name}_table_restore"):
            return raw.LookupTableImportV2(self.op.resource_handle, *restored_tensors)


class MutableHashTable(LookupInterface):
    """A table that steps may change; a saver saves it with the variables.

    Args:
        key_dtype, value_dtype: the types of keys and values.
        default_value: what keys that are not there give; its shape is that of all values.
        shared_name: tables of one shared name are one.
        name: of the op that makes the table, and of the table in checkpoints (unless another table
            has this name there: then it is that of the op, which is unique).
        checkpoint: whether savers save it.

    >>> table = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, default_value=-1)
    >>> insert = table.insert(tf.constant(["cat", "dog"]), tf.constant([1, 2], tf.int64))
    >>> with tf.Session() as sess:
    ...     sess.run(insert)
    ...     sess.run(table.lookup(tf.constant(["dog", "cow"]))).tolist()
    [2, -1]
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        shared_name: str | None = None,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
    ) -> None:
        super().__init__(key_dtype, value_dtype)
        self._default_value = tf.convert_to_tensor(default_value, self._value_dtype)
        self._shared_name = shared_name
        self._checkpoint = checkpoint
        self._name = name
        self._resource_handle = self._create_resource()
        if checkpoint:
            others = tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS)
            if name in [saveable.name for saveable in others]:
                name = self._resource_handle.op.name
            tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, _TableSaveable(self, name))

    def _common(self) -> dict[str, Any]:
        return {
            "shared_name": self._shared_name,
            "container": tf.get_default_graph()._container,
            "use_node_name_sharing": self._checkpoint and self._shared_name is None,
            "key_dtype": self._key_dtype,
            "value_dtype": self._value_dtype,
            "name": self._name,
        }

    def _create_resource(self) -> Any:
        if self._default_value.dims == ():
            return raw.MutableHashTableV2(**self._common())
        shape = self._default_value.shape
        return raw.MutableHashTableOfTensorsV2(value_shape=shape, **self._common())

    @property
    def resource_handle(self) -> Any:
        return self._resource_handle

    @property
    def name(self) -> str:
        return _short_name(self._resource_handle)

    def size(self, name: str | None = None) -> Any:
        with tf.name_scope(name, f"{self.name}_Size"), tf.colocate_with(self._resource_handle):
            return raw.LookupTableSizeV2(self._resource_handle)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of ``keys``, of shape ``keys.shape + value shape``."""
        if isinstance(keys, tf.RaggedTensor):
            return keys.with_flat_values(self.lookup(keys.flat_values, name))
        with tf.name_scope(name, f"{self.name}_lookup_table_find"):
            keys = tf.convert_to_tensor(keys, self._key_dtype, name="keys")
            with tf.colocate_with(self._resource_handle):
                return raw.LookupTableFindV2(self._resource_handle, keys, self._default_value)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Any:
        """An operation that adds entries, or replaces their values."""
        with tf.name_scope(name, f"{self.name}_lookup_table_insert"):
            keys = tf.convert_to_tensor(keys, self._key_dtype, name="keys")
            values = tf.convert_to_tensor(values, self._value_dtype, name="values")
            with tf.colocate_with(self._resource_handle):
                return raw.LookupTableInsertV2(self._resource_handle, keys, values)

    def remove(self, keys: Any, name: str | None = None) -> Any:
        """An operation that drops entries.

        Raises:
            TypeError: if the keys are of another type.
        """
        if not isinstance(keys, tf.Tensor):
            keys = tf.convert_to_tensor(keys, self._key_dtype)
        self._check_keys(keys)
        with (
            tf.name_scope(name, f"{self.name}_lookup_table_remove"),
            tf.colocate_with(self._resource_handle),
        ):
            return raw.LookupTableRemoveV2(self._resource_handle, keys)

    def export(self, name: str | None = None) -> tuple[Any, Any]:
        """All keys and all values, in one order."""
        with (
            tf.name_scope(name, f"{self.name}_lookup_table_export_values"),
            tf.colocate_with(self._resource_handle),
        ):
            return raw.LookupTableExportV2(
                self._resource_handle, Tkeys=self._key_dtype, Tvalues=self._value_dtype
            )


def _unlikely_key(dtype: tf.DType, shape: Any) -> Any:
    if dtype == tf.string:
        return np.full(shape.as_list(), "\0deleted key", object)
    kind = dtype.as_numpy_dtype
    least = np.finfo(kind).min if dtype.is_floating else np.iinfo(kind).min + 1
    return np.full(shape.as_list(), least, kind)


class MutableDenseHashTable(MutableHashTable):
    """A MutableHashTable whose keys may be tensors too; two keys are reserved.

    Args:
        empty_key: a key that no entry has; its shape is that of all keys.
        deleted_key: another one; without it a key is chosen that programs hardly have.
        initial_num_buckets: a power of 2; only graph files use it.
        (others): see MutableHashTable.

    >>> table = tf.contrib.lookup.MutableDenseHashTable(
    ...     tf.int64, tf.float32, default_value=0.0, empty_key=-1, deleted_key=-2
    ... )
    >>> insert = table.insert(tf.constant([3, 4], tf.int64), tf.constant([0.5, 1.5]))
    >>> with tf.Session() as sess:
    ...     sess.run(insert)
    ...     sess.run(table.lookup(tf.constant([4, 5], tf.int64))).tolist()
    [1.5, 0.0]
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any = None,
        initial_num_buckets: int | None = None,
        shared_name: str | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
    ) -> None:
        kind = tf.as_dtype(key_dtype)
        self._empty_key = tf.convert_to_tensor(empty_key, kind, name="empty_key")
        if deleted_key is None:
            deleted_key = _unlikely_key(kind, self._empty_key.shape)
        self._deleted_key = tf.convert_to_tensor(deleted_key, kind, name="deleted_key")
        self._initial_num_buckets = initial_num_buckets
        super().__init__(kind, value_dtype, default_value, shared_name, name, checkpoint)

    def _create_resource(self) -> Any:
        return raw.MutableDenseHashTableV2(
            self._empty_key,
            self._deleted_key,
            value_shape=self._default_value.shape,
            initial_num_buckets=self._initial_num_buckets,
            **self._common(),
        )

    def insert_or_assign(self, keys: Any, values: Any, name: str | None = None) -> Any:
        """The same as ``insert``."""
        return self.insert(keys, values, name)

    def erase(self, keys: Any, name: str | None = None) -> Any:
        """The same as ``remove``."""
        return self.remove(keys, name)

"""Tables of embeddings that no longer grow, as graphs that TensorFlow serves, too."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as tf
from headrace.lookup.initializers import KeyValueTensorInitializer
from headrace.lookup.tables import StaticHashTable


class FrozenEmbeddingTable:
    """What a `tf.EmbeddingTable` has become: a hash table from keys to places, and rows.

    It takes the place of the table in a graph that is to be served: `tf.nn.embedding_lookup` and
    its kin take it. Its operations are TensorFlow's, so a SavedModel or a frozen graph with it
    loads wherever these are known. Like every lookup table it is filled by
    ``tf.tables_initializer()``.

    Args:
        keys: distinct integers ``[n]``, as ``export()`` of a table gives them.
        rows: ``[n, dim]``.
        default_row: what other keys give, ``[dim]`` or a scalar; by default zeros.
        constant: whether keys and rows are constants of the graph. If not, they are variables,
            which have no limit of 2 GB; ``load`` gives them their values.
        name: by default "frozen_embedding_table".

    Raises:
        ValueError: if there are not as many rows as keys, or a key comes twice.
        TypeError: if keys are no integers, or rows no floats.

    >>> table = tf.lookup.FrozenEmbeddingTable([2**62, -5], [[1.0, 2.0], [3.0, 4.0]])
    >>> rows = tf.nn.embedding_lookup(table, [-5, 7, 2**62])
    >>> with tf.Session() as sess:
    ...     sess.run(tf.tables_initializer())
    ...     sess.run(rows).tolist()
    [[3.0, 4.0], [0.0, 0.0], [1.0, 2.0]]
    """

    #: All integers are keys: what looks up ids asks for it.
    any_key = True

    def __init__(
        self,
        keys: Any,
        rows: Any,
        default_row: Any = None,
        constant: bool = True,
        name: str | None = None,
    ) -> None:
        wide, values = _checked(keys, rows)
        count, width = map(int, values.shape)
        last = np.zeros(width) if default_row is None else np.asarray(default_row)
        if last.shape not in ((), (width,)):
            raise ValueError(f"A row has shape [{width}]; the default row has {list(last.shape)}.")
        # The default row comes last: keys that are not there are at its place.
        self._values: list[Any] = [wide, np.empty((count + 1, width), values.dtype)]
        self._values[1][:count], self._values[1][count] = values, last
        self._dim: int = width
        with tf.name_scope(name or "frozen_embedding_table"), tf.init_scope():
            held: list[Any] = [tf.constant(v) if constant else _variable(v) for v in self._values]
            self._variables = [] if constant else held
            if constant:
                self._values = []
            known, self._rows = (v if constant else v.read_value() for v in held)
            places = KeyValueTensorInitializer(known, tf.range(count, dtype=tf.int64))
            self._table = StaticHashTable(places, count)

    @property
    def initializer(self) -> Any:
        """The operation that fills the table; ``tf.tables_initializer()`` runs it."""
        return self._table.initializer

    @property
    def dtype(self) -> Any:
        """The type of the rows."""
        return self._rows.dtype

    @property
    def shape(self) -> Any:
        """``[None, dim]``."""
        return tf.TensorShape([None, self._dim])

    @property
    def dim(self) -> int:
        """Elements of a row."""
        return self._dim

    def load(self, session: Any) -> None:
        """Gives variables their keys and rows, and fills the table. Constants need it not."""
        for variable, value in zip(self._variables, self._values, strict=bool(self._variables)):
            variable.load(value, session)
        session.run(self.initializer)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The rows of ``keys``: ``[*keys.shape, dim]``. Unknown keys give the default row."""
        with tf.name_scope(name, "lookup"):
            wide = tf.cast(tf.convert_to_tensor(keys), tf.int64)
            return tf.gather(self._rows, self._table.lookup(wide))

    def sparse_read(self, indices: Any, name: str | None = None) -> Any:
        """``lookup(indices)``, under the name that variables have for it."""
        return self.lookup(indices, name)


def _checked(keys: Any, rows: Any) -> tuple[Any, Any]:
    known, values = np.asarray(keys), np.asarray(rows)
    if known.dtype.kind not in "iu" and known.size:
        raise TypeError(f"Keys of a table are integers, not {known.dtype}.")
    if not tf.as_dtype(values.dtype).is_floating:
        raise TypeError(f"A table has floating-point numbers, not {values.dtype}.")
    if known.ndim != 1 or values.ndim != 2 or len(known) != len(values):
        raise ValueError(
            "There is one row for each key: keys [n] and rows [n, dim]; they have the shapes "
            f"{list(known.shape)} and {list(values.shape)}."
        )
    wide = known.astype(np.int64)
    distinct, times = np.unique(wide, return_counts=True)
    if len(distinct) < len(wide):
        raise ValueError(f"Key {distinct[times > 1][0]} comes more than once.")
    return wide, values


def _variable(value: Any) -> Any:
    """A variable that ``load`` gives its value: in a graph it would be a constant."""
    return tf.Variable(tf.zeros(value.shape, value.dtype), trainable=False, use_resource=True)

"""Datasets of databases."""

from __future__ import annotations

from typing import Any

from headrace.data import structure as nested
from headrace.data.dataset import Dataset
from headrace.data.structure import flat_attrs
from headrace.graph import dtypes
from headrace.ops.core.build import convert_to_tensor, raw


class SqlDataset(Dataset):
    """The rows that a query gives, each a tuple of scalars.

    Args:
        driver_name: "sqlite", of Python's standard library.
        data_source_name: the file of the database, which must exist.
        query: what is run when an iterator begins.
        output_types: of the columns, a tuple: string, bool, float64 or integers. NULL is the
            empty string, False or 0.

    Raises:
        InvalidArgumentError: when the graph runs, if the number of columns or a value does not fit.
        UnknownError: when the graph runs, if the database cannot be read, or the query fails.

    >>> import sqlite3
    >>> import headrace as tf
    >>> with sqlite3.connect("people.db") as database:
    ...     _ = database.execute("CREATE TABLE people (name TEXT, age INTEGER)")
    ...     _ = database.execute("INSERT INTO people VALUES ('Ada', 36)")
    >>> dataset = tf.data.experimental.SqlDataset(
    ...     "sqlite", "people.db", "SELECT name, age FROM people", (tf.string, tf.int32)
    ... )
    >>> name, age = dataset.make_one_shot_iterator().get_next()
    >>> with tf.Session() as sess:
    ...     found = sess.run([name, age])
    >>> found[0], int(found[1])
    (b'Ada', 36)
    """

    def __init__(
        self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any
    ) -> None:
        structure = nested.of_types(output_types, nested.map_leaves(lambda _: [], output_types))
        names = (driver_name, data_source_name, query)
        texts = [convert_to_tensor(name, dtypes.string) for name in names]
        super().__init__(raw.SqlDataset(*texts, **flat_attrs(structure)), structure)


__all__ = ["SqlDataset"]

"""Tables of embeddings in parts, each of which may be on a task of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.basic import group
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.embeddings.read_only import read_only
from headrace.ops.embeddings.tables_api import (
    EmbeddingTable,
    TableOptions,
    as_keys,
    collect,
    restored,
    saved,
)


@public("PartitionedEmbeddingTable")
class PartitionedEmbeddingTable:
    """A table of embeddings in parts: a key's hash says which part has its row.

    Under `tf.train.replica_device_setter` the parts are on the parameter servers, in turn. The
    distinct keys of a lookup travel to their parts, and rows come back; gradients are summed by key
    before they travel. A checkpoint can be restored into another number of parts.

    Args:
        num_parts: how many parts.
        (others): as those of `tf.EmbeddingTable`; ``memory_limit`` is that of each part.

    Raises:
        ValueError, TypeError: as by `tf.EmbeddingTable`, and without parts.

    >>> table = tf.PartitionedEmbeddingTable(2, num_parts=3, initializer=tf.zeros_initializer())
    >>> rows = tf.nn.embedding_lookup(table, [[5, 6], [6, 2**60]])
    >>> train = tf.train.GradientDescentOptimizer(1.0).minimize(-tf.reduce_sum(rows))
    >>> with tf.Session() as sess:
    ...     sess.run(train)
    ...     sess.run(rows)[:, :, 0].tolist(), int(sess.run(table.size())), len(list(table))
    ([[1.0, 2.0], [2.0, 1.0]], 3, 3)
    """

    #: All integers are keys, negative ones, too: what looks up ids asks for it.
    any_key = True
    #: A meta graph has the operations of its parts, and savers that know it by them.
    stays_in_process = True

    def __init__(
        self,
        dim: int,
        num_parts: int,
        initializer: Any = None,
        dtype: Any = dtypes.float32,
        seed: int | None = None,
        trainable: bool = True,
        admit_after: int = 1,
        admit_counters: int = 0,
        memory_limit: int = 0,
        directory: str = "",
        name: str | None = None,
    ) -> None:
        if num_parts < 1:
            raise ValueError(f"num_parts must be positive; it is {num_parts}.")
        options = TableOptions(
            dim, initializer, dtype, seed, admit_after, admit_counters, memory_limit, directory
        )
        graph = get_default_graph().outermost
        with graph.as_default(), graph.name_scope(name or "embedding_table") as scope:
            # A row starts the same in whichever part it is.
            start = options.start(graph, scope[:-1])
            self._parts = [
                EmbeddingTable._part(options, start, f"{scope}part_{i}/") for i in range(num_parts)
            ]
        self._name = scope[:-1]
        collect(self, graph, trainable)

    @property
    def parts(self) -> list[EmbeddingTable]:
        """The parts."""
        return list(self._parts)

    def __iter__(self) -> Iterator[EmbeddingTable]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def name(self) -> str:
        """The name of the table."""
        return self._name

    @property
    def op_name(self) -> str:
        """The name of the table, as files have it."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The type of the rows."""
        return self._parts[0].dtype

    @property
    def dim(self) -> int:
        """Elements of a row."""
        return self._parts[0].dim

    @property
    def shape(self) -> TensorShape:
        """``[None, dim]``."""
        return self._parts[0].shape

    def __repr__(self) -> str:
        return (
            f"<tf.PartitionedEmbeddingTable '{self._name}' dim={self.dim} "
            f"dtype={self.dtype.name} parts={len(self)}>"
        )

    @staticmethod
    def read_only() -> contextlib.AbstractContextManager[None]:
        """Lookups in this block leave tables as they are: see `tf.EmbeddingTable.read_only`."""
        return read_only()

    def lookup(self, keys: Any, grows: bool | None = None, name: str | None = None) -> Tensor:
        """The rows of ``keys``: see `tf.EmbeddingTable.lookup`."""
        with get_default_graph().name_scope(name or "lookup"):
            wide = as_keys(keys)
            distinct, place = raw.Unique(raw.Reshape(wide, [-1]))
            keys_of, places = self._split(distinct, raw.Range(0, raw.Size(distinct), 1))
            rows = [p.lookup(k, grows) for p, k in zip(self._parts, keys_of, strict=True)]
            joined = raw.DynamicStitch(list(places), rows)
            found = raw.GatherV2(joined, raw.Reshape(place, raw.Shape(wide)), 0)
            if wide.dims is not None:
                found.set_shape((*wide.dims, self.dim))
            result: Tensor = found
            return result

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """``lookup(indices)``, under the name that variables have for it."""
        return self.lookup(indices, name=name)

    def _split(self, keys: Tensor, *others: Any) -> list[Any]:
        """Keys, and what belongs to each, by parts."""
        part, count = raw.EmbeddingTablePart(keys, num_parts=len(self)), len(self)
        return [raw.DynamicPartition(t, part, num_partitions=count) for t in (keys, *others)]

    def size(self, name: str | None = None) -> Tensor:
        """How many keys have a row, an int64 scalar."""
        total: Tensor = raw.AddN([p.size() for p in self._parts], name=name)
        return total

    def assign(self, keys: Any, rows: Any, name: str | None = None) -> Operation:
        """An op that gives ``keys`` these ``rows``, ``[*keys.shape, dim]``."""
        flat = raw.Reshape(as_keys(keys), [-1])
        values = raw.Reshape(convert_to_tensor(rows, self.dtype), [-1, self.dim])
        of_part = self._split(flat, values)
        op: Operation = group(
            *[p.assign(k, r) for p, k, r in zip(self._parts, *of_part, strict=True)], name=name
        )
        return op

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys, int64 ``[n]``, part after part, and their rows, ``[n, dim]``."""
        keys, rows = zip(*[p.export() for p in self._parts], strict=True)
        if len(self) == 1:
            return keys[0], rows[0]
        return raw.ConcatV2(list(keys), np.int32(0)), raw.ConcatV2(list(rows), np.int32(0))

    def evict(
        self,
        unseen_for: Any = None,
        fewer_than: Any = None,
        norm_below: Any = None,
        keep: Any = None,
        name: str | None = None,
    ) -> Tensor:
        """An op that removes rows: see `tf.EmbeddingTable.evict`; ``keep`` is that of each part."""
        total: Tensor = raw.AddN(
            [p.evict(unseen_for, fewer_than, norm_below, keep) for p in self._parts], name=name
        )
        return total

    def save(self, prefix: Any, name: str | None = None) -> Tensor:
        """An op that saves all parts: see `tf.EmbeddingTable.save`."""
        return saved(self, prefix, name)

    def save_changes(self, prefix: Any, name: str | None = None) -> Tensor:
        """An op that saves what has changed: see `tf.EmbeddingTable.save_changes`."""
        return saved(self, prefix, name, changes=True)

    def restore(self, prefix: Any, slots: bool = True, name: str | None = None) -> Tensor:
        """An op that restores all parts, from a save in any number of parts."""
        return restored(self, prefix, slots, name)

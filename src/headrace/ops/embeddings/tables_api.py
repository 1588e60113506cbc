"""``tf.EmbeddingTable``."""

from __future__ import annotations

import contextlib
import math
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.embeddings.first_rows import RowStart
from headrace.ops.embeddings.read_only import read_only, tables_grow
from headrace.ops.embeddings.rules import rule_spec
from headrace.ops.state import initializers


def start_of(initializer: Any, width: int, seed: int) -> RowStart:
    """What a table makes its rows from.

    Raises:
        TypeError: if it is no initialiser, or one whose rows depend on more than their keys.
        ValueError: if it needs to know how many rows there are.
    """
    if initializer is None:
        return RowStart("truncated_normal", (0.0, 1.0 / math.sqrt(width)), seed)
    made = initializer() if isinstance(initializer, type) else initializer
    own = getattr(made, "seed", None)
    seed = seed if own is None else seed ^ int(own)
    if isinstance(made, initializers.Zeros):
        return RowStart("constant", (0.0,), seed)
    if isinstance(made, initializers.Ones):
        return RowStart("constant", (1.0,), seed)
    if isinstance(made, initializers.Constant):
        return RowStart("constant", _constant(made.value, width), seed)
    if isinstance(made, initializers.RandomUniform):
        highest = 1.0 if made.maxval is None else made.maxval
        return RowStart("uniform", (float(made.minval), float(highest)), seed)
    if isinstance(made, initializers.RandomNormal):
        truncated = isinstance(made, initializers.TruncatedNormal)
        kind = "truncated_normal" if truncated else "normal"
        return RowStart(kind, (float(made.mean), float(made.stddev)), seed)
    if isinstance(made, initializers.VarianceScaling):
        return _scaled(made, width, seed)
    raise TypeError(
        f"A table makes rows by keys, on the task that holds it: it takes the initialisers zeros, "
        f"ones, constant, random_uniform, random_normal, truncated_normal, and variance_scaling "
        f"over outputs; not {initializer!r}."
    )


def _constant(value: Any, width: int) -> tuple[float, ...]:
    numbers = np.asarray(value, np.float64).reshape(-1)
    if numbers.size not in (1, width):
        raise ValueError(f"A row has {width} elements; the initialiser has {numbers.size}.")
    return tuple(numbers.tolist())


def _scaled(made: Any, width: int, seed: int) -> RowStart:
    if made.mode != "fan_out":
        raise ValueError(
            f"Initialisers of mode {made.mode!r} depend on the number of rows, which a table does "
            "not know: use mode 'fan_out', or one with a given range."
        )
    stddev = math.sqrt(made.scale / max(1, width))
    if made.distribution == "uniform":
        return RowStart("uniform", (-math.sqrt(3.0) * stddev, math.sqrt(3.0) * stddev), seed)
    if made.distribution == "untruncated_normal":
        return RowStart("normal", (0.0, stddev), seed)
    return RowStart("truncated_normal", (0.0, stddev / initializers.TRUNCATED_STDDEV), seed)


class TableOptions:
    """The arguments of tables, checked."""

    def __init__(
        self,
        dim: int,
        initializer: Any,
        dtype: Any,
        seed: int | None,
        admit_after: int,
        admit_counters: int,
        memory_limit: int,
        directory: str,
    ) -> None:
        self.width = int(dim)
        if self.width < 1:
            raise ValueError(f"dim must be positive; it is {dim}.")
        self.dtype = dtypes.as_dtype(dtype).base_dtype
        if not self.dtype.is_floating:
            raise TypeError(f"A table has floating-point numbers, not {self.dtype.name}.")
        if admit_after < 1:
            raise ValueError(f"admit_after counts lookups from 1 on; it is {admit_after}.")
        if admit_counters and admit_after == 1:
            raise ValueError("admit_counters says how lookups are counted: give admit_after, too.")
        if admit_counters < 0 or memory_limit < 0:
            raise ValueError("admit_counters and memory_limit are not negative.")
        self._initializer, self._seed = initializer, seed
        #: Attributes of the op that makes a table.
        self.storage: dict[str, Any] = {
            "admit_after": admit_after,
            "admit_counters": admit_counters,
            "memory_limit": memory_limit,
            "directory": directory,
        }

    def start(self, graph: Graph, name: str) -> RowStart:
        """How rows start: by the own seed or the graph's, and otherwise for each name."""
        seed = self._seed if self._seed is not None else graph.seed or 0
        return start_of(self._initializer, self.width, int(seed) ^ zlib.crc32(name.encode()))


class EmbeddingTableSlot:
    """What an optimiser keeps with each row of a table.

    Attributes:
        table: the table; ``name``: of the slot; ``start``: what all its elements start with.

    >>> table = tf.EmbeddingTable(2, initializer=tf.zeros_initializer())
    >>> loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [3]))
    >>> optimizer = tf.train.AdagradOptimizer(1.0, initial_accumulator_value=0.5)
    >>> train = optimizer.minimize(loss)
    >>> slot = optimizer.get_slot(table, "accumulator")
    >>> slot.name, slot.start
    ('Adagrad/accumulator', 0.5)
    >>> with tf.Session() as sess:
    ...     sess.run(train)
    ...     keys, rows = sess.run(slot.export())
    >>> keys.tolist(), rows.tolist()
    ([3], [[1.5, 1.5]])
    """

    def __init__(self, table: EmbeddingTable, name: str, start: float) -> None:
        self.table = table
        self.name = name
        self.start = float(start)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys, int64 ``[n]`` in rising order, and what the slot has for each."""
        return self.table._export(self.name, name)


@public("EmbeddingTable")
class EmbeddingTable:
    """Rows of numbers by keys of 64 bits: a table of embeddings whose size nobody has to know.

    A row is made when its key is first looked up. Its first value depends on the initialiser, the
    seed, the table's name and the key, and on nothing else. `tf.nn.embedding_lookup` and
    its kin take a table in the place of a variable, and the optimisers of `tf.train` train it: they
    update the rows of a step alone (Adam as well: moments of other rows stay as they are), and
    keep their slots with the rows. Nothing needs to be initialized.

    Args:
        dim: elements of a row.
        initializer: zeros, ones, constant, random_uniform, random_normal, truncated_normal, or
            variance_scaling over outputs. By default truncated normal numbers of standard deviation
            ``1 / sqrt(dim)``. Random elements are one of 65,536 quantiles of the distribution.
        dtype: float16, bfloat16, float32 or float64.
        seed: an integer; by default the seed of the graph, or 0.
        trainable: whether optimisers train it if they are not told what to train.
        admit_after: the lookup of a key, counted from 1, from which on it has a row. Before, it
            gives what the row would start with, and its gradients are dropped. A lookup that has a
            key several times counts once.
        admit_counters: count these lookups in a filter of so many counters of 2 bytes, which may
            let keys in early, but never late; by default they are counted exactly.
        memory_limit: bytes of rows and slots in memory; what is more is in files of ``directory``
            (by default that of temporary files), of which the system keeps in memory what is used.
        name: by default "embedding_table". Two tables of one graph have different names.

    Raises:
        TypeError: if ``dtype`` is not floating, or for another initialiser.
        ValueError: if ``dim`` is not positive.

    >>> table = tf.EmbeddingTable(4, seed=1)
    >>> rows = tf.nn.embedding_lookup(table, [2**62, -5, 2**62])
    >>> train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(rows**2))
    >>> with tf.Session() as sess:
    ...     before = sess.run(rows)
    ...     sess.run(train)
    ...     after = sess.run(rows)
    ...     int(sess.run(table.size()))
    2
    >>> bool((before[0] == before[2]).all()), bool((abs(after) < abs(before)).all())
    (True, True)
    """

    #: Optimisers ask variables for it.
    constraint = None
    #: All integers are keys, negative ones, too: what looks up ids asks for it.
    any_key = True
    #: A meta graph has the table's operations, and savers that know it by them.
    stays_in_process = True

    def __init__(
        self,
        dim: int,
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
        options = TableOptions(
            dim, initializer, dtype, seed, admit_after, admit_counters, memory_limit, directory
        )
        graph = get_default_graph().outermost
        with graph.as_default(), graph.name_scope(name or "embedding_table") as scope:
            self._make(options, options.start(graph, scope[:-1]), scope)
        collect(self, graph, trainable)

    def _make(self, options: TableOptions, start: RowStart, scope: str) -> None:
        self._dtype, self._width = options.dtype, options.width
        self._slots: dict[str, EmbeddingTableSlot] = {}
        self._handle: Tensor = raw.EmbeddingTable(
            container=get_default_graph()._container,
            shared_name=scope[:-1],
            width=options.width,
            dtype=options.dtype,
            initializer=start.kind,
            numbers=list(start.numbers),
            seed=start.seed,
            name=scope,
            **options.storage,
        )

    @classmethod
    def _part(cls, options: TableOptions, start: RowStart, scope: str) -> EmbeddingTable:
        """A part of a larger table."""
        made = cls.__new__(cls)
        made._make(options, start, scope)
        return made

    # -- what it is, as variables say it ----------------------------------------------------

    @property
    def handle(self) -> Tensor:
        """The handle of the table, a resource."""
        return self._handle

    @property
    def op(self) -> Operation:
        """The op that makes the handle."""
        return self._handle.op

    @property
    def name(self) -> str:
        """The name of the handle."""
        return self._handle.name

    @property
    def op_name(self) -> str:
        """The name of the table, as files have it."""
        return self._handle.op.name

    @property
    def graph(self) -> Graph:
        """The graph of the handle."""
        return self._handle.graph

    @property
    def device(self) -> str:
        """The device that holds the table."""
        return self._handle.device

    @property
    def dtype(self) -> DType:
        """The type of the rows."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """``[None, dim]``."""
        return TensorShape([None, self._width])

    @property
    def dim(self) -> int:
        """Elements of a row."""
        return self._width

    def __repr__(self) -> str:
        return f"<tf.EmbeddingTable '{self.op.name}' dim={self._width} dtype={self._dtype.name}>"

    # -- use --------------------------------------------------------------------------------

    @staticmethod
    def read_only() -> contextlib.AbstractContextManager[None]:
        """A block in which lookups of all tables of the default graph have ``grows=False``.

        Estimators build their models so to evaluate, predict and export.

        >>> table = tf.EmbeddingTable(1, initializer=tf.ones_initializer())
        >>> with tf.EmbeddingTable.read_only():
        ...     rows = tf.nn.embedding_lookup(table, [5])
        >>> with tf.Session() as sess:
        ...     sess.run(rows).tolist(), int(sess.run(table.size()))
        ([[1.0]], 0)
        """
        return read_only()

    def lookup(self, keys: Any, grows: bool | None = None, name: str | None = None) -> Tensor:
        """The rows of ``keys``.

        Args:
            keys: int64 or another integer type, of any shape.
            grows: whether keys that the table does not have come into it. If not, they give the
                values that they would start with, and the table stays as it is. By default they
                do, but for lookups that are made under `read_only`.

        Returns:
            A tensor of shape ``keys.shape + [dim]``.

        Raises:
            TypeError: if the keys are no integers.

        >>> table = tf.EmbeddingTable(1, initializer=tf.ones_initializer())
        >>> with tf.Session() as sess:
        ...     rows, size = sess.run([table.lookup([[5], [6]], grows=False), table.size()])
        >>> rows.tolist(), int(size)
        ([[[1.0]], [[1.0]]], 0)
        """
        with get_default_graph().name_scope(name or "lookup") as scope:
            wide = as_keys(keys)
            grown = tables_grow() if grows is None else bool(grows)
            with self._beside():
                rows: Tensor = raw.EmbeddingTableFind(
                    self._handle, wide, dtype=self._dtype, grows=grown, name=scope
                )
            return rows

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """``lookup(indices)``, under the name that variables have for it."""
        return self.lookup(indices, name=name)

    def size(self, name: str | None = None) -> Tensor:
        """How many keys have a row, an int64 scalar."""
        with self._beside():
            count: Tensor = raw.EmbeddingTableSize(self._handle, name=name)
        return count

    def assign(self, keys: Any, rows: Any, name: str | None = None) -> Operation:
        """An op that gives ``keys`` these ``rows``, ``[*keys.shape, dim]``."""
        with self._beside():
            values = convert_to_tensor(rows, self._dtype)
            op: Operation = raw.EmbeddingTableAssign(self._handle, as_keys(keys), values, name=name)
        return op

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys, int64 ``[n]`` in rising order, and their rows, ``[n, dim]``."""
        return self._export("", name)

    def _export(self, slot: str, name: str | None) -> tuple[Tensor, Tensor]:
        with self._beside():
            keys, rows = raw.EmbeddingTableExport(
                self._handle, dtype=self._dtype, slot=slot, name=name
            )
        return keys, rows

    def evict(
        self,
        unseen_for: Any = None,
        fewer_than: Any = None,
        norm_below: Any = None,
        keep: Any = None,
        name: str | None = None,
    ) -> Tensor:
        """An op that removes rows: those of which all that is given is true.

        Args:
            unseen_for: updates of the table since the last lookup of the key, at least.
            fewer_than: lookups that have had the key are fewer.
            norm_below: the L2 norm of the row is less.
            keep: rows that stay at most: of those that are left after that, the ones go that were
                seen the longest ago.

        Returns:
            How many rows were removed, an int64 scalar.

        Raises:
            ValueError: if nothing is given.

        >>> table = tf.EmbeddingTable(1, tf.zeros_initializer())
        >>> with tf.Session() as sess:
        ...     _ = sess.run(table.assign([1, 2, 3], [[0.5], [-2.0], [0.25]]))
        ...     int(sess.run(table.evict(norm_below=1.0))), sess.run(table.export()[0]).tolist()
        (2, [2])
        """
        given = (unseen_for, fewer_than, norm_below, keep)
        if all(g is None for g in given):
            raise ValueError("Say which rows go: unseen_for, fewer_than, norm_below or keep.")
        kinds = (dtypes.int64, dtypes.int64, dtypes.float32, dtypes.int64)
        with self._beside():
            inputs = [
                convert_to_tensor(-1 if g is None else g, k)
                for g, k in zip(given, kinds, strict=True)
            ]
            removed: Tensor = raw.EmbeddingTableEvict(self._handle, *inputs, name=name)
        return removed

    # -- files ------------------------------------------------------------------------------

    @property
    def parts(self) -> list[EmbeddingTable]:
        """The table itself: it has one part."""
        return [self]

    def save(self, prefix: Any, name: str | None = None) -> Tensor:
        """An op that writes all rows, with their slots, to files of their own beside a checkpoint.

        `tf.train.Saver` does so by itself.

        Args:
            prefix: the path of the checkpoint; the files begin with ``<prefix>.table-``.

        Returns:
            How many rows were written, an int64 scalar.
        """
        return saved(self, prefix, name)

    def save_changes(self, prefix: Any, name: str | None = None) -> Tensor:
        """An op that writes the rows that have changed since the last save, or changes, there.

        Restoring from ``prefix`` restores the changes, too. When a key was last seen, and how
        often, is no change.

        Returns:
            How many rows were written, an int64 scalar. As it runs it raises
            FailedPreconditionError if the table was not saved to ``prefix`` last.
        """
        return saved(self, prefix, name, changes=True)

    def restore(self, prefix: Any, slots: bool = True, name: str | None = None) -> Tensor:
        """An op that gives the table the rows of a save, and of the changes saved after it.

        Args:
            slots: whether optimisers go on with what they had kept. If not, they begin anew.

        Returns:
            How many rows there are, an int64 scalar. As it runs it raises NotFoundError if there
            is no such save, InvalidArgumentError if its width, type or slots differ, and
            DataLossError for damaged files; the table has what it had then.
        """
        return restored(self, prefix, slots, name)

    @contextlib.contextmanager
    def _beside(self) -> Iterator[None]:
        """Where the table is, and not where the program's own operations go."""
        graph = get_default_graph()
        with graph.device(None), graph.colocate_with(self._handle.op, ignore_existing=True):
            yield

    # -- for optimisers ---------------------------------------------------------------------

    def slot(self, slot_name: str, op_name: str, start: float) -> EmbeddingTableSlot:
        """A slot with each row, which optimisers make in the place of a slot variable.

        Raises:
            ValueError: if there is a slot of that name that starts otherwise.
        """
        made = EmbeddingTableSlot(self, f"{op_name}/{slot_name}", start)
        there = self._slots.setdefault(made.name, made)
        if there.start != made.start:
            raise ValueError(
                f"Slot {made.name} of table {self.op_name} starts with {there.start}, not "
                f"{made.start}: two optimisers of one name share it. Give them names."
            )
        return there

    def apply_rule(
        self,
        rule: str,
        slots: Sequence[EmbeddingTableSlot],
        inputs: dict[str, Any],
        grad: Any,
        keys: Any,
    ) -> Operation:
        """An op that updates the rows of ``keys`` by an optimiser's rule.

        Args:
            rule: the name after ``ResourceApply``.
            inputs: the arguments and options of that op, by name.
        """
        spec = rule_spec(rule)
        names = [a for i, a in enumerate(spec.arguments) if i >= spec.states and i != spec.grad_at]
        with self._beside():
            op: Operation = raw.EmbeddingTableApply(
                self._handle,
                as_keys(keys),
                grad,
                [convert_to_tensor(inputs[n]) for n in names],
                rule=rule,
                slots=[s.name for s in slots],
                starts=[s.start for s in slots],
                **{o: inputs[o] for o in spec.options if o in inputs},
            )
        return op


def collect(table: Any, graph: Graph, trainable: bool) -> None:
    """Lets savers, and optimisers, find a table."""
    graph.add_to_collection(GraphKeys.EMBEDDING_TABLES, table)
    if trainable:
        graph.add_to_collection(GraphKeys.TRAINABLE_EMBEDDING_TABLES, table)


# -- files --------------------------------------------------------------------------------------


def _places(table: Any) -> list[tuple[EmbeddingTable, dict[str, Any]]]:
    """The parts of a table, and what ops on files are told of each."""
    parts = table.parts
    return [
        (p, {"table_name": table.op_name, "part": i, "num_parts": len(parts)})
        for i, p in enumerate(parts)
    ]


def saved(table: Any, prefix: Any, name: str | None, **how: Any) -> Tensor:
    """An op that saves all parts of a table in this way; how many rows."""
    with get_default_graph().name_scope(name or "save_table"):
        counts: list[Tensor] = []
        for part, place in reversed(_places(table)):
            # The first part comes last: it removes what was saved in another number of parts.
            with (
                part._beside(),
                get_default_graph().control_dependencies(
                    [] if place["part"] else [c.op for c in counts]
                ),
            ):
                counts.append(raw.EmbeddingTableSave(part.handle, prefix, **how, **place))
        total: Tensor = raw.AddN(counts)
        return total


def checks(table: Any, prefix: Any, slots: bool) -> list[Operation]:
    """Ops that fail if a save does not fit the parts of a table."""
    found = []
    for part, place in _places(table):
        own = list(part._slots.values())
        with part._beside():
            op: Operation = raw.EmbeddingTableCheck(
                part.handle,
                prefix,
                table_name=place["table_name"],
                slots=[s.name for s in own],
                starts=[s.start for s in own],
                strict=bool(own) and slots,
            )
        found.append(op)
    return found


def restored(table: Any, prefix: Any, slots: bool, name: str | None) -> Tensor:
    """An op that restores all parts of a table, once the save has been found to fit."""
    graph = get_default_graph()
    with graph.name_scope(name or "restore_table"):
        counts = []
        with graph.control_dependencies(checks(table, prefix, slots)):
            for part, place in _places(table):
                with part._beside():
                    counts.append(
                        raw.EmbeddingTableRestore(part.handle, prefix, with_slots=slots, **place)
                    )
        total: Tensor = raw.AddN(counts)
        return total


def as_keys(keys: Any) -> Tensor:
    """Keys as int64.

    Raises:
        TypeError: if they are no integers.
    """
    tensor = keys if isinstance(keys, Tensor) else _converted(keys)
    if tensor.dtype is dtypes.int64:
        return tensor
    if not tensor.dtype.is_integer:
        raise TypeError(f"Keys of a table are integers; {tensor.name} is {tensor.dtype.name}.")
    wide: Tensor = raw.Cast(tensor, DstT=dtypes.int64)
    return wide


def _converted(keys: Any) -> Tensor:
    array = keys if hasattr(keys, "dtype") else np.asarray(keys)
    is_wide = array.dtype == np.int64 or (array.dtype == np.float64 and not array.size)
    return convert_to_tensor(keys, dtypes.int64 if is_wide else None)

"""Variables that have a copy for each replica of a strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.basic import group, init_scope
from headrace.ops.core.build import raw
from headrace.ops.state import replica_scope
from headrace.ops.state.variable_kinds import VariableAggregation, VariableSynchronization
from headrace.ops.state.variables import Variable

__all__ = [
    "MirroredVariable",
    "SyncOnReadVariable",
    "across_replicas",
    "mean_of",
    "quotient",
    "sum_of",
]

#: Updates a copy by a value, by an operation of that name.
_Update = Callable[[Variable, Any, str | None], Any]
_FIRST = (VariableAggregation.ONLY_FIRST_REPLICA, VariableAggregation.ONLY_FIRST_TOWER)


def sum_of(values: Sequence[Tensor]) -> Tensor:
    """The sum of equally shaped tensors."""
    return values[0] if len(values) == 1 else raw.AddN(list(values))


def mean_of(values: Sequence[Tensor]) -> Tensor:
    """The mean of equally shaped tensors, in their type: of integers the quotient rounds down."""
    return quotient(sum_of(values), len(values))


def quotient(total: Tensor, number: int) -> Tensor:
    """A tensor divided by a number, in its type: of integers the quotient rounds down."""
    if number == 1:
        return total
    count = raw.Cast(number, DstT=total.dtype)
    return raw.RealDiv(total, count) if total.dtype.is_floating else raw.FloorDiv(total, count)


def _part(name: str) -> property:
    return property(lambda self: getattr(self._copy(), name))


class MirroredVariable(Variable):
    """A variable with equal copies, one for each replica of a strategy.

    In a replica it is that replica's copy. Across replicas, and outside of the strategy, it reads
    as the first copy, and updates reach all of them. An update in a replica brings the values of
    all replicas together first, as ``aggregation`` says.

    Args:
        copies: the variables that it consists of, or a single one that all replicas share.
        options: what the copies were made with: ``trainable``, ``constraint``,
            ``synchronization``, ``aggregation``.

    >>> strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    >>> with strategy.scope():
    ...     v = tf.get_variable("v", initializer=1.0)
    >>> update = v.assign_add(2.0)
    >>> with tf.Session(config=strategy.update_config_proto(tf.ConfigProto())) as sess:
    ...     sess.run(v.initializer)
    ...     print(sess.run(update), *sess.run([copy.value() for copy in v.values]))
    3.0 3.0 3.0
    """

    # What each copy has of its own.
    _handle = _part("_handle")
    _snapshot = _part("_snapshot")
    _initial_value = _part("_initial_value")
    _is_cached = _part("_is_cached")

    def __init__(self, copies: Sequence[Variable], options: dict[str, Any]) -> None:
        self._copies = tuple(copies)
        first = self._copies[0]
        self._graph, self._dtype, self.dims = first._graph, first._dtype, first.dims
        self._save_slice_info = None
        self._trainable = first.trainable
        self._constraint = options.get("constraint")
        self._synchronization = options.get("synchronization", VariableSynchronization.AUTO)
        self._aggregation = options.get("aggregation", VariableAggregation.NONE)
        with init_scope():
            self._initializer_op = self._all_initializers()
        self._graph._variable_of[first.op] = self

    def _all_initializers(self) -> Operation:
        if len(self._copies) == 1:
            return self._copies[0].initializer
        name = f"{self._copies[0].op.name}/initialize_copies/"
        with self._graph.name_scope(None):
            return group(*[copy.initializer for copy in self._copies], name=name)

    @property
    def values(self) -> tuple[Variable, ...]:
        """The copies, in the order of replicas."""
        return self._copies

    def get(self, replica: int | None = None) -> Variable:
        """The copy of a replica; by default that of the replica that is being built."""
        return self._copy() if replica is None else self._copies[replica % len(self._copies)]

    @property
    def primary(self) -> Variable:
        """The first copy."""
        return self._copies[0]

    def _copy(self) -> Variable:
        place = replica_scope.current()
        if place is None or place.replica is None:
            return self._copies[0]
        return self._copies[place.replica % len(self._copies)]

    def initialized_value(self) -> Tensor:
        """The value if the variable has one, else its initial value."""
        return self._copies[0].initialized_value()

    def load(self, value: Any, session: Any = None) -> None:
        """Set the value of all copies in ``session``."""
        for copy in self._copies:
            copy.load(value, session)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """A VariableDef message of the first copy."""
        return self._copies[0].to_proto(export_scope)

    # -- updates ----------------------------------------------------------------------------

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Set the value; see `tf.Variable.assign`.

        Raises:
            ValueError: in a replica, if there is no ``aggregation``.
        """
        return self._write(
            lambda v, x, n: v.assign(x, use_locking, n, read_value=False), value, name, read_value
        )

    def _accumulate(self, kind: str, delta: Any, name: str | None, read_value: bool) -> Any:
        return self._write(
            lambda v, x, n: v._accumulate(kind, x, n, False), delta, name, read_value
        )

    def _scatter(
        self, kind: str, target: Any, updates: Any, name: str | None, read_value: bool = True
    ) -> Any:
        return self._write(
            lambda v, x, n: v._scatter(kind, target, updates, n, False), None, name, read_value
        )

    def _scatter_nd(
        self, kind: str, indices: Any, updates: Any, name: str | None, read_value: bool = True
    ) -> Any:
        return self._write(
            lambda v, x, n: v._scatter_nd(kind, indices, x, n, False), updates, name, read_value
        )

    def _write(self, update: _Update, value: Any, name: str | None, read_value: bool) -> Any:
        place = replica_scope.current()
        if place is not None and (place.updates or self._writes_alone(place)):
            copy = self._copy()
            return copy._updated(update(copy, value, name), read_value)
        if place is not None and place.replica is not None:
            done = self._write_from_replicas(place, update, value, name)
            # All replicas wait for the same operation; each reads its copy.
            return self._copy()._add_read("ReadVariableOp", [done]) if read_value else done
        done = self._write_all(update, value, name)
        return self._copies[0]._updated(done, read_value)

    def _writes_alone(self, place: replica_scope.Place) -> bool:
        return place.replica is not None and place.strategy.extended._replicas == 1

    def _write_all(self, update: _Update, value: Any, name: str | None) -> Operation:
        """The operation that updates all copies, of this name."""
        given = self._values_for_copies(value)
        with self._graph.colocate_with(None, ignore_existing=True):
            if len(given) == 1:
                only: Operation = update(self._copies[0], given[0], name)
                return only
            done = [update(c, x, None) for c, x in zip(self._copies, given, strict=True)]
            return group(*done, name=name)

    def _values_for_copies(self, value: Any) -> list[Any]:
        """What each copy is written with across replicas."""
        converted = None if value is None else self._convert(value)
        return [converted] * len(self._copies)

    def _write_from_replicas(
        self, place: replica_scope.Place, update: _Update, value: Any, name: str | None
    ) -> Any:
        if self._aggregation is VariableAggregation.NONE:
            raise ValueError(
                f"You must specify an aggregation method to update the variable {self.op.name} in "
                "a replica: each replica has its own new value. Make it with "
                "aggregation=tf.VariableAggregation.MEAN (or SUM, or ONLY_FIRST_REPLICA), or with "
                "synchronization=tf.VariableSynchronization.ON_READ if replicas may differ."
            )

        def merged(strategy: Any, value: Any) -> Operation:
            values = strategy.experimental_local_results(value)
            return self._write_all(update, self._together(values), name)

        given = None if value is None else self._convert(value)
        return place.context.merge_call(merged, args=(given,))

    def _together(self, values: Sequence[Any]) -> Any:
        if values[0] is None or self._aggregation in _FIRST:
            return values[0]
        if self._aggregation is VariableAggregation.SUM:
            return sum_of(values)
        return mean_of(values)

    def __repr__(self) -> str:
        kind = type(self).__name__
        copies = ", ".join(f"'{c.name}' on {c.device or 'any device'}" for c in self._copies)
        return f"<{kind} shape={self.shape} dtype={self._dtype.name} of {copies}>"


class SyncOnReadVariable(MirroredVariable):
    """A variable whose copies differ: each replica has its own, and they meet when it is read.

    Across replicas its value is the sum, the mean or the first of the copies, as ``aggregation``
    says; so it is saved. What is assigned there reads as what was assigned.

    >>> strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    >>> with strategy.scope():
    ...     seen = tf.get_variable(
    ...         "seen", initializer=0.0, trainable=False,
    ...         synchronization=tf.VariableSynchronization.ON_READ,
    ...         aggregation=tf.VariableAggregation.SUM)
    ...     count = strategy.experimental_run_v2(lambda: seen.assign_add(4.0))
    ...     total = seen.read_value()
    >>> with tf.Session(config=strategy.update_config_proto(tf.ConfigProto())) as sess:
    ...     sess.run(seen.initializer)
    ...     each = sess.run(strategy.experimental_local_results(count))
    ...     print(*each, sess.run(total))
    4.0 4.0 8.0
    """

    def __init__(self, copies: Sequence[Variable], options: dict[str, Any]) -> None:
        super().__init__(copies, options)
        with init_scope(), replica_scope.across(), self._graph.name_scope(None):
            self._value_across = self._read_across([c._snapshot for c in copies])
        self._graph.add_to_collection(_SYNC_ON_READ, self)

    def _read_across(self, values: Sequence[Tensor]) -> Tensor:
        if self._aggregation is VariableAggregation.NONE or self._aggregation in _FIRST:
            return values[0]
        is_sum = self._aggregation is VariableAggregation.SUM
        with self._graph.name_scope(f"{self._copies[0].op.name}/read_copies/"):
            found = sum_of(values) if is_sum else mean_of(values)
        self._graph.get_collection_ref(_ACROSS).append(found)
        return found

    def _is_across(self) -> bool:
        place = replica_scope.current()
        return place is None or place.replica is None

    def value(self) -> Tensor:
        """The value: in a replica that of its copy, else that of all copies together."""
        return self.read_value() if self._is_across() else self._copy().value()

    def read_value(self) -> Tensor:
        """As `value`, by an op of its own."""
        if not self._is_across():
            return self._copy().read_value()
        return self._read_across([copy.read_value() for copy in self._copies])

    def _as_graph_element(self) -> Tensor:
        return self._value_across if self._is_across() else self._copy()._snapshot

    def eval(self, session: Any = None) -> Any:
        """The value of all copies together in ``session``."""
        return self._value_across.eval(session=session)

    def _writes_alone(self, place: replica_scope.Place) -> bool:
        return place.replica is not None

    def _values_for_copies(self, value: Any) -> list[Any]:
        first = None if value is None else self._convert(value)
        if self._aggregation is VariableAggregation.SUM and first is not None:
            rest = len(self._copies) - 1
            return [first, *([raw.ZerosLike(first)] * rest)]
        return [first] * len(self._copies)


#: Collections of a graph: variables that are brought together when read, and such values.
_SYNC_ON_READ = "__sync_on_read_variables"
_ACROSS = "__values_across_replicas"


def across_replicas(value: Any) -> Any:
    """In a replica: a tensor, computed from what all replicas have counted.

    Args:
        value: a tensor that is computed from variables, some of which are brought together on read.

    Returns:
        The same computed from the values of these across replicas; ``value`` itself without a
        strategy, or where it reads no such variable.
    """
    place = replica_scope.current()
    if place is None or place.replica is None or not isinstance(value, Tensor):
        return value
    graph = value.graph
    variables = {
        copy.op: variable
        for variable in graph.get_collection(_SYNC_ON_READ)
        for copy in variable.values
    }
    done: dict[Operation, Any] = {t.op: t.op.outputs for t in graph.get_collection(_ACROSS)}
    with replica_scope.across():
        return _copied(value, variables, done)


def _copied(
    tensor: Tensor, variables: dict[Operation, SyncOnReadVariable], done: dict[Operation, Any]
) -> Tensor:
    op = tensor.op
    if op not in done:
        variable = variables.get(op.inputs[0].op) if op.type == "ReadVariableOp" else None
        if variable is not None:
            done[op] = (variable._as_graph_element(),)
        else:
            inputs = [_copied(t, variables, done) for t in op.inputs]
            if all(a is b for a, b in zip(inputs, op.inputs, strict=True)):
                done[op] = op.outputs
            else:
                types = [t.dtype for t in op.outputs]
                done[op] = op.graph.add_op(
                    op.op_def, inputs, dict(op.attrs), types, op.name.rpartition("/")[2]
                ).outputs
    result: Tensor = done[op][tensor.value_index]
    return result

"""`Strategy`: the base of all strategies, and the one that is in force without any."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from headrace.distribute import inputs, values
from headrace.distribute.contexts import InputReplicationMode, ReplicaContext, default_makers
from headrace.distribute.extended import StrategyExtended
from headrace.distribute.reduce_op import reduce_op
from headrace.graph import nest
from headrace.graph.graph import get_default_graph
from headrace.ops.control.basic import group as group_ops
from headrace.ops.state import replica_scope, share

__all__ = ["Strategy", "default_strategy"]


class Strategy:
    """How a model is spread over devices and workers.

    Args:
        extended: the `StrategyExtended` that does the work.

    >>> strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    >>> with strategy.scope():
    ...     w = tf.get_variable("w", initializer=4.0)
    ...     batches = strategy.experimental_distribute_dataset(
    ...         tf.data.Dataset.from_tensor_slices([1.0, 2.0]).batch(2))
    ...     iterator = batches.make_initializable_iterator()
    ...     def step(x):
    ...         loss = tf.reduce_sum(w * x)
    ...         train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    ...         with tf.control_dependencies([train]):
    ...             return tf.identity(loss)
    ...     losses = strategy.experimental_run_v2(step, args=(iterator.get_next(),))
    ...     loss = strategy.reduce(tf.distribute.ReduceOp.SUM, losses)
    >>> with tf.Session(config=strategy.update_config_proto(tf.ConfigProto())) as sess:
    ...     sess.run([iterator.initializer, tf.global_variables_initializer()])
    ...     float(sess.run(loss)), round(float(sess.run(w)), 3)
    [None, None]
    (12.0, 3.7)
    """

    def __init__(self, extended: StrategyExtended) -> None:
        self._extended = extended
        #: Whether an Estimator trains: then gradients of mean losses are averaged.
        self._scale_loss_for_estimator = False

    @property
    def extended(self) -> StrategyExtended:
        """What libraries and optimisers use."""
        return self._extended

    def scope(self) -> contextlib.AbstractContextManager[Strategy]:
        """Variables made in the block belong to this strategy.

        Raises:
            RuntimeError: in the scope of another strategy, in a replica, or in a worker of a plain
                script.
        """
        share.refuse_own(f"{type(self).__name__}.scope()")
        return self._scope()

    @contextlib.contextmanager
    def _scope(self) -> Iterator[Strategy]:
        place = replica_scope.current()
        if place is not None and place.strategy is self and place.replica is None:
            yield self
            return
        if place is not None:
            where = "" if place.replica is None else f", in replica {place.replica}"
            raise RuntimeError(
                f"Must not nest tf.distribute.Strategy scopes: {type(self).__name__}.scope() is "
                f"opened inside the scope of {type(place.strategy).__name__}{where}. Use one "
                "strategy in a graph, and open its scope outside of what runs in replicas."
            )
        with (
            replica_scope.enter(self.extended._place()),
            replica_scope.variable_creator_scope(self.extended._creator),
        ):
            yield self

    @contextlib.contextmanager
    def _scaling_losses(self) -> Iterator[None]:
        old, self._scale_loss_for_estimator = self._scale_loss_for_estimator, True
        try:
            yield
        finally:
            self._scale_loss_for_estimator = old

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas train together, on all workers."""
        return self.extended._num_replicas_in_sync

    # -- running ------------------------------------------------------------------------------

    def experimental_run_v2(
        self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call ``fn`` once for each replica, each with its part of the arguments.

        Returns:
            What ``fn`` returns; where replicas differ, a value for each.
        """
        with self.scope():
            return self.extended.call_for_each_replica(fn, args, kwargs)

    run = experimental_run_v2

    def experimental_run(self, fn: Callable[..., Any], input_iterator: Any = None) -> Any:
        """`experimental_run_v2` with the next element of an iterator, if there is one."""
        with self.scope():
            args = () if input_iterator is None else (input_iterator.get_next(),)
            return self.experimental_run_v2(fn, args)

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """The sum or mean of the values of all replicas.

        Args:
            reduce_op: a `tf.distribute.ReduceOp`.
            value: what `experimental_run_v2` gave: a tensor for each replica, or structures of
                them; what all replicas have alike counts once for each.
            axis: a dimension to reduce as well; a mean is that of all elements then.
        """
        with self.scope(), self.extended._across("reduce"):
            op = _chosen(reduce_op)
            return values._mapped(value, lambda v: self.extended._reduce(op, v, axis))

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The values of the replicas of this process."""
        return values.local_results(value, self.extended._replicas)

    def unwrap(self, value: Any) -> list[Any]:
        """`experimental_local_results` as a list."""
        return list(self.experimental_local_results(value))

    def group(self, value: Any, name: str | None = None) -> Any:
        """One operation that does what the replicas' operations do."""
        ops = [op for part in self.unwrap(value) for op in nest.flatten(part)]
        found = list(dict.fromkeys(ops))
        if len(found) == 1 and name is None:
            return found[0]
        return group_ops(*found, name=name)

    # -- input --------------------------------------------------------------------------------

    def experimental_distribute_dataset(self, dataset: Any) -> Any:
        """A dataset of global batches, of which each replica gets its part.

        Args:
            dataset: its batches are divided by the number of replicas.

        Raises:
            ValueError: if the batch size is known and cannot be divided.
        """
        return inputs.DistributedDataset(self, dataset)

    def experimental_distribute_datasets_from_function(self, dataset_fn: Callable[..., Any]) -> Any:
        """A dataset of which each replica gets whole batches.

        Args:
            dataset_fn: function of an `tf.distribute.InputContext` that gives a dataset whose
                batches are those of one replica.
        """
        return inputs.DistributedDataset(
            self, dataset_fn(self.extended._input_context()), per_replica=True
        )

    def make_dataset_iterator(self, dataset: Any) -> Any:
        """An iterator over global batches, of which each replica gets its part."""
        return self.experimental_distribute_dataset(dataset).make_initializable_iterator()

    def make_input_fn_iterator(
        self,
        input_fn: Callable[..., Any],
        replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER,
    ) -> Any:
        """An iterator over what ``input_fn`` gives: each replica gets whole batches.

        Args:
            input_fn: function of an `tf.distribute.InputContext` that gives a dataset, or a
                function that makes the next element.

        Raises:
            ValueError: for another ``replication_mode`` than ``PER_WORKER``.
        """
        if replication_mode != InputReplicationMode.PER_WORKER:
            raise ValueError(
                "Input replication mode not supported: only InputReplicationMode.PER_WORKER is."
            )
        return inputs.iterator_of(self, input_fn(self.extended._input_context()))

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Any:
        """A dataset of the rows of NumPy arrays, in a structure."""
        return self.extended.experimental_make_numpy_dataset(numpy_input, session)

    # -- sessions -----------------------------------------------------------------------------

    def configure(
        self,
        session_config: Any = None,
        cluster_spec: Any = None,
        task_type: str | None = None,
        task_id: int | None = None,
    ) -> None:
        """Take what is known of the cluster, and change ``session_config`` accordingly."""
        self.extended._configure(session_config, cluster_spec, task_type, task_id)
        if session_config is not None:
            self.extended._update_config(session_config)

    def update_config_proto(self, config_proto: Any) -> Any:
        """A copy of a ConfigProto, changed to what sessions of this strategy need."""
        changed = type(config_proto)()
        changed.CopyFrom(config_proto)
        self.extended._update_config(changed)
        return changed

    def colocate_vars_with(
        self, colocate_with_variable: Any
    ) -> contextlib.AbstractContextManager[Any]:
        """Variables made in the block are beside another one."""
        return self.extended.colocate_vars_with(colocate_with_variable)

    def __deepcopy__(self, memo: Any) -> Strategy:
        return self  # a RunConfig that is copied keeps it

    def __repr__(self) -> str:
        devices = ", ".join(self.extended.worker_devices)
        return f"<{type(self).__name__} of {self.num_replicas_in_sync} replicas on {devices}>"


def _chosen(value: Any) -> Any:
    return reduce_op(value)


class _DefaultExtended(StrategyExtended):
    def __init__(self, container_strategy: Any) -> None:
        super().__init__(container_strategy)
        self.context = ReplicaContext(container_strategy, 0)

    def _across(self, function: str) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None
    ) -> Any:
        return fn(*args, **(kwargs or {}))


class _DefaultStrategy(Strategy):
    """The strategy that is in force without any: one replica, wherever operations go."""

    def __init__(self) -> None:
        super().__init__(_DefaultExtended(self))

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        get_default_graph()
        yield self


@cache
def default_strategy() -> Strategy:
    """The strategy of a single replica that is in force without any."""
    return _DefaultStrategy()


default_makers[:] = [default_strategy]

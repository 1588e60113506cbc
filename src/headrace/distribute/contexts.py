"""Which strategy is in force, and where code stands in it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from headrace.distribute import reductions
from headrace.distribute.reduce_op import ReduceOp
from headrace.graph.graph import get_default_graph
from headrace.ops.state import replica_scope
from headrace.ops.state.replica_scope import LAST_LOSS_REDUCTION, Place

__all__ = [
    "InputContext",
    "InputReplicationMode",
    "ReplicaContext",
    "experimental_set_strategy",
    "get_loss_reduction",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "require_replica_context",
]


class InputReplicationMode(enum.Enum):
    """How often an input function is called: once for each worker.

    >>> tf.distribute.InputReplicationMode.PER_WORKER.value
    'PER_WORKER'
    """

    PER_WORKER = "PER_WORKER"


class InputContext:
    """What an input function may know of the strategy that it gives data to.

    Args:
        num_input_pipelines: how many workers there are.
        input_pipeline_id: the number of this one.
        num_replicas_in_sync: how many replicas train together, on all workers.

    >>> context = tf.distribute.InputContext(num_input_pipelines=2, num_replicas_in_sync=4)
    >>> context.get_per_replica_batch_size(64)
    16
    """

    def __init__(
        self,
        num_input_pipelines: int = 1,
        input_pipeline_id: int = 0,
        num_replicas_in_sync: int = 1,
    ) -> None:
        self._pipelines, self._id = num_input_pipelines, input_pipeline_id
        self._replicas = num_replicas_in_sync

    @property
    def num_input_pipelines(self) -> int:
        """How many workers there are."""
        return self._pipelines

    @property
    def input_pipeline_id(self) -> int:
        """The number of this worker."""
        return self._id

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas train together, on all workers."""
        return self._replicas

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The batch of one replica.

        Raises:
            ValueError: if the global batch cannot be divided.
        """
        if global_batch_size % self._replicas:
            raise ValueError(
                f"The global_batch_size {global_batch_size} is not divisible by "
                f"num_replicas_in_sync {self._replicas}"
            )
        return global_batch_size // self._replicas

    def __repr__(self) -> str:
        return f"tf.distribute.InputContext({self._pipelines}, {self._id}, {self._replicas})"


class ReplicaContext:
    """What code in a replica knows of the strategy; `tf.distribute.get_replica_context` gives it.

    Args:
        strategy: the strategy.
        replica_id_in_sync_group: the number of the replica: 0, 1, 2 ...

    >>> tf.distribute.get_replica_context().num_replicas_in_sync
    1
    """

    def __init__(self, strategy: Any, replica_id_in_sync_group: Any) -> None:
        self._strategy = strategy
        self._replica_id = replica_id_in_sync_group
        self._shared: Any = None
        #: Names of the variables whose copies have a regularisation loss in this replica.
        self.regularized: set[str] = set()
        self._merge: Callable[..., Any] | None = None

    @property
    def strategy(self) -> Any:
        """The strategy."""
        return self._strategy

    distribution_strategy = strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas train together."""
        count: int = self._strategy.num_replicas_in_sync
        return count

    @property
    def replica_id_in_sync_group(self) -> Any:
        """The number of this replica."""
        return self._replica_id

    @property
    def replica_id(self) -> Any:
        """`replica_id_in_sync_group` under its old name."""
        return self._replica_id

    tower_id = replica_id

    @property
    def devices(self) -> tuple[str, ...]:
        """Where this replica's operations go."""
        place = replica_scope.current()
        number = 0 if place is None or place.replica is None else place.replica
        return (self._strategy.extended.worker_devices[number],)

    @property
    def device(self) -> str:
        """The device of this replica."""
        return self.devices[0]

    def merge_call(self, merge_fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """Call a function once, for all replicas together.

        Args:
            merge_fn: function of the strategy and of the arguments; where those of replicas differ
                it gets a value for each.
            args, kwargs: this replica's arguments.

        Returns:
            What ``merge_fn`` returns: this replica's part where there is one for each.

        Raises:
            RuntimeError: inside a loop, a branch or another function of the graph.
        """
        kwargs = kwargs or {}
        if self._merge is not None:
            place = replica_scope.current()
            if place is not None and get_default_graph() is not self._graph:
                raise RuntimeError(
                    "merge_call called while defining a new graph or a tf.function: updates of "
                    "variables and reductions over replicas cannot stand inside tf.cond, "
                    "tf.while_loop or tf.map_fn. Move them out of the loop or branch."
                )
            return self._merge(merge_fn, tuple(args), kwargs)
        place = Place(self._strategy, get_default_graph().outermost)
        with replica_scope.enter(place):
            return merge_fn(self._strategy, *args, **kwargs)

    def _joins(self, shared: Any, merge: Callable[..., Any] | None) -> ReplicaContext:
        self._shared, self._merge, self._graph = shared, merge, get_default_graph()
        return self

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """The sum or mean over replicas, as every replica gets it.

        Args:
            value: a tensor, or a structure of them; its gradient is all-reduced, too.
        """
        return reductions.all_reduce(self, reduce_op, value)

    def __enter__(self) -> ReplicaContext:
        place = Place(self._strategy, get_default_graph().outermost, 0, False, self)
        self._entered = replica_scope.enter(place)
        self._entered.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._entered.__exit__(*error)


#: Makes the strategy that is in force without any; set by the module of strategies.
default_makers: list[Callable[[], Any]] = []


def _default_strategy() -> Any:
    return default_makers[0]()


def get_strategy() -> Any:
    """The strategy in whose scope code stands; without one a strategy of a single replica.

    >>> tf.distribute.get_strategy().num_replicas_in_sync
    1
    """
    place = replica_scope.current()
    return _default_strategy() if place is None else place.strategy


def has_strategy() -> bool:
    """Whether code stands in the scope of a strategy."""
    return replica_scope.current() is not None


def get_replica_context() -> ReplicaContext | None:
    """The replica in which code stands; None across replicas.

    Without a strategy that of a single replica.
    """
    place = replica_scope.current()
    if place is None:
        context: ReplicaContext = _default_strategy().extended.context
        return context
    if place.replica is None or place.updates:
        return None
    found: ReplicaContext = place.context
    return found


def get_cross_replica_context() -> Any:
    """The strategy across whose replicas code stands; None in a replica."""
    place = replica_scope.current()
    return place.strategy if place is not None and place.replica is None else None


def in_cross_replica_context() -> bool:
    """Whether code stands across the replicas of a strategy."""
    place = replica_scope.current()
    return place is not None and (place.replica is None or place.updates)


def require_replica_context(replica_ctx: Any) -> None:
    """Check that code stands in a replica.

    Raises:
        RuntimeError: if it does not.
    """
    if get_replica_context() is not replica_ctx:
        raise RuntimeError(
            "Need to be inside of this replica's function: strategy.experimental_run_v2(fn) "
            "calls it there."
        )


def get_loss_reduction() -> ReduceOp:
    """How gradients of replicas come together: what an Estimator's loss says, else the sum."""
    if not get_strategy()._scale_loss_for_estimator:
        return ReduceOp.SUM
    last = get_default_graph().get_collection(LAST_LOSS_REDUCTION)
    return ReduceOp.SUM if "weighted_sum" in last else ReduceOp.MEAN


_set: list[Any] = []


def experimental_set_strategy(strategy: Any) -> None:
    """Let a strategy be in force from here on, in the default graph, without a ``with`` block.

    Args:
        strategy: a strategy; None ends what was set.

    Raises:
        RuntimeError: inside the scope of another strategy.
    """
    if _set:
        _set.pop().__exit__(None, None, None)
    if replica_scope.current() is not None:
        raise RuntimeError(
            "Must not be called inside a `tf.distribute.Strategy` scope: leave the scope of "
            f"{type(get_strategy()).__name__} first."
        )
    if strategy is not None:
        scope = strategy.scope()
        scope.__enter__()
        _set.append(scope)

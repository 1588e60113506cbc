"""`StrategyExtended`: what a strategy does with variables, replicas and updates."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headrace.autodiff.gradients import as_list
from headrace.distribute import values
from headrace.distribute.contexts import InputContext, ReplicaContext
from headrace.distribute.copies import made_on, make_copied
from headrace.distribute.reduce_op import ReduceOp, reduce_op
from headrace.distribute.reductions import CrossDeviceOps, HierarchicalCopyAllReduce
from headrace.distribute.replica_calls import call_for_each_replica
from headrace.distribute.values import PerReplica
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.control.basic import group as group_ops
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state import replica_scope
from headrace.ops.state.copied_variables import MirroredVariable
from headrace.ops.state.replica_scope import Place
from headrace.ops.state.variables import Variable

__all__ = ["StrategyExtended"]


class StrategyExtended:
    """The part of a strategy for libraries and optimisers: ``strategy.extended``.

    Args:
        container_strategy: the strategy.
        devices: where the replicas of this process compute.
        parameter_devices: where copies of variables are: one for each replica, or a single one
            that all replicas share.
        cross_device_ops: how values of replicas are brought together.

    >>> strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    >>> strategy.extended.worker_devices
    ('/device:CPU:0', '/device:CPU:1')
    """

    def __init__(
        self,
        container_strategy: Any,
        devices: Sequence[str] = ("",),
        parameter_devices: Sequence[str] | None = None,
        cross_device_ops: CrossDeviceOps | None = None,
    ) -> None:
        self._strategy = container_strategy
        self._devices = tuple(devices)
        self._parameter_devices = (
            self._devices if parameter_devices is None else tuple(parameter_devices)
        )
        self._cross_device_ops = cross_device_ops or HierarchicalCopyAllReduce()

    # -- what it is ---------------------------------------------------------------------------

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """Where the replicas of this process compute."""
        return self._devices

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """Where copies of variables are."""
        return self._parameter_devices

    @property
    def _replicas(self) -> int:
        return len(self._devices)

    @property
    def _num_replicas_in_sync(self) -> int:
        return self._replicas

    @property
    def _joins_gradients(self) -> bool:
        """Whether an optimiser has to bring gradients together."""
        return self._replicas > 1

    @property
    def experimental_between_graph(self) -> bool:
        """Whether each worker builds a graph of its own."""
        return False

    @property
    def experimental_should_init(self) -> bool:
        """Whether this worker initialises variables."""
        return True

    @property
    def should_checkpoint(self) -> bool:
        """Whether this worker writes checkpoints."""
        return True

    @property
    def should_save_summary(self) -> bool:
        """Whether this worker writes summaries."""
        return True

    @property
    def experimental_require_static_shapes(self) -> bool:
        """Whether all shapes have to be known when the graph is built."""
        return False

    def _place(self) -> Place:
        return Place(self._strategy, get_default_graph().outermost)

    def _across(self, function: str) -> contextlib.AbstractContextManager[Any]:
        """Stand across replicas.

        Raises:
            RuntimeError: in a replica, or in the scope of another strategy.
        """
        place = replica_scope.current()
        if place is not None and place.strategy is not self._strategy:
            raise RuntimeError(
                f"{type(self._strategy).__name__}.{function} is called in the scope of another "
                f"strategy, {type(place.strategy).__name__}. Use one strategy in a graph."
            )
        if place is not None and place.replica is not None:
            raise RuntimeError(
                f"{function} is for all replicas together, but it is called in replica "
                f"{place.replica}. Call it outside of the function that runs in replicas, or in "
                "tf.distribute.get_replica_context().merge_call(...)."
            )
        return replica_scope.enter(self._place())

    # -- variables ----------------------------------------------------------------------------

    def _creator(self, next_creator: Callable[..., Variable], **kwargs: Any) -> Variable:
        """Makes a variable of the program: in the first replica, for all of them."""
        place = replica_scope.current()
        if place is None:
            return next_creator(**kwargs)
        name = kwargs.get("name") or "Variable"
        in_replica = place.replica is not None and not place.updates and self._replicas > 1
        if in_replica and place.replica:
            found: Variable = place.context._shared.take(name, place.replica)
            return found
        with replica_scope.across():
            made = self._create_variable(next_creator, **kwargs)
        if in_replica:
            place.context._shared.add(name, made)
        return made

    def _create_variable(self, next_creator: Callable[..., Variable], **kwargs: Any) -> Variable:
        if self._replicas == 1:
            return made_on(self._parameter_devices[0], next_creator, kwargs)
        return make_copied(next_creator, self._devices, self._parameter_devices, kwargs)

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable was made in the scope of this strategy."""
        return self._replicas == 1 or isinstance(v, MirroredVariable)

    def colocate_vars_with(
        self, colocate_with_variable: Any
    ) -> contextlib.AbstractContextManager[Any]:
        """Variables made in the block are beside another one."""

        def beside(next_creator: Callable[..., Variable], **kwargs: Any) -> Variable:
            with get_default_graph().colocate_with(colocate_with_variable):
                return next_creator(**kwargs)

        if isinstance(colocate_with_variable, MirroredVariable):
            return contextlib.nullcontext()  # copies are where its copies are
        return replica_scope.variable_creator_scope(beside)

    def read_var(self, v: Any) -> Tensor:
        """The value of a variable across replicas."""
        with self._across("read_var"):
            return convert_to_tensor(v)

    def value_container(self, value: Any) -> Any:
        """The variable that a copy belongs to; another value itself."""
        if isinstance(value, Variable):
            return value.graph._variable_of.get(value.op, value)
        return value

    # -- replicas -----------------------------------------------------------------------------

    def call_for_each_replica(
        self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call ``fn`` once for each replica.

        Args:
            fn: the function; it stands in a replica.
            args, kwargs: its arguments; of values that differ each replica gets its own.

        Returns:
            What the calls return; tensors that differ as one value for each replica.
        """
        with self._across("call_for_each_replica"):
            return call_for_each_replica(
                self._strategy, self._devices, self._context, fn, tuple(args), dict(kwargs or {})
            )

    def _context(self, number: int, shared: Any, merge: Any) -> ReplicaContext:
        return ReplicaContext(self._strategy, number)._joins(shared, merge)

    @contextlib.contextmanager
    def _updating(self, replica: int) -> Iterator[None]:
        """Where the copies that belong to a replica are updated."""
        graph, devices = get_default_graph(), self._parameter_devices
        with (
            replica_scope.updating(replica),
            graph.colocate_with(None, ignore_existing=True),
            graph.device(None),
            graph.device(devices[replica % len(devices)] or None),
        ):
            yield

    def update(
        self,
        var: Any,
        fn: Callable[..., Any],
        args: Any = (),
        kwargs: Any = None,
        group: bool = True,
    ) -> Any:
        """Call ``fn`` for each copy of a variable.

        Args:
            fn: function of the copy and of ``args`` and ``kwargs``.
            group: return one operation for all calls.
        """
        copies = var.values if isinstance(var, MirroredVariable) else (var,)
        return self._for_copies(copies, fn, args, kwargs, group, "update")

    def update_non_slot(
        self,
        colocate_with: Any,
        fn: Callable[..., Any],
        args: Any = (),
        kwargs: Any = None,
        group: bool = True,
    ) -> Any:
        """Call ``fn`` on each device of ``colocate_with``, which `non_slot_devices` gives."""
        return self._for_copies((None,) * len(colocate_with), fn, args, kwargs, group, "update")

    def _for_copies(
        self, copies: Any, fn: Any, args: Any, kwargs: Any, group: bool, function: str
    ) -> Any:
        results = []
        with self._across(function):
            for number, copy in enumerate(copies):
                with self._updating(number):
                    own = values.select(number, tuple(args)), values.select(number, kwargs or {})
                    first = () if copy is None else (copy,)
                    results.append(fn(*first, *own[0], **own[1]))
            if group:
                return group_ops(*[op for r in results for op in as_list(r) if op is not None])
            return values.regroup(results)

    def non_slot_devices(self, var_list: Any) -> tuple[str, ...]:
        """Where an optimiser keeps what belongs to no single variable."""
        return self._parameter_devices

    # -- values -------------------------------------------------------------------------------

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any) -> Any:
        """The sum or mean of the values of replicas, where ``destinations`` is."""
        return self.batch_reduce_to(reduce_op, [(value, destinations)])[0]

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any) -> list[Any]:
        """`reduce_to` for pairs of values and destinations, which together take less."""
        with self._across("batch_reduce_to"):
            return self._joined(_chosen(reduce_op), list(value_destination_pairs))

    def _joined(self, op: ReduceOp, pairs: list[tuple[Any, Any]]) -> list[Any]:
        """The sums or means over all replicas."""
        pairs = [(self._same_in_all(op, v), destination) for v, destination in pairs]
        return self._cross_device_ops.batch_reduce(op, pairs)

    def _gradients_begin(self) -> None:
        """What the graph gets from now on is gradients, up to `_summed_gradients`."""

    def _summed_gradients(self, pairs: list[tuple[Any, Any]]) -> list[Any]:
        """The sums over all replicas of gradients with their variables."""
        return self._joined(ReduceOp.SUM, pairs)

    def _same_in_all(self, op: ReduceOp, value: Any) -> Any:
        """What all replicas have alike adds up to so many times as much."""
        if isinstance(value, PerReplica) or op is ReduceOp.MEAN or self._replicas == 1:
            return value
        return PerReplica([value] * self._replicas)

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """A tensor, for all devices of the destinations."""
        return self._cross_device_ops.broadcast(tensor, destinations)

    def _reduce(self, op: ReduceOp, value: Any, axis: int | None) -> Any:
        if axis is None:
            return self._joined(op, [(value, None)])[0]
        each = [convert_to_tensor(v) for v in values.local_results(value, self._replicas)]
        sums = [raw.Sum(v, [axis]) for v in each]
        total = self._joined(ReduceOp.SUM, [(PerReplica(sums), None)])[0]
        if op is ReduceOp.SUM:
            return total
        counts = [raw.Gather(raw.Shape(v), axis) for v in each]
        count = self._joined(ReduceOp.SUM, [(PerReplica(counts), None)])[0]
        return raw.RealDiv(total, raw.Cast(count, DstT=total.dtype))

    # -- sessions and input -------------------------------------------------------------------

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Any:
        """A dataset of the rows of NumPy arrays."""
        from headrace.data.dataset import Dataset

        return Dataset.from_tensor_slices(numpy_input)

    def experimental_run_steps_on_iterator(
        self, fn: Any, iterator: Any, iterations: int = 1, initial_loop_values: Any = None
    ) -> Any:
        """An operation that runs ``fn(context, inputs)`` on so many inputs, one after another.

        Returns:
            A context whose ``run_op`` is the operation and ``last_step_outputs`` the last outputs.
        """
        from headrace.distribute.steps import run_steps

        return run_steps(self, fn, iterator, iterations, initial_loop_values)

    def _input_context(self) -> Any:
        return InputContext(1, 0, self._num_replicas_in_sync)

    def _configure(self, session_config: Any, cluster: Any, task_type: Any, task_id: Any) -> None:
        """Take what is known of the cluster."""

    def _update_config(self, config: Any) -> None:
        """Change a ConfigProto to what sessions of this strategy need."""
        numbers = [_cpu_number(d) for d in (*self._devices, *self._parameter_devices)]
        needed = max((n for n in numbers if n is not None), default=0) + 1
        if needed > 1:
            config.device_count["CPU"] = max(needed, config.device_count.get("CPU", 1))


def _chosen(value: Any) -> ReduceOp:
    return reduce_op(value)


def _cpu_number(device: str) -> int | None:
    from headrace.graph.devices import DeviceSpec

    spec = DeviceSpec.from_string(device)
    return spec.device_index if spec.device_type == "CPU" and spec.job is None else None

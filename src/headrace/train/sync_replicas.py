"""Synchronous training: gradients of several replicas are averaged before they are applied."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable
from typing import Any

from headrace import logging
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.control import basic
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.io.accumulators_api import (
    ConditionalAccumulator,
    ConditionalAccumulatorBase,
    SparseConditionalAccumulator,
)
from headrace.ops.io.queues_api import FIFOQueue
from headrace.ops.state import share
from headrace.ops.state.variables import Variable
from headrace.ops.state.variables_api import global_variables, report_uninitialized_variables
from headrace.train.optimizer import GradVar, Optimizer
from headrace.train.queue_runner import QueueRunner
from headrace.train.replica_updates import joining
from headrace.train.sync_replicas_hook import SyncReplicasHook
from headrace.train.wrapped_optimizer import WrappedOptimizer

__all__ = ["SyncReplicasOptimizer"]

#: Tells the replicas of one process apart.
_numbers = itertools.count()


class SyncReplicasOptimizer(WrappedOptimizer):
    """Averages the gradients of several replicas, and has ``opt`` apply them once for all.

    Each variable has an accumulator beside it. A replica computes gradients, adds them there with
    its ``local_step``, and waits for a token. When ``replicas_to_aggregate`` gradients are there,
    the chief takes their average, applies it, counts up the global step and gives out tokens with
    the new step, one for each replica; the token becomes the replica's local step. A gradient
    whose local step is before the global step was computed from old values: it is dropped.

    With ``total_num_replicas`` > ``replicas_to_aggregate`` the others are backups: an update
    takes the first gradients and drops the late ones (Chen et al., "Revisiting Distributed
    Synchronous SGD", 2016). With fewer, each replica computes several batches for an update.

    `compute_gradients` gives the gradients of this replica alone: clip these, if at all.

    Every replica needs the hook of `make_session_run_hook`.

    Args:
        opt: the optimiser that applies the averages.
        replicas_to_aggregate: how many gradients an update needs.
        total_num_replicas: how many replicas there are; ``replicas_to_aggregate`` by default.
        variable_averages: an ExponentialMovingAverage, applied after each update to
            ``variables_to_average``.
        use_locking: of this optimiser's own updates; accumulators always lock.

    Raises:
        ValueError: if a number of replicas is not positive.
        TypeError: if one is no whole number, or ``opt`` no optimiser.
        RuntimeError: in a worker of a plain script.

    >>> x = tf.Variable(4.0)
    >>> step = tf.train.get_or_create_global_step()
    >>> opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.25), 1)
    >>> train = opt.minimize(x * x, global_step=step)
    >>> hooks = [opt.make_session_run_hook(is_chief=True), tf.train.StopAtStepHook(1)]
    >>> with tf.train.MonitoredTrainingSession(hooks=hooks) as sess:
    ...     while not sess.should_stop():
    ...         token = sess.run(train)
    """

    joins_workers = True
    waits_for_gradients = True

    def __init__(
        self,
        opt: Optimizer,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: Any = None,
        variables_to_average: Any = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:
        needed = _positive(replicas_to_aggregate, "replicas_to_aggregate")
        total = needed
        if total_num_replicas is not None:
            total = _positive(total_num_replicas, "total_num_replicas")
        super().__init__(opt, use_locking, name)
        share.refuse_own("a SyncReplicasOptimizer", "--sync")
        logging.info(
            "SyncReplicasV2: replicas_to_aggregate=%s; total_num_replicas=%s", needed, total
        )
        self._replicas_to_aggregate = needed
        self._total_num_replicas = total
        self._variable_averages = variable_averages
        self._variables_to_average = variables_to_average
        self._global_step: Any = None
        self._sync_token_queue: Any = None
        self._chief_queue_runner: QueueRunner | None = None
        self._accumulators: list[tuple[ConditionalAccumulatorBase, Any]] = []
        #: Set by `apply_gradients`: run once by each replica, and by the chief instead.
        self.local_step_init_op: Any = None
        self.chief_init_op: Any = None
        #: The requests to the barrier, by name; for the hook, as what follows.
        self.requests: dict[str, Any] = {}
        self.steps_init_op: Any = None
        self.sync_op: Any = None
        self.give_tokens: Any = None
        self.tokens_to_give: Any = None
        #: Global variables without values: what must be empty before these.
        self.ready_for_local_init_op: Any = None

    def apply_gradients(
        self, grads_and_vars: Iterable[GradVar], global_step: Any = None, name: str | None = None
    ) -> Any:
        """The step of a replica: adds its gradients, waits for a token, whose value it is.

        Raises:
            ValueError: if there is no gradient, or ``global_step`` is not given: without it nobody
                can tell whether a gradient is stale.
            TypeError: if a gradient is neither a tensor nor IndexedSlices.
        """
        joining(self, "apply_gradients")
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        if all(grad is None for grad, _ in pairs):
            raise ValueError(
                f"No gradients provided for any variable: {[str(v) for _, v in pairs]}."
            )
        graph = get_default_graph()
        self._global_step = global_step
        self._make_local_step()
        applied: list[Operation] = []
        taken: list[GradVar] = []
        with graph.name_scope(name or self._name):
            self._make_barrier()
            needed = raw.Cast(self._request("WAIT"), DstT=dtypes.int32)
            for grad, variable in pairs:
                average = None if grad is None else self._average(grad, variable, needed, applied)
                taken.append((average, variable))
            with graph.control_dependencies(applied):
                arrived = self._request("ARRIVE", self._local_step.value())
        if isinstance(self._opt, WrappedOptimizer):
            self._opt.count_skipped()
        # Only a device: updates are colocated with their variables, each somewhere else.
        with graph.device(global_step.device):
            update = self._opt.apply_gradients(taken, global_step)
        with graph.colocate_with(global_step):
            queue = FIFOQueue(
                -1,
                _dtype_of(global_step),
                shapes=[()],
                name="sync_token_q",
                shared_name="sync_token_q",
            )
            self._sync_token_queue = queue
            with graph.control_dependencies([arrived]):
                token = queue.dequeue()
        train: Any = self._local_step.assign(token)
        self._make_sync_op(update)
        self._make_init_ops()
        return train

    def _make_local_step(self) -> None:
        graph = get_default_graph()
        number = next(_numbers)
        # Replicas that are sessions of one server must not share it.
        container = graph.container(f"sync_replica_{number}" if number else graph._container)
        # Beside an op of the replica: device functions put variables on parameter servers.
        with (
            basic.init_scope(),
            container,
            graph.colocate_with(raw.NoOp(), ignore_existing=True),
        ):
            self._local_step = Variable(
                convert_to_tensor(0, _dtype_of(self._global_step)),
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES],
                name="sync_rep_local_step",
            )
        self.local_step_init_op = self._local_step.assign(self._read_global_step()).op
        self.ready_for_local_init_op = report_uninitialized_variables(global_variables())

    def _read_global_step(self) -> Tensor:
        step = self._global_step
        value: Tensor = step.read_value() if hasattr(step, "read_value") else step
        return value

    def _make_barrier(self) -> None:
        with get_default_graph().colocate_with(self._global_step):
            self._barrier = raw.ReplicaBarrier(
                replicas_to_aggregate=self._replicas_to_aggregate,
                total_num_replicas=self.total_num_replicas,
                container=get_default_graph()._container,
                shared_name="sync_replicas_barrier",
                name="replica_barrier",
            )

    def _request(self, request: str, value: Any = 0) -> Tensor:
        """A request to the barrier; see `ops.io.replica_barrier`."""
        number = convert_to_tensor(value, preferred_dtype=dtypes.int64)
        if number.dtype is not dtypes.int64:
            number = raw.Cast(number, DstT=dtypes.int64)
        with get_default_graph().colocate_with(self._barrier.op, ignore_existing=True):
            made: Tensor = raw.ReplicaBarrierRequest(
                self._barrier, number, request=request, replica=self.local_step_device
            )
        return made

    def _average(self, grad: Any, variable: Any, needed: Tensor, applied: list[Operation]) -> Any:
        """The average of a gradient over replicas; ``applied`` gets the op that adds this one's."""
        graph = get_default_graph()
        shared = f"{variable.name}/grad_accum"
        local_step = self._local_step.value()
        accumulator: Any
        with graph.colocate_with(variable, ignore_existing=True):
            if isinstance(grad, IndexedSlices):
                accumulator = SparseConditionalAccumulator(
                    grad.dtype, variable.shape, shared_name=shared
                )
                applied.append(accumulator.apply_indexed_slices_grad(grad, local_step))
                average = accumulator.take_indexed_slices_grad(needed)
            elif isinstance(grad, Tensor):
                accumulator = ConditionalAccumulator(grad.dtype, variable.shape, shared_name=shared)
                applied.append(accumulator.apply_grad(grad, local_step))
                average = accumulator.take_grad(needed)
            else:
                raise TypeError(f"A gradient must be a Tensor or IndexedSlices: {grad!r}")
        self._accumulators.append((accumulator, variable))
        return average

    def _make_sync_op(self, update: Operation) -> None:
        """What the leader runs again and again: an update, and tokens for all."""
        graph = get_default_graph()
        with graph.control_dependencies([update]):
            count = self._request("RELEASE")
        with graph.colocate_with(self._global_step):
            with graph.control_dependencies([update]):
                sync = self._enqueue_tokens(count)
            if self._variable_averages is not None:
                with graph.control_dependencies([sync]):
                    sync = self._variable_averages.apply(self._variables_to_average)
            # Never used: a runner closes its queue at its end, and the tokens must outlive it.
            dummy = FIFOQueue(1, dtypes.int32, [()], name="dummy_queue", shared_name="dummy_queue")
            self.tokens_to_give = raw.Placeholder(dtype=dtypes.int64, shape=())
            self.give_tokens = self._enqueue_tokens(self.tokens_to_give)
        self.sync_op = sync
        self._chief_queue_runner = QueueRunner(dummy, [sync])

    def _enqueue_tokens(self, count: Any) -> Operation:
        shape = raw.Pack([raw.Cast(count, DstT=dtypes.int32)])
        tokens = raw.Fill(shape, self._read_global_step())
        made: Operation = self._sync_token_queue.enqueue_many(tokens)
        return made

    def _make_init_ops(self) -> None:
        graph = get_default_graph()
        step = self._read_global_step()
        begun_anew: list[Tensor] = []
        told: list[Any] = []
        for accumulator, variable in self._accumulators:
            with graph.colocate_with(variable, ignore_existing=True):
                is_new = raw.AccumulatorIsNew(accumulator.accumulator_ref)
                begun_anew.append(raw.Cast(is_new, DstT=dtypes.int64))
        # First of all: once accumulators are told of the step, the next leader would not see it.
        lose = self._request("LOSE", raw.AddN(begun_anew))
        for accumulator, variable in self._accumulators:
            with (
                graph.colocate_with(variable, ignore_existing=True),
                graph.control_dependencies([lose]),
            ):
                told.append(accumulator.set_global_step(step, name="SetGlobalStep"))
        with graph.control_dependencies(told):
            set_step = self._request("SET_STEP", step)
        self.steps_init_op = basic.group(set_step.op)
        self.chief_init_op = basic.group(self.local_step_init_op, self.steps_init_op)
        for name in ("BEGIN", "JOINED", "LACKS", "LEAD", "LEAVE", "RESIGN", "STARTED", "STAY"):
            self.requests[name] = self._request(name)
        self.requests["STAY_CHIEF"] = self._request("STAY", 1)

    @property
    def total_num_replicas(self) -> int:
        """How many replicas there are to be."""
        return self._total_num_replicas

    @property
    def local_step_device(self) -> str:
        """The device of this replica's local step."""
        device: str = self._local_step.device
        return device

    def check_applied(self, message: str) -> None:
        """Raise ValueError with this message before `apply_gradients`."""
        if self._chief_queue_runner is None:
            raise ValueError(message)

    def get_chief_queue_runner(self) -> QueueRunner:
        """The QueueRunner that the chief starts: takes averages, applies them, gives out tokens.

        Raises:
            ValueError: before `apply_gradients`.
        """
        if self._chief_queue_runner is None:
            raise ValueError("Should be called after apply_gradients().")
        return self._chief_queue_runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """The op by which the chief gives out tokens before the first step.

        Args:
            num_tokens: how many; ``replicas_to_aggregate`` by default. With 0, and a replica for
                each gradient, all gradients of the first update come from the initial values.

        Raises:
            ValueError: before `apply_gradients`, or if these are so few that the first update
                would never get its gradients.
        """
        self.check_applied("get_init_tokens_op() should be called after apply_gradients().")
        least = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens == -1:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < least:
            raise ValueError(
                f"Too few tokens to finish the first step: {num_tokens} (given) vs {least} (needed)"
            )
        if num_tokens <= 0:
            return basic.no_op(name="no_init_tokens")
        with get_default_graph().colocate_with(self._global_step):
            return self._enqueue_tokens(convert_to_tensor(num_tokens, dtypes.int64))

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SyncReplicasHook:
        """The hook that every replica needs: it initialises steps, and on the chief the rest.

        Args:
            num_tokens: see `get_init_tokens_op`.
        """
        return SyncReplicasHook(self, is_chief, num_tokens)


def _positive(value: Any, what: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be a whole number, not {value!r}") from None
    if number <= 0:
        raise ValueError(f"{what} must be positive, not {number}")
    return number


def _dtype_of(global_step: Any) -> Any:
    return global_step.dtype.base_dtype

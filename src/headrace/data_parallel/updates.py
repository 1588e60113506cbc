"""Updates of all workers in the place of those of a program that is alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from headrace.data_parallel.gradients import values_of
from headrace.data_parallel.mode import ParallelMode
from headrace.data_parallel.state import SharedUpdate, state_of
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation
from headrace.ops.control import basic
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state.variables import Variable
from headrace.train.all_reduce_optimizer import AllReduceOptimizer
from headrace.train.sync_replicas import SyncReplicasOptimizer
from headrace.train.wrapped_optimizer import WrappedOptimizer

__all__ = ["apply"]

GradVar = tuple[Any, Any]


class _Asked(NamedTuple):
    """What the script asks `Optimizer.apply_gradients` for."""

    optimizer: Any
    pairs: Sequence[GradVar]
    global_step: Any
    name: str | None

    @property
    def step_name(self) -> str:
        return self.name or str(self.optimizer.get_name())


def apply(
    mode: ParallelMode,
    workers: int,
    is_chief: bool,
    optimizer: Any,
    pairs: Sequence[GradVar],
    global_step: Any,
    name: str | None,
) -> Operation:
    """The op that applies the gradients of all workers; see `Optimizer.apply_gradients`."""
    graph = get_default_graph()
    state = state_of(graph)
    asked = _Asked(optimizer, pairs, global_step, name)
    if mode.kind == "sync":
        # Each training step has a barrier of its own.
        more = f"_{len(state.updates)}" if state.updates else ""
        with graph.container(f"{graph._container}{more}"):
            update = _together(mode, workers, is_chief, asked)
    elif mode.kind == "async":
        update = _by_itself(workers, asked)
    else:
        update = _all_reduced(workers, is_chief, asked)
    if update.own:
        with graph.name_scope("data_parallel"):
            update.begin = basic.group(*[v.initializer for v in update.own])
            known = [v.is_initialized() for v in update.own]
            update.ready = raw.All(raw.Pack(known), [0])
    update.gradients = [values_of(g).op for g, _ in pairs if g is not None]
    state.updates.append(update)
    if update.op not in graph.get_collection_ref(GraphKeys.TRAIN_OP):
        graph.add_to_collection(GraphKeys.TRAIN_OP, update.op)
    return update.op


def _counter(name: str, dtype: Any = dtypes.int64) -> Variable:
    """A variable of all workers that is no part of the model: in no checkpoint."""
    zero = convert_to_tensor(0, dtype)
    return Variable(zero, trainable=False, collections=["data_parallel"], name=name)


def _by_itself(workers: int, asked: _Asked) -> SharedUpdate:
    """Each worker changes the variables alone; together they count one step in so many.

    So a step of the script is one of all workers, and its schedules and limits keep their meaning,
    also while a worker is missing.
    """
    graph = get_default_graph()
    optimizer, pairs, global_step, name = asked
    if global_step is None or workers == 1:
        return SharedUpdate(optimizer.apply_gradients(pairs, global_step, name))
    done = optimizer.apply_gradients(pairs, None, f"{asked.step_name}_update")
    # Its first value must not wait for a step.
    with graph.colocate_with(global_step), graph.control_dependencies(None):
        counter = _counter("data_parallel/steps_of_workers")
    with graph.colocate_with(global_step), graph.control_dependencies([done]):
        count = counter.assign_add(convert_to_tensor(1, dtypes.int64))
        left = raw.FloorMod(count, convert_to_tensor(workers, dtypes.int64))
        more = raw.Cast(raw.Equal(left, 0), DstT=global_step.dtype.base_dtype)
        counted = global_step.assign_add(more)
        step = basic.group(counted, name=asked.step_name)
    return SharedUpdate(step, [counter])


def _together(mode: ParallelMode, workers: int, is_chief: bool, asked: _Asked) -> SharedUpdate:
    """One update has the gradients of all workers, or of those who come first."""
    # The script may give its own step any value, in the middle of training.
    counter = _counter("data_parallel/global_step")
    optimizer = _StepOfScript(asked.optimizer, asked.global_step)
    together = SyncReplicasOptimizer(optimizer, workers - mode.backups, workers)
    token = together.apply_gradients(asked.pairs, counter)
    hook = together.make_session_run_hook(is_chief, num_tokens=0)
    hook.begin()  # sessions without hooks have only this graph, as it is now
    step = basic.group(token, name=asked.step_name)
    return SharedUpdate(step, [counter], hook=hook, is_missed=hook.is_missed)


class _StepOfScript(WrappedOptimizer):
    """Counts the global step of a script, if it has one, beside that by which workers wait."""

    def __init__(self, opt: Any, step: Any) -> None:
        super().__init__(opt, False, opt.get_name())
        self._step = step

    def count_skipped(self) -> None:
        """What tells stale gradients is not the step of the script."""

    def apply_gradients(
        self, grads_and_vars: Iterable[GradVar], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """An op that applies the gradients, and then counts both steps."""
        graph = get_default_graph()
        done = self._opt.apply_gradients(grads_and_vars, self._step, name)
        with graph.colocate_with(global_step), graph.control_dependencies([done]):
            counted: Operation = global_step.assign_add(convert_to_tensor(1, dtypes.int64)).op
        return counted


def _all_reduced(workers: int, is_chief: bool, asked: _Asked) -> SharedUpdate:
    """Each worker has all variables, and updates them by the average of all gradients."""
    optimizer, pairs, global_step, name = asked
    graph = get_default_graph()
    together = AllReduceOptimizer(optimizer, workers)
    with graph.name_scope("data_parallel"):
        if workers > 1:
            pairs = together.averaged(list(pairs), len(graph.get_operations()))
    step = optimizer.apply_gradients(pairs, global_step, name)
    return SharedUpdate(step, hook=together.make_session_run_hook(is_chief))

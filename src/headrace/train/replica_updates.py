"""Optimisers in the replicas of a strategy: gradients are brought together before they are applied.

Replicas compute gradients of their own losses. Their sum is applied to each copy of a variable, by
the device that has the copy; slots have copies, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.segments import segment
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control import basic
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.state import replica_scope
from headrace.ops.state.copied_variables import MirroredVariable
from headrace.ops.state.replica_scope import LAST_LOSS_REDUCTION, Place
from headrace.ops.state.variables import Variable

__all__ = ["apply_together", "check_copies", "joining", "scaled"]


def joining(optimizer: Any, function: str) -> Place | None:
    """Where code stands, if gradients of several replicas have to be brought together there.

    Raises:
        RuntimeError: across replicas, where there is no single gradient.
        ValueError: if the optimiser cannot work in replicas.
    """
    place = replica_scope.current()
    if place is None or place.updates or not place.strategy.extended._joins_gradients:
        return None
    kind, strategy = type(optimizer).__name__, type(place.strategy).__name__
    if optimizer.joins_workers:
        raise ValueError(
            f"{kind} cannot be split over the replicas of {strategy}: it brings the gradients of "
            "workers together itself, as the strategy does. Use the optimiser inside it with this "
            "strategy, or use it without a strategy."
        )
    if place.replica is None:
        raise RuntimeError(
            f"{kind}.{function} is called across the replicas of {strategy}. Call it in the "
            "function that strategy.experimental_run_v2 (or call_for_each_replica) runs in each."
        )
    return place


def check_copies(place: Place, variables: Sequence[Any]) -> None:
    """Raise ValueError for variables that have no copies in the replicas."""
    lacking = [
        v.name for v in variables if isinstance(v, Variable) and not isinstance(v, MirroredVariable)
    ]
    if not lacking or place.strategy.extended._replicas == 1:
        return
    strategy = type(place.strategy).__name__
    shown = ", ".join(lacking[:5]) + (" ..." if len(lacking) > 5 else "")
    raise ValueError(
        f"The variables {shown} were made outside of the scope of {strategy}, so they have no "
        f"copies in its {place.strategy.extended._replicas} replicas and cannot be trained there. "
        "Open `with strategy.scope():` before the model is built, in a new graph, or give "
        "minimize(var_list=...) the variables that were made in it."
    )


def scaled(loss: Tensor) -> Tensor:
    """A loss, of which the sum of the gradients over replicas is that of the whole batch.

    Only where an Estimator trains; else programs divide by the global batch themselves.
    """
    place = replica_scope.current()
    if place is None or not place.strategy._scale_loss_for_estimator:
        return loss
    count = place.strategy.num_replicas_in_sync
    last = get_default_graph().get_collection(LAST_LOSS_REDUCTION)
    if count == 1 or "weighted_sum" in last:
        return loss
    return loss * convert_to_tensor(1.0 / count, loss.dtype)


def apply_together(
    optimizer: Any, place: Place, pairs: Sequence[Any], global_step: Any, name: str | None
) -> Operation:
    """An op that applies the gradients of all replicas; see `Optimizer.apply_gradients`.

    Raises:
        ValueError: for variables that have no copies.
    """
    grads, variables = [g for g, _ in pairs], [v for _, v in pairs]
    check_copies(place, variables)

    def merged(strategy: Any, grads: Any, variables: Any) -> Operation:
        return _Update(optimizer, strategy.extended, name).op(grads, variables, global_step)

    step: Operation = place.context.merge_call(merged, args=(grads, variables))
    return step


class _Update:
    def __init__(self, optimizer: Any, extended: Any, name: str | None) -> None:
        self._optimizer, self._extended = optimizer, extended
        self._name = name or optimizer.get_name()

    def op(self, grads: Sequence[Any], variables: Sequence[Any], global_step: Any) -> Operation:
        graph = get_default_graph()
        given = [(g, v) for g, v in zip(grads, variables, strict=True) if g is not None]
        # Units of their own, equal in all replicas: in programs that differ XLA would round them
        # differently, and copies of a variable would drift apart.
        with graph.name_scope(f"{self._name}_sums") as scope, segment(f"gradients of {scope}"):
            sums = self._extended._summed_gradients(given)
        trained = [v for _, v in given]
        with basic.init_scope():
            self._optimizer._create_slots(trained)
        pairs = list(zip(sums, trained, strict=True))
        with graph.name_scope(self._name) as scope:
            if global_step is None:
                step = basic.group(*self._in_replicas(pairs), name=scope)
            else:
                done = basic.group(*self._in_replicas(pairs), name="update")
                with graph.control_dependencies([done]):
                    step = self._optimizer._incremented(global_step, scope)
        if step not in graph.get_collection_ref(GraphKeys.TRAIN_OP):
            graph.add_to_collection(GraphKeys.TRAIN_OP, step)
        return step

    def _in_replicas(self, pairs: Sequence[Any]) -> list[Operation]:
        graph, done = get_default_graph(), []
        for replica in range(self._extended._replicas):
            own = [(g, v) for g, v in pairs if replica < _copies(v)]
            if not own:
                continue
            scope = f"replica_{replica}" if replica else f"{graph.get_name_scope()}/"
            unit = segment(f"{graph.get_name_scope()}/replica {replica}")
            with self._extended._updating(replica), graph.name_scope(scope), unit:
                self._optimizer._prepare()
                updates = self._optimizer._updates(own)
                done.append(self._optimizer._finish(updates, "finish"))
        return done


def _copies(variable: Any) -> int:
    """How many copies of a variable are updated: a table of embeddings has none, but itself."""
    return len(variable.values) if isinstance(variable, MirroredVariable) else 1

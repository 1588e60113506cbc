"""Models of Keras that are compiled in the scope of a strategy."""

from __future__ import annotations

from typing import Any

from headrace.errors import UnimplementedError
from headrace.graph.devices import DeviceSpec
from headrace.ops.state import replica_scope

__all__ = ["check_strategy"]


def check_strategy(given: Any) -> None:
    """See whether `fit` does what a strategy asks for.

    Replicas that share one processor learn what it learns from the whole batch, so `fit` trains on
    that at once.

    Args:
        given: the argument ``distribute`` of `compile`; by default the strategy in force.

    Raises:
        UnimplementedError: for replicas on several accelerators or workers.
        ValueError: if ``given`` is no strategy.
    """
    place = replica_scope.current()
    strategy = given if given is not None or place is None else place.strategy
    if strategy is None:
        return
    if not hasattr(strategy, "extended"):
        raise ValueError(f"compile(distribute=...) takes a strategy of tf.distribute: {strategy!r}")
    if place is not None and place.replica is not None:
        return  # a model that is called there: `fit` is not
    extended = strategy.extended
    kinds = {DeviceSpec.from_string(d).device_type for d in extended.worker_devices}
    several = len(extended.worker_devices) > 1 and kinds != {"CPU"}
    if not several and not extended.experimental_between_graph:
        return
    where = "several workers" if extended.experimental_between_graph else "several accelerators"
    raise UnimplementedError(
        None,
        None,
        f"model.fit does not train on {where} by {type(strategy).__name__}. "
        "tf.keras.estimator.model_to_estimator(model, config=tf.estimator.RunConfig("
        "train_distribute=strategy)) does, and so does a loop around "
        "strategy.experimental_run_v2 that calls the model.",
    )

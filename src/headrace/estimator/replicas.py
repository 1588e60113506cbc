"""Models of Estimators in the replicas of a strategy: input for each, and one spec of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.data.dataset import Dataset
from headrace.distribute import values
from headrace.distribute.contexts import get_loss_reduction
from headrace.distribute.inputs import DistributedDataset
from headrace.distribute.reduce_op import ReduceOp
from headrace.estimator.callables import argument_names, described
from headrace.estimator.input_results import DatasetInitializerHook, Inputs, inputs_of
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.run_config import RunConfig, default_session_config
from headrace.estimator.spec import EstimatorSpec

__all__ = ["build", "config_for", "input_arguments", "strategy_of"]


def strategy_of(config: RunConfig, mode: str) -> Any:
    """The strategy of a mode, or None."""
    if mode == ModeKeys.TRAIN:
        return config.train_distribute
    return config.eval_distribute if mode == ModeKeys.EVAL else None


def config_for(config: RunConfig, strategy: Any) -> RunConfig:
    """A RunConfig whose sessions have what a strategy needs."""
    if strategy is None:
        return config
    session_config = config.session_config or default_session_config()
    return config.replace(session_config=strategy.update_config_proto(session_config))


def input_arguments(input_fn: Any, strategy: Any) -> dict[str, Any]:
    """What an input function gets of a strategy: ``input_context``, if it takes it."""
    if strategy is None or "input_context" not in argument_names(input_fn):
        return {}
    return {"input_context": strategy.extended._input_context()}


def build(
    strategy: Any,
    input_fn: Any,
    call_input_fn: Callable[[], Any],
    call_model_fn: Callable[[Any, Any], EstimatorSpec],
    mode: str,
) -> tuple[Inputs, EstimatorSpec]:
    """Input and model in all replicas, in the scope of the strategy.

    Returns:
        The input of the first replica, and one spec.
    """
    with strategy._scaling_losses():
        inputs, features, labels = _inputs(strategy, input_fn, call_input_fn)
        with inputs.named(building=True):
            if mode == ModeKeys.PREDICT:
                labels = None
            found = strategy.extended.call_for_each_replica(call_model_fn, (features, labels))
            return inputs, _merged(strategy, found, mode)


def _inputs(strategy: Any, input_fn: Any, call: Callable[[], Any]) -> tuple[Inputs, Any, Any]:
    result = call()
    if not isinstance(result, Dataset):
        others = [call() for _ in range(strategy.extended._replicas - 1)]
        each = [inputs_of(r, input_fn) for r in (result, *others)]
        features = values.regroup([i.features for i in each])
        return each[0], features, values.regroup([i.labels for i in each])
    iterator = DistributedDataset(strategy, result, per_replica=True).make_initializable_iterator()
    element = iterator.get_next()
    first = inputs_of(values.select(0, element), input_fn)
    hooks = [DatasetInitializerHook(iterator), *first.hooks]
    inputs = Inputs(first.features, first.labels, result, hooks, described(input_fn))
    if isinstance(element, (list, tuple)):
        return inputs, element[0], element[1]
    return inputs, element, None


def _merged(strategy: Any, found: EstimatorSpec, mode: str) -> EstimatorSpec:
    """One spec of the values of all replicas."""

    def first(value: Any) -> Any:
        return values.select(0, value)

    spec: EstimatorSpec = first(found)
    if mode == ModeKeys.PREDICT:
        return spec
    mean = get_loss_reduction() is ReduceOp.MEAN
    spec = spec._replace(loss=strategy.reduce(ReduceOp.MEAN if mean else ReduceOp.SUM, found.loss))
    if mode == ModeKeys.TRAIN:
        return spec._replace(train_op=strategy.group(found.train_op))
    metrics = {
        name: (first(pair[0]), strategy.group(pair[1]))
        for name, pair in found.eval_metric_ops.items()
    }
    return spec._replace(eval_metric_ops=metrics)

"""Estimators made from others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.estimator.callables import argument_names, described
from headrace.estimator.estimator import Estimator
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.spec import EstimatorSpec

__all__ = ["add_metrics"]

_METRIC_FN_ARGUMENTS = {"features", "predictions", "labels", "config", "self"}


def add_metrics(estimator: Estimator, metric_fn: Callable[..., dict[str, Any]]) -> Estimator:
    """An Estimator with more metrics, in the same model_dir.

    Args:
        metric_fn: takes any of ``features``, ``labels``, ``predictions`` and ``config``, and gives
            pairs (value, update) by name: values are scalars. They replace metrics of that name.

    Raises:
        ValueError: if ``metric_fn`` takes other arguments.
    """
    names = set(argument_names(metric_fn))
    others = sorted(names - _METRIC_FN_ARGUMENTS)
    if others:
        raise ValueError(
            f"metric_fn ({described(metric_fn)}) has following not expected args: {others}"
        )

    def new_model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        spec = estimator.model_fn(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        given = {
            "features": features,
            "labels": labels,
            "predictions": spec.predictions,
            "config": config,
        }
        more = metric_fn(**{name: value for name, value in given.items() if name in names})
        return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **more})

    return Estimator(
        new_model_fn,
        model_dir=estimator.model_dir,
        config=estimator.config,
        warm_start_from=estimator._warm_start_settings,
    )

"""Estimators and optimizers made from others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import headrace as tf
from headrace.errors import suggest
from headrace.estimator.callables import argument_names, described
from headrace.estimator.estimator import Estimator
from headrace.estimator.export.outputs import PredictOutput
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.spec import EstimatorSpec
from headrace.train.wrapped_optimizer import WrappedOptimizer

__all__ = ["add_metrics", "clip_gradients_by_norm", "forward_features"]

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


class _ClippedByNorm(WrappedOptimizer):
    """An optimizer whose gradients are clipped to a global norm."""

    def __init__(self, optimizer: tf.train.Optimizer, clip_norm: Any) -> None:
        super().__init__(optimizer, False, f"ClipByNorm{optimizer.get_name()}")
        self._norm = clip_norm

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        pairs = list(grads_and_vars)
        clipped, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], self._norm)
        found = list(zip(clipped, [variable for _, variable in pairs], strict=True))
        return super().apply_gradients(found, global_step, name)


def clip_gradients_by_norm(optimizer: Any, clip_norm: Any) -> Any:
    """An optimizer that clips the gradients together before it applies them.

    Args:
        optimizer: a `tf.train` optimizer.
        clip_norm: the largest norm of all gradients together, a scalar.

    Raises:
        ValueError: for what is no `tf.train` optimizer.

    >>> optimizer = tf.contrib.estimator.clip_gradients_by_norm(
    ...     tf.train.GradientDescentOptimizer(1.0), clip_norm=2.0
    ... )
    >>> optimizer.get_name()
    'ClipByNormGradientDescent'
    """
    if not isinstance(optimizer, tf.train.Optimizer):
        raise ValueError(
            f"clip_gradients_by_norm takes a tf.train.Optimizer; got {type(optimizer).__name__}."
        )
    return _ClippedByNorm(optimizer, clip_norm)


def forward_features(
    estimator: Estimator,
    keys: Sequence[str] | str | None = None,
    sparse_default_values: Mapping[str, Any] | None = None,
) -> Estimator:
    """An Estimator whose predictions have features as well, such as the keys of examples.

    Args:
        keys: names of features ``[batch, ...]``; all if None.
        sparse_default_values: what fills up features that are sparse, by name.

    Raises:
        TypeError: for keys that are no strings.
        ValueError: when it runs, for predictions that are no dictionary or have such a key,
            features that are not there, and sparse ones without a value to fill.

    >>> def model_fn(features, mode):
    ...     return tf.estimator.EstimatorSpec(mode, {"twice": 2 * features["x"]})
    >>> estimator = tf.contrib.estimator.forward_features(tf.estimator.Estimator(model_fn), "id")
    >>> def one():
    ...     return tf.data.Dataset.from_tensors({"x": [1.5], "id": [7]})
    >>> sorted(next(estimator.predict(one)).items())
    [('id', np.int32(7)), ('twice', np.float32(3.0))]
    """
    chosen = [keys] if isinstance(keys, str) else keys
    if chosen is not None:
        if not isinstance(chosen, (list, tuple)):
            raise TypeError(
                f"keys should be either a string or a list of strings. Given: {type(chosen)}"
            )
        for key in chosen:
            if not isinstance(key, str):
                raise TypeError(
                    "All items in the given keys list should be a string. There exist an item "
                    f"with type: {type(key)}"
                )

    def new_model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        given = dict(features) if isinstance(features, Mapping) else features
        spec = estimator.model_fn(features, labels, mode, config)
        if mode != ModeKeys.PREDICT:
            return spec
        more = _forwarded(given, spec.predictions, chosen, sparse_default_values or {})
        outputs = dict(spec.export_outputs)
        for name in ("predict", "serving_default"):
            if isinstance(outputs.get(name), PredictOutput):
                outputs[name] = PredictOutput({**outputs[name].outputs, **more})
        return spec._replace(predictions={**spec.predictions, **more}, export_outputs=outputs)

    return Estimator(
        new_model_fn,
        model_dir=estimator.model_dir,
        config=estimator.config,
        warm_start_from=estimator._warm_start_settings,
    )


def _forwarded(
    features: Any, predictions: Any, keys: Sequence[str] | None, fill: Mapping[str, Any]
) -> dict[str, Any]:
    """The features that join the predictions."""
    if not isinstance(predictions, dict) or not isinstance(features, Mapping):
        raise ValueError(
            "Predictions should be a dict to be able to forward features, and features too. "
            f"Given: {type(predictions)} and {type(features)}"
        )
    found = {}
    for key in features if keys is None else keys:
        if key not in features:
            raise ValueError(
                f'keys should be exist in features. Key "{key}" is not in features dict. features '
                f"dict has following keys: {list(features)}.{suggest(key, map(str, features))}"
            )
        if key in predictions:
            raise ValueError(
                f"Cannot forward feature key ({key}). Since it does exist in predictions. Existing "
                f"prediction keys: {list(predictions)}. Please check arguments of forward_features."
            )
        feature = tf.convert_to_tensor_or_sparse_tensor(features[key])
        if key in fill:
            if not isinstance(feature, tf.SparseTensor):
                raise ValueError(f"Feature ({key}) is expected to be a `SparseTensor`.")
            feature = tf.sparse_tensor_to_dense(feature, default_value=fill[key])
        if isinstance(feature, tf.SparseTensor):
            raise ValueError(
                f"Feature ({key}) should be a Tensor. Please use `keys` argument of "
                "forward_features to filter unwanted features, or add key to argument "
                "`sparse_default_values`."
            )
        found[key] = feature
    return found

"""`tf.keras.estimator.model_to_estimator`: a compiled Keras model as an Estimator."""

from __future__ import annotations

from typing import Any

from headrace.estimator.estimator import Estimator
from headrace.estimator.export.outputs import PredictOutput
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.spec import EstimatorSpec
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.keras.hooks import install
from headrace.keras.loading import load_keras
from headrace.keras.training import tensor_optimizer
from headrace.metrics import mean
from headrace.ops.control.jax_call_api import from_jax
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.math.reduction_api import reduce_mean
from headrace.ops.state.scopes_api import control_dependencies
from headrace.train.global_step import get_or_create_global_step


def model_to_estimator(
    keras_model: Any = None,
    keras_model_path: str | None = None,
    custom_objects: Any = None,
    model_dir: str | None = None,
    config: Any = None,
    checkpoint_format: str = "saver",
) -> Estimator:
    """An Estimator that trains, evaluates and exports a compiled Keras model.

    It begins with the weights that the model has now, whose shapes and names its variables have;
    what it trains is in ``model_dir``, the model itself stays as it is.

    Args:
        keras_model: a compiled model with a loss and an optimiser, of one output.
        keras_model_path: or a file of one.
        checkpoint_format: "saver"; there is no other.

    Raises:
        ValueError: if neither or both are given, the model is not compiled, or `tf.train` has no
            optimiser that does what its optimiser does.
    """
    install()
    keras = load_keras()
    if checkpoint_format != "saver":
        raise ValueError(f"checkpoint_format is 'saver'; there is no {checkpoint_format!r}.")
    if (keras_model is None) == (keras_model_path is None):
        raise ValueError(
            "Give model_to_estimator a keras_model or a keras_model_path: one of them."
        )
    if keras_model is None:
        keras_model = keras.models.load_model(keras_model_path, custom_objects)
    if not getattr(keras_model, "compiled", False) or keras_model.loss is None:
        raise ValueError(
            f"The model '{keras_model.name}' has no optimizer and loss: call its compile first."
        )
    tensor_optimizer(keras_model)  # refuses what cannot be trained before anything is built
    weights = keras_model.get_weights()

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        model = keras.models.clone_model(keras_model)
        model.set_weights(weights)
        outputs = model(_inputs(model, features), training=mode == ModeKeys.TRAIN)
        predictions = {model.layers[-1].name: outputs}
        if mode == ModeKeys.PREDICT:
            served = {"serving_default": PredictOutput(predictions)}
            return EstimatorSpec(mode, predictions=predictions, export_outputs=served)
        labels = convert_to_tensor(labels)
        loss = reduce_mean(from_jax(keras.losses.get(keras_model.loss))(labels, outputs))
        for penalty in model.losses:
            loss = loss + penalty
        train_op = _train_op(keras_model, loss) if mode == ModeKeys.TRAIN else None
        measures = {
            name: mean(from_jax(function)(labels, outputs))
            for name, function in _metrics(keras_model, labels, outputs)
        }
        return EstimatorSpec(mode, predictions, loss, train_op, measures)

    return Estimator(model_fn, model_dir=model_dir, config=config)


def _inputs(model: Any, features: Any) -> Any:
    """The inputs of the model: by their names where there are several."""
    if not isinstance(features, dict):
        return features
    names = [t.name for t in model.inputs]
    if len(names) == 1 and len(features) == 1:
        return next(iter(features.values()))
    missing = [n for n in names if n not in features]
    if missing:
        raise KeyError(
            f"The model has inputs {names}, of which the features lack {missing}; "
            f"they are {sorted(features)}."
        )
    found = [features[n] for n in names]
    return found if len(found) > 1 else found[0]


def _train_op(keras_model: Any, loss: Any) -> Any:
    updates = get_default_graph().get_collection(GraphKeys.UPDATE_OPS)
    with control_dependencies(updates):
        return tensor_optimizer(keras_model).minimize(loss, get_or_create_global_step())


def _metrics(keras_model: Any, labels: Any, outputs: Any) -> list[tuple[str, Any]]:
    """The metrics given to `compile`, each as a function of one example's label and output."""
    metrics = load_keras().metrics
    given = getattr(keras_model, "_headrace_metrics", None) or []
    found = []
    for metric in given:
        if metric in ("acc", "accuracy"):
            size = outputs.shape.as_list()[-1]
            if size == 1:
                function = metrics.binary_accuracy
            elif labels.shape.as_list()[-1:] == [size]:
                function = metrics.categorical_accuracy
            else:
                function = metrics.sparse_categorical_accuracy
            found.append((metric, function))
        else:
            function = metrics.get(metric)
            found.append((getattr(function, "__name__", str(metric)), function))
    return found

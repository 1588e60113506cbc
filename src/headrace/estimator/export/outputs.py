"""What an exported model gives: predictions, classes and scores, regressed values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.graph import dtypes
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import constant
from headrace.ops.state.scopes_api import control_dependencies
from headrace.saved_model import signature_constants as keys
from headrace.saved_model.signature_def_utils import (
    build_signature_def,
    classification_signature_def,
    predict_signature_def,
    regression_signature_def,
)
from headrace.saved_model.utils import build_tensor_info

__all__ = [
    "ClassificationOutput",
    "EvalOutput",
    "ExportOutput",
    "PredictOutput",
    "RegressionOutput",
    "TrainOutput",
    "checked_export_outputs",
]


class ExportOutput:
    """Base of what a model can be asked for when it is served.

    >>> issubclass(tf.estimator.export.PredictOutput, tf.estimator.export.ExportOutput)
    True
    """

    def as_signature_def(self, receiver_tensors: dict[str, Any]) -> Any:
        """The signature with these inputs.

        Raises:
            ValueError: if the inputs do not fit the method.
        """
        raise NotImplementedError(f"{type(self).__name__} has no as_signature_def().")


class ClassificationOutput(ExportOutput):
    """Classes, their scores, or both; clients send serialised Examples.

    Args:
        scores: floats, shape (batch, classes).
        classes: strings, shape (batch, classes).

    Raises:
        ValueError: if both are None, or of another dtype.

    >>> scores = tf.constant([[0.25, 0.75]])
    >>> tf.estimator.export.ClassificationOutput(scores).scores is scores
    True
    """

    def __init__(self, scores: Any = None, classes: Any = None) -> None:
        if scores is not None and not (isinstance(scores, Tensor) and scores.dtype.is_floating):
            raise ValueError(f"Classification scores must be a float32 Tensor; got {scores}")
        if classes is not None and not (
            isinstance(classes, Tensor) and classes.dtype == dtypes.string
        ):
            raise ValueError(f"Classification classes must be a string Tensor; got {classes}")
        if scores is None and classes is None:
            raise ValueError("At least one of scores and classes must be set.")
        self._scores = scores
        self._classes = classes

    @property
    def scores(self) -> Any:
        """The score of each class, or None."""
        return self._scores

    @property
    def classes(self) -> Any:
        """The names of the classes, or None."""
        return self._classes

    def as_signature_def(self, receiver_tensors: dict[str, Any]) -> Any:
        examples = _only_string(receiver_tensors, "Classification")
        return classification_signature_def(examples, self.classes, self.scores)


class RegressionOutput(ExportOutput):
    """One value for each example; clients send serialised Examples.

    Args:
        value: floats, shape (batch,) or (batch, 1).

    Raises:
        ValueError: if that is no tensor of floats.

    >>> value = tf.constant([[1.5]])
    >>> tf.estimator.export.RegressionOutput(value).value is value
    True
    """

    def __init__(self, value: Any) -> None:
        if not (isinstance(value, Tensor) and value.dtype.is_floating):
            raise ValueError(f"Regression output value must be a float32 Tensor; got {value}")
        self._value = value

    @property
    def value(self) -> Any:
        """The predicted values."""
        return self._value

    def as_signature_def(self, receiver_tensors: dict[str, Any]) -> Any:
        return regression_signature_def(_only_string(receiver_tensors, "Regression"), self.value)


class PredictOutput(ExportOutput):
    """Any tensors, by name.

    Args:
        outputs: a tensor, which is then called "output", or a dictionary of tensors.

    Raises:
        ValueError: if a name is no string, or a value no tensor.

    >>> sorted(tf.estimator.export.PredictOutput(tf.constant([0.5])).outputs)
    ['output']
    """

    def __init__(self, outputs: Any) -> None:
        self._outputs = _tensors_by_name(outputs, "output", "Prediction")

    @property
    def outputs(self) -> dict[str, Tensor]:
        """The tensors by name."""
        return self._outputs

    def as_signature_def(self, receiver_tensors: dict[str, Any]) -> Any:
        return predict_signature_def(receiver_tensors, self.outputs)


class _SupervisedOutput(ExportOutput):
    """Loss, predictions and metrics of a graph for training or evaluation."""

    _method = ""

    def __init__(self, loss: Any = None, predictions: Any = None, metrics: Any = None) -> None:
        self._outputs: dict[str, Tensor] = {}
        for what, given in (("loss", loss), ("predictions", predictions)):
            if given is not None:
                named = _tensors_by_name(given, what, what)
                self._outputs.update({_prefixed(n, what): t for n, t in named.items()})
        self._outputs.update(_metric_tensors(metrics))

    def as_signature_def(self, receiver_tensors: dict[str, Any]) -> Any:
        if not receiver_tensors:
            raise ValueError("Training and evaluation need inputs: there are none.")
        return build_signature_def(
            {name: build_tensor_info(t) for name, t in receiver_tensors.items()},
            {name: build_tensor_info(t) for name, t in self._outputs.items()},
            self._method,
        )


class TrainOutput(_SupervisedOutput):
    """What a graph for training gives: the loss, and what else there is."""

    _method = "tensorflow/supervised/training"


class EvalOutput(_SupervisedOutput):
    """What a graph for evaluation gives: the loss and metrics."""

    _method = "tensorflow/supervised/eval"


def checked_export_outputs(export_outputs: Any, predictions: Any) -> dict[str, ExportOutput]:
    """The outputs of a model that is served, with the default one among them.

    Raises:
        TypeError: if they are no dictionary of ExportOutputs.
        ValueError: if there are several, none of them the default one.
    """
    default = keys.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    if export_outputs is None:
        return {default: PredictOutput(predictions)}
    if not isinstance(export_outputs, dict):
        raise TypeError(f"`export_outputs` must be dict, given: {export_outputs}")
    for value in export_outputs.values():
        if not isinstance(value, ExportOutput):
            raise TypeError(
                f"Values in `export_outputs` must be ExportOutput objects. Given: {export_outputs}"
            )
    outputs = dict(export_outputs)
    if len(outputs) == 1:
        [only] = outputs.values()
        outputs[default] = only
    elif outputs and default not in outputs:
        raise ValueError(
            "Multiple `export_outputs` were provided, but none of them is specified as the "
            f"default: {sorted(map(str, outputs))}. Do this by naming one of them with "
            "tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY."
        )
    return outputs


def _only_string(receivers: Mapping[str, Any], method: str) -> Any:
    tensors = list(receivers.values())
    if len(tensors) != 1 or tensors[0].dtype != dtypes.string:
        raise ValueError(f"{method} input must be a single string Tensor; got {receivers}")
    return tensors[0]


def _name(key: Any, what: str) -> str:
    if isinstance(key, tuple):
        key = "/".join(key)  # heads of a multi-head name theirs (head, name)
    if not isinstance(key, str):
        raise ValueError(f"{what} output key must be a string; got {key}.")
    return key


def _tensors_by_name(given: Any, default: str, what: str) -> dict[str, Tensor]:
    if not isinstance(given, dict):
        given = {default: given}
    found = {}
    for key, value in given.items():
        name = _name(key, what)
        if not isinstance(value, Tensor):
            raise ValueError(f"{what} output value must be a Tensor; got {value}.")
        found[name] = value
    return found


def _prefixed(name: str, prefix: str) -> str:
    return name if name.startswith(prefix) else f"{prefix}/{name}"


def _metric_tensors(metrics: Any) -> dict[str, Tensor]:
    """Value and update of each metric; an update that is no tensor gets one that waits for it."""
    if metrics is None:
        return {}
    found = {}
    for key, (value, update) in (
        metrics if isinstance(metrics, dict) else {"metrics": metrics}
    ).items():
        name = _prefixed(_name(key, "metrics"), "metrics")
        if not isinstance(value, Tensor):
            raise ValueError(f"{name} output value must be a Tensor; got {value}.")
        if isinstance(update, Operation):
            with control_dependencies([update]):
                update = constant([], dtypes.float32, name="metric_op_wrapper")
        if not isinstance(update, Tensor):
            raise ValueError(f"{name} update_op must be a Tensor or Operation; got {update}.")
        found[f"{name}/value"] = value
        found[f"{name}/update_op"] = update
    return found

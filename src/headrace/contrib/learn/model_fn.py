"""What a ``model_fn`` of ``tf.contrib.learn`` returns, and what is exported of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from headrace.contrib.learn.keys import MetricKey, PredictionKey, ProblemType
from headrace.estimator.export.outputs import (
    ClassificationOutput,
    ExportOutput,
    PredictOutput,
    RegressionOutput,
)
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.spec import EstimatorSpec
from headrace.graph import dtypes
from headrace.saved_model.signature_constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from headrace.saved_model.signature_def_utils import (
    classification_signature_def,
    predict_signature_def,
    regression_signature_def,
)

__all__ = ["ModelFnOps", "served_outputs"]

_CLASSES = (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION)
_PREFIX = "default_input_alternative"


class _ModelFnFields(NamedTuple):
    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metric_ops: Any = None
    output_alternatives: Any = None
    training_chief_hooks: Any = None
    training_hooks: Any = None
    scaffold: Any = None


class ModelFnOps(_ModelFnFields):
    """What a ``model_fn`` of `tf.contrib.learn.Estimator` returns.

    Args:
        mode: one of `tf.contrib.learn.ModeKeys`.
        output_alternatives: what an exported model gives: pairs (`tf.contrib.learn.ProblemType`,
            dictionary of tensors) by name.
        predictions, loss, train_op, eval_metric_ops, training_chief_hooks, training_hooks,
        scaffold: as for `tf.estimator.EstimatorSpec`; a metric "loss" takes the place of the mean
            of ``loss``.

    >>> ops = tf.contrib.learn.ModelFnOps("infer", predictions=tf.constant([1.0]))
    >>> ops.estimator_spec().mode
    'infer'
    """

    __slots__ = ()

    def estimator_spec(
        self, default_serving_output_alternative_key: str | None = None
    ) -> EstimatorSpec:
        """The same for a ``model_fn`` of `tf.estimator.Estimator`.

        Args:
            default_serving_output_alternative_key: which of several output alternatives is the
                default one.

        Raises:
            ValueError: if there are several, and no such one.
        """
        outputs = None
        if self.output_alternatives and self.mode == ModeKeys.PREDICT:
            found = dict(self.output_alternatives)
            if len(found) > 1 and DEFAULT_SERVING_SIGNATURE_DEF_KEY not in found:
                default = _default_of(found, default_serving_output_alternative_key)
                found[DEFAULT_SERVING_SIGNATURE_DEF_KEY] = found[default]
            outputs = {name: _core_output(*pair) for name, pair in found.items()}
        return self._spec(outputs)

    def _spec(self, export_outputs: Any) -> EstimatorSpec:
        metrics = dict(self.eval_metric_ops or {})
        metrics.pop(MetricKey.LOSS, None)
        return EstimatorSpec(
            self.mode,
            self.predictions,
            self.loss,
            self.train_op if self.mode == ModeKeys.TRAIN else None,
            metrics,
            export_outputs=export_outputs,
            training_chief_hooks=self.training_chief_hooks,
            training_hooks=self.training_hooks,
            scaffold=self.scaffold,
        )


def _scores(tensors: Mapping[str, Any]) -> Any:
    scores = tensors.get(PredictionKey.SCORES)
    return tensors.get(PredictionKey.PROBABILITIES) if scores is None else scores


def _classes(tensors: Mapping[str, Any]) -> Any:
    classes = tensors.get(PredictionKey.CLASSES)
    return classes if classes is not None and classes.dtype == dtypes.string else None


def _core_output(problem_type: int, tensors: Mapping[str, Any]) -> ExportOutput:
    if problem_type == ProblemType.LINEAR_REGRESSION:
        return RegressionOutput(_scores(tensors))
    if problem_type in _CLASSES:
        return ClassificationOutput(_scores(tensors), _classes(tensors))
    return PredictOutput(dict(tensors))


class _Served(ExportOutput):
    """A signature of the kind that the problem and the inputs allow.

    A classifier or regressor that takes one tensor of strings, examples, answers such requests;
    what takes other inputs gives its tensors by name.
    """

    def __init__(self, problem_type: int, tensors: Mapping[str, Any]) -> None:
        self._problem = problem_type
        self._tensors = dict(tensors)

    def as_signature_def(self, receiver_tensors: dict[str, Any]) -> Any:
        inputs = list(receiver_tensors.values())
        if len(inputs) == 1 and inputs[0].dtype == dtypes.string:
            scores, classes = _scores(self._tensors), _classes(self._tensors)
            if self._problem in _CLASSES and (scores is not None or classes is not None):
                return classification_signature_def(inputs[0], classes, scores)
            if self._problem == ProblemType.LINEAR_REGRESSION and len(self._tensors) == 1:
                return regression_signature_def(inputs[0], *self._tensors.values())
        return predict_signature_def(receiver_tensors, self._tensors)


def served_outputs(ops: ModelFnOps, default: str | None) -> EstimatorSpec:
    """The model with what `tf.contrib.learn.Estimator` exports, under the names it gives.

    Args:
        ops: of mode "infer".
        default: which of several output alternatives is the default one.

    Raises:
        ValueError: if there are several, and ``default`` is none of them.
    """
    alternatives = dict(ops.output_alternatives or {})
    if not alternatives:
        tensors = ops.predictions
        if not isinstance(tensors, Mapping):
            tensors = {PredictionKey.GENERIC: tensors}
        if default is not None:
            raise ValueError(_unknown(default, ()))
        alternatives = {"default_output_alternative": (ProblemType.UNSPECIFIED, tensors)}
    chosen = alternatives[_default_of(alternatives, default)]
    outputs: dict[str, ExportOutput] = {
        f"{_PREFIX}:{name or 'None'}": _Served(*pair) for name, pair in alternatives.items()
    }
    outputs[DEFAULT_SERVING_SIGNATURE_DEF_KEY] = _Served(*chosen)
    return ops._spec(outputs)


def _default_of(alternatives: Mapping[Any, Any], default: str | None) -> Any:
    if default is None and len(alternatives) == 1:
        return next(iter(alternatives))
    if default in alternatives:
        return default
    raise ValueError(_unknown(default, alternatives))


def _unknown(default: str | None, alternatives: Any) -> str:
    names = sorted(map(str, alternatives))
    if default is None:
        return f"Please specify a default_output_alternative. Available are: {names}"
    return f"Requested default_output_alternative: {default}, but available are: {names}"

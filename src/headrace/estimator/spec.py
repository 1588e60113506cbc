"""What a ``model_fn`` returns, checked where it is made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from headrace.estimator.export.outputs import checked_export_outputs
from headrace.estimator.mode_keys import MODES, ModeKeys
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.checking_api import assert_equal
from headrace.ops.core.build import raw
from headrace.ops.state.scopes_api import control_dependencies
from headrace.ops.state.variables import Variable
from headrace.train.scaffold import Scaffold
from headrace.train.session_run_hook import SessionRunHook

__all__ = ["LOSS_METRIC_KEY", "EstimatorSpec"]

#: Evaluation reports the mean loss under this name.
LOSS_METRIC_KEY = "loss"

_ELSEWHERE = (
    '{0} with "{1}" must be from the default graph. Possible causes of this error include: \n\n'
    "1) {0} was created outside the context of the default graph.\n\n"
    "2) The object passed through to EstimatorSpec was not created in the most recent call to "
    '"model_fn".'
)


class _SpecFields(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: dict[str, Any]
    export_outputs: Any
    training_chief_hooks: tuple[SessionRunHook, ...]
    training_hooks: tuple[SessionRunHook, ...]
    scaffold: Any
    evaluation_hooks: tuple[SessionRunHook, ...]
    prediction_hooks: tuple[SessionRunHook, ...]


class EstimatorSpec(_SpecFields):
    """The model that a ``model_fn`` has built, for one mode.

    Args:
        mode: one of `tf.estimator.ModeKeys`.
        predictions: a tensor, or a dictionary of tensors; needed to predict.
        loss: a scalar, or a tensor of shape (1,); needed to train and to evaluate.
        train_op: what to run at each step of training; needed to train.
        eval_metric_ops: pairs (value, update) of `tf.metrics` by name, or metrics with ``result``,
            ``updates`` and ``variables`` (those of Keras).
        export_outputs: what an exported model gives: `tf.estimator.export` outputs by name.
        training_chief_hooks: hooks of the chief; ``training_hooks``: of every worker.
        scaffold: a `tf.train.Scaffold`.
        evaluation_hooks, prediction_hooks: hooks of the other modes.

    Raises:
        ValueError: if what the mode needs is missing, or is of another graph.
        TypeError: if something is of a wrong type.

    >>> spec = tf.estimator.EstimatorSpec("infer", predictions=tf.constant([1.0]))
    >>> sorted(spec.export_outputs), spec.loss
    (['serving_default'], None)
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Any = None,
        export_outputs: Any = None,
        training_chief_hooks: Iterable[SessionRunHook] | None = None,
        training_hooks: Iterable[SessionRunHook] | None = None,
        scaffold: Any = None,
        evaluation_hooks: Iterable[SessionRunHook] | None = None,
        prediction_hooks: Iterable[SessionRunHook] | None = None,
    ) -> EstimatorSpec:
        if mode not in MODES:
            raise ValueError(
                f"mode must be one of tf.estimator.ModeKeys, {', '.join(map(repr, MODES))}; "
                f"given: {mode!r}"
            )
        train_op = _checked_train_op(train_op, mode)
        loss = _checked_loss(loss, mode)
        predictions = _checked_predictions(predictions, mode)
        if mode == ModeKeys.PREDICT:
            export_outputs = checked_export_outputs(export_outputs, predictions)
        if scaffold is not None and not isinstance(scaffold, Scaffold):
            raise TypeError(f"scaffold must be tf.train.Scaffold. Given: {scaffold}")
        return super().__new__(
            cls,
            mode=mode,
            predictions=predictions,
            loss=loss,
            train_op=train_op,
            eval_metric_ops=_checked_metrics(eval_metric_ops),
            export_outputs=export_outputs,
            training_chief_hooks=_checked_hooks(training_chief_hooks),
            training_hooks=_checked_hooks(training_hooks),
            scaffold=scaffold or Scaffold(),
            evaluation_hooks=_checked_hooks(evaluation_hooks),
            prediction_hooks=_checked_hooks(prediction_hooks),
        )

    def _replace(self, **kwds: Any) -> EstimatorSpec:
        """The same with other fields; the mode stays.

        Raises:
            ValueError: for another mode, and for names of no field.
        """
        if kwds.get("mode", self.mode) != self.mode:
            raise ValueError("mode of EstimatorSpec cannot be changed.")
        unknown = sorted(kwds.keys() - set(self._fields))
        if unknown:
            raise ValueError(f"Got unexpected field names: {unknown}")
        return EstimatorSpec(**{**self._asdict(), **kwds})


def _check_graph(what: str, value: Any, label: str | None = None) -> None:
    if value.graph is not get_default_graph():
        raise ValueError(_ELSEWHERE.format(what, label or value.name))


def _checked_train_op(train_op: Any, mode: str) -> Any:
    if train_op is None:
        if mode == ModeKeys.TRAIN:
            raise ValueError(
                "Missing train_op. To train, a model_fn returns EstimatorSpec(mode, loss=loss, "
                "train_op=optimizer.minimize(loss, tf.train.get_global_step()))."
            )
        return None
    if not isinstance(train_op, (Operation, Tensor, Variable)):
        raise TypeError(f"train_op must be Operation or Tensor, given: {train_op}")
    if isinstance(train_op, Variable):
        train_op = train_op.op
    _check_graph("train_op", train_op)
    return train_op


def _checked_loss(loss: Any, mode: str) -> Any:
    if loss is None:
        if mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            raise ValueError("Missing loss. To train and to evaluate, a model_fn returns one.")
        return None
    loss = _checked_tensor(loss, "loss")
    count = loss.get_shape().num_elements()
    if count not in (None, 1):
        raise ValueError(
            f"Loss must be scalar, given: {loss}. tf.reduce_mean gives one value of all."
        )
    _check_graph("loss", loss)
    if not (loss.dtype.is_floating or loss.dtype.is_integer):
        raise TypeError(f"Loss must be a number, given: {loss}.")
    if loss.get_shape().rank in (0, None):
        return loss
    if count is None:
        one = assert_equal(
            raw.Size(loss),
            1,
            message="Loss must be scalar: model_fn gave one of a shape that was not known when it "
            "was built. tf.reduce_mean gives one value of all.",
        )
        with control_dependencies([one]):
            loss = raw.Identity(loss)
    return raw.Reshape(loss, [])


def _checked_tensor(value: Any, name: str) -> Any:
    if isinstance(value, Variable):
        return value.value()
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be Tensor, given: {value}")
    return value


def _checked_predictions(predictions: Any, mode: str) -> Any:
    if predictions is None:
        if mode == ModeKeys.PREDICT:
            raise ValueError(
                "Missing predictions. To predict, a model_fn returns EstimatorSpec(mode, "
                "predictions=...), a tensor or a dictionary of tensors."
            )
        return {}
    if not isinstance(predictions, dict):
        predictions = _checked_tensor(predictions, "predictions")
        _check_graph("prediction values", predictions)
        return predictions
    found = {k: _checked_tensor(v, f"predictions[{k}]") for k, v in predictions.items()}
    for key, value in found.items():
        _check_graph("prediction values", value, f"{key}: {value.name}")
    return found


def _checked_hooks(hooks: Iterable[SessionRunHook] | None) -> tuple[SessionRunHook, ...]:
    if isinstance(hooks, SessionRunHook):
        raise TypeError(f"Hooks must be a list of SessionRunHooks, given one alone: [{hooks}]")
    found = tuple(hooks or ())
    for hook in found:
        if not isinstance(hook, SessionRunHook):
            raise TypeError(f"All hooks must be SessionRunHook instances, given: {hook}")
    return found


def _checked_metrics(metrics: Any) -> dict[str, Any]:
    """Pairs (value, update) by name."""
    if metrics is None:
        return {}
    if not isinstance(metrics, dict):
        raise TypeError(f"eval_metric_ops must be a dict, given: {metrics}")
    return {key: _checked_metric(key, value) for key, value in metrics.items()}


def _checked_metric(key: str, value: Any) -> tuple[Any, Any]:
    if hasattr(value, "result") and hasattr(value, "updates"):
        if not value.updates:
            raise ValueError(f'Please call update_state(...) on the "{value.name}" metric')
        _collect(value.variables)
        value = (value.result(), value.updates[0])
    if not isinstance(value, tuple) or len(value) != 2:
        raise TypeError(
            "Values of eval_metric_ops must be (metric_value, update_op) tuples, given: "
            f"{value} for key: {key}"
        )
    for part in value:
        if not isinstance(part, (Tensor, Operation, Variable)):
            raise TypeError(
                f"eval_metric_ops[{key!r}] must be a pair (value, update) of tensors, as "
                f"tf.metrics functions give; {part!r} is none."
            )
        _check_graph("eval_metric_ops", part, f"{key}: {part.name}")
    return value


def _collect(variables: Iterable[Any]) -> None:
    """Metrics of Keras keep their counts in variables that evaluation has to initialise."""
    graph = get_default_graph()
    for name in (GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES):
        known = graph.get_collection(name)
        for variable in variables:
            if not any(variable is v for v in known):
                graph.add_to_collection(name, variable)

"""``tf.contrib.learn.DynamicRnnEstimator``: recurrent networks on `tf.contrib.layers` columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import headrace as tf
from headrace.contrib.learn.estimators import Estimator
from headrace.contrib.learn.keys import PredictionKey, ProblemType
from headrace.contrib.learn.model_fn import ModelFnOps
from headrace.errors import suggest
from headrace.estimator.mode_keys import ModeKeys
from headrace.feature_column.sequence import concatenate_context_input
from headrace.graph import nest
from headrace.graph.tensor import Tensor

__all__ = ["DynamicRnnEstimator", "PredictionType", "RNNKeys"]


class PredictionType:
    """Whether there is one prediction for a sequence, or one for each step.

    >>> from headrace.contrib.learn.dynamic_rnn import PredictionType
    >>> PredictionType.SINGLE_VALUE, PredictionType.MULTIPLE_VALUE
    (1, 2)
    """

    SINGLE_VALUE = 1
    MULTIPLE_VALUE = 2


class RNNKeys:
    """Names of features and predictions.

    >>> from headrace.contrib.learn.dynamic_rnn import RNNKeys
    >>> RNNKeys.SEQUENCE_LENGTH_KEY
    'sequence_length'
    """

    SEQUENCE_LENGTH_KEY = "sequence_length"
    STATE_PREFIX = "rnn_cell_state"


def _cell(kind: Any, units: Any, keep: Sequence[Any] | None) -> Any:
    cells = tf.nn.rnn_cell
    known = {"basic_rnn": cells.BasicRNNCell, "lstm": cells.LSTMCell, "gru": cells.GRUCell}
    found: Any = known.get(kind, kind) if isinstance(kind, str) else kind
    if not (isinstance(found, type) and issubclass(found, cells.RNNCell)):
        near = suggest(kind, known) if isinstance(kind, str) else ""
        raise ValueError(f"The supported cell types are {list(known)}; got {kind}.{near}")
    sizes = list(units) if isinstance(units, (list, tuple)) else [units]
    make: Any = found
    made = [make(num_units=size) for size in sizes]
    if keep:
        if len(keep) != len(made) + 1:
            raise ValueError(
                "The number of dropout probabilities must be one greater than the number of cells. "
                f"Got {len(made)} cells and {len(keep)} dropout probabilities."
            )
        outputs = [1.0] * (len(made) - 1) + [keep[-1]]
        made = [
            cells.DropoutWrapper(cell, before, after)
            for cell, before, after in zip(made, keep, outputs, strict=False)
        ]
    return made[0] if len(made) == 1 else cells.MultiRNNCell(made)


def _initial_state(features: Any, cell: Any) -> Any:
    """The state that the features have, or None."""
    sizes = nest.flatten(cell.state_size)
    names = [f"{RNNKeys.STATE_PREFIX}_{i}" for i in range(len(sizes))]
    given = [features[name] for name in names if name in features]
    if not given:
        return None
    if len(given) < len(sizes):
        raise ValueError(
            f"RNN state was partially specified. Expected zero or {len(sizes)} state Tensors; got "
            f"{len(given)}. Their names are {names}."
        )
    checked = []
    for tensor, size in zip(given, sizes, strict=True):
        tensor = tf.convert_to_tensor(tensor)
        if not tensor.shape.is_compatible_with([None, int(size)]):
            raise ValueError(f"{tensor.name} has shape {tensor.shape}, the state [batch, {size}].")
        checked.append(tensor)
    return nest.pack_sequence_as(cell.state_size, checked)


class _Target:
    """What logits mean."""

    def __init__(self, problem: int, single: bool, classes: int | None, proba: bool) -> None:
        self._problem = problem
        self._single = single
        self.classes = classes if problem == ProblemType.CLASSIFICATION else None
        self.size: int = self.classes if self.classes and self.classes > 2 else 1
        self._proba = proba
        kind = "Classifier" if self.classes else "Regressor"
        #: The name scope, which the names of some variables of optimizers have.
        self.scope = f"{'Single' if single else 'Multi'}ValueDynamicRNN{kind}"

    def model(
        self, outputs: Tensor, state: Any, lengths: Any, labels: Any, mode: str
    ) -> ModelFnOps:
        """The model of a network's outputs, without what trains it."""
        logits = tf.contrib.layers.fully_connected(outputs, self.size, activation_fn=None)
        logits = _last(logits, lengths) if self._single else logits
        predictions = self.predictions(logits)
        alternatives = None
        if self._single:
            alternatives = {"dynamic_rnn_output": (self._problem, dict(predictions))}
        for i, part in enumerate(nest.flatten(state)):
            predictions[f"{RNNKeys.STATE_PREFIX}_{i}"] = part
        found = ModelFnOps(mode, predictions, output_alternatives=alternatives)
        if mode == ModeKeys.PREDICT:
            return found
        flat = (lambda x: x) if self._single else (lambda x: _steps(x, lengths))
        labels, metrics = flat(labels), {}
        if self.classes:
            classes = flat(predictions[PredictionKey.CLASSES])
            metrics["accuracy"] = tf.metrics.accuracy(tf.reshape(labels, [-1]), classes)
        return found._replace(loss=self.loss(flat(logits), labels), eval_metric_ops=metrics)

    def loss(self, logits: Tensor, labels: Any) -> Any:
        """The mean loss of ``[n, size]`` for labels ``[n]`` or ``[n, 1]``."""
        labels = tf.reshape(labels, [-1])
        if self.classes is None:
            flat = tf.reshape(logits, [-1])
            return tf.reduce_mean(tf.squared_difference(flat, tf.to_float(labels)))
        if self.size == 1:
            losses = tf.nn.sigmoid_cross_entropy_with_logits(
                labels=tf.to_float(labels), logits=tf.reshape(logits, [-1])
            )
        else:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        return tf.reduce_mean(losses)

    def predictions(self, logits: Tensor) -> dict[str, Any]:
        """Predictions of ``[..., size]``, without the last dimension; and probabilities."""
        if self.classes is None:
            return {PredictionKey.SCORES: tf.squeeze(logits, [-1])}
        both = logits
        if self.size == 1:
            both = tf.concat([tf.zeros_like(logits), logits], -1)
        found = {PredictionKey.CLASSES: tf.argmax(both, -1)}
        if self._proba:
            found[PredictionKey.PROBABILITIES] = tf.nn.softmax(both)
        return found


def _last(outputs: Tensor, lengths: Any) -> Tensor:
    """The output at the last step of each sequence."""
    last: Tensor
    if lengths is None:
        last = outputs[:, -1]
        return last
    at = tf.maximum(tf.to_int64(tf.reshape(lengths, [-1])) - 1, 0)
    rows = tf.range(tf.shape(outputs, out_type=tf.int64)[0], dtype=tf.int64)
    last = tf.gather_nd(outputs, tf.stack([rows, at], axis=1))
    return last


def _steps(values: Any, lengths: Any) -> Tensor:
    """The steps of all sequences, without those that fill up."""
    values = tf.convert_to_tensor(values)
    steps: Tensor
    if lengths is None:
        steps = tf.reshape(values, tf.concat([[-1], tf.shape(values)[2:]], 0))
        steps.set_shape([None, *values.shape.as_list()[2:]])
        return steps
    mask = tf.sequence_mask(tf.reshape(lengths, [-1]), tf.shape(values)[1])
    steps = tf.boolean_mask(values, mask)
    return steps


class DynamicRnnEstimator(Estimator):
    """A recurrent network that predicts one value for a sequence, or one for each step.

    A feature "sequence_length", ``[batch]``, tells how long sequences are. The state at their end
    is among the predictions, as "rnn_cell_state_0" and so on; as features of these names it is
    where sequences begin.

    Args:
        problem_type: `tf.contrib.learn.ProblemType`: CLASSIFICATION or LINEAR_REGRESSION.
        prediction_type: SINGLE_VALUE (1) or MULTIPLE_VALUE (2): labels have shape ``[batch]`` or
            ``[batch, steps]``.
        sequence_feature_columns: columns of `tf.contrib.layers`, of features
            ``[batch, steps, ...]``.
        context_feature_columns: columns of features ``[batch, ...]``, repeated at each step.
        num_classes: how many classes.
        num_units: the size of the layer, or sizes of several.
        cell_type: "basic_rnn", "lstm", "gru", or a class of `tf.nn.rnn_cell`.
        optimizer: what `tf.contrib.layers.optimize_loss` takes; "Momentum" with ``momentum``.
        learning_rate: for optimizers given by name.
        predict_probabilities: whether probabilities are among the predictions.
        gradient_clipping_norm: limit of the global norm of the gradients.
        dropout_keep_probabilities: for the input of each layer and the last output.
        model_dir, feature_engineering_fn, config: as for `tf.contrib.learn.Estimator`.

    Raises:
        ValueError: for an unknown type of problem, prediction or cell, without ``num_classes`` or
            ``num_units``, and for another number of dropout probabilities; when it runs, for a
            state in parts and what columns raise.

    >>> estimator = tf.contrib.learn.DynamicRnnEstimator(
    ...     tf.contrib.learn.ProblemType.LINEAR_REGRESSION,
    ...     prediction_type=1,
    ...     sequence_feature_columns=[tf.contrib.layers.real_valued_column("heat")],
    ...     num_units=4,
    ... )
    >>> def two():
    ...     return {"heat": tf.zeros([2, 5, 1])}, tf.zeros([2])
    >>> found = next(estimator.fit(input_fn=two, steps=1).predict(input_fn=two))
    >>> sorted(found), found["rnn_cell_state_0"].shape
    (['rnn_cell_state_0', 'scores'], (4,))
    """

    def __init__(
        self,
        problem_type: int,
        prediction_type: int,
        sequence_feature_columns: Sequence[Any],
        context_feature_columns: Sequence[Any] | None = None,
        num_classes: int | None = None,
        num_units: Any = None,
        cell_type: Any = "basic_rnn",
        optimizer: Any = "SGD",
        learning_rate: float = 0.1,
        predict_probabilities: bool = False,
        momentum: float | None = None,
        gradient_clipping_norm: float | None = 5.0,
        dropout_keep_probabilities: Sequence[Any] | None = None,
        model_dir: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        config: Any = None,
    ) -> None:
        target = _checked_target(problem_type, prediction_type, num_classes, predict_probabilities)
        if not num_units:
            raise ValueError("num_units, the size of the layer (or sizes of several), is missing.")
        _cell(cell_type, num_units, dropout_keep_probabilities)  # says at once what is wrong
        if optimizer == "Momentum":
            optimizer = tf.train.MomentumOptimizer(learning_rate, momentum)

        def model_fn(features: Any, labels: Any, mode: str) -> ModelFnOps:
            lengths = features.get(RNNKeys.SEQUENCE_LENGTH_KEY)
            keep = dropout_keep_probabilities if mode == ModeKeys.TRAIN else None
            cell = _cell(cell_type, num_units, keep)
            with tf.name_scope(target.scope):
                inputs = _inputs(features, sequence_feature_columns, context_feature_columns)
                outputs, state = tf.nn.dynamic_rnn(
                    cell, inputs, initial_state=_initial_state(features, cell), dtype=tf.float32
                )
                model = target.model(outputs, state, lengths, labels, mode)
                if mode != ModeKeys.TRAIN:
                    return model
                train_op = tf.contrib.layers.optimize_loss(
                    model.loss,
                    None,
                    learning_rate,
                    optimizer,
                    clip_gradients=gradient_clipping_norm,
                    summaries=tf.contrib.layers.OPTIMIZER_SUMMARIES,
                )
                return model._replace(train_op=train_op)

        super().__init__(model_fn, model_dir, config, feature_engineering_fn=feature_engineering_fn)


def _inputs(features: Any, sequences: Sequence[Any], context: Sequence[Any] | None) -> Tensor:
    layers = tf.contrib.layers
    inputs: Tensor = layers.sequence_input_from_feature_columns(features, sequences)
    if context:
        row = layers.input_from_feature_columns(features, context)
        inputs = concatenate_context_input(row, inputs)
    return inputs


def _checked_target(problem: Any, prediction: Any, classes: int | None, proba: bool) -> _Target:
    if prediction not in (PredictionType.SINGLE_VALUE, PredictionType.MULTIPLE_VALUE):
        raise ValueError(
            "prediction_type must be one of PredictionType.MULTIPLE_VALUE (2) or "
            f"PredictionType.SINGLE_VALUE (1); got {prediction}"
        )
    if problem not in (ProblemType.CLASSIFICATION, ProblemType.LINEAR_REGRESSION):
        raise ValueError(
            "problem_type must be either ProblemType.LINEAR_REGRESSION or "
            f"ProblemType.CLASSIFICATION; got {problem}"
        )
    if problem == ProblemType.CLASSIFICATION and (not classes or classes < 2):
        raise ValueError(
            "For CLASSIFICATION problem_type, num_classes must be specified, and 2 or more; got "
            f"{classes}."
        )
    if problem != ProblemType.CLASSIFICATION and proba:
        raise ValueError(
            "predict_probabilities can only be set to True for problem_type "
            f"ProblemType.CLASSIFICATION; got {problem}."
        )
    return _Target(problem, prediction == PredictionType.SINGLE_VALUE, classes, proba)

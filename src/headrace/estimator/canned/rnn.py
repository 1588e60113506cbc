"""Recurrent networks on sequence columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import headrace as tf
from headrace.errors import suggest
from headrace.estimator.canned.dnn import check_features, input_partitioner, max_parts
from headrace.estimator.canned.optimizers import optimizer_instance
from headrace.estimator.estimator import Estimator
from headrace.estimator.extenders import clip_gradients_by_norm
from headrace.estimator.heads.first_generation import classifier_head
from headrace.estimator.run_config import RunConfig
from headrace.estimator.spec import EstimatorSpec
from headrace.feature_column.sequence import concatenate_context_input, sequence_input_layer
from headrace.graph.tensor import Tensor

__all__ = ["RNNClassifier", "RNNEstimator"]

_LEARNING_RATE = 0.05
_CLIP_NORM = 5.0
_DEFAULT_CELL: Any = object()


def _cell_types() -> dict[str, Any]:
    cells = tf.nn.rnn_cell
    return {"basic_rnn": cells.BasicRNNCell, "lstm": cells.BasicLSTMCell, "gru": cells.GRUCell}


def _cell(units: int, kind: Any) -> Any:
    known = _cell_types()
    found: Any = known.get(kind, kind) if isinstance(kind, str) else kind
    if not (isinstance(found, type) and issubclass(found, tf.nn.rnn_cell.RNNCell)):
        near = suggest(kind, known) if isinstance(kind, str) else ""
        raise ValueError(f"Supported cell types are {list(known)}; got {kind}.{near}")
    make: Any = found
    return make(units)


def _checked_cells(
    rnn_cell_fn: Any, num_units: Iterable[int] | None, cell_type: Any
) -> Callable[[str], Any]:
    """The function that makes cells for a mode."""
    if rnn_cell_fn is not None:
        if num_units or cell_type is not _DEFAULT_CELL:
            raise ValueError("num_units and cell_type must not be specified when using rnn_cell_fn")
        found: Callable[[str], Any] = rnn_cell_fn
        return found
    sizes = list(num_units or ())
    if not sizes:
        raise ValueError("num_units, the sizes of the layers, or rnn_cell_fn must be given.")
    kind = "basic_rnn" if cell_type is _DEFAULT_CELL else cell_type
    _cell(sizes[0], kind)  # says at once what is wrong

    def make(mode: str) -> Any:
        cells = [_cell(size, kind) for size in sizes]
        return cells[0] if len(cells) == 1 else tf.nn.rnn_cell.MultiRNNCell(cells)

    return make


def _last_outputs(outputs: Tensor, lengths: Tensor) -> Tensor:
    """The output at the last step of each sequence: ``[batch, units]`` of ``[batch, steps, ...]``.

    Of an empty sequence that is the output at the first step, which is zero.
    """
    at = tf.maximum(tf.to_int64(lengths) - 1, 0)
    rows = tf.range(tf.shape(outputs, out_type=tf.int64)[0], dtype=tf.int64)
    last: Tensor = tf.gather_nd(outputs, tf.stack([rows, at], axis=1))
    return last


def _logits(
    features: Any,
    mode: str,
    units: int,
    make_cell: Callable[[str], Any],
    sequence_columns: Sequence[Any],
    context_columns: Sequence[Any],
    partitioner: Any,
) -> Tensor:
    values = tuple(features.values())
    with tf.variable_scope("sequence_input_layer", values=values, partitioner=partitioner):
        inputs, lengths = sequence_input_layer(features, sequence_columns)
        tf.summary.histogram("sequence_length", lengths)
        if context_columns:
            context = tf.feature_column.input_layer(features, context_columns)
            inputs = concatenate_context_input(context, inputs)
    outputs, _ = tf.nn.dynamic_rnn(
        make_cell(mode), inputs, sequence_length=lengths, dtype=tf.float32
    )
    last = _last_outputs(outputs, lengths)
    with tf.variable_scope("logits", values=(last,)):
        made: Tensor = tf.layers.dense(
            last, units, kernel_initializer=tf.glorot_uniform_initializer()
        )
        return made


class RNNEstimator(Estimator):
    """A recurrent network on sequences, with a head of the user's choice.

    The output at the last step of each sequence goes to the head.

    Args:
        head: what the logits mean: a head of `tf.contrib.estimator`.
        sequence_feature_columns: sequence columns, such as
            `tf.feature_column.sequence_numeric_column`.
        context_feature_columns: dense columns, repeated at each step.
        num_units: sizes of the layers.
        cell_type: "basic_rnn" (the default), "lstm", "gru", or a class of `tf.nn.rnn_cell`.
        rnn_cell_fn: in place of both: makes a cell for a mode.
        return_sequences: a prediction for each step is not part of Headrace yet.
        model_dir: where checkpoints and summaries are; a temporary directory if None.
        optimizer: a `tf.train` optimizer as it is; a function that makes one, or a name ("Adagrad"
            with learning rate 0.05 by default), with gradients clipped to the norm 5.
        input_layer_partitioner: for tables; cuts those over 64 MiB by default.
        config: a `tf.estimator.RunConfig`.

    Raises:
        ValueError: for an unknown type of cell, without cells, or with both ways to give them, and
            with ``return_sequences``; when it runs, for features that are no dictionary and what
            heads and columns raise.

    >>> estimator = tf.contrib.estimator.RNNEstimator(
    ...     tf.contrib.estimator.regression_head(),
    ...     [tf.feature_column.sequence_numeric_column("heat")],
    ...     num_units=[4],
    ...     cell_type="lstm",
    ... )
    >>> heat = tf.SparseTensorValue([[0, 0], [1, 0], [1, 1]], [1.0, 2.0, 3.0], [2, 2])
    >>> two = lambda: tf.data.Dataset.from_tensors({"heat": heat})
    >>> [p["predictions"].shape for p in estimator.predict(two)]
    [(1,), (1,)]
    """

    def __init__(
        self,
        head: Any,
        sequence_feature_columns: Iterable[Any],
        context_feature_columns: Iterable[Any] | None = None,
        num_units: Iterable[int] | None = None,
        cell_type: Any = _DEFAULT_CELL,
        rnn_cell_fn: Callable[[str], Any] | None = None,
        return_sequences: bool = False,
        model_dir: Any = None,
        optimizer: Any = "Adagrad",
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
    ) -> None:
        make_cell = _checked_cells(rnn_cell_fn, num_units, cell_type)
        sequences = tuple(sequence_feature_columns or ())
        context = tuple(context_feature_columns or ())
        if return_sequences:
            raise ValueError(
                "return_sequences=True needs a head for sequences, which Headrace does not have "
                "yet; a model_fn with tf.nn.dynamic_rnn gives a prediction for each step."
            )

        def train_op(loss: Any) -> Any:
            chosen = optimizer_instance(optimizer, _LEARNING_RATE)
            if not isinstance(optimizer, tf.train.Optimizer):
                chosen = clip_gradients_by_norm(chosen, _CLIP_NORM)
            return chosen.minimize(loss, global_step=tf.train.get_global_step())

        def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            check_features(features)
            whole = tf.min_max_variable_partitioner(max_partitions=max_parts(config))
            with tf.variable_scope("rnn", values=tuple(features.values()), partitioner=whole):
                logits = _logits(
                    features,
                    mode,
                    head.logits_dimension,
                    make_cell,
                    sequences,
                    context,
                    input_partitioner(input_layer_partitioner, config),
                )
                spec: EstimatorSpec = head.create_estimator_spec(
                    features=features, mode=mode, labels=labels, train_op_fn=train_op, logits=logits
                )
                return spec

        super().__init__(model_fn, model_dir, config)


class RNNClassifier(RNNEstimator):
    """A recurrent network that tells the classes of sequences.

    Args:
        n_classes: how many classes.
        weight_column: the name of the feature with the weights of examples.
        label_vocabulary: names of the classes, if labels are strings; else they are integers.
        loss_reduction: one of `tf.losses.Reduction`: the mean over the batch by default.
        sequence_feature_columns, context_feature_columns, num_units, cell_type, rnn_cell_fn,
        model_dir, optimizer, input_layer_partitioner, config: as for
            `tf.contrib.estimator.RNNEstimator`.

    Raises:
        ValueError: as that class, `tf.estimator.BinaryClassHead` and
            `tf.estimator.MultiClassHead`.

    >>> words = tf.feature_column.sequence_categorical_column_with_hash_bucket("words", 10)
    >>> classifier = tf.contrib.estimator.RNNClassifier(
    ...     [tf.feature_column.embedding_column(words, 3)], num_units=[4], n_classes=3
    ... )
    >>> one = lambda: tf.data.Dataset.from_tensors({"words": tf.constant([["a", "b"]])})
    >>> next(classifier.predict(one))["probabilities"].shape
    (3,)
    """

    def __init__(
        self,
        sequence_feature_columns: Iterable[Any],
        context_feature_columns: Iterable[Any] | None = None,
        num_units: Iterable[int] | None = None,
        cell_type: Any = _DEFAULT_CELL,
        rnn_cell_fn: Callable[[str], Any] | None = None,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Adagrad",
        loss_reduction: Any = "weighted_sum_over_batch_size",
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
    ) -> None:
        super().__init__(
            classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            sequence_feature_columns,
            context_feature_columns,
            num_units,
            cell_type,
            rnn_cell_fn,
            False,
            model_dir,
            optimizer,
            input_layer_partitioner,
            config,
        )

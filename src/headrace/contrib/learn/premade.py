"""What the premade Estimators of ``tf.contrib.learn`` have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import headrace as tf
from headrace.contrib.layers.feature_columns import _Column as _OldColumn
from headrace.contrib.layers.optimizers import OPTIMIZER_CLS_NAMES
from headrace.contrib.learn.estimators import Estimator
from headrace.contrib.learn.export import build_parsing_serving_input_fn
from headrace.contrib.learn.keys import PredictionKey
from headrace.errors import suggest
from headrace.graph.tensor import Tensor

__all__ = [
    "Classifier",
    "Premade",
    "Regressor",
    "are_old",
    "embedding_multipliers",
    "feature_dict",
    "input_layer",
    "linear_logits",
    "make_optimizer",
    "partitioner_of",
]


def feature_dict(features: Any) -> dict[str, Any]:
    """The features by name; that of a tensor alone is ""."""
    return dict(features) if isinstance(features, dict) else {"": features}


def make_optimizer(given: Any, learning_rate: float) -> Any:
    """An optimizer by its name, what a function makes, or the optimizer itself.

    Raises:
        ValueError: for an unknown name.
    """
    if isinstance(given, str):
        if given not in OPTIMIZER_CLS_NAMES:
            raise ValueError(
                f"Unsupported optimizer name: {given}. Supported names are: "
                f"{sorted(OPTIMIZER_CLS_NAMES)}.{suggest(given, OPTIMIZER_CLS_NAMES)}"
            )
        return OPTIMIZER_CLS_NAMES[given](learning_rate=learning_rate)
    return given() if callable(given) else given


def partitioner_of(config: Any, min_slice_size: int | None = None) -> Any:
    """How variables are cut up for parameter servers."""
    parts = max(1, config.num_ps_replicas) if config else 1
    given = {} if min_slice_size is None else {"min_slice_size": min_slice_size}
    return tf.min_max_variable_partitioner(max_partitions=parts, **given)


def are_old(columns: Iterable[Any]) -> bool:
    """Whether all columns are of `tf.contrib.layers`."""
    return all(isinstance(column, _OldColumn) for column in columns)


def input_layer(features: Any, columns: Sequence[Any], collection: str, scope: Any) -> Tensor:
    """A network's first layer, of columns of `tf.contrib.layers` or `tf.feature_column`."""
    layer: Tensor
    if are_old(columns):
        layer = tf.contrib.layers.input_from_feature_columns(
            features, columns, weight_collections=[collection], scope=scope
        )
    else:
        layer = tf.feature_column.input_layer(features, columns, weight_collections=[collection])
    return layer


def linear_logits(
    features: Any, columns: Sequence[Any], units: int, collection: str, scope: Any, joint: bool
) -> Tensor:
    """A linear model, of columns of `tf.contrib.layers` or `tf.feature_column`."""
    logits: Tensor
    if not are_old(columns):
        logits = tf.feature_column.linear_model(
            features, columns, units=units, weight_collections=[collection]
        )
        return logits
    build: Any = tf.contrib.layers.weighted_sum_from_feature_columns
    if joint:
        build = tf.contrib.layers.joint_weighted_sum_from_feature_columns
    logits, _, _ = build(features, columns, units, weight_collections=[collection], scope=scope)
    return logits


def embedding_multipliers(multipliers: Any, scope: str) -> dict[Any, float] | None:
    """The factors of the gradients of tables, by their variables.

    Args:
        multipliers: factors by embedding column.
        scope: where the first layer has its variables.

    Raises:
        ValueError: if a column has no table there.
    """
    found = {}
    for column, factor in (multipliers or {}).items():
        tables = tf.get_collection(
            tf.GraphKeys.TRAINABLE_VARIABLES, scope=f"{scope}/{column.name}/"
        )
        if not tables:
            raise ValueError(
                "embedding_lr_multipliers are for embedding columns of the model; there is no "
                f"table of {column}."
            )
        found.update(dict.fromkeys(tables, factor))
    return found or None


class Premade(Estimator):
    """An Estimator on feature columns.

    >>> from headrace.contrib.learn.premade import Premade
    >>> issubclass(tf.contrib.learn.LinearRegressor, Premade)
    True
    """

    _columns: tuple[Any, ...] = ()

    def _one_output(
        self, key: str, x: Any, input_fn: Any, batch_size: int | None, as_iterable: bool
    ) -> Any:
        found = Estimator.predict(self, x, input_fn, batch_size, [key], as_iterable)
        if as_iterable:
            return (one[key] for one in found)
        return found[key]

    def export(
        self,
        export_dir: Any,
        input_fn: Callable[..., Any] | None = None,
        input_feature_key: str | None = None,
        use_deprecated_input_fn: bool = True,
        signature_fn: Callable[..., Any] | None = None,
        default_batch_size: int | None = None,
        exports_to_keep: int | None = None,
    ) -> bytes:
        """Write the model as a SavedModel; TensorFlow wrote a "session bundle", of which no
        server of today knows.

        Args:
            export_dir: the folder around it.
            input_fn: gives `tf.contrib.learn.InputFnOps`; by default ``tf.train.Example`` messages
                are parsed, with the features of the columns.
            input_feature_key, use_deprecated_input_fn: have no effect.
            signature_fn: cannot be given.
            default_batch_size: the number of messages, any by default.
            exports_to_keep: remove older ones; None keeps all.

        Returns:
            The path of the folder.

        Raises:
            ValueError: for a ``signature_fn``, and without a checkpoint.
        """
        from headrace.contrib.learn.export import garbage_collect_exports

        if signature_fn is not None:
            raise ValueError(
                "signature_fn makes signatures of session bundles. Use export_savedmodel, whose "
                "signatures come from the head."
            )
        if input_fn is None:
            input_fn = build_parsing_serving_input_fn(self._parsing_spec(), default_batch_size)
        path = self.export_savedmodel(export_dir, input_fn)
        garbage_collect_exports(export_dir, exports_to_keep)
        return path

    def _parsing_spec(self) -> Any:
        if are_old(self._columns):
            return tf.contrib.layers.create_feature_spec_for_parsing(self._columns)
        return tf.feature_column.make_parse_example_spec(self._columns)


class Classifier(Premade):
    """An Estimator that tells classes from each other.

    >>> from headrace.contrib.learn.premade import Classifier
    >>> issubclass(tf.contrib.learn.LinearClassifier, Classifier)
    True
    """

    def predict(
        self,
        x: Any = None,
        input_fn: Callable[..., Any] | None = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """The classes of examples (`predict_classes`), or ``outputs`` by name.

        Raises:
            ValueError: if both arrays and an input function are given, or neither.
            NotFittedError: if there is no checkpoint.
        """
        if not outputs:
            return self.predict_classes(x, input_fn, batch_size, as_iterable)
        return super().predict(x, input_fn, batch_size, outputs, as_iterable, iterate_batches)

    def predict_classes(
        self,
        x: Any = None,
        input_fn: Callable[..., Any] | None = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """The classes: an iterator over numbers or names, or an array ``[examples]`` of all."""
        found = self._one_output(PredictionKey.CLASSES, x, input_fn, batch_size, as_iterable)
        return found if as_iterable else found.reshape(-1)

    def predict_proba(
        self,
        x: Any = None,
        input_fn: Callable[..., Any] | None = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """The probabilities of the classes: an iterator over vectors, or an array of all."""
        return self._one_output(PredictionKey.PROBABILITIES, x, input_fn, batch_size, as_iterable)


class Regressor(Premade):
    """An Estimator that predicts numbers.

    >>> from headrace.contrib.learn.premade import Regressor
    >>> issubclass(tf.contrib.learn.LinearRegressor, Regressor)
    True
    """

    def predict(
        self,
        x: Any = None,
        input_fn: Callable[..., Any] | None = None,
        batch_size: int | None = None,
        outputs: Sequence[str] | None = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """The predicted numbers (`predict_scores`), or ``outputs`` by name.

        Raises:
            ValueError: if both arrays and an input function are given, or neither.
            NotFittedError: if there is no checkpoint.
        """
        if not outputs:
            return self.predict_scores(x, input_fn, batch_size, as_iterable)
        return super().predict(x, input_fn, batch_size, outputs, as_iterable, iterate_batches)

    def predict_scores(
        self,
        x: Any = None,
        input_fn: Callable[..., Any] | None = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """The predicted numbers: an iterator over them, or an array ``[examples, ...]`` of all."""
        return self._one_output(PredictionKey.SCORES, x, input_fn, batch_size, as_iterable)

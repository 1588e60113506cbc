"""Exporting of ``tf.contrib.learn``: inputs of models that are served, export strategies."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import headrace as tf
from headrace.contrib.layers.feature_column_ops import create_feature_spec_for_parsing
from headrace.estimator.callables import argument_names
from headrace.files import system
from headrace.files.paths import as_path

__all__ = [
    "ExportStrategy",
    "InputFnOps",
    "build_default_serving_input_fn",
    "build_parsing_serving_input_fn",
    "garbage_collect_exports",
    "get_most_recent_export",
    "learn_receiver",
    "make_export_strategy",
    "make_parsing_export_strategy",
]


class InputFnOps(NamedTuple):
    """Features of a model that is served, and what clients feed.

    >>> x = tf.placeholder(tf.float32, [None, 2])
    >>> tf.contrib.learn.InputFnOps({"x": x}, None, {"x": x}).labels is None
    True
    """

    features: Any
    labels: Any
    default_inputs: dict[str, Any]


class _Receiver(NamedTuple):
    features: Any
    receiver_tensors: dict[str, Any]
    receiver_tensors_alternatives: Any = None


def learn_receiver(given: Any) -> Any:
    """What a serving input function gave, as `tf.estimator.Estimator` takes it: ``[batch, ...]``.

    Raises:
        ValueError: if it does not say what clients feed.
    """
    if hasattr(given, "receiver_tensors"):
        return given
    if isinstance(given, InputFnOps) and given.default_inputs:
        if not given.features:
            raise ValueError("Features must be defined.")
        return _Receiver(given.features, dict(given.default_inputs))
    raise ValueError(
        "A default input_alternative must be provided: serving_input_fn gives "
        f"tf.contrib.learn.InputFnOps(features, None, default_inputs), not {given!r:.100}"
    )


def build_parsing_serving_input_fn(
    feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], InputFnOps]:
    """A serving input function that parses ``tf.train.Example`` messages.

    Args:
        feature_spec: what `tf.parse_example` needs.
        default_batch_size: the number of messages, any by default: strings ``[batch]``.

    Raises:
        ValueError: when it is called, for an impossible specification.

    >>> serving = tf.contrib.learn.build_parsing_serving_input_fn(
    ...     {"x": tf.FixedLenFeature([1], tf.float32)}
    ... )
    >>> sorted(serving().default_inputs)
    ['examples']
    """

    def serving_input_fn() -> InputFnOps:
        messages = tf.placeholder(tf.string, [default_batch_size], name="input_example_tensor")
        features = tf.parse_example(messages, dict(feature_spec))
        return InputFnOps(features, None, {"examples": messages})

    return serving_input_fn


def build_default_serving_input_fn(
    features: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], InputFnOps]:
    """A serving input function with a placeholder like each feature.

    Args:
        features: tensors ``[batch, ...]`` by name.
        default_batch_size: the size of the first dimension, any by default.

    Raises:
        ValueError: when it is called, if the rank of a feature is not known.
    """

    def serving_input_fn() -> InputFnOps:
        made = {}
        for name, like in features.items():
            shape = like.get_shape().as_list()
            made[name] = tf.placeholder(
                like.dtype, [default_batch_size, *shape[1:]], name=like.op.name
            )
        return InputFnOps(made, None, dict(made))

    return serving_input_fn


class _StrategyFields(NamedTuple):
    name: str
    export_fn: Callable[..., Any]
    strip_default_attrs: bool | None = None


class ExportStrategy(_StrategyFields):
    """How an `tf.contrib.learn.Experiment` exports its model after evaluations.

    Args:
        name: the folder under ``export`` in the model_dir.
        export_fn: ``export_fn(estimator, export_path[, checkpoint_path, eval_result])``.
        strip_default_attrs: given to ``export_fn`` if it takes that.

    >>> told = tf.contrib.learn.ExportStrategy("last", lambda estimator, export_path: export_path)
    >>> told.export(None, "m/export/last")
    'm/export/last'
    """

    __slots__ = ()

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str | None = None,
        eval_result: Mapping[str, Any] | None = None,
    ) -> Any:
        """Write the model: the path of what was written, or None."""
        names = argument_names(self.export_fn)
        given = {
            "checkpoint_path": checkpoint_path,
            "eval_result": eval_result,
            "strip_default_attrs": bool(self.strip_default_attrs),
        }
        known = {name: value for name, value in given.items() if name in names}
        return self.export_fn(estimator, export_path, **known)


def make_export_strategy(
    serving_input_fn: Callable[[], Any],
    default_output_alternative_key: str | None = None,
    assets_extra: Mapping[str, Any] | None = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """A strategy that writes SavedModels, named "Servo", and keeps the newest ones.

    Args:
        serving_input_fn: as for `tf.contrib.learn.Estimator.export_savedmodel`, as are others:
            features ``[batch, ...]``.
        exports_to_keep: how many; None for all.

    Raises:
        ValueError: if ``exports_to_keep`` is not positive.

    >>> tf.contrib.learn.make_export_strategy(lambda: None).name
    'Servo'
    """
    if exports_to_keep is not None and exports_to_keep <= 0:
        raise ValueError(
            f"exports_to_keep, if provided, must be positive number: {exports_to_keep}"
        )

    def export_fn(
        estimator: Any,
        export_dir_base: Any,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = False,
    ) -> Any:
        given: dict[str, Any] = {}
        if not isinstance(estimator, tf.estimator.Estimator):
            given["default_output_alternative_key"] = default_output_alternative_key
        elif default_output_alternative_key is not None:
            raise ValueError(
                "default_output_alternative_key is not supported in core Estimator. Given: "
                f"{default_output_alternative_key}"
            )
        path = estimator.export_savedmodel(
            export_dir_base,
            serving_input_fn,
            assets_extra=assets_extra,
            as_text=as_text,
            checkpoint_path=checkpoint_path,
            strip_default_attrs=strip_default_attrs,
            **given,
        )
        garbage_collect_exports(export_dir_base, exports_to_keep)
        return path

    return ExportStrategy("Servo", export_fn, strip_default_attrs)


def make_parsing_export_strategy(
    feature_columns: Any,
    default_output_alternative_key: str | None = None,
    assets_extra: Mapping[str, Any] | None = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
    target_core: bool = False,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """`make_export_strategy` for examples with the features of columns.

    Args:
        feature_columns: columns of `tf.contrib.layers`.
        target_core: for a `tf.estimator.Estimator`, of features ``[batch, ...]``.

    Raises:
        ValueError: if the columns are a dictionary, or one is there twice.
    """
    spec = create_feature_spec_for_parsing(feature_columns)
    build: Callable[[Any], Callable[[], Any]] = build_parsing_serving_input_fn
    if target_core:
        build = tf.estimator.export.build_parsing_serving_input_receiver_fn
    return make_export_strategy(
        build(spec),
        default_output_alternative_key,
        assets_extra,
        as_text,
        exports_to_keep,
        strip_default_attrs,
    )


def _exports(base: Any) -> list[str]:
    """The folders of exported models, oldest first."""
    path = as_path(base)
    if not system.is_directory(path):
        return []
    names = [name.rstrip("/") for name in tf.gfile.ListDirectory(path)]
    stamps = sorted(name for name in names if len(name) == 10 and name.isdigit())
    return [os.path.join(path, name) for name in stamps]


def get_most_recent_export(export_dir_base: Any) -> str | None:
    """The newest folder below, or None."""
    found = _exports(export_dir_base)
    return found[-1] if found else None


def garbage_collect_exports(export_dir_base: Any, exports_to_keep: int | None) -> None:
    """Remove all but the newest folders below; None keeps all."""
    if exports_to_keep is not None:
        for path in _exports(export_dir_base)[:-exports_to_keep]:
            tf.gfile.DeleteRecursively(path)

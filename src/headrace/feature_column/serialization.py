"""Feature columns as configurations: dictionaries of plain values, and back.

They are those of TensorFlow 1.15: the names of classes and fields, types by their names, columns
inside columns as configurations too.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any

import headrace as tf
from headrace.errors import suggest
from headrace.ops.state.initializers import Initializer

__all__ = [
    "Configured",
    "deserialize_feature_column",
    "deserialize_feature_columns",
    "serialize_feature_column",
    "serialize_feature_columns",
]

#: Where the classes of columns are.
_HOMES = ("categorical", "dense", "derived", "numeric", "sequence")


class Configured:
    """Base of what has a configuration: feature columns.

    >>> column = tf.feature_column.numeric_column("x")
    >>> isinstance(column, tf.feature_column.serialization.Configured)
    True
    >>> type(column).from_config(column.get_config()) == column
    True
    """

    def get_config(self) -> dict[str, Any]:
        """The fields as plain values, from which `from_config` makes an equal column.

        Raises:
            NotImplementedError: for columns of a shared table, and of `tf.contrib.layers`.
        """
        found: dict[str, Any] = serialize_feature_column(self)["config"]
        return found

    @classmethod
    def from_config(
        cls,
        config: Mapping[str, Any],
        custom_objects: Mapping[str, Any] | None = None,
        columns_by_name: Any = None,
    ) -> Any:
        """The column of a `get_config`.

        Args:
            custom_objects: functions and initialisers of the program, by their names.
            columns_by_name: a dictionary, so that equal columns of several configurations are one.

        Raises:
            ValueError: if a function or field is not known.
        """
        whole = {"class_name": cls.__name__, "config": config}
        return deserialize_feature_column(whole, custom_objects, columns_by_name)


def serialize_feature_column(fc: Any) -> Any:
    """The configuration of a column: ``{"class_name": ..., "config": ...}``; a name stays one.

    Raises:
        ValueError: if it is no column.
        NotImplementedError: for columns of a shared table, and of `tf.contrib.layers`.

    >>> day = tf.feature_column.categorical_column_with_identity("day", 7)
    >>> tf.feature_column.serialization.serialize_feature_column(day)
    {'class_name': 'IdentityCategoricalColumn',
     'config': {'key': 'day', 'number_buckets': 7, 'default_value': None}}
    """
    if isinstance(fc, str):
        return fc
    if not isinstance(fc, Configured):
        raise ValueError(f"Instance: {fc!r:.200} is not a FeatureColumn")
    kind = type(fc).__name__
    if kind not in _classes():
        raise NotImplementedError(
            f"{kind} has no configuration: make column {getattr(fc, 'name', fc)} again by the "
            "function that made it."
        )
    config = {f.name: _plain(getattr(fc, f.name)) for f in fields(fc)}  # type: ignore[arg-type]
    return {"class_name": kind, "config": config}


def deserialize_feature_column(
    config: Any, custom_objects: Mapping[str, Any] | None = None, columns_by_name: Any = None
) -> Any:
    """The column of a configuration.

    Args:
        custom_objects: functions and initialisers of the program, by their names.
        columns_by_name: a dictionary, so that equal columns of several configurations are one.

    Raises:
        ValueError: if it is no configuration, or a class, function or field is not known.

    >>> made = tf.feature_column.serialization.deserialize_feature_column(
    ...     {"class_name": "IdentityCategoricalColumn", "config": {
    ...         "key": "day", "number_buckets": 7, "default_value": None}}
    ... )
    >>> made == tf.feature_column.categorical_column_with_identity("day", 7)
    True
    """
    if isinstance(config, str):
        return config
    if not _is_config(config):
        raise ValueError(
            f"Improper config format: {config!r:.200}. A column's has class_name and config."
        )
    classes = _classes()
    kind = classes.get(config["class_name"])
    if kind is None:
        raise ValueError(
            f"Unknown feature column: {config['class_name']}."
            f"{suggest(str(config['class_name']), classes)}"
        )
    names = [f.name for f in fields(kind)]
    given = config["config"]
    if sorted(given) != sorted(names):
        raise ValueError(
            f"The config of a {kind.__name__} has the fields {names}, given: {list(given)}."
        )
    values = {
        name: _value(name, given[name], custom_objects or {}, columns_by_name) for name in names
    }
    made = kind(**values)
    return made if columns_by_name is None else columns_by_name.setdefault(made.name, made)


def serialize_feature_columns(feature_columns: Sequence[Any]) -> list[Any]:
    """The configurations of several columns; raises as `serialize_feature_column`."""
    return [serialize_feature_column(column) for column in feature_columns]


def deserialize_feature_columns(
    configs: Sequence[Any], custom_objects: Mapping[str, Any] | None = None
) -> list[Any]:
    """The columns of several configurations; raises as `deserialize_feature_column`."""
    known: dict[str, Any] = {}
    return [deserialize_feature_column(config, custom_objects, known) for config in configs]


def _classes() -> dict[str, Any]:
    package = __name__.rpartition(".")[0]
    found: dict[str, Any] = {}
    for home in _HOMES:
        module = import_module(f"{package}.{home}")
        found.update(
            (name, value)
            for name, value in vars(module).items()
            if isinstance(value, type)
            and issubclass(value, Configured)
            and value.__module__ == module.__name__
            and "__dataclass_fields__" in vars(value)
        )
    return found


def _is_config(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"class_name", "config"}


def _plain(value: Any) -> Any:
    """A field as plain values."""
    if isinstance(value, Configured):
        return serialize_feature_column(value)
    if isinstance(value, tf.DType):
        return value.name
    if isinstance(value, Initializer):
        return {"class_name": type(value).__name__, "config": value.get_config()}
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value.__name__ if callable(value) else value


def _value(name: str, plain: Any, custom: Mapping[str, Any], known: Any) -> Any:
    """The value of a field."""
    if name == "dtype":
        return tf.as_dtype(plain)
    if name == "initializer":
        return _initializer(plain, custom)
    if name == "normalizer_fn" and plain is not None:
        return _custom(plain, custom)
    if _is_config(plain):
        return deserialize_feature_column(plain, custom, known)
    if isinstance(plain, (list, tuple)):
        return tuple(_value("", part, custom, known) for part in plain)
    return plain


def _initializer(plain: Any, custom: Mapping[str, Any]) -> Any:
    if not _is_config(plain):
        return plain if callable(plain) else _custom(plain, custom)
    name = plain["class_name"]
    kind = custom.get(name) or getattr(sys.modules[Initializer.__module__], str(name), None)
    if not (isinstance(kind, type) and issubclass(kind, Initializer)):
        kind = _custom(name, custom)
    return kind.from_config(dict(plain["config"]))


def _custom(name: Any, custom: Mapping[str, Any]) -> Any:
    if callable(name):
        return name
    if name not in custom:
        raise ValueError(
            f"Unknown function or class {name!r}: give it in custom_objects, by this name."
        )
    return custom[name]

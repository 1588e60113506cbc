"""Names of metrics in logs and histories: those of tf.keras 1.x, found under today's ones, too.

tf.keras 1.x told ``metrics=["accuracy"]`` and ``["acc"]`` as ``acc``, and ``["mae"]`` as
``mean_absolute_error`` (taken from 1.15.5, in graph mode). Programs of later years ask for
``accuracy``. So logs have the names of 1.x, and look up the others.
"""

from __future__ import annotations

import functools
from typing import Any

from headrace.keras.loading import keras_inner

#: What 1.x called a metric that is asked for by another name.
_OLD = {
    "accuracy": "acc",
    "mae": "mean_absolute_error",
    "mape": "mean_absolute_percentage_error",
    "mse": "mean_squared_error",
    "msle": "mean_squared_logarithmic_error",
}
#: Names of logs that are found under another one; not names of metrics.
_ALSO = {"lr": "learning_rate", "learning_rate": "lr"}
_NEW = {old: new for new, old in _OLD.items()}


class Logs(dict[str, Any]):
    """Values by the names of metrics, which are found under their other names, too.

    >>> logs = Logs(loss=0.5, val_acc=0.75)
    >>> logs["val_accuracy"], logs.get("val_acc"), "accuracy" in logs, list(logs)
    (0.75, 0.75, False, ['loss', 'val_acc'])
    """

    def _own(self, name: Any) -> Any:
        """The name under which the value of ``name`` stands."""
        if dict.__contains__(self, name) or not isinstance(name, str):
            return name
        for start in ("val_", ""):
            rest = name.removeprefix(start)
            other = _OLD.get(rest) or _NEW.get(rest) or _ALSO.get(rest)
            if name.startswith(start) and other and dict.__contains__(self, start + other):
                return start + other
        return name

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, self._own(name))

    def __missing__(self, name: str) -> Any:
        own = self._own(name)
        if own == name:
            raise KeyError(name)
        return self[own]

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a metric, or ``default``."""
        return dict.get(self, self._own(name), default)


def old_names(metrics: Any) -> Any:
    """What `compile` was given as metrics, with the names of 1.x in the place of others."""
    if isinstance(metrics, dict):
        return {k: old_names(v) for k, v in metrics.items()}
    if isinstance(metrics, (list, tuple)):
        return [old_names(v) for v in metrics]
    return _OLD.get(metrics, metrics) if isinstance(metrics, str) else metrics


def install(trainer: Any) -> None:
    """Let histories, the logs of callbacks and `metrics_names` have the names of 1.x."""
    history = keras_inner("callbacks.history").History
    original = history.__init__

    @functools.wraps(original)
    def init(self: Any) -> None:
        original(self)
        self.history = Logs()

    history.__init__ = init
    lists = keras_inner("callbacks.callback_list")
    pythonify = lists.python_utils.pythonify_logs

    class Utils:
        @staticmethod
        def pythonify_logs(logs: Any) -> Logs:
            return Logs(_in_order(pythonify(logs)))

    lists.python_utils = Utils
    _hook_monitor(keras_inner("callbacks.monitor_callback").MonitorCallback)
    trainer.metrics_names = property(_metrics_names)
    trainer._flatten_metrics_in_order = _as_list


def _hook_monitor(callback: Any) -> None:
    """Callbacks that watch a metric find out by its name whether more of it is better."""
    original = callback._set_monitor_op

    @functools.wraps(original)
    def set_monitor_op(self: Any) -> None:
        plain = self.monitor.removeprefix("val_")
        if plain in _OLD and plain not in self.model.metrics_names:
            self.monitor = self.monitor.removesuffix(plain) + _OLD[plain]
        original(self)

    callback._set_monitor_op = set_monitor_op


def _in_order(logs: dict[str, Any]) -> dict[str, Any]:
    """Losses first, then metrics, then those of validation, as in 1.x."""

    def place(name: str) -> tuple[bool, int]:
        plain = name.removeprefix("val_")
        return plain != name, 0 if plain == "loss" else 1 if plain.endswith("_loss") else 2

    return {name: logs[name] for name in sorted(logs, key=place)}


def _metrics_names(self: Any) -> list[str]:
    """The names of what `evaluate` and `train_on_batch` give, in order."""
    compiled = keras_inner("trainers.compile_utils").CompileMetrics
    found: list[str] = []
    for metric in self.metrics:
        if not isinstance(metric, compiled):
            found.append(metric.name)
        elif metric.built:
            found += list(metric.result())
    return list(_in_order(dict.fromkeys(found)))


def _as_list(self: Any, logs: dict[str, Any]) -> Any:
    """The values of logs in the order of `metrics_names`; one alone as it is."""
    names = [n for n in _metrics_names(self) if n in logs]
    values = [logs[n] for n in (*names, *sorted(logs.keys() - {*names}))]
    return values[0] if len(values) == 1 else values

"""Getters of variables that make a copy for each worker, and what goes with it."""

from __future__ import annotations

import contextlib
from typing import Any

from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.ops.state.partitioned import parts_of

__all__ = ["AGNCustomGetter", "ElasticAverageCustomGetter", "ModelAverageCustomGetter"]

_GLOBAL, _LOCAL_CENTER, _GRAD = "global_center_variable", "local_center_variable", "grad_variable"


class _CopyGetter:
    """Makes each trainable variable a local one of the worker, with companions."""

    #: The prefix of a second companion on the worker, if there is one.
    _second: str | None = None

    def __init__(self, worker_device: Any) -> None:
        self._worker_device = worker_device
        self._global_map: dict[Any, Any] = {}
        self._local_map: dict[Any, Any] = {}

    def __call__(
        self, getter: Any, name: str, trainable: Any, collections: Any, *args: Any, **kwargs: Any
    ) -> Any:
        graph = get_default_graph()
        if trainable is False:
            is_local = GraphKeys.LOCAL_VARIABLES in (collections or ())
            place = graph.device(self._worker_device) if is_local else contextlib.nullcontext()
            with place:
                return getter(name, *args, trainable=False, collections=collections, **kwargs)
        local = [GraphKeys.LOCAL_VARIABLES]
        with graph.device(self._worker_device):
            copy = getter(name, *args, trainable=True, collections=local, **kwargs)
        if kwargs.get("reuse") is True or parts_of(copy)[0] in self._global_map:
            return copy
        kept = {"trainable": False, **kwargs}
        center = getter(
            f"{_GLOBAL}/{name}", *args, collections=[GraphKeys.GLOBAL_VARIABLES], **kept
        )
        self._global_map.update(zip(parts_of(copy), parts_of(center), strict=True))
        if self._second is not None:
            with graph.device(self._worker_device):
                second = getter(f"{self._second}/{name}", *args, collections=local, **kept)
            self._local_map.update(zip(parts_of(copy), parts_of(second), strict=True))
        return copy


class ElasticAverageCustomGetter(_CopyGetter):
    """A getter for `ElasticAverageOptimizer`: each trainable variable is a copy of the worker.

    Beside it there are ``global_center_variable/<name>``, which all workers share, and
    ``local_center_variable/<name>``, the center as the worker has last seen it.

    Args:
        worker_device: where copies are, such as ``"/job:worker/task:0"``.

    >>> getter = tf.contrib.opt.ElasticAverageCustomGetter("/cpu:0")
    >>> with tf.variable_scope("", custom_getter=getter):
    ...     w = tf.get_variable("w", [2])
    >>> sorted(v.op.name for v in tf.global_variables() + tf.local_variables())
    ['global_center_variable/w', 'local_center_variable/w', 'w']
    """

    _second = _LOCAL_CENTER


class ModelAverageCustomGetter(_CopyGetter):
    """A getter for `ModelAverageOptimizer`: each trainable variable is a copy of the worker.

    ``global_center_variable/<name>`` is the average that all workers share.

    Args:
        worker_device: where copies are, such as ``"/job:worker/task:0"``.

    >>> getter = tf.contrib.opt.ModelAverageCustomGetter("/cpu:0")
    >>> with tf.variable_scope("", custom_getter=getter):
    ...     w = tf.get_variable("w", [2])
    >>> [v.op.name for v in tf.local_variables()], [v.op.name for v in tf.global_variables()]
    (['w'], ['global_center_variable/w'])
    """


class AGNCustomGetter(_CopyGetter):
    """A getter for `AGNOptimizer`: each trainable variable is a copy of the worker.

    Beside it there are ``global_center_variable/<name>``, which all workers share, and
    ``grad_variable/<name>``, the sum of the worker's gradients.

    Args:
        worker_device: where copies are, such as ``"/job:worker/task:0"``.

    >>> getter = tf.contrib.opt.AGNCustomGetter("/cpu:0")
    >>> with tf.variable_scope("", custom_getter=getter):
    ...     w = tf.get_variable("w", [2])
    >>> sorted(v.op.name for v in tf.local_variables())
    ['grad_variable/w', 'w']
    """

    _second = _GRAD

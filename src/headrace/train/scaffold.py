"""The pieces that a training session needs: initialisers, checks, summaries, a saver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace import logging
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.ops.control.basic import group
from headrace.ops.core.build import constant, raw
from headrace.ops.state.variables_api import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
)
from headrace.train.saver import Saver

__all__ = ["Scaffold"]


class Scaffold:
    """Operations and objects for training, made where none are given.

    What is not given is looked up in the collection of its name (``tf.GraphKeys.INIT_OP`` ...),
    and made and put there if nothing is.

    Args:
        init_op: initialises the model; by default all global variables and shared resources.
        init_feed_dict: its feeds.
        init_fn: ``init_fn(scaffold, session)``, called after ``init_op``.
        ready_op: a string vector that is empty when all variables have values.
        ready_for_local_init_op: the same before ``local_init_op`` runs: of global variables.
        local_init_op: by default initialises local variables, tables and local resources.
        summary_op: by default all summaries, merged.
        saver: by default a Saver of all variables.
        copy_from_scaffold: a Scaffold to take from what is not given here.
        local_init_feed_dict: feeds of ``local_init_op``.
        incremental_tables: whether a saver that is made here writes only rows of tables of
            embeddings that have changed: see `Saver`. Ours.

    Raises:
        TypeError: if ``copy_from_scaffold`` is no Scaffold.

    >>> v = tf.Variable(0)
    >>> start = tf.train.Scaffold(init_fn=lambda scaffold, sess: v.load(7, sess))
    >>> with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(start)) as sess:
    ...     int(sess.run(v))
    7
    """

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: dict[Any, Any] | None = None,
        init_fn: Callable[[Any, Any], Any] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Any = None,
        copy_from_scaffold: Scaffold | None = None,
        local_init_feed_dict: dict[Any, Any] | None = None,
        incremental_tables: bool = False,
    ) -> None:
        other = copy_from_scaffold
        if other is not None and not isinstance(other, Scaffold):
            raise TypeError("copy_from_scaffold is not a Scaffold instance.")

        def chosen(value: Any, name: str) -> Any:
            return getattr(other, name) if value is None and other is not None else value

        self._init_op = chosen(init_op, "init_op")
        self._init_feed_dict: dict[Any, Any] | None = chosen(init_feed_dict, "init_feed_dict")
        self._ready_op = chosen(ready_op, "ready_op")
        self._ready_for_local_init_op = chosen(ready_for_local_init_op, "ready_for_local_init_op")
        self._local_init_op = chosen(local_init_op, "local_init_op")
        self._local_init_feed_dict: dict[Any, Any] | None = chosen(
            local_init_feed_dict, "local_init_feed_dict"
        )
        self.merged_summaries = chosen(summary_op, "summary_op")
        self._saver = chosen(saver, "saver")
        self.incremental_tables = incremental_tables
        own = chosen(init_fn, "_user_init_fn")
        self._user_init_fn = own
        self._init_fn: Callable[[Any], Any] | None = None
        if own is not None:
            self._init_fn = lambda session: own(self, session)

    def finalize(self) -> Scaffold:
        """Make what is missing, and finalise the graph; its default graph must be the right one."""
        self._init_op = _or_collected(self._init_op, "init_op", GraphKeys.INIT_OP, _init_op)
        self._ready_op = _or_collected(self._ready_op, "ready_op", GraphKeys.READY_OP, _ready_op)
        self._ready_for_local_init_op = _or_collected(
            self._ready_for_local_init_op,
            "ready_for_local_init_op",
            GraphKeys.READY_FOR_LOCAL_INIT_OP,
            _ready_for_local_init_op,
        )
        self._local_init_op = _or_collected(
            self._local_init_op,
            "local_init_op",
            GraphKeys.LOCAL_INIT_OP,
            Scaffold.default_local_init_op,
        )
        self.merged_summaries = _or_collected(
            self.merged_summaries, "summary_op", GraphKeys.SUMMARY_OP, merged_summaries
        )
        if self._saver is None:
            self._saver = saver_or_default(self.incremental_tables)
        self._saver.build()
        get_default_graph().finalize()
        logging.info("Graph was finalized.")
        return self

    @property
    def init_fn(self) -> Callable[[Any], Any] | None:
        return self._init_fn

    @property
    def init_op(self) -> Any:
        return self._init_op

    @property
    def ready_op(self) -> Any:
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        return self._ready_for_local_init_op

    @property
    def local_init_op(self) -> Any:
        return self._local_init_op

    @property
    def local_init_feed_dict(self) -> dict[Any, Any] | None:
        return self._local_init_feed_dict

    @property
    def summary_op(self) -> Any:
        return self.merged_summaries

    @property
    def saver(self) -> Any:
        return self._saver

    @property
    def init_feed_dict(self) -> dict[Any, Any] | None:
        return self._init_feed_dict

    @staticmethod
    def get_or_default(
        arg_name: str, collection_key: str, default_constructor: Callable[[], Any]
    ) -> Any:
        """The only element of a collection; made, and put there, if there is none.

        Raises:
            RuntimeError: if there are several.
        """
        graph = get_default_graph()
        found = graph.get_collection(collection_key)
        if len(found) > 1:
            raise RuntimeError(
                f"More than one item in the collection {collection_key}. Please indicate which one "
                f"to use by passing it to the tf.Scaffold constructor as:  "
                f"tf.Scaffold({arg_name}=item to use)"
            )
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            graph.add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Any:
        """An op that initialises local variables, tables and local resources."""
        graph = get_default_graph()
        return group(
            local_variables_initializer(),
            group(*graph.get_collection(GraphKeys.TABLE_INITIALIZERS), name="init_all_tables"),
            group(*_resource_inits(GraphKeys.LOCAL_RESOURCES)),
        )


def _or_collected(given: Any, name: str, key: str, make: Callable[[], Any]) -> Any:
    return given if given is not None else Scaffold.get_or_default(name, key, make)


def _resource_inits(key: str) -> list[Any]:
    """The initialisers of the resources in a collection."""
    return [resource.create for resource in get_default_graph().get_collection(key)]


def _uninitialized_resources(*keys: str) -> Any:
    """The names of resources that are not initialised: a string vector."""
    graph = get_default_graph()
    found = [resource for key in keys for resource in graph.get_collection(key)]
    if not found:
        return constant(np.array([], object), dtypes.string)
    names = constant([resource.handle.name for resource in found], dtypes.string)
    missing = raw.LogicalNot(raw.Pack([resource.is_initialized for resource in found]))
    return raw.GatherV2(names, raw.Squeeze(raw.Where(missing), squeeze_dims=[1]), 0)


def _init_op() -> Any:
    return group(global_variables_initializer(), group(*_resource_inits(GraphKeys.RESOURCES)))


def _ready_op() -> Any:
    resources = _uninitialized_resources(GraphKeys.RESOURCES, GraphKeys.LOCAL_RESOURCES)
    return raw.ConcatV2([report_uninitialized_variables(), resources], 0, name="concat")


def _ready_for_local_init_op() -> Any:
    missing = report_uninitialized_variables(global_variables())
    resources = _uninitialized_resources(GraphKeys.RESOURCES)
    return raw.ConcatV2([missing, resources], 0, name="concat")


def merged_summaries() -> Any:
    if not get_default_graph().get_collection(GraphKeys.SUMMARIES):
        return None
    from headrace.summary import merge_all  # loaded on first use, as all of tf.summary

    return merge_all()


def saver_or_default(incremental_tables: bool = False) -> Any:
    """The saver of the graph (collection ``savers``), made if there is none.

    Args:
        incremental_tables: that of a saver that is made.

    Raises:
        RuntimeError: if there are several.
    """
    graph = get_default_graph()
    found = graph.get_collection(GraphKeys.SAVERS)
    if len(found) > 1:
        raise RuntimeError(
            f"More than one item in collection {GraphKeys.SAVERS}. Please indicate which one to "
            "use by passing it to the constructor."
        )
    if found:
        # A meta graph brings the description of its saver.
        return found[0] if hasattr(found[0], "save") else Saver.from_proto(found[0])
    saver = Saver(sharded=True, allow_empty=True, incremental_tables=incremental_tables)
    graph.add_to_collection(GraphKeys.SAVERS, saver)
    return saver

"""Where lookups leave tables as they are: while a model is built that is not to be trained."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from weakref import WeakKeyDictionary

from headrace.graph.graph import Graph, get_default_graph

__all__ = ["read_only", "tables_grow"]

#: How many blocks of each graph are open. Of a graph and not of a thread, as the replicas of a
#: strategy are built in threads of their own.
_OPEN: WeakKeyDictionary[Graph, int] = WeakKeyDictionary()


@contextlib.contextmanager
def read_only() -> Iterator[None]:
    """Lookups that are made in this block, in the default graph, take no keys into tables."""
    graph = get_default_graph().outermost
    _OPEN[graph] = _OPEN.get(graph, 0) + 1
    try:
        yield
    finally:
        _OPEN[graph] -= 1


def tables_grow() -> bool:
    """Whether a lookup takes new keys into its table if its caller does not say."""
    return not _OPEN.get(get_default_graph().outermost, 0)

"""Where a program is among the replicas of a strategy, and who makes its variables.

A strategy (`tf.distribute`) builds the same model several times in one graph. While it does so,
code stands *in a replica* (in one copy of the model), or *across replicas* (where the copies are
brought together). A variable that has a copy for each replica looks here which of them is meant.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.graph.graph import Graph, default_graph_stack
from headrace.graph.stacks import DefaultStack, inherit
from headrace.ops.core.public import public
from headrace.ops.state.share import outermost_creators

__all__ = [
    "LAST_LOSS_REDUCTION",
    "Place",
    "across",
    "creators",
    "current",
    "enter",
    "is_first_replica",
    "updating",
    "variable_creator_scope",
]

#: The collection of a graph that holds how the last loss was reduced: gradients follow it.
LAST_LOSS_REDUCTION = "__last_loss_reduction"

Creator = Callable[..., Any]


class Place(NamedTuple):
    """Where code stands.

    Attributes:
        strategy: the strategy whose scope is open.
        graph: the graph that it is open for.
        replica: which replica's copy of the model is being built; None across replicas.
        updates: whether it updates the copies that belong to ``replica``, each by itself.
        context: the `tf.distribute.ReplicaContext`, in a replica.
    """

    strategy: Any
    graph: Graph
    replica: int | None = None
    updates: bool = False
    context: Any = None


_places: DefaultStack[Place] = DefaultStack()
_creators: DefaultStack[tuple[Graph, Creator]] = DefaultStack()
inherit(_places)
inherit(_creators)


def current() -> Place | None:
    """Where code of this thread stands in the default graph; None without a strategy."""
    items = _places.items
    if not items:
        return None
    place = items[-1]
    return place if place.graph is default_graph_stack.current().outermost else None


def enter(place: Place) -> contextlib.AbstractContextManager[Place]:
    """Stand at a place within a ``with`` block."""
    return _places.push(place)


def is_first_replica() -> bool:
    """False in replicas but the first, where what is done once for all has been done."""
    place = current()
    return place is None or place.updates or not place.replica


@contextlib.contextmanager
def across() -> Iterator[None]:
    """Stand across the replicas of the strategy that is in force, if there is one."""
    place = current()
    if place is None:
        yield
        return
    with enter(place._replace(replica=None, updates=False, context=None)):
        yield


@contextlib.contextmanager
def updating(replica: int) -> Iterator[None]:
    """Update the copies of variables that belong to one replica, each by itself."""
    place = current()
    assert place is not None
    with enter(place._replace(replica=replica, updates=True, context=None)):
        yield


def creators() -> list[Creator]:
    """Who makes variables in the default graph, the innermost last."""
    if not _creators.items:
        return []
    graph = default_graph_stack.current().outermost
    return [creator for owner, creator in _creators.items if owner is graph]


@public("variable_creator_scope")
@contextlib.contextmanager
def variable_creator_scope(variable_creator: Creator) -> Iterator[None]:
    """Variables made inside are made by a function.

    Args:
        variable_creator: function of ``next_creator``, which makes the variable, and of the keyword
            arguments of `tf.Variable`; it returns a variable.

    >>> def not_trained(next_creator, **kwargs):
    ...     return next_creator(**{**kwargs, "trainable": False})
    >>> with tf.variable_creator_scope(not_trained):
    ...     v = tf.Variable(1.0)
    >>> v.trainable
    False
    """
    with _creators.push((default_graph_stack.current().outermost, variable_creator)):
        yield


if TYPE_CHECKING:
    VariableType = type
else:

    class VariableType(type):
        """Variables are made by the creators whose scopes are open, if any are."""

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if not (_creators.items or outermost_creators):
                return super().__call__(*args, **kwargs)
            if not cls.__dict__.get("made_by_creators"):
                return super().__call__(*args, **kwargs)
            found = [*outermost_creators, *creators()]
            names = list(inspect.signature(cls.__init__).parameters)[1:]
            kwargs = {**dict(zip(names, args, strict=False)), **kwargs}
            if not found or kwargs.get("variable_def") is not None:
                return super().__call__(**kwargs)
            make: Creator = super().__call__
            for creator in found:
                make = _bound(creator, make)
            return make(**kwargs)


def _bound(creator: Creator, following: Creator) -> Creator:
    return lambda **kwargs: creator(following, **kwargs)

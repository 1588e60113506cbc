"""The session and the learning phase of `tf.keras.backend`."""

from __future__ import annotations

import weakref
from typing import Any

from headrace.graph.graph import Graph, get_default_graph
from headrace.ops.array.api import placeholder_with_default
from headrace.ops.state.variables_api import (
    global_variables,
    is_variable_initialized,
    variables_initializer,
)
from headrace.session.session import Session, get_default_session

#: The session of `get_session`, where no other one is the default.
_sessions: list[Any] = [None]
_phases: weakref.WeakKeyDictionary[Graph, Any] = weakref.WeakKeyDictionary()


# -- sessions -----------------------------------------------------------------------------------


def get_session() -> Any:
    """The default session, else one of Keras's own for the default graph.

    In the latter, variables that were not initialised are, as tf.keras did.
    """
    session = get_default_session()
    if session is not None:
        return session
    session = _sessions[0]
    graph = get_default_graph().outermost
    if session is None or session.graph is not graph:
        session = _sessions[0] = Session(graph=graph)
    _initialize_new(session)
    return session


def current_session() -> Any:
    """The default session, or that of `set_session` or `get_session`; None if there is none."""
    session = get_default_session()
    if session is None:
        session = _sessions[0]
    graph = get_default_graph().outermost
    return session if session is not None and session.graph is graph else None


def set_session(session: Any) -> None:
    """Make ``session`` the one that `get_session` gives where no session is the default.

    Raises:
        TypeError: if it is no session.
    """
    if session is not None and not isinstance(session, Session):
        raise TypeError(f"set_session takes a tf.Session, not {session!r}.")
    _sessions[0] = session


def _initialize_new(session: Any) -> None:
    """Initialise the variables that the session has no values of, once for each variable."""
    known = vars(session).setdefault("_keras_initialized", set())
    with session.graph.as_default():
        new = [v for v in global_variables() if v not in known]
        if not new:
            return
        flags = session.run([is_variable_initialized(v) for v in new])
        missing = [v for v, there in zip(new, flags, strict=True) if not there]
        if missing:
            session.run(variables_initializer(missing))
        known.update(new)


# -- the learning phase -------------------------------------------------------------------------


def learning_phase() -> Any:
    """0 (inference) or 1 (training) if `set_learning_phase` has said so in this graph.

    Else a bool tensor to feed, False unless it is fed.
    """
    graph = get_default_graph().outermost
    found = _phases.get(graph)
    if found is None:
        with graph.as_default(), graph.control_dependencies(None):
            found = placeholder_with_default(False, [], name="keras_learning_phase")
        _phases[graph] = found
    return found


def set_learning_phase(value: int) -> None:
    """Say for all further calls in this graph whether layers are trained.

    Raises:
        ValueError: if ``value`` is neither 0 nor 1.
    """
    if value not in (0, 1):
        raise ValueError(f"The learning phase is 0 (inference) or 1 (training), not {value!r}.")
    _phases[get_default_graph().outermost] = int(value)


def forget_session() -> None:
    """Close the session of `get_session`, if there is one."""
    session, _sessions[0] = _sessions[0], None
    if session is not None:
        session.close()

"""Which values count: those of a session that has them, else the arrays of Keras.

A Keras variable has an array of its own, and a variable in each graph where its layer was called.
A graph variable starts as the array is. From then on, where there is a session for the default
graph (the default session, or that of `tf.keras.backend.get_session`) in which it has a value, that
value counts: what Keras does with a model (fit, evaluate, predict, get_weights, save ...) begins
with it, and leaves its results there. Without such a session Keras works on its arrays.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from headrace.errors import FailedPreconditionError
from headrace.keras.sessions import current_session
from headrace.keras.variables import fill, find, reader_of
from headrace.ops.state.partitioned import parts_of


def pull(variables: Sequence[Any]) -> None:
    """Keras variables take the values that their graph variables have in the current session."""
    for variable, value in _values(variables):
        variable.assign(value)


def push(variables: Sequence[Any]) -> None:
    """Graph variables in the current session take the values of the arrays of Keras."""
    session = current_session()
    if session is None:
        return
    for variable in variables:
        found = find(variable)
        if found is None:
            continue
        value = np.asarray(variable.value)
        start = 0
        for part in parts_of(found):
            if part is found:
                part.load(value, session)
                continue
            axis = found._partition_axis() if hasattr(found, "_partition_axis") else 0
            size = part.shape.as_list()[axis]
            part.load(value.take(range(start, start + size), axis), session)
            start += size


def _values(variables: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Keras variables with a value in the current session, and that value."""
    session = current_session()
    pairs = [(v, reader_of(v)) for v in variables if find(v) is not None]
    if session is None or not pairs:
        return []
    try:
        values = session.run([reader for _, reader in pairs])
    except FailedPreconditionError:  # some have no value yet
        return _each(session, pairs)
    return [(v, value) for (v, _), value in zip(pairs, values, strict=True)]


def _each(session: Any, pairs: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    found = []
    for variable, reader in pairs:
        with contextlib.suppress(FailedPreconditionError):
            found.append((variable, session.run(reader)))
    return found


@contextlib.contextmanager
def in_step(layer: Any, changes: bool) -> Iterator[None]:
    """Within it, the arrays of a layer are what counts; ``changes``: they change.

    Blocks may be nested: the outermost one counts.
    """
    if vars(layer).get("_headrace_in_step"):
        yield
        return
    variables = layer.variables
    fill(variables)
    pull(variables)
    object.__setattr__(layer, "_headrace_in_step", True)
    try:
        yield
    finally:
        object.__setattr__(layer, "_headrace_in_step", False)
        if changes:
            push(layer.variables)


def value_of(variable: Any) -> Any:
    """The value of a Keras variable that counts."""
    fill([variable])
    pull([variable])
    return np.asarray(variable.value)


def set_value(variable: Any, value: Any) -> None:
    """Give a Keras variable a value, in the current session too."""
    fill([variable])
    variable.assign(value)
    push([variable])

"""`tf.keras.backend`: sessions, the learning phase, and functions on tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.graph.graph import reset_default_graph
from headrace.graph.tensor import Tensor
from headrace.keras.backend_functions import FUNCTIONS
from headrace.keras.hooks import install
from headrace.keras.loading import keras_inner, keras_part, load_keras
from headrace.keras.sessions import (
    forget_session,
    get_session,
    learning_phase,
    set_learning_phase,
    set_session,
)
from headrace.ops.control.basic import group
from headrace.ops.core.build import placeholder as _placeholder

__all__ = [
    "Function",
    "clear_session",
    "function",
    "get_session",
    "learning_phase",
    "placeholder",
    "set_learning_phase",
    "set_session",
]

install()


def clear_session() -> None:
    """Begin anew: another default graph, no session, no learning phase, names from the start."""
    forget_session()
    reset_default_graph()
    load_keras().utils.clear_session()
    keras_inner("utils.naming").reset_uids()


# -- functions ----------------------------------------------------------------------------------


def placeholder(
    shape: Any = None,
    ndim: int | None = None,
    dtype: Any = None,
    sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """A placeholder of type ``dtype`` (`floatx` by default).

    Raises:
        ValueError: if ``sparse`` is asked for: use `tf.sparse_placeholder`.
    """
    if sparse:
        raise ValueError("K.placeholder(sparse=True): use tf.sparse_placeholder.")
    if shape is None and ndim is not None:
        shape = [None] * ndim
    return _placeholder(dtype or keras_part("config").floatx(), shape, name)


class Function:
    """What `function` gives: call it with a list of values, one for each input.

    >>> x = tf.keras.backend.placeholder([None])
    >>> double = tf.keras.backend.function([x], [x * 2.0])
    >>> double([[1.0, 2.0]])[0].tolist()
    [2.0, 4.0]
    """

    def __init__(self, inputs: Any, outputs: Any, updates: Any = None) -> None:
        self.inputs = list(inputs)
        self.outputs = outputs
        self._update = group(*_update_ops(updates or []))

    def __call__(self, values: Sequence[Any]) -> Any:
        """The values of the outputs, in their structure.

        Raises:
            TypeError: if ``values`` is no list.
            ValueError: if it has not one value for each input.
        """
        if not isinstance(values, (list, tuple)):
            raise TypeError(f"A function of K.function takes a list of values, not {values!r}.")
        if len(values) != len(self.inputs):
            raise ValueError(
                f"The function has {len(self.inputs)} inputs and was given {len(values)} values."
            )
        feed = {}
        for tensor, value in zip(self.inputs, values, strict=True):
            if isinstance(tensor, Tensor):
                feed[tensor] = value
            elif value != tensor:
                raise ValueError(f"The input {tensor!r} is a number and cannot be {value!r}.")
        return get_session().run([self.outputs, self._update], feed)[0]


def _update_ops(updates: Any) -> list[Any]:
    return [
        variable.assign(value) if isinstance(pair, tuple) else pair
        for pair in updates
        for variable, value in [pair if isinstance(pair, tuple) else (None, None)]
    ]


def function(inputs: Any, outputs: Any, updates: Any = None, **kwargs: Any) -> Callable[..., Any]:
    """A Python function that runs a part of the graph in `get_session`.

    Args:
        inputs: placeholders; ``outputs``: tensors, or a structure of them.
        updates: operations, or pairs of a variable and its new value.

    A model's ``inputs`` and ``outputs`` (symbolic, of Keras) give a function on arrays.
    """
    keras = load_keras()
    flat = [*inputs, *(outputs if isinstance(outputs, (list, tuple)) else [outputs])]
    if any(isinstance(t, keras.KerasTensor) for t in flat):
        symbolic = [t for t in inputs if isinstance(t, keras.KerasTensor)]
        places = [i for i, t in enumerate(inputs) if isinstance(t, keras.KerasTensor)]
        model = keras.Model(symbolic, outputs)

        def run(values: Sequence[Any]) -> Any:
            training = any(
                bool(v) for t, v in zip(inputs, values, strict=True) if t is learning_phase()
            )
            given = [values[i] for i in places]
            found = model(given if len(given) > 1 else given[0], training=training)
            return keras.tree.map_structure(keras.ops.convert_to_numpy, found)

        return run
    return Function(inputs, outputs, updates)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    source = keras_part("backend")
    if hasattr(source, name):
        return getattr(source, name)
    from headrace.namespaces.missing import attribute_error

    raise attribute_error(__name__, name, __dir__())


def __dir__() -> list[str]:
    real = {n for n in dir(keras_part("backend")) if not n.startswith("_")}
    return sorted({*__all__, *FUNCTIONS, *real})

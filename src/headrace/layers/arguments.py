"""Arguments that many layers take: names of functions, sizes per dimension, formats."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import suggest
from headrace.graph.tensor import Tensor
from headrace.layers.base import Layer
from headrace.ops.control.flow_api import cond
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.static import static_value
from headrace.ops.math import elementwise, reduction_api
from headrace.ops.nn import activations, softmax
from headrace.ops.state import initializers

#: Default arguments of layers.
ZEROS = initializers.Zeros()
ONES = initializers.Ones()

_INITIALIZERS: dict[str, Callable[[], Any]] = {
    "constant": initializers.Constant,
    "glorot_normal": initializers.GlorotNormal,
    "glorot_uniform": initializers.GlorotUniform,
    "he_normal": initializers.he_normal,
    "he_uniform": initializers.he_uniform,
    "identity": initializers.Identity,
    "lecun_normal": initializers.lecun_normal,
    "lecun_uniform": initializers.lecun_uniform,
    "ones": initializers.Ones,
    "orthogonal": initializers.Orthogonal,
    "random_normal": initializers.RandomNormal,
    "random_uniform": initializers.RandomUniform,
    "truncated_normal": initializers.TruncatedNormal,
    "variance_scaling": initializers.VarianceScaling,
    "zeros": initializers.Zeros,
}


def _linear(x: Any) -> Any:
    return x


def _l1(x: Any) -> Any:
    return 0.01 * reduction_api.reduce_sum(raw.Abs(x))


def _l2(x: Any) -> Any:
    return 0.01 * reduction_api.reduce_sum(raw.Square(x))


_REGULARIZERS = {"l1": _l1, "l2": _l2, "l1_l2": lambda x: _l1(x) + _l2(x)}
_ACTIVATIONS = {
    "elu": activations.elu,
    "exponential": elementwise.exp,
    "linear": _linear,
    "relu": activations.relu,
    "selu": activations.selu,
    "sigmoid": elementwise.sigmoid,
    "softmax": softmax.softmax,
    "softplus": activations.softplus,
    "softsign": activations.softsign,
    "tanh": elementwise.tanh,
}


def _named(what: str, table: dict[str, Any], value: Any) -> Any:
    if not isinstance(value, str):
        if value is None or callable(value):
            return value
        raise ValueError(f"Could not interpret {what}: {value!r}. Give a function or a name.")
    if value not in table:
        raise ValueError(f"Unknown {what}: {value!r}.{suggest(value, table)}")
    return table[value]


def activation(value: Any) -> Any:
    """A function, None, or the function that a name such as "relu" stands for."""
    return _named("activation", _ACTIVATIONS, value)


def initializer(value: Any) -> Any:
    """An initialiser, None, or the one that a name such as "zeros" stands for."""
    found = _named("initializer", _INITIALIZERS, value)
    return found() if isinstance(value, str) else found


def regularizer(value: Any) -> Any:
    """A function, None, or the function that "l1", "l2" or "l1_l2" stands for (factor 0.01)."""
    return _named("regularizer", _REGULARIZERS, value)


def sizes(value: Any, rank: int, name: str) -> tuple[int, ...]:
    """A number for each of ``rank`` dimensions; one number stands for all.

    Raises:
        ValueError: if there are more or fewer, or they are no integers.
    """
    try:
        items = [int(value)] * rank if not hasattr(value, "__iter__") else [int(v) for v in value]
    except (TypeError, ValueError):
        items = []
    if len(items) != rank:
        raise ValueError(
            f"The `{name}` argument must be a tuple of {rank} integers. Received: {value!r}"
        )
    return tuple(items)


def padding(value: Any, causal: bool = False) -> str:
    """ "valid" or "same" (or "causal") in lower case.

    Raises:
        ValueError: for anything else.
    """
    allowed = ("valid", "same", "causal") if causal else ("valid", "same")
    lower = value.lower() if isinstance(value, str) else value
    if lower not in allowed:
        raise ValueError(
            "The `padding` argument must be one of "
            f"{', '.join(repr(a) for a in allowed)}. Received: {value!r}"
        )
    return str(lower)


def channels_first(data_format: Any) -> bool:
    """Whether channels come second. Raises ValueError unless it says one of the two formats."""
    lower = data_format.lower() if isinstance(data_format, str) else data_format
    if lower not in ("channels_first", "channels_last", None):
        raise ValueError(
            'The `data_format` argument must be one of "channels_first", "channels_last". '
            f"Received: {data_format!r}"
        )
    return bool(lower == "channels_first")


def op_format(first: bool, rank: int) -> str:
    """The ``data_format`` attribute of ops on ``rank`` spatial dimensions."""
    spatial = {1: "W", 2: "HW", 3: "DHW"}[rank]
    return f"NC{spatial}" if first else f"N{spatial}C"


def known(predicate: Any) -> bool | None:
    """The truth of a bool, number or tensor; None if it is known only when the graph runs."""
    if isinstance(predicate, (bool, int, np.bool_)):
        return bool(predicate)
    value = static_value(convert_to_tensor(predicate))
    return None if value is None else bool(value)


def smart_cond(predicate: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """One of the two when the predicate is known, else ``tf.cond`` of both."""
    truth = known(predicate)
    if truth is None:
        return cond(predicate, true_fn, false_fn)
    return true_fn() if truth else false_fn()


def _function_doc(layer: type[Layer]) -> str:
    """What ``help`` says of the function: the layer's summary, arguments and errors."""
    # Conv2D leaves its arguments to Conv, and MaxPooling2D to what all pooling shares.
    classes = layer.__mro__[: layer.__mro__.index(Layer)]
    docs = [inspect.cleandoc(vars(c).get("__doc__") or "").split("\n\n") for c in classes]
    told = {
        title: [part.removeprefix(title) for doc in docs for part in doc if part.startswith(title)]
        for title in ("Args:", "Raises:")
    }
    summary = re.sub(r" (For the arguments see|See) `\w+`\.", "", docs[0][0])
    arguments = "Args:" + "".join(told["Args:"]) if told["Args:"] else ""
    errors = "Raises:" + "".join(told["Raises:"][:1])
    made = f"`{layer.__name__}`, made and called on ``inputs``."
    return "\n\n".join(filter(None, [made, summary, arguments, errors]))


def functional(layer: type[Layer]) -> Callable[..., Tensor]:
    """The function that makes a layer and calls it on ``inputs``, which come first.

    It takes the arguments of the layer and, where the layer has variables, ``reuse``: whether to
    share those of an earlier layer of the same ``name``.
    """
    keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
    own = list(inspect.signature(layer.__init__).parameters.values())[1:]
    parameters = [inspect.Parameter("inputs", keyword, annotation="Any")]
    parameters += [p for p in own if p.kind is not p.VAR_KEYWORD]
    shares = any(p.name == "trainable" for p in own)
    if shares:
        reuse = inspect.Parameter("reuse", keyword, default=None, annotation="Any")
        parameters.append(reuse)
    signature = inspect.Signature(parameters, return_annotation="Tensor")

    def function(*args: Any, **kwargs: Any) -> Tensor:
        given = signature.bind(*args, **kwargs).arguments
        inputs = given.pop("inputs")
        if shares:
            given["_reuse"] = given.pop("reuse", None)
            given["_scope"] = given.get("name")
        result: Tensor = layer(**given).apply(inputs)
        return result

    # Conv2DTranspose is conv2d_transpose.
    name = re.sub("(?<!^)(?=[A-Z][a-z])", "_", layer.__name__).lower()
    function.__name__ = function.__qualname__ = name
    function.__module__ = layer.__module__
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__doc__ = _function_doc(layer)
    return function


__all__ = [
    "ONES",
    "ZEROS",
    "activation",
    "channels_first",
    "functional",
    "initializer",
    "known",
    "op_format",
    "padding",
    "regularizer",
    "sizes",
    "smart_cond",
]

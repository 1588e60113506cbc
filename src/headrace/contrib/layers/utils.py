"""What the layers share: names of outputs, collections by kind of variable, sizes."""

from __future__ import annotations

import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from headrace.contrib.framework.variables import model_variable
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.layers.arguments import smart_cond as _smart_cond
from headrace.ops.core.static import static_value
from headrace.ops.state.partitioned import parts_of
from headrace.ops.state.variable_scope import variable_scope
from headrace.ops.state.variables import Variable

T = TypeVar("T")
NamedOutputs = namedtuple("NamedOutputs", ["name", "outputs"])

#: Other names of tensors.
_aliases: weakref.WeakKeyDictionary[Any, list[str]] = weakref.WeakKeyDictionary()


# -- names of outputs ---------------------------------------------------------------------------


def append_tensor_alias(tensor: Any, alias: str) -> Any:
    """Give a tensor another name, by which `convert_collection_to_dict` knows it."""
    _aliases.setdefault(tensor, []).append(alias.removesuffix("/"))
    return tensor


def get_tensor_aliases(tensor: Any) -> list[str]:
    """The other names of a tensor, or its own."""
    if tensor in _aliases:
        return list(_aliases[tensor])
    return [tensor.op.name if tensor.name.endswith(":0") else tensor.name]


def gather_tensors_aliases(tensors: Iterable[Any]) -> list[str]:
    """The other names of all tensors."""
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


def collect_named_outputs(collections: Any, alias: str, outputs: T) -> T:
    """Add ``outputs`` to collections, under another name; gives them back."""
    if collections:
        append_tensor_alias(outputs, alias)
        get_default_graph().add_to_collections(collections, outputs)
    return outputs


def convert_collection_to_dict(
    collection: str, clear_collection: bool = False
) -> OrderedDict[str, Any]:
    """The tensors of a collection by their names, in order."""
    graph = get_default_graph()
    found = OrderedDict(
        (alias, tensor)
        for tensor in graph.get_collection(collection)
        for alias in get_tensor_aliases(tensor)
    )
    if clear_collection:
        graph.clear_collection(collection)
    return found


# -- predicates and sizes -----------------------------------------------------------------------


def constant_value(value_or_tensor_or_var: Any, dtype: Any = None) -> Any:
    """A value, or that of a tensor; None if it is known only when the graph runs.

    Raises:
        ValueError: if there is no value, or it is of another type.
    """
    value = value_or_tensor_or_var
    if value is None:
        raise ValueError("value_or_tensor_or_var cannot be None")
    if isinstance(value, (Tensor, Variable)):
        if dtype and value.dtype != dtype:
            raise ValueError(f"It has the wrong type {value.dtype} instead of {dtype}")
        return None if isinstance(value, Variable) else static_value(value)
    if dtype and not isinstance(value, dtype):
        raise ValueError(f"It has the wrong type {type(value)} instead of {dtype}")
    return value


def static_cond(pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any]) -> Any:
    """One of two functions. Raises TypeError if one is no function."""
    for name, function in (("fn1", fn1), ("fn2", fn2)):
        if not callable(function):
            raise TypeError(f"{name} must be callable.")
    return fn1() if pred else fn2()


def smart_cond(
    pred: Any, fn1: Callable[[], Any], fn2: Callable[[], Any], name: str | None = None
) -> Any:
    """One of two functions where the predicate is known, else ``tf.cond`` of both."""
    return _smart_cond(pred, fn1, fn2)


def get_variable_collections(variables_collections: Any, name: str) -> Any:
    """The collections of one kind of variable, where they are given by kind; else all."""
    if isinstance(variables_collections, dict):
        return variables_collections.get(name)
    return variables_collections


def channel_dimension(shape: TensorShape, data_format: str, min_rank: int = 1) -> int:
    """The number of channels. Raises ValueError if it is not known or there are too few axes."""
    return _dimension(shape, 1 if data_format == "channels_first" else -1, min_rank)


def last_dimension(shape: TensorShape, min_rank: int = 1) -> int:
    """The last size. Raises ValueError if it is not known or there are too few axes."""
    return _dimension(shape, -1, min_rank)


def _dimension(shape: TensorShape, axis: int, min_rank: int) -> int:
    if shape.rank is None:
        raise ValueError("dims of shape must be known but is None")
    if shape.rank < min_rank:
        raise ValueError(f"rank of shape must be at least {min_rank} not: {shape.rank}")
    size = shape.as_list()[axis]
    if size is None:
        raise ValueError(f"dimension {axis} of shape must be known but is None: {shape}")
    return size


def two_element_tuple(int_or_tuple: Any) -> tuple[int, int]:
    """Height and width from one number or two. Raises ValueError for anything else."""
    if isinstance(int_or_tuple, int):
        return int_or_tuple, int_or_tuple
    if isinstance(int_or_tuple, (list, tuple, TensorShape)) and len(int_or_tuple) == 2:
        return int(int_or_tuple[0]), int(int_or_tuple[1])
    raise ValueError(
        f"Must be an int, a list with 2 elements or a TensorShape of length 2: {int_or_tuple!r}"
    )


def n_positive_integers(n: int, value: Any) -> tuple[int, ...]:
    """``n`` positive numbers, from one or from as many.

    Raises:
        ValueError: if there are more or fewer, or one is not positive.
    """
    if int(n) != n or n < 1:
        raise ValueError("n must be a positive integer")
    try:
        values = tuple(int(v) for v in value) if hasattr(value, "__iter__") else (int(value),) * n
    except (TypeError, ValueError):
        values = ()
    if len(values) != n:
        raise ValueError(f"Expected sequence of {n} positive integers, but received {value!r}")
    if min(values) < 1:
        raise ValueError(f"expected positive integer, but received {min(values)}")
    return values


# -- variables of layers ------------------------------------------------------------------------


def _model_getter(getter: Callable[..., Any], name: str, rename: Any, **kwargs: Any) -> Any:
    """Make a layer's variable a model variable, under the name it has in contrib."""
    folder, _, short = name.rpartition("/")
    if rename and short in rename:
        name = f"{folder}/{rename[short]}" if folder else rename[short]
    for unused in ("reuse", "validate_shape", "constraint"):
        kwargs.pop(unused, None)
    if kwargs.get("trainable") is None:
        kwargs["trainable"] = True
    return model_variable(name, custom_getter=getter, **kwargs)


def layer_scope(
    scope: Any, default: str, inputs: Any, reuse: Any = None, rename: dict[str, str] | None = None
) -> variable_scope:
    """The variable scope of a layer, in which variables are model variables."""

    def getter(getter: Callable[..., Any], name: str, **kwargs: Any) -> Any:
        return _model_getter(getter, name, rename, **kwargs)

    return variable_scope(scope, default, [inputs], reuse=reuse, custom_getter=getter)


def add_to_collections(variable: Any, variables_collections: Any, name: str) -> None:
    """Add a variable (or its parts) to the collections of its kind."""
    if variable is None:
        return
    parts = parts_of(variable)
    for collection in get_variable_collections(variables_collections, name) or []:
        held = get_default_graph().get_collection_ref(collection)
        for part in parts:
            if all(part is not v for v in held):
                held.append(part)


def finished(
    outputs: Any,
    scope_name: str,
    activation_fn: Any = None,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    outputs_collections: Any = None,
) -> Tensor:
    """Normalisation, activation, and the collections of the outputs."""
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    if activation_fn is not None:
        outputs = activation_fn(outputs)
    result: Tensor = collect_named_outputs(outputs_collections, scope_name, outputs)
    return result


__all__ = [
    "channel_dimension",
    "collect_named_outputs",
    "constant_value",
    "convert_collection_to_dict",
    "get_variable_collections",
    "last_dimension",
    "n_positive_integers",
    "smart_cond",
    "static_cond",
    "two_element_tuple",
]

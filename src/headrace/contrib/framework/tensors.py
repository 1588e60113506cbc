"""Checks and small functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.tensor import Tensor
from headrace.layers.arguments import smart_cond as _smart_cond
from headrace.ops.control.cases_api import case
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.core.static import static_value
from headrace.ops.math.nary import add_n
from headrace.ops.math.reduction_api import reduce_sum
from headrace.ops.nn import weights
from headrace.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue
from headrace.ops.state.scopes_api import graph_of, name_scope
from headrace.ops.state.variables import Variable


def is_tensor(x: Any) -> bool:
    """Whether ``x`` is a tensor, a sparse one, or a variable, of any shape."""
    return isinstance(x, (Tensor, SparseTensor, Variable))


def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> DType:
    """The one floating type of ``tensors`` (None among them counts for nothing) and ``dtype``.

    Their shapes may differ. Without tensors and ``dtype`` it is float32.

    Raises:
        TypeError: if one of ``tensors`` is no tensor.
        ValueError: if types differ or are not floating.
    """
    found = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
    for tensor in tensors or ():
        if tensor is None:
            continue
        if not hasattr(tensor, "dtype"):
            raise TypeError(f"Expected tensors, got {tensor!r:.100}: use tf.convert_to_tensor.")
        own = dtypes.as_dtype(tensor.dtype).base_dtype
        if found is not None and own is not found:
            raise ValueError(f"Expected {found.name}, got {own.name} of {tensor!r}.")
        found = own
    found = found or dtypes.float32
    if not found.is_floating:
        raise ValueError(f"Expected floating point type, got {found.name}.")
    return found


def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """``tensor``, which must be a scalar.

    Raises:
        ValueError: if its static shape says otherwise, or is unknown.
    """
    with name_scope(name, "assert_scalar", [tensor]):
        result = convert_to_tensor(tensor)
        if result.shape.rank != 0:
            raise ValueError(
                f"{message or ''}Expected scalar shape for {result.name}, saw shape: "
                f"{result.shape}."
            )
        return result


def assert_scalar_int(tensor: Any, name: str | None = None) -> Tensor:
    """``tensor``, which must be an integer scalar.

    Raises:
        ValueError: if it is not.
    """
    with name_scope(name, "assert_scalar_int", [tensor]):
        tensor = convert_to_tensor(tensor)
        if not tensor.dtype.is_integer:
            raise ValueError(
                f"Expected integer type for {tensor.name}, received type: {tensor.dtype.name}."
            )
        return assert_scalar(tensor)


def convert_to_tensor_or_sparse_tensor(
    value: Any, dtype: Any = None, name: str | None = None
) -> Any:
    """``value`` as a tensor of the same shape; a sparse one as it is.

    Raises:
        RuntimeError: if ``dtype`` is not that of a sparse tensor.
        TypeError: if ``value`` cannot be converted, or not to ``dtype``.
        ValueError: if its rows have different lengths.
    """
    if isinstance(value, SparseTensorValue):
        value = SparseTensor(value.indices, value.values, value.dense_shape)
    if not isinstance(value, SparseTensor):
        return convert_to_tensor(value, dtype, name)
    if dtype is not None and dtypes.as_dtype(dtype) is not value.dtype:
        raise RuntimeError(
            f"Sparse dtype: requested = {dtypes.as_dtype(dtype).name}, actual = {value.dtype.name}"
        )
    return value


def get_graph_from_inputs(op_input_list: Any, graph: Graph | None = None) -> Graph:
    """The graph of tensors and operations, of any shape. Without any, the default graph.

    Raises:
        ValueError: if they have several, or one of them is not in ``graph``.
    """
    if graph is None:
        return graph_of(op_input_list)
    for item in op_input_list:
        if hasattr(item, "graph") and item.graph is not graph:
            raise ValueError(f"{item!r} is not from the passed-in graph.")
    return graph


def get_name_scope() -> str:
    """The name scope that is open."""
    return get_default_graph().get_name_scope()


def get_placeholders(graph: Graph) -> list[Tensor]:
    """The placeholders of a graph, in the order they were made, each with the shape it was given.

    Raises:
        TypeError: if ``graph`` is no graph.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"graph must be a tf.Graph, got {graph!r:.100}.")
    return [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]


def reduce_sum_n(tensors: Sequence[Any], name: str | None = None) -> Any:
    """The sum of all elements of all tensors, a scalar.

    Raises:
        ValueError: if there are none, or their types differ.
    """
    if not tensors:
        raise ValueError("No tensors provided.")
    with name_scope(name, "reduce_sum_n", tensors) as scope:
        sums = [reduce_sum(t, name=f"{convert_to_tensor(t).op.name}/sum") for t in tensors]
        return sums[0] if len(sums) == 1 else add_n(sums, name=scope)


def remove_squeezable_dimensions(
    predictions: Any, labels: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Predictions and labels without a last dimension of 1 that one has too much.

    ``[batch, 1]`` with ``[batch]`` becomes two of shape ``[batch]``. Where a rank is not known, or
    the ranks differ by more than one, both stay as they are.

    Raises:
        TypeError: if one cannot be converted to a tensor.
        ValueError: if the dimension that is too much has a known size other than 1.
    """
    squeezed_labels, squeezed = weights.remove_squeezable_dimensions(labels, predictions, 0, name)
    return squeezed, squeezed_labels


def with_shape(expected_shape: Any, tensor: Any) -> Tensor:
    """``tensor`` with a static shape.

    Raises:
        ValueError: if its own contradicts.
    """
    result = convert_to_tensor(tensor)
    known = expected_shape
    if isinstance(expected_shape, Tensor):
        value = static_value(expected_shape)
        known = None if value is None else value.tolist()
    if known is not None:
        result.shape.assert_is_compatible_with(known)
        result.set_shape(known)
    return result


def with_same_shape(expected_tensor: Any, tensor: Any) -> Tensor:
    """``tensor`` with the static shape of another.

    Raises:
        ValueError: if its own contradicts.
    """
    return with_shape(convert_to_tensor(expected_tensor).shape, tensor)


def smart_cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """One of two functions where the predicate, a scalar, is known, else ``tf.cond`` of both.

    The result has the shape of what the function gives; of both, what the two have in common.

    Raises:
        TypeError: if a function is no function.
        ValueError: if the predicate is no scalar, or two branches give different types.
    """
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError("`true_fn` and `false_fn` must be callable.")
    return _smart_cond(pred, true_fn, false_fn)


def smart_constant_value(pred: Any) -> Any:
    """The truth of a bool, 0, 1 or tensor that is known; else None.

    Of a tensor it is an array of the tensor's shape.

    Raises:
        TypeError: for anything else.
    """
    if isinstance(pred, (bool, int)) and pred in (0, 1):
        return bool(pred)
    if isinstance(pred, Tensor):
        return static_value(pred)
    raise TypeError(f"`pred` must be a Tensor, or a Python bool, or 1 or 0. Found: {pred!r}")


def smart_case(
    pred_fn_pairs: Any, default: Any = None, exclusive: bool = False, name: str = "smart_case"
) -> Any:
    """``tf.case``, without the branches that are known not to be taken.

    Args:
        pred_fn_pairs: pairs, or a dictionary, of a scalar predicate and a function. The result has
            the shape of what the chosen function gives.
        default: the function for when no predicate is true.

    Raises:
        TypeError: if a predicate is neither a tensor, a bool, 0 nor 1, or a function is no
            function.
        ValueError: if no predicate is true and there is no default, or a predicate that is a
            tensor is no scalar, or branches that are both possible give different types.
    """
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    left = []
    for predicate, function in pairs:
        known = smart_constant_value(predicate)
        if known is None:
            left.append((predicate, function))
        elif known and not left:
            return function()
        elif known:
            return case(left, default=function, exclusive=exclusive, name=name)
    if not left:
        if default is None:
            raise ValueError("No predicate is true, and there is no default.")
        return default()
    return case(left, default=default, exclusive=exclusive, name=name)


__all__ = [
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_scalar_int",
    "convert_to_tensor_or_sparse_tensor",
    "get_graph_from_inputs",
    "get_name_scope",
    "get_placeholders",
    "is_tensor",
    "reduce_sum_n",
    "remove_squeezable_dimensions",
    "smart_case",
    "smart_cond",
    "smart_constant_value",
    "with_same_shape",
    "with_shape",
]

"""TensorInfo messages: which tensor of a graph a signature means."""

from __future__ import annotations

from typing import Any

from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.proto import TensorInfo
from headrace.graph.tensor import Tensor
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.state.save_slices import prepend_name_scope

__all__ = ["build_tensor_info", "get_tensor_from_tensor_info"]


def build_tensor_info(tensor: Any) -> TensorInfo:
    """The TensorInfo of a Tensor or SparseTensor: name, type and static shape.

    Raises:
        TypeError: if it is none.
    """
    if not isinstance(tensor, (Tensor, SparseTensor)) and not hasattr(tensor, "_to_tensor"):
        raise TypeError(f"Expected a Tensor, a SparseTensor or a variable, not {tensor!r}.")
    info = TensorInfo(dtype=tensor.dtype.as_datatype_enum)
    info.tensor_shape.CopyFrom(tensor.get_shape().as_proto())
    if isinstance(tensor, SparseTensor):
        info.coo_sparse.values_tensor_name = tensor.values.name
        info.coo_sparse.indices_tensor_name = tensor.indices.name
        info.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
    else:
        info.name = tensor.name
    return info


def get_tensor_from_tensor_info(
    tensor_info: Any, graph: Graph | None = None, import_scope: str | None = None
) -> Any:
    """The Tensor or SparseTensor that a TensorInfo means.

    Args:
        graph: by default the default graph.
        import_scope: the scope that the graph was imported under.

    Returns:
        The tensor of the graph, with the shape that the graph knows.

    Raises:
        KeyError: if the graph has no such tensor.
        ValueError: if the message names none.
    """
    graph = get_default_graph() if graph is None else graph

    def tensor(name: str) -> Any:
        return graph.get_tensor_by_name(prepend_name_scope(name, import_scope))

    encoding = tensor_info.WhichOneof("encoding")
    if encoding == "name":
        return tensor(tensor_info.name)
    if encoding == "coo_sparse":
        parts = tensor_info.coo_sparse
        return SparseTensor(
            tensor(parts.indices_tensor_name),
            tensor(parts.values_tensor_name),
            tensor(parts.dense_shape_tensor_name),
        )
    raise ValueError(f"Invalid TensorInfo.encoding: {encoding}")

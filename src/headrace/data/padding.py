"""Batches of elements of different sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.data import structure as nested
from headrace.data.structure import Component
from headrace.graph import dtypes
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.static import static_shape, static_value


def padded(
    dataset: Any, batch_size: Any, padded_shapes: Any, padding_values: Any, drop_remainder: Any
) -> tuple[Tensor, Any]:
    """The dataset of `Dataset.padded_batch`, and the structure of its elements."""
    leaves = nested.flatten(dataset._structure)
    if any(type(leaf) is not Component for leaf in leaves):
        raise TypeError(
            "Batching of padded sparse or ragged tensors is not supported: use dense tensors."
        )
    wanted = _shapes_at(dataset._structure, padded_shapes)
    shapes = [_shape(given, leaf) for given, leaf in zip(wanted, leaves, strict=True)]
    if padding_values is None:
        fills: list[Any] = [None] * len(leaves)
    else:
        fills = nested.flatten_up_to(dataset._structure, padding_values)
    values = [_fill(given, leaf) for given, leaf in zip(fills, leaves, strict=True)]
    size = convert_to_tensor(batch_size, dtypes.int64)
    drop = convert_to_tensor(drop_remainder, "bool")
    known = static_value(size) if static_value(drop) else None
    axis = None if known is None else int(known)
    made = [
        leaf.with_shape(TensorShape([axis]).concatenate(TensorShape(static_shape(shape))))
        for leaf, shape in zip(leaves, shapes, strict=True)
    ]
    structure = nested.pack(dataset._structure, made)
    shapes_of_batches = nested.flat_shapes(structure)
    variant = raw.PaddedBatchDatasetV2(
        dataset._variant_tensor, size, shapes, values, drop, output_shapes=shapes_of_batches
    )
    return variant, structure


def _shapes_at(structure: Any, shapes: Any) -> list[Any]:
    """The shape given for each leaf; where there is one leaf, a tuple is its shape."""
    if not nested.is_nested(structure):
        return [shapes]
    return nested.flatten_up_to(structure, shapes)


def _shape(given: Any, leaf: Component) -> Tensor:
    """A shape as a vector, with -1 for what the batch decides."""
    if isinstance(given, Tensor):
        return raw.Cast(given, DstT=dtypes.int64) if given.dtype is not dtypes.int64 else given
    if isinstance(given, (list, tuple)):
        given = [None if isinstance(size, int) and size < 0 else size for size in given]
    shape = TensorShape(given)
    if shape.ndims is None:
        raise ValueError(f"The padded shape {given!r} has an unknown rank.")
    if leaf.shape.ndims is not None and leaf.shape.ndims != shape.ndims:
        raise ValueError(
            f"The padded shape {shape} is not compatible with the corresponding input component "
            f"shape {leaf.shape}."
        )
    for size, most in zip(leaf.shape.as_tuple or (), shape.as_tuple or (), strict=False):
        if size is not None and most is not None and size > most:
            raise ValueError(
                f"The padded shape {shape} is not compatible with the corresponding input "
                f"component shape {leaf.shape}."
            )
    sizes = [-1 if size is None else size for size in shape.as_tuple or ()]
    return convert_to_tensor(np.array(sizes, np.int64))


def _fill(given: Any, leaf: Component) -> Tensor:
    if given is None:
        given = "" if leaf.dtype is dtypes.string else np.zeros((), leaf.dtype.as_numpy_dtype)
    value = convert_to_tensor(given, leaf.dtype)
    if not value.shape.is_compatible_with([]):
        raise ValueError(f"A padding value must be a scalar, not of shape {value.shape}.")
    return value


__all__: list[str] = []

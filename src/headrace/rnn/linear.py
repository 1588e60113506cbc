"""The linear layer inside cells and attention: one kernel for all arguments together."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import nest
from headrace.graph.tensor import Tensor
from headrace.ops.array.joining_api import concat
from headrace.ops.math.matmul import matmul
from headrace.ops.nn.activations import bias_add
from headrace.ops.state.initializers import constant_initializer
from headrace.ops.state.variable_scope import get_variable, get_variable_scope, variable_scope
from headrace.rnn.cell import BIAS, KERNEL, require_floating


class Linear:
    """``[args...] W + b``, with variables ``kernel`` and ``bias`` in the open variable scope.

    Args:
        args: matrix or list of matrices ``[batch_size, n]`` that tell the sizes and the type.
        output_size: columns of the result.
        build_bias: whether there is a bias.
        bias_initializer: by default zeros.
        kernel_initializer: by default the scope's.

    Raises:
        TypeError: if the arguments are no tensors, or ``output_size`` is no integer.
        ValueError: if there are no arguments, their sizes are not known, or they are no floats.
    """

    def __init__(
        self,
        args: Any,
        output_size: int,
        build_bias: bool,
        bias_initializer: Any = None,
        kernel_initializer: Any = None,
    ) -> None:
        _require_tensors(args)
        if isinstance(output_size, bool) or not isinstance(output_size, (int, np.integer)):
            raise TypeError(f"output_size must be an integer, got {output_size!r:.100}.")
        rows = _total_size(args)
        require_floating(args)
        dtype = nest.flatten(args)[0].dtype
        with variable_scope(get_variable_scope()) as outer:
            self._kernel = get_variable(
                KERNEL, [rows, output_size], dtype=dtype, initializer=kernel_initializer
            )
            self._bias = None
            if build_bias:
                with variable_scope(outer) as inner:
                    inner.set_partitioner(None)
                    start = bias_initializer or constant_initializer(0.0, dtype=dtype)
                    self._bias = get_variable(BIAS, [output_size], dtype=dtype, initializer=start)

    def __call__(self, args: Any) -> Tensor:
        """The result for such arguments."""
        parts = list(args) if nest.is_sequence(args) else [args]
        whole = parts[0] if len(parts) == 1 else concat(parts, 1)
        result = matmul(whole, self._kernel)
        return result if self._bias is None else bias_add(result, self._bias)


def linear(
    args: Any,
    output_size: int,
    bias: bool,
    bias_initializer: Any = None,
    kernel_initializer: Any = None,
) -> Tensor:
    """`Linear` made and called at once (known as ``_linear``): ``[batch, output_size]``.

    Args:
        args: a tensor ``[batch, n]``, or a list of such.

    Raises:
        TypeError: if they are no tensors, or ``output_size`` is no integer.
        ValueError: if there are none, or they are no matrices of floats of known width.
    """
    return Linear(args, output_size, bias, bias_initializer, kernel_initializer)(args)


def _require_tensors(args: Any) -> None:
    for part in nest.flatten(args) if args is not None else ():
        if not isinstance(part, Tensor):
            raise TypeError(
                "linear takes a tensor [batch, n] or a list of such, got "
                f"{part!r:.100} of type {type(part).__name__}."
            )


def _total_size(args: Any) -> int:
    if args is None or (nest.is_sequence(args) and not args):
        raise ValueError("`args` must be specified")
    shapes = [a.shape for a in nest.flatten(args)]
    for shape in shapes:
        if shape.rank != 2:
            raise ValueError(f"linear is expecting 2D arguments: {shapes}")
        if shape.as_list()[1] is None:
            raise ValueError(f"linear expects shape[1] to be provided for shape {shape}")
    return sum(shape.as_list()[1] for shape in shapes)


__all__ = ["Linear", "linear"]

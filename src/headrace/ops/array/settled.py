"""Sizes: values that are known before the program that uses them is compiled, and checks.

Graph files have Identity in the place of these ops (`graph.graph_def`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from jax import numpy as jnp

from headrace.errors import InvalidArgumentError
from headrace.graph.shapes import merge_static
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks
from headrace.ops.core.build import raw
from headrace.ops.core.registry import CHECKS, NotDifferentiable, define_op
from headrace.ops.core.traits import Traits

define_op(
    "Settled(x: T) -> output: T",
    attrs="T: index",
    shape=lambda op: [op.inputs[0].dims],
    host=lambda context, x: x,
    gradient=NotDifferentiable("it carries sizes"),
    traits=Traits(own_check=True),
)


def settled(x: Any) -> Tensor:
    """A small integer tensor, computed first.

    Sizes and numbers of iterations that are made of it are fixed in the program that uses them,
    which is then compiled for each of its values, and not for each value of what it is made of.
    """
    return raw.Settled(x)


def _rows_shape(op: Operation) -> list[Dims]:
    x, like = op.inputs[0].dims, op.inputs[1].dims
    if x is None or like is None or not x or not like:
        return [x]
    try:
        rows = merge_static(x[:1], like[:1])
    except ValueError:
        raise ValueError(_problem(op.attrs["message"], x, like)) from None
    return [(*(rows or x[:1]), *x[1:])]


def _problem(message: str, x: Any, like: Any) -> str:
    return f"{message} Their shapes are {tuple(x)} and {tuple(like)}."


def _same_rows(x: Any, like: Any, *, message: str) -> Any:
    if np.shape(x)[:1] != np.shape(like)[:1]:
        raise InvalidArgumentError(None, None, _problem(message, np.shape(x), np.shape(like)))
    return x


define_op(
    "SameRows(x: T, like: U) -> output: T",
    attrs="T: type, U: type, message: string",
    shape=_rows_shape,
    kernel=_same_rows,
    interpret=_same_rows,
    gradient=lambda op, grad: [grad, None],
    traits=Traits(own_check=True),
)


def same_rows(x: Any, like: Any, message: str) -> Tensor:
    """``x``, which must have as many rows as ``like``; nothing is left of this in a program.

    Raises:
        ValueError: if the static shapes tell that it has not.
        InvalidArgumentError: in a step.
    """
    return raw.SameRows(x, like, message=message)


def _positive(xp: Any, x: Any, *, message: str) -> Any:
    if x.size:
        checks.require(xp.all(x > 0), message)
    return x


define_op(
    "RequirePositive(x: T) -> output: T",
    attrs="T: index, message: string",
    shape=lambda op: [op.inputs[0].dims],
    kernel=partial(_positive, jnp),
    interpret=partial(_positive, np),
    gradient=NotDifferentiable("it carries lengths"),
    effects=CHECKS,
    traits=Traits(own_check=True),
)


def positive(x: Any, message: str) -> Tensor:
    """Integers ``x``, all of which must be positive. Unlike an assertion this can be compiled.

    Raises:
        InvalidArgumentError: in a step.
    """
    return raw.RequirePositive(x, message=message)


__all__ = ["positive", "same_rows", "settled"]

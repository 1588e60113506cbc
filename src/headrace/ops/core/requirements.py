"""What shape rules ask of the shapes of inputs, said once: ranks, and shapes that belong together.

An op lists them as ``requires``. They are checked when the op is built, and when it runs for what
was unknown then, before its rule and its kernel see the shapes.
"""

from __future__ import annotations

from headrace.graph.shapes import compatible_static, shape_text
from headrace.graph.tensor import Operation
from headrace.ops.core.registry import Requirement

__all__: list[str] = []


def name_of(op: Operation, position: int) -> str:
    """The declared name of an input, the op having no lists."""
    return str(op.op_def.inputs[position].name)


def scalar(*positions: int) -> Requirement:
    """These inputs are scalars."""
    return rank(0, *positions)


def rank(wanted: int, *positions: int) -> Requirement:
    """These inputs have a rank."""

    def check(op: Operation) -> None:
        for i in positions:
            dims = op.inputs[i].dims
            if dims is not None and len(dims) != wanted:
                what = "a scalar" if wanted == 0 else f"of rank {wanted}"
                raise ValueError(
                    f"{op.type}: {name_of(op, i)} must be {what}, got shape {shape_text(dims)}"
                )

    return check


def rank_at_least(least: int, *positions: int) -> Requirement:
    """These inputs have a rank or a higher one."""

    def check(op: Operation) -> None:
        for i in positions:
            dims = op.inputs[i].dims
            if dims is not None and len(dims) < least:
                raise ValueError(
                    f"{op.type}: {name_of(op, i)} must be at least {least}-dimensional, got shape "
                    f"{shape_text(dims)}"
                )

    return check


def same_shape(first: int, *others: int) -> Requirement:
    """These inputs have the shape of the first one."""

    def check(op: Operation) -> None:
        wanted = op.inputs[first].dims
        for i in others:
            dims = op.inputs[i].dims
            if not compatible_static(wanted, dims):
                raise ValueError(
                    f"{op.type}: {name_of(op, first)} and {name_of(op, i)} must have the same "
                    f"shape, got {shape_text(wanted)} and {shape_text(dims)}"
                )

    return check


def shape(wanted: tuple[int | None, ...], *positions: int) -> Requirement:
    """These inputs have a shape; None leaves a size open."""

    def check(op: Operation) -> None:
        for i in positions:
            dims = op.inputs[i].dims
            if not compatible_static(wanted, dims):
                raise ValueError(
                    f"{op.type}: {name_of(op, i)} must have the shape {shape_text(wanted)}, got "
                    f"{shape_text(dims)}"
                )

    return check

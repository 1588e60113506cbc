"""Penalties on the size of weights."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from headrace import logging
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.math.nary import add_n
from headrace.ops.math.reduction_api import reduce_sum
from headrace.ops.nn.softmax import l2_loss
from headrace.ops.state.scopes_api import name_scope

Regularizer = Callable[..., Any]


def _nothing(_: Any) -> None:
    return None


def _checked(scale: Any) -> bool:
    """Whether the scale turns the regulariser on.

    Raises:
        ValueError: if it is an integer or negative.
    """
    if isinstance(scale, numbers.Integral):
        raise ValueError(f"scale cannot be an integer: {scale}")
    if isinstance(scale, numbers.Real):
        if scale < 0.0:
            raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale:g}")
        if scale == 0.0:
            logging.info("Scale of 0 disables regularizer.")
            return False
    return True


def l1_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """``scale`` times the sum of the absolute weights, a scalar; a scale of 0 gives None.

    Raises:
        TypeError: when called, if the weights are not of a floating type.
        ValueError: if ``scale`` is an integer or negative.
    """
    if not _checked(scale):
        return _nothing

    def l1(weights: Any, name: str | None = None) -> Tensor:
        with name_scope(scope, "l1_regularizer", [weights]) as name:
            factor = convert_to_tensor(scale, weights.dtype.base_dtype, name="scale")
            penalty: Tensor = raw.Mul(factor, reduce_sum(raw.Abs(weights)), name=name)
            return penalty

    return l1


def l2_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """``scale`` times half the sum of the squared weights, a scalar; a scale of 0 gives None.

    Raises:
        TypeError: when called, if the weights are not of a floating type.
        ValueError: if ``scale`` is an integer or negative.
    """
    if not _checked(scale):
        return _nothing

    def l2(weights: Any) -> Tensor:
        with name_scope(scope, "l2_regularizer", [weights]) as name:
            factor = convert_to_tensor(scale, weights.dtype.base_dtype, name="scale")
            penalty: Tensor = raw.Mul(factor, l2_loss(weights), name=name)
            return penalty

    return l2


def l1_l2_regularizer(
    scale_l1: Any = 1.0, scale_l2: Any = 1.0, scope: str | None = None
) -> Regularizer | None:
    """The sum of `l1_regularizer` and `l2_regularizer`: a function of weights that gives a scalar.

    Zou and Hastie, "Regularization and variable selection via the elastic net", 2005, section 2.1.

    Raises:
        TypeError: when called, if the weights are not of a floating type.
        ValueError: if a scale is an integer or negative.
    """
    for name, scale in (("scale_l1", scale_l1), ("scale_l2", scale_l2)):
        if isinstance(scale, numbers.Integral):
            raise ValueError(f"{name} cannot be an integer: {scale}")
    scope = scope or "l1_l2_regularizer"
    if scale_l1 == 0.0:
        return l2_regularizer(scale_l2, scope)
    if scale_l2 == 0.0:
        return l1_regularizer(scale_l1, scope)
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope=scope)


def sum_regularizer(
    regularizer_list: list[Regularizer | None], scope: str | None = None
) -> Regularizer | None:
    """The sum of several regularisers, a function that gives a scalar; None if there are none.

    Raises:
        TypeError: if ``regularizer_list`` is no list, or when called, if one of it is no function.
    """
    given = [r for r in regularizer_list if r is not None]
    if not given:
        return None

    def summed(weights: Any) -> Tensor | None:
        with name_scope(scope, "sum_regularizer", [weights]) as name:
            penalties = [p for p in (r(weights) for r in given) if p is not None]
            return add_n(penalties, name=name) if penalties else None

    return summed


def apply_regularization(regularizer: Regularizer, weights_list: Any = None) -> Any:
    """The sum of the penalties on all weights, a scalar, added to the regularisation losses.

    ``weights_list`` defaults to the collection ``WEIGHTS``.

    Raises:
        TypeError: if ``regularizer`` is no function.
        ValueError: if there are no weights, or a penalty is not one number.
    """
    graph = get_default_graph()
    weights = list(weights_list or graph.get_collection(GraphKeys.WEIGHTS))
    if not weights:
        raise ValueError("No weights to regularize.")
    with name_scope("get_regularization_penalty", values=weights) as scope:
        found = [regularizer(w) for w in weights]
        penalties = [constant(0.0) if p is None else p for p in found]
        for penalty in penalties:
            if penalty.shape.rank != 0:
                raise ValueError(
                    "regularizer must return a scalar Tensor instead of a Tensor with rank "
                    f"{penalty.shape.rank}."
                )
        total = add_n(penalties, name=scope)
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
        return total


__all__ = [
    "apply_regularization",
    "l1_l2_regularizer",
    "l1_regularizer",
    "l2_regularizer",
    "sum_regularizer",
]

"""Clipping tensors by value and by norm. ``clip_by_value`` itself is an elementwise op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.core.public import public


def _values(t: Any) -> Any:
    return t.values if isinstance(t, IndexedSlices) else convert_to_tensor(t)


def _like(t: Any, values: Tensor) -> Any:
    if isinstance(t, IndexedSlices):
        return IndexedSlices(values, t.indices, t.dense_shape)
    return values


def _all_axes(tensor: Tensor) -> Any:
    if tensor.dims is not None:
        return list(range(len(tensor.dims)))
    return raw.Range(0, raw.Rank(tensor), 1)


@public("clip_by_norm")
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Tensor | Any:
    """``t`` scaled so that its L2 norm (over ``axes``, else of the whole) is at most ``clip_norm``.

    Args:
        t: a tensor of floats of any shape, or IndexedSlices; the result is of the same kind.
        clip_norm: a positive scalar.

    Raises:
        TypeError: if ``t`` holds integers.
        ValueError: if an axis is not one of ``t``'s, or ``clip_norm`` does not broadcast.

    >>> with tf.Session() as session:
    ...     session.run(clip_by_norm([6.0, 8.0], 5.0)).tolist()
    [3.0, 4.0]
    """
    with get_default_graph().name_scope(name or "clip_by_norm") as scope:
        values = _values(t)
        limit = convert_to_tensor(clip_norm, values.dtype)
        where = _all_axes(values) if axes is None else axes
        squares = raw.Sum(raw.Square(values), where, keep_dims=True)
        # The gradient of the root at zero is infinite: take the root of one there instead.
        positive = raw.Greater(squares, constant(0, values.dtype))
        safe = raw.SelectV2(positive, squares, raw.OnesLike(squares))
        norm = raw.SelectV2(positive, raw.Sqrt(safe), squares)
        clipped = raw.RealDiv(raw.Mul(values, limit), raw.Maximum(norm, limit), name=scope)
        return _like(t, clipped)


@public("global_norm")
def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """The L2 norm, a scalar, of all tensors together; entries that are None count for nothing.

    Args:
        t_list: sequence of float tensors or IndexedSlices, of any shapes and one type.

    Raises:
        TypeError: if ``t_list`` is no sequence, holds integers, or types differ.
    """
    _check_sequence(t_list)
    with get_default_graph().name_scope(name or "global_norm"):
        # A half squared sum of each tensor, as TensorFlow computes it.
        halves = [raw.L2Loss(_values(t)) for t in t_list if t is not None]
        if not halves:
            return constant(0.0)
        total = raw.Sum(raw.Pack(halves), [0])
        return raw.Sqrt(raw.Mul(total, constant(2.0, total.dtype)), name="global_norm")


@public("clip_by_global_norm")
def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """All tensors scaled by one factor so that their global norm is at most ``clip_norm``.

    Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks" (2013),
    section 3.2.

    Args:
        t_list: sequence of float tensors or IndexedSlices, of any shapes; entries may be None.
        clip_norm: a positive scalar.
        use_norm: a scalar to take as the global norm, where it is known already.

    Returns:
        The scaled tensors (None where None was given), and the global norm before. When that norm
        is not finite, all results are NaN: an exploded step does not pass unseen.

    Raises:
        TypeError: if ``t_list`` is no sequence (a tensor is none), or holds integers.
        ValueError: if ``clip_norm`` is no scalar.

    >>> clipped, norm = clip_by_global_norm([tf.constant([3.0, 0.0]), tf.constant([4.0])], 2.5)
    >>> with tf.Session() as session:
    ...     session.run(clipped[0]).tolist(), float(session.run(norm))
    ([1.5, 0.0], 5.0)
    """
    _check_sequence(t_list)
    norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    with get_default_graph().name_scope(name or "clip_by_global_norm") as scope:
        limit = convert_to_tensor(clip_norm, norm.dtype)
        one = constant(1.0, norm.dtype)
        scale = raw.Mul(
            limit, raw.Minimum(raw.RealDiv(one, norm), raw.RealDiv(one, limit)), name="scale"
        )
        finite = raw.IsFinite(norm)
        scale = raw.SelectV2(finite, scale, constant(float("nan"), norm.dtype))
        clipped: list[Any] = []
        for index, t in enumerate(t_list):
            if t is None:
                clipped.append(None)
                continue
            values = _values(t)
            factor = scale if scale.dtype is values.dtype else raw.Cast(scale, DstT=values.dtype)
            product = raw.Mul(values, factor, name=f"{scope}_{index}")
            product.set_shape(values.shape)  # also where that of the norm is not known
            clipped.append(_like(t, product))
        return clipped, norm


@public("clip_by_average_norm")
def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Tensor:
    """``t`` scaled so that its L2 norm over its number of elements is at most ``clip_norm``.

    Args:
        t: floats of any shape, which the result has.
        clip_norm: a positive scalar.

    Raises:
        TypeError: if ``t`` holds integers.
        ValueError: if ``clip_norm`` does not broadcast to the shape of ``t``.
    """
    with get_default_graph().name_scope(name or "clip_by_average_norm") as scope:
        values = convert_to_tensor(t)
        limit = convert_to_tensor(clip_norm, values.dtype)
        count = raw.Cast(raw.Size(values), DstT=values.dtype)
        squares = raw.Sum(raw.Square(values), _all_axes(values), keep_dims=False)
        inverse = raw.Mul(raw.Rsqrt(squares), count)
        factor = raw.Minimum(inverse, raw.RealDiv(constant(1, values.dtype), limit))
        return raw.Mul(raw.Mul(values, limit), factor, name=scope)


def _check_sequence(t_list: Any) -> None:
    if isinstance(t_list, (str, bytes, Tensor)) or not isinstance(t_list, Sequence):
        raise TypeError("t_list should be a sequence")

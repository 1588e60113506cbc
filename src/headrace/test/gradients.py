"""Checks of gradients against finite differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.autodiff.gradients import gradients
from headrace.graph.graph import default_session_stack
from headrace.graph.tensor import Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.core.build import convert_to_tensor

__all__ = ["compute_gradient", "compute_gradient_error"]

Array = np.ndarray[Any, Any]


def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: dict[Any, Any] | None = None,
) -> Any:
    """The Jacobian of ``y`` by ``x``: as the graph computes it, and by central differences.

    Args:
        x: a tensor, or a list of tensors (then ``x_shape`` and ``x_init_value`` are lists too).
        x_shape, y_shape: full shapes.
        x_init_value: where to differentiate; random by default (a fixed seed).
        delta: half the distance of the two points.
        init_targets: operations to run first.
        extra_feed_dict: values for other placeholders.

    Returns:
        ``(theoretical, numeric)``, each of shape [elements of x, elements of y]; for complex types
        real and imaginary parts count as two elements. A list of pairs for a list of tensors.

    Raises:
        ValueError: if there is no default session.
    """
    session = default_session_stack.top()
    if session is None:
        raise ValueError("compute_gradient needs a default session: `with tf.Session():`.")
    for target in _as_list(init_targets):
        session.run(target)
    if not isinstance(x, (list, tuple)):
        pair: tuple[Array, Array] = _one(
            session, x, x_shape, y, y_shape, x_init_value, delta, extra_feed_dict or {}
        )
        return pair
    starts = x_init_value if x_init_value is not None else [None] * len(x)
    points = [_start(s, t, v) for t, s, v in zip(x, x_shape, starts, strict=True)]
    results = []
    for i, tensor in enumerate(x):
        others = {t: p for j, (t, p) in enumerate(zip(x, points, strict=True)) if j != i}
        feed = {**others, **(extra_feed_dict or {})}
        results.append(_one(session, tensor, x_shape[i], y, y_shape, points[i], delta, feed))
    return results


def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: dict[Any, Any] | None = None,
) -> float:
    """The largest difference between the two Jacobians of ``compute_gradient``.

    Raises:
        ValueError: without a default session, or if ``x_shape`` or ``y_shape`` is not the shape of
            its tensor.
    """
    pairs = compute_gradient(
        x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict
    )
    errors = [0.0]
    for theoretical, numeric in pairs if isinstance(pairs, list) else [pairs]:
        if theoretical.size:
            errors.append(float(np.abs(theoretical - numeric).max()))
    return max(errors)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _start(shape: Sequence[int], tensor: Any, value: Any) -> Array:
    dtype = tensor.dtype.base_dtype.as_numpy_dtype
    if value is not None:
        return np.array(value, dtype)
    drawn = np.random.RandomState(0).random_sample(tuple(shape))
    return np.array(drawn, dtype)


def _parts(array: Array) -> Array:
    """The real numbers behind an array: complex ones are pairs."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(flat.real.dtype) if np.iscomplexobj(flat) else flat


def _one(
    session: Any,
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    start: Any,
    delta: float,
    feed: dict[Any, Any],
) -> tuple[Array, Array]:
    point = _start(x_shape, x, start)
    feed_x = convert_to_tensor(x)
    size_x, size_y = _parts(point).size, _parts(np.zeros(tuple(y_shape), _np(y))).size
    theoretical = np.zeros((size_x, size_y))
    grad_seed = np.zeros(tuple(y_shape), _np(y))
    seed_tensor = convert_to_tensor(grad_seed)
    (grad,) = gradients(y, [x], grad_ys=[seed_tensor])
    if isinstance(grad, IndexedSlices):
        grad = convert_to_tensor(grad)
    for column in range(size_y if grad is not None else 0):
        seed = np.zeros_like(grad_seed)
        _parts_view(seed)[column] = 1
        value = session.run(grad, {**feed, feed_x: point, seed_tensor: seed})
        theoretical[:, column] = _parts(np.asarray(value, point.dtype))
    numeric = np.zeros_like(theoretical)
    for row in range(size_x):
        ends = []
        for step in (delta, -delta):
            moved = point.copy()
            _parts_view(moved)[row] += step
            ends.append(_parts(np.asarray(session.run(y, {**feed, feed_x: moved}), _np(y))))
        numeric[row] = (ends[0].astype(np.float64) - ends[1]) / (2 * delta)
    return theoretical, numeric


def _np(tensor: Tensor) -> Any:
    return tensor.dtype.as_numpy_dtype


def _parts_view(array: Array) -> Array:
    """Like ``_parts``, sharing memory with ``array``."""
    flat = array.reshape(-1)
    return flat.view(flat.real.dtype) if np.iscomplexobj(flat) else flat

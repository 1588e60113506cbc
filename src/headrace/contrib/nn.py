"""``tf.contrib.nn``: cross entropies with the arguments of release 0.x, and an activation."""

from __future__ import annotations

from typing import Any

from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.nn import activations, softmax
from headrace.ops.nn.sampling_api import sampled_sparse_softmax_loss
from headrace.ops.state.scopes_api import name_scope

__all__ = [
    "deprecated_flipped_sigmoid_cross_entropy_with_logits",
    "deprecated_flipped_softmax_cross_entropy_with_logits",
    "deprecated_flipped_sparse_softmax_cross_entropy_with_logits",
    "sampled_sparse_softmax_loss",
    "scaled_softplus",
]


def deprecated_flipped_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, dim: int = -1, name: str | None = None
) -> Tensor:
    """``tf.nn.softmax_cross_entropy_with_logits``, logits first.

    Raises:
        TypeError: if ``logits`` are not floating.
        ValueError: if the shapes do not fit.
    """
    return softmax.softmax_cross_entropy_with_logits(
        labels=labels, logits=logits, dim=dim, name=name
    )


def deprecated_flipped_sparse_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, name: str | None = None
) -> Tensor:
    """``tf.nn.sparse_softmax_cross_entropy_with_logits``, logits first.

    Raises:
        TypeError: if ``labels`` are not integers.
        ValueError: if the shape of ``labels`` is not that of ``logits`` without the last dimension.
    """
    return softmax.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def deprecated_flipped_sigmoid_cross_entropy_with_logits(
    logits: Any, targets: Any, name: str | None = None
) -> Tensor:
    """``tf.nn.sigmoid_cross_entropy_with_logits``, logits first.

    Raises:
        ValueError: if the shapes differ.
    """
    return softmax.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)


def scaled_softplus(x: Any, alpha: Any, clip: Any = None, name: str | None = None) -> Any:
    """``alpha * softplus(x / alpha)``, cut off at ``clip``.

    Raises:
        ValueError: if the shapes of ``x`` and ``alpha`` do not fit each other.
    """
    with name_scope(name, "scaled_softplus", [x, alpha]):
        x = convert_to_tensor(x)
        y = alpha * activations.softplus(x / alpha)
        return y if clip is None else raw.Minimum(y, convert_to_tensor(clip, y.dtype))

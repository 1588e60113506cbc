"""Where gradients are made: beside the operations that they are of, where these say so."""

from __future__ import annotations

import contextlib
from typing import Any, Final

from headrace.graph.graph import get_default_graph

__all__ = ["ATTRIBUTE", "gradients_beside"]

#: The attribute that operations made inside `gradients_beside` carry.
ATTRIBUTE: Final = "_gradients_beside"


def gradients_beside() -> contextlib.AbstractContextManager[Any]:
    """Operations made inside have their gradients made beside them.

    For what is computed next to large variables: their rows need not travel for the gradient
    either, whatever ``colocate_gradients_with_ops`` says.

    >>> import headrace as tf
    >>> x = tf.placeholder(tf.float32, [])
    >>> with gradients_beside(), tf.device("/job:ps/task:1"):
    ...     y = tf.exp(x)
    >>> (gradient,) = tf.gradients(y, x)
    >>> gradient.device
    '/job:ps/task:1'
    """
    return get_default_graph()._attr_scope({ATTRIBUTE: True})

"""Virtual batch normalisation. Salimans and others, 2016 (arXiv:1606.03498)."""

from __future__ import annotations

from typing import Any

import headrace as tf

__all__ = ["VBN"]


def _size(tensor: Any, axis: int) -> Any:
    known = tensor.shape.as_list()[axis]
    return tf.shape(tensor)[axis] if known is None else known


def _moments(x: Any, axes: list[int]) -> tuple[Any, Any]:
    """Mean and mean square over ``axes``, which are dropped; halves are added up as float32."""
    y = tf.cast(x, tf.float32) if x.dtype == tf.float16 else x
    shift = tf.stop_gradient(tf.reduce_mean(y, axes, keepdims=True))
    mean = tf.reduce_mean(y - shift, axes, keepdims=True) + shift
    found = (tf.squeeze(mean, axes), tf.reduce_mean(tf.square(y), axes))
    if x.dtype == tf.float16:
        return tf.cast(found[0], tf.float16), tf.cast(found[1], tf.float16)
    return found


def _axis(tensor: Any, axis: int) -> int:
    """``axis`` counted from the front.

    Raises:
        ValueError: if there is none, or the rank is unknown.
    """
    rank = tensor.shape.ndims
    if rank is None:
        raise ValueError("`reference_batch` has unknown dimensions.")
    used = rank + axis if axis < 0 else axis
    if not 0 <= used < rank:
        raise ValueError(
            f"Value of `axis` argument {used} is out of range for input with rank {rank}"
        )
    return used


class VBN:
    """Normalises each example with itself and a fixed batch, so that examples do not depend on
    one another.

    Salimans et al., "Improved Techniques for Training GANs", 2016 (arXiv:1606.03498), section 3.4.

    Args:
        reference_batch: the fixed batch.
        axis: of the channels; batch_axis: of the examples.
        epsilon: is added to variances.
        center, scale: whether there are ``beta`` and ``gamma``, with their initialisers and
            regularisers.

    Raises:
        ValueError: if the axes are one, or not there.

    >>> norm = tf.contrib.gan.features.VBN(tf.constant([[1.0], [3.0], [5.0]]))
    >>> normalized, other = norm.reference_batch_normalization(), norm(tf.constant([[3.0]]))
    >>> normalized.shape.as_list(), other.shape.as_list()
    ([3, 1], [1, 1])
    """

    def __init__(
        self,
        reference_batch: Any,
        axis: int = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = None,
        gamma_initializer: Any = None,
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        trainable: bool = True,
        name: Any = None,
        batch_axis: int = 0,
    ) -> None:
        axis = _axis(reference_batch, axis)
        self._batch_axis = _axis(reference_batch, batch_axis)
        if axis == self._batch_axis:
            raise ValueError("`axis` and `batch_axis` cannot be the same.")
        self._epsilon = epsilon
        self._reference = reference_batch
        rank = reference_batch.shape.ndims
        channels = reference_batch.shape.as_list()[axis]
        with tf.variable_scope(name, "VBN", [reference_batch]) as self._scope:
            self._form: list[Any] = [1] * rank
            self._form[axis] = channels
            self._inner = [i for i in range(rank) if i not in (axis, self._batch_axis)]
            self._reshapes = self._inner != list(range(rank))[:-2]
            others = [i for i in range(rank) if i != axis]
            self._mean, self._square = _moments(reference_batch, others)
            count = tf.cast(_size(reference_batch, self._batch_axis), tf.float32)
            self._own = 1.0 / (count + 1.0)
            self._rest = 1.0 - self._own
            self._beta: Any = 0
            self._gamma: Any = 1
            if center:
                start = beta_initializer or tf.zeros_initializer()
                self._beta = self._variable("beta", channels, start, beta_regularizer, trainable)
            if scale:
                start = gamma_initializer or tf.ones_initializer()
                self._gamma = self._variable("gamma", channels, start, gamma_regularizer, trainable)

    @staticmethod
    def _variable(name: str, size: Any, start: Any, regularizer: Any, trainable: bool) -> Any:
        return tf.get_variable(
            name, (size,), initializer=start, regularizer=regularizer, trainable=trainable
        )

    def _shaped(self, value: Any, form: list[Any]) -> Any:
        return tf.reshape(value, form) if self._reshapes else value

    def _normalized(self, inputs: Any, mean: Any, square: Any, form: list[Any]) -> Any:
        variance = square - tf.square(mean)
        return tf.nn.batch_normalization(
            inputs,
            self._shaped(mean, form),
            self._shaped(variance, form),
            self._shaped(self._beta, self._form),
            self._shaped(self._gamma, self._form),
            self._epsilon,
        )

    def reference_batch_normalization(self) -> Any:
        """The fixed batch itself, normalised."""
        with tf.name_scope(self._scope.name):
            return self._normalized(self._reference, self._mean, self._square, self._form)

    def __call__(self, inputs: Any) -> Any:
        """``inputs``, of the shape of the fixed batch but for the number of examples.

        Raises:
            ValueError: for another shape.
        """
        shapes = []
        for tensor in (inputs, self._reference):
            dims = tensor.shape.as_list()
            del dims[self._batch_axis]
            shapes.append(tf.TensorShape(dims))
        shapes[0].assert_is_compatible_with(shapes[1])
        with tf.name_scope(self._scope.name, values=[inputs, self._reference]):
            mean, square = _moments(inputs, self._inner)
            form = list(self._form)
            form[self._batch_axis] = _size(inputs, self._batch_axis)
            return self._normalized(
                inputs,
                self._own * mean + self._rest * self._mean,
                self._own * square + self._rest * self._square,
                form,
            )

"""The kernel distance of two sets of activations.

Binkowski et al., "Demystifying MMD GANs" (arXiv:1801.01401), section 4, with the block estimator of
Zaremba, Gretton and Blaschko (arXiv:1307.1954): the unbiased squared maximum mean discrepancy with
the kernel ``(x y / features + 1) ** 3``.
"""

from __future__ import annotations

from typing import Any

import headrace as tf

__all__ = [
    "kernel_classifier_distance_and_std_from_activations",
    "kernel_classifier_distance_from_activations",
]


def _blocks(values: Any, count: Any) -> tuple[Any, Any]:
    """``count`` blocks of about one size, ``[count, largest, features]``, and which rows they have.

    The last blocks have one row more where the rows do not come out even.
    """
    rows = tf.shape(values)[0]
    size = rows // count
    number = tf.range(count)
    larger = tf.maximum(number - (count - (rows - size * count)), 0)
    is_larger = number >= count - (rows - size * count)
    places = tf.range(size + 1)[tf.newaxis, :]
    known = places < (size + tf.cast(is_larger, tf.int32))[:, tf.newaxis]
    starts = (number * size + larger)[:, tf.newaxis]
    return tf.gather(values, tf.minimum(starts + places, rows - 1)), tf.cast(known, values.dtype)


def _estimate(block: Any) -> Any:
    """The discrepancy of one block."""
    (real, in_real), (generated, in_generated) = block
    features = tf.cast(tf.shape(real)[1], real.dtype)

    def kernel(a: Any, b: Any, in_a: Any, in_b: Any) -> Any:
        values = (tf.matmul(a, b, transpose_b=True) / features + 1.0) ** 3
        return values * in_a[:, tf.newaxis] * in_b[tf.newaxis, :]

    def others(a: Any, in_a: Any, count: Any) -> Any:
        own = kernel(a, a, in_a, in_a)
        return (tf.reduce_sum(own) - tf.trace(own)) / (count * (count - 1.0))

    m, n = tf.reduce_sum(in_real), tf.reduce_sum(in_generated)
    between = tf.reduce_sum(kernel(real, generated, in_real, in_generated)) / (m * n)
    return others(real, in_real, m) + others(generated, in_generated, n) - 2.0 * between


def kernel_classifier_distance_and_std_from_activations(
    real_activations: Any,
    generated_activations: Any,
    max_block_size: int = 1024,
    dtype: Any = None,
) -> tuple[Any, Any]:
    """The kernel distance of activations, and the standard error of it.

    Binkowski et al., "Demystifying MMD GANs", 2018 (arXiv:1801.01401), section 4.

    Both sets should be in random order: distances are means over blocks of them.

    Args:
        real_activations, generated_activations: ``[n, features]``, of one dtype.
        max_block_size: how many rows a block has at most.
        dtype: what to reckon in; that of the activations if left out.

    Returns:
        Two scalars; the error of one block is not known, NaN.

    Raises:
        ValueError: for other shapes, or two dtypes.
    """
    real = tf.convert_to_tensor(real_activations)
    generated = tf.convert_to_tensor(generated_activations)
    for values in (real, generated):
        values.shape.assert_has_rank(2)
    real.shape[1:].assert_is_compatible_with(generated.shape[1:])
    if dtype is not None:
        real, generated = tf.cast(real, dtype), tf.cast(generated, dtype)
    if real.dtype is not generated.dtype:
        raise ValueError(
            f"Activations of {real.dtype.name} and of {generated.dtype.name}: say which dtype."
        )
    larger = tf.maximum(tf.shape(real)[0], tf.shape(generated)[0])
    count = -(-larger // max_block_size)
    parts = _blocks(real, count), _blocks(generated, count)
    found = tf.map_fn(_estimate, parts, dtype=real.dtype, back_prop=False)
    mean, blocks = tf.reduce_mean(found), tf.cast(count, real.dtype)
    # With Bessel's correction, which tf.nn.moments does not make.
    squares = tf.reduce_sum(tf.square(found - mean)) / tf.maximum(blocks - 1.0, 1.0)
    unknown = tf.constant(float("nan"), real.dtype)
    return mean, tf.sqrt(tf.where(count > 1, squares, unknown) / blocks)


def kernel_classifier_distance_from_activations(
    real_activations: Any,
    generated_activations: Any,
    max_block_size: int = 1024,
    dtype: Any = None,
) -> Any:
    """The first of `kernel_classifier_distance_and_std_from_activations`.

    A scalar, of activations ``[n, features]``.

    Raises:
        ValueError: if the ranks are not 2, or the numbers of features differ.
    """
    return kernel_classifier_distance_and_std_from_activations(
        real_activations, generated_activations, max_block_size, dtype
    )[0]

"""``tf.contrib.gan.features``: parts of generators and discriminators."""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable, Sequence
from typing import Any

import headrace as tf
from headrace.contrib.gan.virtual_batchnorm import VBN as VBN
from headrace.train.wrapped_optimizer import WrappedOptimizer

__all__ = [
    "VBN",
    "clip_discriminator_weights",
    "clip_variables",
    "compute_spectral_norm",
    "condition_tensor",
    "condition_tensor_from_onehot",
    "spectral_norm_regularizer",
    "spectral_normalization_custom_getter",
    "spectral_normalize",
    "tensor_pool",
]

# -- weights within bounds ----------------------------------------------------------------------


class _Clipping(WrappedOptimizer):
    """Another optimiser, after whose steps some variables are clipped to [-bound, bound]."""

    def __init__(self, optimizer: Any, variables: Sequence[Any], bound: float) -> None:
        super().__init__(optimizer, False, "VariableClipping")
        self._variables = list(variables)
        self._bound = bound

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """Apply the gradients, then clip the variables that had one."""
        pairs = list(grads_and_vars)
        update = super().apply_gradients(pairs, global_step)
        changed = [v for g, v in pairs if g is not None and v in self._variables]
        with tf.control_dependencies([update]):
            clipped = [
                v.assign(tf.clip_by_value(v.read_value(), -self._bound, self._bound))
                for v in changed
            ]
        return tf.group(update, *clipped, name=name or "VariableClipping")


def clip_variables(optimizer: Any, variables: Sequence[Any], weight_clip: float) -> Any:
    """An optimiser that keeps ``variables`` within ``weight_clip`` of 0.

    The variables keep their shapes.

    Raises:
        ValueError: if that is negative.
    """
    if weight_clip < 0:
        raise ValueError(
            f"`discriminator_weight_clip` must be positive. Instead, was {weight_clip}"
        )
    return _Clipping(optimizer, variables, weight_clip)


def clip_discriminator_weights(optimizer: Any, model: Any, weight_clip: float) -> Any:
    """`clip_variables` of the discriminator of a model (Wasserstein GAN, arXiv:1701.07875).

    Arjovsky, Chintala and Bottou, 2017, section 3, algorithm 1.

    The variables keep their shapes.

    Raises:
        TypeError: if the model has no discriminator.
        ValueError: if ``weight_clip`` is not positive.
    """
    if not hasattr(model, "discriminator_variables"):
        raise TypeError(
            f"`model` must be one with a discriminator, as tf.contrib.gan.gan_model gives; got "
            f"{model!r:.100}."
        )
    return clip_variables(optimizer, model.discriminator_variables, weight_clip)


# -- conditions ---------------------------------------------------------------------------------


def condition_tensor(tensor: Any, conditioning: Any) -> Any:
    """``tensor`` plus a learned linear function of ``conditioning``.

    Args:
        tensor: ``[batch, ...]`` with known sizes but for the batch.
        conditioning: of at least two dimensions.

    Raises:
        ValueError: if that is not so.
    """
    tensor.shape[1:].assert_is_fully_defined()
    features = tensor.shape[1:].num_elements()
    if conditioning.shape.ndims < 2:
        raise ValueError(f"conditioning must be at least 2D, but saw shape: {conditioning.shape}")
    layers = tf.contrib.layers
    mapped = layers.linear(layers.flatten(conditioning), features)
    if not mapped.shape.is_compatible_with(tensor.shape):
        mapped = tf.reshape(mapped, tf.shape(tensor))
    return tensor + mapped


def condition_tensor_from_onehot(
    tensor: Any, one_hot_labels: Any, embedding_size: int = 256
) -> Any:
    """`condition_tensor` on learned embeddings of labels.

    Args:
        one_hot_labels: ``[batch, labels]``.

    Raises:
        ValueError: for another rank.
    """
    one_hot_labels.shape.assert_has_rank(2)
    one_hot_labels.shape[1:].assert_is_fully_defined()
    table = tf.get_variable("embedding", [one_hot_labels.shape[1], embedding_size])
    labels = tf.argmax(one_hot_labels, axis=1)
    rows = tf.nn.embedding_lookup(table, labels, name="token_to_embedding")
    return condition_tensor(tensor, rows)


# -- what was generated before ------------------------------------------------------------------


def tensor_pool(
    input_values: Any,
    pool_size: int = 50,
    pooling_probability: float = 0.5,
    name: str = "tensor_pool",
) -> Any:
    """Values of this step, or of an earlier one (Shrivastava and others 2017, arXiv:1612.07828).

    See section 2.3 there.

    Values keep their shapes.

    Args:
        input_values: tensor or nested structure; it is kept for later steps.
        pool_size: how many are kept; 0: nothing is.
        pooling_probability: of earlier values, once so many are there.

    Raises:
        ValueError: if ``pool_size`` is negative.
    """
    size = int(pool_size)
    if size < 0:
        raise ValueError("`pool_size` is negative.")
    if size == 0:
        return input_values
    values = tf.contrib.framework.nest.flatten(input_values)
    with tf.name_scope(f"{name}_pool_queue", values=[*values, pooling_probability]):
        queue = tf.RandomShuffleQueue(size, 0, [v.dtype for v in values], shapes=None)

        def kept() -> list[Any]:
            with tf.control_dependencies([queue.enqueue(values)]):
                return [tf.identity(v) for v in values]

        def exchanged() -> list[Any]:
            found = queue.dequeue()
            earlier = list(found) if isinstance(found, (list, tuple)) else [found]
            with tf.control_dependencies(earlier), tf.control_dependencies([queue.enqueue(values)]):
                chosen = tf.random_uniform(()) < pooling_probability
                picked = tf.cond(chosen, lambda: earlier, lambda: list(values))
                return list(picked) if isinstance(picked, (list, tuple)) else [picked]

        outputs = tf.cond(queue.size() < size, kept, exchanged)
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        for value, output in zip(values, outputs, strict=True):
            output.set_shape(value.shape)
    return tf.contrib.framework.nest.pack_sequence_as(input_values, outputs)


# -- spectral norms (Miyato and others 2018, arXiv:1802.05957) ----------------------------------

_SUFFIX = "spectral_norm_u"


def compute_spectral_norm(w_tensor: Any, power_iteration_rounds: int = 1, name: Any = None) -> Any:
    """The largest singular value of a matrix, estimated by power iteration.

    Miyato et al., "Spectral Normalization for Generative Adversarial Networks", 2018
    (arXiv:1802.05957), section 2.1 and appendix A.

    Each step goes on from the vector of the step before, which is kept in a variable.

    The result is a scalar.

    Args:
        w_tensor: its last axis are the columns, all others are rows.

    Raises:
        ValueError: if the shape is not fully known or a scalar, or ``power_iteration_rounds`` is
            below 1.
    """
    if power_iteration_rounds < 1:
        raise ValueError(
            f"power_iteration_rounds must be at least 1, got {power_iteration_rounds}."
        )
    shape = w_tensor.shape
    if not shape.is_fully_defined() or not shape.rank:
        raise ValueError(
            f"The spectral norm is of a tensor of rank 1 or more whose shape is fully known, got "
            f"{w_tensor.name} of shape {shape}."
        )
    with tf.variable_scope(name, "spectral_norm"):
        w = tf.reshape(w_tensor, (-1, shape.as_list()[-1]))
        kept = tf.get_variable(
            _SUFFIX,
            shape=(w.shape[0], 1),
            dtype=w.dtype,
            initializer=tf.random_normal_initializer(),
            trainable=False,
        )
        u: Any = kept
        v: Any = None
        for _ in range(power_iteration_rounds):
            v = tf.nn.l2_normalize(tf.matmul(tf.transpose(w), u))
            u = tf.nn.l2_normalize(tf.matmul(w, v))
        with tf.control_dependencies([kept.assign(u, name="update_u")]):
            u = tf.identity(u)
        u, v = tf.stop_gradient(u), tf.stop_gradient(v)
        norm = tf.matmul(tf.matmul(tf.transpose(u), w), v)
        norm.shape.assert_is_compatible_with([1, 1])
        return norm[0][0]


def spectral_normalize(w: Any, power_iteration_rounds: int = 1, name: Any = None) -> Any:
    """A tensor divided by its `compute_spectral_norm`.

    Miyato et al., "Spectral Normalization for Generative Adversarial Networks", 2018
    (arXiv:1802.05957), section 2.1.

    The shape stays.

    Raises:
        ValueError: as `compute_spectral_norm`.
    """
    with tf.variable_scope(name, "spectral_normalize"):
        norm = compute_spectral_norm(w, power_iteration_rounds=power_iteration_rounds)
        return tf.reshape(w / norm, w.get_shape())


def spectral_norm_regularizer(
    scale: Any, power_iteration_rounds: int = 1, scope: Any = None
) -> Callable[..., Any]:
    """A regulariser that costs ``scale`` times the spectral norm.

    Yoshida and Miyato, "Spectral Norm Regularization for Improving the Generalizability of Deep
    Learning", 2017 (arXiv:1705.10941), section 3.

    The cost is a scalar.

    Raises:
        ValueError: if ``scale`` is negative or an int.
    """
    if isinstance(scale, numbers.Integral):
        raise ValueError(f"scale cannot be an integer: {scale}")
    if isinstance(scale, numbers.Real):
        if float(scale) < 0.0:
            raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale}")
        if float(scale) == 0.0:
            tf.logging.info("Scale of 0 disables regularizer.")
            return lambda _: None

    def regularizer(weights: Any, name: Any = None) -> Any:
        with tf.name_scope(scope, "SpectralNormRegularizer", [weights]) as name:
            factor = tf.convert_to_tensor(scale, weights.dtype.base_dtype, name="scale")
            norm = compute_spectral_norm(weights, power_iteration_rounds=power_iteration_rounds)
            return tf.multiply(factor, norm, name=name)

    return regularizer


def _is_kernel(name: str) -> bool:
    return re.match(r"(.*\/)?(depthwise_|pointwise_)?(weights|kernel)$", name) is not None


def spectral_normalization_custom_getter(
    name_filter: Callable[[str], bool] = _is_kernel, power_iteration_rounds: int = 1
) -> Callable[..., Any]:
    """A custom getter that normalises variables whose names ``name_filter`` accepts.

    Variables keep their shapes.

    Raises:
        ValueError: if that is no function; when used, for variables that have no such norm.
    """
    if not callable(name_filter):
        raise ValueError("name_filter must be callable")

    def normalized(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if not name_filter(name):
            return getter(name, *args, **kwargs)
        if name.endswith(_SUFFIX):
            raise ValueError(
                "Cannot apply Spectral Normalization to internal variables created for Spectral "
                f"Normalization. Tried to normalized variable [{name}]"
            )
        if kwargs["dtype"] not in (tf.float16, tf.float32, tf.float64):
            raise ValueError(f"Disallowed data type {kwargs['dtype']}")
        weights = getter(name, *args, **kwargs)
        if len(weights.get_shape()) < 2:
            raise ValueError("Spectral norm can only be applied to multi-dimensional tensors")
        return spectral_normalize(
            weights,
            power_iteration_rounds=power_iteration_rounds,
            name=f"{name}/spectral_normalize",
        )

    return normalized

"""``tf.contrib.gan.eval``: how good generated data are, and what TensorBoard shows of a model.

What compares images with the frozen Inception network of TensorFlow's servers is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import headrace as tf

__all__ = [
    "add_gan_model_image_summaries",
    "add_gan_model_summaries",
    "add_regularization_loss_summaries",
    "classifier_score",
    "classifier_score_from_logits",
    "diagonal_only_frechet_classifier_distance_from_activations",
    "frechet_classifier_distance",
    "frechet_classifier_distance_from_activations",
    "frechet_inception_distance",
    "inception_score",
    "mean_only_frechet_classifier_distance_from_activations",
    "run_inception",
]


def _doubles(*tensors: Any) -> list[Any]:
    return [tf.cast(tf.convert_to_tensor(t), tf.float64) for t in tensors]


def _activations(images: Any, classifier_fn: Callable[..., Any], num_batches: int) -> Any:
    """What a classifier gives of images, which it gets in so many batches."""
    batches = tf.split(images, num_batches)
    return tf.concat([classifier_fn(batch) for batch in batches], 0)


def classifier_score_from_logits(logits: Any) -> Any:
    """How sure a classifier is of single images, and how unsure of all (arXiv:1606.03498).

    Args:
        logits: ``[images, classes]``.
    """
    logits = tf.convert_to_tensor(logits)
    logits.shape.assert_has_rank(2)
    (wide,) = _doubles(logits)
    single, together = tf.nn.softmax(wide), tf.reduce_mean(tf.nn.softmax(wide), axis=0)
    divergences = tf.reduce_sum(single * (tf.nn.log_softmax(wide) - tf.log(together)), axis=1)
    return tf.cast(tf.exp(tf.reduce_mean(divergences)), logits.dtype)


def classifier_score(images: Any, classifier_fn: Callable[..., Any], num_batches: int = 1) -> Any:
    """`classifier_score_from_logits` of what ``classifier_fn`` says of images."""
    return classifier_score_from_logits(_activations(images, classifier_fn, num_batches))


def mean_only_frechet_classifier_distance_from_activations(
    real_activations: Any, generated_activations: Any
) -> Any:
    """The squared distance of the means of two sets of activations ``[n, features]``."""
    real, generated = _doubles(real_activations, generated_activations)
    difference = tf.reduce_mean(real, 0) - tf.reduce_mean(generated, 0)
    result = tf.reduce_sum(tf.square(difference))
    return tf.cast(result, tf.convert_to_tensor(real_activations).dtype)


def diagonal_only_frechet_classifier_distance_from_activations(
    real_activations: Any, generated_activations: Any
) -> Any:
    """The Frechet distance of normal distributions whose features do not depend on one another."""
    real, generated = _doubles(real_activations, generated_activations)
    (m, v), (n, w) = tf.nn.moments(real, [0]), tf.nn.moments(generated, [0])
    spread = v + w - 2.0 * tf.sqrt(v * w)
    result = tf.reduce_sum(tf.squared_difference(m, n)) + tf.reduce_sum(spread)
    return tf.cast(result, tf.convert_to_tensor(real_activations).dtype)


def _root(matrix: Any, epsilon: float = 1e-10) -> Any:
    """The square root of a symmetric matrix that is not negative."""
    s, u, v = tf.svd(matrix)
    roots = tf.where(tf.less(s, epsilon), s, tf.sqrt(s))
    return tf.matmul(tf.matmul(u, tf.matrix_diag(roots)), v, transpose_b=True)


def frechet_classifier_distance_from_activations(
    real_activations: Any, generated_activations: Any
) -> Any:
    """The Frechet distance of the normal distributions of activations (arXiv:1706.08500).

    Args:
        real_activations, generated_activations: ``[n, features]``.
    """
    sets = _doubles(real_activations, generated_activations)
    means, spreads = [], []
    for values in sets:
        mean = tf.reduce_mean(values, 0)
        centred = values - mean
        count = tf.cast(tf.shape(values)[0], tf.float64)
        means.append(mean)
        spreads.append(tf.matmul(centred, centred, transpose_a=True) / (count - 1.0))
    root = _root(spreads[0])
    product = _root(tf.matmul(root, tf.matmul(spreads[1], root)))
    trace = tf.trace(spreads[0] + spreads[1]) - 2.0 * tf.trace(product)
    result = trace + tf.reduce_sum(tf.squared_difference(*means))
    return tf.cast(result, tf.convert_to_tensor(real_activations).dtype)


def frechet_classifier_distance(
    real_images: Any,
    generated_images: Any,
    classifier_fn: Callable[..., Any],
    num_batches: int = 1,
) -> Any:
    """`frechet_classifier_distance_from_activations` of what ``classifier_fn`` gives of images."""
    return frechet_classifier_distance_from_activations(
        _activations(real_images, classifier_fn, num_batches),
        _activations(generated_images, classifier_fn, num_batches),
    )


def _needs_inception(name: str) -> NoReturn:
    raise NotImplementedError(
        f"tf.contrib.gan.eval.{name} needs the frozen Inception network of TensorFlow's servers, "
        "which Headrace does not download. Use classifier_score or frechet_classifier_distance "
        "with a network of your own, such as one that tf.import_graph_def loads."
    )


def inception_score(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there: it needs the frozen Inception network. Raises NotImplementedError."""
    _needs_inception("inception_score")


def frechet_inception_distance(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there: it needs the frozen Inception network. Raises NotImplementedError."""
    _needs_inception("frechet_inception_distance")


def run_inception(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there: it needs the frozen Inception network. Raises NotImplementedError."""
    _needs_inception("run_inception")


# -- summaries ----------------------------------------------------------------------------------


def add_gan_model_summaries(gan_model: Any) -> None:
    """Histograms of all variables of a model (of both, if it is a CycleGANModel)."""
    if hasattr(gan_model, "model_x2y"):
        with tf.name_scope("cyclegan_x2y_summaries"):
            add_gan_model_summaries(gan_model.model_x2y)
        with tf.name_scope("cyclegan_y2x_summaries"):
            add_gan_model_summaries(gan_model.model_y2x)
        return
    for kind in ("generator", "discriminator"):
        with tf.name_scope(f"{kind}_variables"):
            for variable in getattr(gan_model, f"{kind}_variables"):
                tf.summary.histogram(variable.name, variable)


def add_regularization_loss_summaries(gan_model: Any) -> None:
    """The regularisation losses of generator and discriminator, as scalars."""
    if hasattr(gan_model, "model_x2y"):
        with tf.name_scope("cyclegan_x2y_regularization_loss_summaries"):
            add_regularization_loss_summaries(gan_model.model_x2y)
        with tf.name_scope("cyclegan_y2x_regularization_loss_summaries"):
            add_regularization_loss_summaries(gan_model.model_y2x)
        return
    for kind in ("generator", "discriminator"):
        scope = getattr(gan_model, f"{kind}_scope")
        if scope:
            loss = tf.losses.get_regularization_loss(scope.name)
            tf.summary.scalar(f"{kind}_regularization_loss", loss)


def add_gan_model_image_summaries(gan_model: Any, grid_size: int = 4) -> None:
    """``grid_size`` squared images of each kind, and what is known of their ranges.

    Raises:
        ValueError: for a CycleGANModel, or data that are no images.
    """
    if hasattr(gan_model, "model_x2y"):
        raise ValueError("`add_gan_model_image_summaries` does not take CycleGANModels.")
    for kind in ("real_data", "generated_data"):
        data = getattr(gan_model, kind)
        if data.shape.ndims != 4:
            raise ValueError(f"`{kind}` must be images of four dimensions, not {data.shape}.")
        tf.summary.image(kind, data, max_outputs=grid_size**2)

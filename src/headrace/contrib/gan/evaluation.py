"""``tf.contrib.gan.eval``: how good generated data are, and what TensorBoard shows of a model.

The frozen Inception network of TensorFlow's servers is not downloaded: what compares images with it
takes the network's graph from the caller (`run_inception`), or raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import headrace as tf
from headrace.contrib.gan.kernel_distance import (
    kernel_classifier_distance_and_std_from_activations,
    kernel_classifier_distance_from_activations,
)

__all__ = [
    "INCEPTION_DEFAULT_IMAGE_SIZE",
    "add_gan_model_image_summaries",
    "add_gan_model_summaries",
    "add_regularization_loss_summaries",
    "classifier_score",
    "classifier_score_from_logits",
    "diagonal_only_frechet_classifier_distance_from_activations",
    "frechet_classifier_distance",
    "frechet_classifier_distance_from_activations",
    "frechet_inception_distance",
    "get_graph_def_from_disk",
    "inception_score",
    "kernel_classifier_distance",
    "kernel_classifier_distance_and_std",
    "kernel_classifier_distance_and_std_from_activations",
    "kernel_classifier_distance_from_activations",
    "kernel_inception_distance",
    "kernel_inception_distance_and_std",
    "mean_only_frechet_classifier_distance_from_activations",
    "preprocess_image",
    "run_image_classifier",
    "run_inception",
]

INCEPTION_DEFAULT_IMAGE_SIZE = 299
_INPUT, _LOGITS = "Mul:0", "logits:0"


def _doubles(*tensors: Any) -> list[Any]:
    return [tf.cast(tf.convert_to_tensor(t), tf.float64) for t in tensors]


def _activations(images: Any, classifier_fn: Callable[..., Any], num_batches: int) -> Any:
    """What a classifier gives of images, which it gets in so many batches."""
    batches = tf.split(images, num_batches)
    return tf.concat([classifier_fn(batch) for batch in batches], 0)


def classifier_score_from_logits(logits: Any) -> Any:
    """How sure a classifier is of single images, and how unsure of all (arXiv:1606.03498).

    Salimans et al., "Improved Techniques for Training GANs", 2016, section 4.

    The score is a scalar.

    Args:
        logits: ``[images, classes]``.

    Raises:
        ValueError: if the rank is not 2.
    """
    logits = tf.convert_to_tensor(logits)
    logits.shape.assert_has_rank(2)
    (wide,) = _doubles(logits)
    single, together = tf.nn.softmax(wide), tf.reduce_mean(tf.nn.softmax(wide), axis=0)
    divergences = tf.reduce_sum(single * (tf.nn.log_softmax(wide) - tf.log(together)), axis=1)
    return tf.cast(tf.exp(tf.reduce_mean(divergences)), logits.dtype)


def classifier_score(images: Any, classifier_fn: Callable[..., Any], num_batches: int = 1) -> Any:
    """`classifier_score_from_logits` of what ``classifier_fn`` says of images.

    The score is a scalar.

    Raises:
        TypeError: if ``classifier_fn`` is no function.
        ValueError: if the batch is no multiple of ``num_batches``, or the classifier gives no
            ``[images, classes]``.
    """
    return classifier_score_from_logits(_activations(images, classifier_fn, num_batches))


def _activation_doubles(real: Any, generated: Any) -> Any:
    """Both as float64. Raises ValueError unless they are ``[n, features]``, features alike."""
    sets = _doubles(real, generated)
    for values in sets:
        values.shape.assert_has_rank(2)
    sets[0].shape[1:].assert_is_compatible_with(sets[1].shape[1:])
    return sets


def mean_only_frechet_classifier_distance_from_activations(
    real_activations: Any, generated_activations: Any
) -> Any:
    """The squared distance of the means of two sets of activations ``[n, features]``.

    The distance is a scalar.

    Raises:
        ValueError: if the ranks are not 2, or the numbers of features differ.
    """
    real, generated = _activation_doubles(real_activations, generated_activations)
    difference = tf.reduce_mean(real, 0) - tf.reduce_mean(generated, 0)
    result = tf.reduce_sum(tf.square(difference))
    return tf.cast(result, tf.convert_to_tensor(real_activations).dtype)


def diagonal_only_frechet_classifier_distance_from_activations(
    real_activations: Any, generated_activations: Any
) -> Any:
    """The Frechet distance of normal distributions whose features do not depend on one another.

    Activations are ``[n, features]``, the distance is a scalar.

    Raises:
        ValueError: if the ranks are not 2, or the numbers of features differ.
    """
    real, generated = _activation_doubles(real_activations, generated_activations)
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

    Heusel et al., "GANs Trained by a Two Time-Scale Update Rule", 2017.

    The distance is a scalar.

    Args:
        real_activations, generated_activations: ``[n, features]``.

    Raises:
        ValueError: if the ranks are not 2, or the numbers of features differ.
    """
    sets = _activation_doubles(real_activations, generated_activations)
    means: list[tf.Tensor] = []
    spreads: list[tf.Tensor] = []
    for values in sets:
        mean = tf.reduce_mean(values, 0)
        centred = values - mean
        count = tf.cast(tf.shape(values)[0], tf.float64)
        means.append(mean)
        spreads.append(tf.matmul(centred, centred, transpose_a=True) / (count - 1.0))
    root = _root(spreads[0])
    product = _root(tf.matmul(root, tf.matmul(spreads[1], root)))
    trace = tf.trace(spreads[0] + spreads[1]) - 2.0 * tf.trace(product)
    result = trace + tf.reduce_sum(tf.squared_difference(means[0], means[1]))
    return tf.cast(result, tf.convert_to_tensor(real_activations).dtype)


def frechet_classifier_distance(
    real_images: Any,
    generated_images: Any,
    classifier_fn: Callable[..., Any],
    num_batches: int = 1,
) -> Any:
    """`frechet_classifier_distance_from_activations` of what ``classifier_fn`` gives of images.

    The distance is a scalar.

    Raises:
        TypeError: if ``classifier_fn`` is no function.
        ValueError: if a batch is no multiple of ``num_batches``, or the classifier gives no
            ``[images, features]``.
    """
    return frechet_classifier_distance_from_activations(
        _activations(real_images, classifier_fn, num_batches),
        _activations(generated_images, classifier_fn, num_batches),
    )


def kernel_classifier_distance_and_std(
    real_images: Any,
    generated_images: Any,
    classifier_fn: Callable[..., Any],
    num_classifier_batches: int = 1,
    max_block_size: int = 1024,
    dtype: Any = None,
) -> tuple[Any, Any]:
    """`kernel_classifier_distance_and_std_from_activations` of what a classifier says of images.

    Both are scalars.

    Raises:
        TypeError: if ``classifier_fn`` is no function.
        ValueError: if a batch is no multiple of ``num_batches``, or the classifier gives no
            ``[images, features]``.
    """
    return kernel_classifier_distance_and_std_from_activations(
        _activations(real_images, classifier_fn, num_classifier_batches),
        _activations(generated_images, classifier_fn, num_classifier_batches),
        max_block_size,
        dtype,
    )


def kernel_classifier_distance(
    real_images: Any,
    generated_images: Any,
    classifier_fn: Callable[..., Any],
    num_classifier_batches: int = 1,
    max_block_size: int = 1024,
    dtype: Any = None,
) -> Any:
    """The first of `kernel_classifier_distance_and_std`.

    The distance is a scalar.

    Raises:
        TypeError: if ``classifier_fn`` is no function.
        ValueError: if a batch is no multiple of ``num_batches``, or the classifier gives no
            ``[images, features]``.
    """
    return kernel_classifier_distance_and_std(
        real_images, generated_images, classifier_fn, num_classifier_batches, max_block_size, dtype
    )[0]


# -- networks from files ------------------------------------------------------------------------


def get_graph_def_from_disk(filename: Any) -> Any:
    """The GraphDef that a file holds.

    Raises:
        NotFoundError: if there is no such file.
    """
    graph_def = tf.GraphDef()
    with tf.gfile.GFile(filename, "rb") as file:
        graph_def.ParseFromString(file.read())
    return graph_def


def run_image_classifier(
    tensor: Any,
    graph_def: Any,
    input_tensor: str,
    output_tensor: Any,
    scope: str = "RunClassifier",
) -> Any:
    """What a frozen graph makes of a tensor.

    The outputs have the shapes that the graph gives them.

    Args:
        input_tensor: the name of what ``tensor`` takes the place of.
        output_tensor: a name, or a list of names.

    Returns:
        A tensor, or a list of them.

    Raises:
        ValueError: if the graph has no such tensors.
    """
    names = [output_tensor] if isinstance(output_tensor, str) else list(output_tensor)
    found: Any = tf.import_graph_def(graph_def, {input_tensor: tensor}, names, name=scope)
    return found[0] if isinstance(output_tensor, str) else found


def preprocess_image(
    images: Any,
    height: int = INCEPTION_DEFAULT_IMAGE_SIZE,
    width: int = INCEPTION_DEFAULT_IMAGE_SIZE,
    scope: str | None = None,
) -> Any:
    """Images with values in [0, 255], one or a batch, as the Inception network takes them.

    They are resized, and their values lie in [-1, 1].

    ``[height, width, 3]`` or ``[batch, height, width, 3]`` keeps its rank.

    Raises:
        ValueError: if the rank is neither 3 nor 4.
    """
    with tf.name_scope(scope, "preprocess", [images]):
        images = tf.convert_to_tensor(images)
        if not images.dtype.is_floating:
            images = tf.cast(images, tf.float32)
        is_single = images.shape.ndims == 3
        batch = images[tf.newaxis] if is_single else images
        resized = (tf.image.resize_bilinear(batch, [height, width]) - 128.0) / 128.0
        return resized[0] if is_single else resized


def _no_download() -> NoReturn:
    raise NotImplementedError(
        "The frozen Inception network of TensorFlow's servers is needed, which Headrace does not "
        "download. Pass its graph to tf.contrib.gan.eval.run_inception (graph_def, as "
        "get_graph_def_from_disk reads it), or use classifier_score, frechet_classifier_distance "
        "or kernel_classifier_distance with a network of your own."
    )


def run_inception(
    images: Any,
    graph_def: Any = None,
    default_graph_def_fn: Callable[[], Any] | None = _no_download,
    image_size: int = INCEPTION_DEFAULT_IMAGE_SIZE,
    input_tensor: str = _INPUT,
    output_tensor: Any = _LOGITS,
) -> Any:
    """What the Inception network makes of images, each output flattened to ``[batch, features]``.

    Args:
        images: ``[batch, image_size, image_size, channels]``, as `preprocess_image` gives them.
        graph_def: the network, a frozen graph.
        default_graph_def_fn: makes it, if it is not given.
        input_tensor, output_tensor: names in the graph, as for `run_image_classifier`.

    Raises:
        NotImplementedError: without a graph: it is not downloaded.
        ValueError: for images of another size.
    """
    images = tf.convert_to_tensor(images)
    images.shape.assert_is_compatible_with([None, image_size, image_size, None])
    if graph_def is None:
        if default_graph_def_fn is None:
            raise ValueError("If `graph_def` is `None`, must provide `default_graph_def_fn`.")
        graph_def = default_graph_def_fn()
    found = run_image_classifier(images, graph_def, input_tensor, output_tensor)
    if isinstance(found, list):
        return [tf.layers.flatten(output) for output in found]
    return tf.layers.flatten(found)


def inception_score(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there: it needs the frozen Inception network. In TensorFlow its result is a scalar.

    Raises:
        NotImplementedError: always; the message says what to use instead.
    """
    _no_download()


def frechet_inception_distance(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there: it needs the frozen Inception network. In TensorFlow its result is a scalar.

    Raises:
        NotImplementedError: always; the message says what to use instead.
    """
    _no_download()


def kernel_inception_distance(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there: it needs the frozen Inception network. In TensorFlow its result is a scalar.

    Raises:
        NotImplementedError: always; the message says what to use instead.
    """
    _no_download()


def kernel_inception_distance_and_std(*args: Any, **kwargs: Any) -> NoReturn:
    """Not there: it needs the frozen Inception network. In TensorFlow its result is a scalar.

    Raises:
        NotImplementedError: always; the message says what to use instead.
    """
    _no_download()


# -- summaries ----------------------------------------------------------------------------------


def _require_model(model: Any) -> None:
    if not hasattr(model, "generator_scope"):
        raise ValueError(f"Expected a model such as gan_model gives, got {model!r:.100}.")


def add_gan_model_summaries(gan_model: Any) -> None:
    """Histograms of all variables of a model (of both, if it is a CycleGANModel).

    Variables may have any shape.

    Raises:
        ValueError: if the model is none.
    """
    if hasattr(gan_model, "model_x2y"):
        with tf.name_scope("cyclegan_x2y_summaries"):
            add_gan_model_summaries(gan_model.model_x2y)
        with tf.name_scope("cyclegan_y2x_summaries"):
            add_gan_model_summaries(gan_model.model_y2x)
        return
    _require_model(gan_model)
    for kind in ("generator", "discriminator"):
        with tf.name_scope(f"{kind}_variables"):
            for variable in getattr(gan_model, f"{kind}_variables"):
                tf.summary.histogram(variable.name, variable)


def add_regularization_loss_summaries(gan_model: Any) -> None:
    """The regularisation losses of generator and discriminator, as scalars.

    Raises:
        ValueError: if the model is none.
    """
    if hasattr(gan_model, "model_x2y"):
        with tf.name_scope("cyclegan_x2y_regularization_loss_summaries"):
            add_regularization_loss_summaries(gan_model.model_x2y)
        with tf.name_scope("cyclegan_y2x_regularization_loss_summaries"):
            add_regularization_loss_summaries(gan_model.model_y2x)
        return
    _require_model(gan_model)
    for kind in ("generator", "discriminator"):
        scope = getattr(gan_model, f"{kind}_scope")
        if scope:
            loss = tf.losses.get_regularization_loss(scope.name)
            tf.summary.scalar(f"{kind}_regularization_loss", loss)


def add_gan_model_image_summaries(gan_model: Any, grid_size: int = 4) -> None:
    """``grid_size`` squared images of each kind, and what is known of their ranges.

    Real and generated data are ``[batch, height, width, channels]``.

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

"""tf.contrib.gan.eval: kernel distances, and networks from files."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

gan = tf.contrib.gan


def discrepancy(x, y):
    """The unbiased estimate, by its definition."""

    def kernel(a, b):
        return (a @ b / len(a) + 1) ** 3

    def own(values):
        pairs = [(i, j) for i in range(len(values)) for j in range(len(values)) if i != j]
        return np.mean([kernel(values[i], values[j]) for i, j in pairs])

    return own(x) + own(y) - 2 * np.mean([kernel(a, b) for a in x for b in y])


def activations(rows, shift=0.0, seed=0):
    return np.random.RandomState(seed).normal(shift, 1.0, [rows, 3])


@pytest.mark.parametrize(
    ("rows", "others", "size"), [(7, 5, 100), (11, 6, 4), (8, 8, 4), (9, 7, 3)]
)
def test_kernel_distances(rows, others, size):
    x, y = activations(rows), activations(others, 0.5, 1)
    count = -(-max(rows, others) // size)
    # Larger blocks come last.
    blocks = [
        np.split(
            v, np.cumsum([len(v) // count + (i >= count - len(v) % count) for i in range(count)])
        )
        for v in (x, y)
    ]
    wanted = [discrepancy(a, b) for a, b in zip(blocks[0][:count], blocks[1][:count], strict=True)]
    found = gan.eval.kernel_classifier_distance_and_std_from_activations(x, y, size)
    with tf.Session() as session:
        mean, error = session.run(found)
    np.testing.assert_allclose(mean, np.mean(wanted), rtol=1e-9)
    expected = np.std(wanted, ddof=1) / np.sqrt(count) if count > 1 else np.nan
    np.testing.assert_allclose(error, expected, rtol=1e-9)


def test_kernel_distances_of_as_many_as_come():
    fed = tf.placeholder(tf.float32, [None, 3])
    distance = gan.eval.kernel_classifier_distance_from_activations(
        fed, tf.constant(activations(6, 0.5, 1), tf.float32), 4, tf.float64
    )
    assert distance.dtype is tf.float64
    with tf.Session() as session:
        for rows in (4, 9):
            found = session.run(distance, {fed: activations(rows)})
            assert np.isfinite(found)


def test_kernel_distances_of_images():
    images = tf.constant(activations(8).reshape(8, 1, 1, 3))

    def classifier(batch):
        return tf.reshape(batch, [-1, 3]) * 2.0

    found = gan.eval.kernel_classifier_distance(
        images, images + 1.0, classifier, num_classifier_batches=2
    )
    wanted = discrepancy(2 * activations(8), 2 * activations(8) + 2)
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(found), wanted, rtol=1e-9)


def test_two_types_are_refused():
    with pytest.raises(ValueError, match="float64 and of float32: say which dtype"):
        gan.eval.kernel_classifier_distance_from_activations(
            activations(3), np.float32(activations(3))
        )


def frozen():
    with tf.Graph().as_default() as graph:
        images = tf.placeholder(tf.float32, [None, None, None, 1], name="Mul")
        tf.identity(tf.reduce_sum(images, [1, 2]), name="logits")
        tf.identity(images * 2.0, name="pool")
    return graph.as_graph_def()


def test_a_network_from_a_file(tmp_path):
    path = str(tmp_path / "graph.pb")
    with open(path, "wb") as file:
        file.write(frozen().SerializeToString())
    images = tf.ones([2, 4, 4, 1])
    graph_def = gan.eval.get_graph_def_from_disk(path)
    logits = gan.eval.run_inception(images, graph_def, image_size=4)
    several = gan.eval.run_inception(
        images, default_graph_def_fn=frozen, image_size=4, output_tensor=["logits:0", "pool:0"]
    )
    with tf.Session() as session:
        assert session.run(logits).tolist() == [[16], [16]]
        assert [part.shape for part in session.run(several)] == [(2, 1), (2, 16)]
    with pytest.raises(ValueError, match="must provide `default_graph_def_fn`"):
        gan.eval.run_inception(images, default_graph_def_fn=None, image_size=4)
    with pytest.raises(ValueError, match=r"299, 299, .* are incompatible"):
        gan.eval.run_inception(images, graph_def)


def test_images_as_the_network_takes_them():
    one = np.full([2, 2, 3], 192, np.uint8)
    prepared = [
        gan.eval.preprocess_image(tf.constant(images), 4, 5) for images in (one, one[np.newaxis])
    ]
    with tf.Session() as session:
        single, batch = session.run(prepared)
    assert (single.shape, batch.shape) == ((4, 5, 3), (1, 4, 5, 3))
    assert np.all(single == 0.5)
    assert np.all(batch == 0.5)

"""The two programs that `headrace demo` trains, as a user would write them.

Both classify images of 8x8 pixels. Each function builds one graph and hands back the few tensors
and operations that training needs: nothing runs before `Session.run` asks for one of them. The
same functions serve one process and clusters: a device function says what stands where, and the
container keeps the shared variables of the models apart on the parameter servers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import headrace as tf
from headrace.examples.tutorials.mnist.input_data import DataSet, Datasets

IMAGE_SIZE = 8
CLASSES = 10
BATCH_SIZE = 100
KEEP_PROBABILITY = 0.5

#: What `tf.device` takes: a function of the operation, or None for "anywhere".
Device = Callable[[tf.Operation], str] | None


@dataclass(frozen=True)
class DigitModel:
    """A graph, and the handles by which a training loop drives it.

    Attributes:
        name: what the progress display calls the model; also the container of its variables.
        graph: the graph that owns everything below.
        images: placeholder, float32 [batch, 64], pixels between 0 and 1.
        labels: placeholder, float32 [batch, 10], one-hot.
        keep_probability: float32 scalar, share of units that dropout keeps; 1.0 unless fed.
        loss: float32 scalar, cross-entropy of the batch, mean over the images.
        accuracy: float32 scalar, share of the batch that is classified right.
        train: operation that updates every variable once, and counts.
        global_step: int64 scalar variable, how many updates there were, by whomever.
        init: operation that gives every variable its initial value.
        saver: saves and restores the variables.
        steps: training steps that the model needs, with batches of 100.
        target: test accuracy that the model must reach.
    """

    name: str
    graph: tf.Graph
    images: tf.Tensor
    labels: tf.Tensor
    keep_probability: tf.Tensor
    loss: tf.Tensor
    accuracy: tf.Tensor
    train: tf.Operation
    global_step: tf.Variable
    init: tf.Operation
    saver: tf.train.Saver
    steps: int
    target: float

    def next_feed(self, data: DataSet) -> dict[tf.Tensor, object]:
        """The next batch to learn from."""
        images, labels = data.next_batch(BATCH_SIZE)
        return {
            self.images: images,
            self.labels: labels,
            self.keep_probability: KEEP_PROBABILITY,
        }

    def test_feed(self, digits: Datasets) -> dict[tf.Tensor, object]:
        """All test images."""
        return {self.images: digits.test.images, self.labels: digits.test.labels}


def digit_models(seed: int) -> list[Callable[[Device], DigitModel]]:
    """What builds the models of the demonstration, each in a graph of its own."""
    return [softmax_regression, lambda device: convolutional_network(device, seed)]


@contextlib.contextmanager
def model_scope(graph: tf.Graph, name: str, device: Device) -> Iterator[None]:
    """Within it, ops are added to the graph, on the device and in the container of a model."""
    with graph.as_default(), tf.device(device), tf.container(name):
        yield


def softmax_regression(device: Device = None) -> DigitModel:
    """Build the softmax program of the 2016 talk: one matrix, one bias, gradient descent."""
    graph = tf.Graph()
    with model_scope(graph, "softmax", device):
        x = tf.placeholder(tf.float32, [None, IMAGE_SIZE * IMAGE_SIZE], name="images")
        y_ = tf.placeholder(tf.float32, [None, CLASSES], name="labels")
        W = tf.Variable(tf.zeros([IMAGE_SIZE * IMAGE_SIZE, CLASSES]), name="weights")
        b = tf.Variable(tf.zeros([CLASSES]), name="biases")
        y = tf.nn.softmax(tf.matmul(x, W) + b)
        xent = -tf.reduce_sum(y_ * tf.log(y))
        global_step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(0.01)
        return DigitModel(
            name="softmax",
            graph=graph,
            images=x,
            labels=y_,
            keep_probability=tf.placeholder_with_default(1.0, [], name="keep_probability"),
            loss=xent / tf.cast(tf.shape(x)[0], tf.float32),
            accuracy=_accuracy(y, y_),
            train=optimizer.minimize(xent, global_step=global_step),
            global_step=global_step,
            init=tf.global_variables_initializer(),
            saver=tf.train.Saver(),
            steps=1500,
            target=0.95,
        )


def convolutional_network(device: Device = None, seed: int = 1) -> DigitModel:
    """Build two convolutions, one pool and two dense layers with dropout, trained by Adam."""
    graph = tf.Graph()
    with model_scope(graph, "convnet", device):
        tf.set_random_seed(seed)
        x = tf.placeholder(tf.float32, [None, IMAGE_SIZE * IMAGE_SIZE], name="images")
        y_ = tf.placeholder(tf.float32, [None, CLASSES], name="labels")
        keep_probability = tf.placeholder_with_default(1.0, [], name="keep_probability")

        planes = tf.reshape(x, [-1, IMAGE_SIZE, IMAGE_SIZE, 1])
        planes = _convolution(planes, channels=32, name="conv1")
        planes = _convolution(planes, channels=64, name="conv2")
        planes = tf.nn.max_pool(planes, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
        flat = tf.reshape(planes, [-1, 4 * 4 * 64])
        hidden = tf.nn.relu(_dense(flat, inputs=4 * 4 * 64, outputs=128, name="dense1"))
        hidden = tf.nn.dropout(hidden, keep_probability)
        logits = _dense(hidden, inputs=128, outputs=CLASSES, name="dense2")

        losses = tf.nn.softmax_cross_entropy_with_logits_v2(labels=y_, logits=logits)
        loss = tf.reduce_mean(losses)
        global_step = tf.train.get_or_create_global_step()
        rate = tf.train.exponential_decay(2e-3, global_step, decay_steps=15, decay_rate=0.93)
        return DigitModel(
            name="convnet",
            graph=graph,
            images=x,
            labels=y_,
            keep_probability=keep_probability,
            loss=loss,
            accuracy=_accuracy(logits, y_),
            train=tf.train.AdamOptimizer(rate).minimize(loss, global_step=global_step),
            global_step=global_step,
            init=tf.global_variables_initializer(),
            saver=tf.train.Saver(),
            steps=600,
            target=0.98,
        )


def _convolution(planes: tf.Tensor, channels: int, name: str) -> tf.Tensor:
    """Convolve with 3x3 filters, keep the image size, rectify."""
    with tf.variable_scope(name):
        filters = _weights([3, 3, int(planes.shape[3]), channels])
        biases = tf.get_variable("biases", [channels], initializer=tf.zeros_initializer())
        return tf.nn.relu(
            tf.nn.conv2d(planes, filters, strides=[1, 1, 1, 1], padding="SAME") + biases
        )


def _dense(x: tf.Tensor, inputs: int, outputs: int, name: str) -> tf.Tensor:
    """Multiply [batch, inputs] by a weight matrix and add a bias: [batch, outputs]."""
    with tf.variable_scope(name):
        biases = tf.get_variable("biases", [outputs], initializer=tf.zeros_initializer())
        product: tf.Tensor = tf.matmul(x, _weights([inputs, outputs])) + biases
        return product


def _weights(shape: Sequence[int]) -> tf.Variable:
    """Make the variable `weights` of the current scope, Glorot-uniform at first."""
    weights: tf.Variable = tf.get_variable(
        "weights", shape, initializer=tf.glorot_uniform_initializer()
    )
    return weights


def _accuracy(scores: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Share of rows whose highest score is at the label."""
    right = tf.equal(tf.argmax(scores, 1), tf.argmax(labels, 1))
    share: tf.Tensor = tf.reduce_mean(tf.cast(right, tf.float32))
    return share

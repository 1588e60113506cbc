"""The second half of `headrace demo`: an Estimator learns the digits from `tf.data`.

It is trained and evaluated, tells the digits of held-out images, which are drawn, writes logs for
TensorBoard, and is exported; the export is loaded again and must tell the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import headrace as tf
from headrace.cli.demo_models import BATCH_SIZE, CLASSES, IMAGE_SIZE
from headrace.examples.tutorials.mnist.input_data import DataSet, Datasets

#: Training steps that the model needs.
STEPS = 500
#: Test accuracy that it must reach.
TARGET = 0.97
#: So many held-out images are drawn with what the model takes them for.
DRAWN = 24


@dataclass(frozen=True)
class EstimatorRun:
    """What the Estimator gave.

    Attributes:
        accuracy: on the test images.
        exported_accuracy: that of the exported model, loaded again.
        seconds: how long training took.
        images, labels, predictions: held-out images [n, 8, 8], what they are, what the model says.
        model_dir: its folder: checkpoints and logs.
        export: the folder of the exported model.
    """

    accuracy: float
    exported_accuracy: float
    seconds: float
    images: np.ndarray[Any, Any]
    labels: np.ndarray[Any, Any]
    predictions: np.ndarray[Any, Any]
    model_dir: str
    export: str

    @property
    def problem(self) -> str:
        """What is wrong with the result; "" if the run has passed."""
        if self.exported_accuracy != self.accuracy:
            return "the export differs"
        return "" if self.accuracy >= TARGET else f"missed {TARGET}"


def model_fn(features: dict[str, tf.Tensor], labels: Any, mode: str) -> tf.estimator.EstimatorSpec:
    """Two convolutions, one pool, two dense layers with dropout between them."""
    training = mode == tf.estimator.ModeKeys.TRAIN
    planes = tf.reshape(features["image"], [-1, IMAGE_SIZE, IMAGE_SIZE, 1])
    planes = tf.layers.conv2d(planes, 32, 3, padding="same", activation=tf.nn.relu)
    planes = tf.layers.conv2d(planes, 64, 3, padding="same", activation=tf.nn.relu)
    planes = tf.layers.max_pooling2d(planes, 2, 2)
    hidden = tf.layers.dense(tf.layers.flatten(planes), 128, activation=tf.nn.relu)
    logits = tf.layers.dense(tf.layers.dropout(hidden, 0.5, training=training), CLASSES)
    predictions = {"digit": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        exports = {"serving_default": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions, export_outputs=exports)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.train.AdamOptimizer(2e-3)
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=optimizer.minimize(loss, global_step=tf.train.get_global_step()),
        eval_metric_ops={"accuracy": tf.metrics.accuracy(labels, predictions["digit"])},
    )


def run_estimator(digits: Datasets, steps: int | None, seed: int, folder: Path) -> EstimatorRun:
    """Train, evaluate, predict and export; everything is below a new folder of ``folder``."""
    model_dir = folder.resolve() / f"estimator-{time.strftime('%Y%m%d-%H%M%S')}"
    config = tf.estimator.RunConfig(str(model_dir), tf_random_seed=seed, save_summary_steps=20)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    began = time.perf_counter()
    estimator.train(_inputs(digits.train, seed), steps=steps or STEPS)
    seconds = time.perf_counter() - began
    accuracy = float(estimator.evaluate(_inputs(digits.test))["accuracy"])
    found = np.array([p["digit"] for p in estimator.predict(_inputs(digits.test))])
    labels = np.argmax(digits.test.labels, axis=1)
    export = os.fsdecode(
        estimator.export_saved_model(str(model_dir / "export"), serving_input_receiver_fn)
    )
    return EstimatorRun(
        accuracy=accuracy,
        exported_accuracy=float(np.float32(np.mean(_served(export, digits.test) == labels))),
        seconds=seconds,
        images=digits.test.images.reshape(-1, IMAGE_SIZE, IMAGE_SIZE),
        labels=labels,
        predictions=found,
        model_dir=str(model_dir),
        export=export,
    )


def _inputs(part: DataSet, shuffle_seed: int | None = None) -> Callable[[], tf.data.Dataset]:
    """Batches of images and labels: once in their order, or for ever in a shuffled one."""

    def input_fn() -> tf.data.Dataset:
        labels = np.argmax(part.labels, axis=1).astype(np.int32)
        data = tf.data.Dataset.from_tensor_slices(({"image": part.images}, labels))
        if shuffle_seed is not None:
            data = data.shuffle(part.num_examples, seed=shuffle_seed).repeat()
        return data.batch(BATCH_SIZE).prefetch(1)

    return input_fn


def serving_input_receiver_fn() -> Any:
    """What the exported model is fed with: images [n, 64], pixels between 0 and 1."""
    images = tf.placeholder(tf.float32, [None, IMAGE_SIZE * IMAGE_SIZE], name="images")
    return tf.estimator.export.ServingInputReceiver({"image": images}, {"image": images})


def _served(export: str, part: DataSet) -> np.ndarray[Any, Any]:
    """What the exported model, loaded into an empty graph, takes the images for."""
    with tf.Session(graph=tf.Graph()) as session:
        message = tf.saved_model.loader.load(
            session, [tf.saved_model.tag_constants.SERVING], export
        )
        signature = message.signature_def["serving_default"]
        digit, images = signature.outputs["digit"].name, signature.inputs["image"].name
        found: np.ndarray[Any, Any] = session.run(digit, {images: part.images})
    return found


def draw_predictions(run: EstimatorRun, path: Path) -> None:
    """Draw held-out images, and above each what the model takes it for; mistakes come first."""
    from matplotlib.figure import Figure

    wrong = np.flatnonzero(run.predictions != run.labels)[: DRAWN // 2]
    right = np.flatnonzero(run.predictions == run.labels)
    others = right[np.linspace(0, len(right) - 1, DRAWN - len(wrong)).astype(int)]
    figure = Figure(figsize=(9, 2.1), layout="constrained")
    places = figure.subplots(2, DRAWN // 2).flat
    for axes, i in zip(places, [*wrong, *others], strict=True):
        axes.imshow(run.images[i], cmap="gray_r")
        axes.set_axis_off()
        title, colour = str(run.predictions[i]), "black"
        if run.predictions[i] != run.labels[i]:
            title, colour = f"{title}, is {run.labels[i]}", "tab:red"
        axes.set_title(title, color=colour, fontsize="small")
    figure.savefig(path, dpi=120)

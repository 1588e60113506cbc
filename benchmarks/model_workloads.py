"""Training steps of `headrace.models`: both sides run the same file.

    python benchmarks/model_workloads.py headrace|tensorflow NETWORK SECONDS TYPE

times the steps of one network in this process, in float32 or, mixed, in bfloat16, and answers a
line of JSON: the seconds of each step, from the first one on. A file of a model imports nothing but
`headrace`, Python and NumPy. On TensorFlow's side, where Headrace is not imported, that name stands
for `tensorflow.compat.v1`.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from side import arguments_of_side

MODELS = Path(__file__).resolve().parents[1] / "src" / "headrace" / "models"
#: Steps of a process that do not count: they may be interpreted, or compile.
WARM_UP = 6
#: A process makes at least so many steps, fewer where they take longer than so many seconds in all,
#: and at most so many.
LEAST_STEPS, LONGEST, MOST_STEPS = 10, 30.0, 1000


def load(tf: ModuleType, file: str) -> ModuleType:
    """The module of a file of `headrace.models`, made of the operations of ``tf``."""
    name = f"model_{Path(file).stem}"
    spec = importlib.util.spec_from_file_location(name, MODELS / file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("headrace", tf)
    spec.loader.exec_module(module)
    return module


#: Session, what a step runs, its feed, and what is read to wait for it.
Built = tuple[Any, Any, dict[Any, np.ndarray], Any]


@dataclass(frozen=True)
class ModelCase:
    """A training step of so many pictures, or of so many words.

    Attributes:
        things: what is counted by the second.
        each: how many things there are in one of the batch.
    """

    label: str
    title: str
    batch: int
    loss: Callable[[ModuleType, int, dict[Any, np.ndarray]], Any]
    things: str = "images"
    each: int = 1

    def build(self, tf: ModuleType, dtype: str = "float32") -> Built:
        """The step, compiled for mixed precision where ``dtype`` is bfloat16."""
        feed: dict[Any, np.ndarray] = {}
        loss = self.loss(tf, self.batch, feed)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.GradientDescentOptimizer(1e-4).minimize(loss)
        config = tf.ConfigProto()
        if dtype != "float32":
            config.graph_options.rewrite_options.auto_mixed_precision = 1
        session = tf.Session(config=config)
        session.run(tf.global_variables_initializer())
        # One number of a small variable: to read it is to wait for the step.
        small = min(tf.trainable_variables(), key=lambda v: int(np.prod(v.shape.as_list())))
        return session, train, feed, small

    @staticmethod
    def named(label: str) -> ModelCase:
        return next(case for case in CASES if case.label == label)


def _fed(tf: ModuleType, values: np.ndarray, feed: dict[Any, np.ndarray]) -> Any:
    placeholder = tf.placeholder(tf.as_dtype(values.dtype), values.shape)
    feed[placeholder] = values
    return placeholder


def classifier(file: str, function: str, size: int, channels: int = 3, **more: Any) -> Any:
    """The loss of a network for pictures on noise, whose time does not depend on what is shown."""

    def loss(tf: ModuleType, batch: int, feed: dict[Any, np.ndarray]) -> Any:
        rng = np.random.RandomState(0)
        shape = (batch, size, size, channels)
        images = _fed(tf, rng.random_sample(shape).astype(np.float32), feed)
        logits = getattr(load(tf, f"images/{file}"), function)(images, **more)
        classes = int(logits.shape[1])
        labels = _fed(tf, rng.randint(classes, size=batch).astype(np.int32), feed)
        return tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        )

    return loss


def _capsules(tf: ModuleType, batch: int, feed: dict[Any, np.ndarray]) -> Any:
    capsules, rng = load(tf, "images/capsules.py"), np.random.RandomState(0)
    pixels = rng.random_sample((batch, 28, 28, 1)).astype(np.float32)
    images = _fed(tf, pixels, feed)
    labels = _fed(tf, rng.randint(10, size=batch).astype(np.int32), feed)
    poses = capsules.capsule_network(images)
    drawn = capsules.capsule_reconstruction(poses, labels)
    error = tf.reduce_mean(tf.reduce_sum(tf.square(drawn - tf.layers.flatten(images)), axis=1))
    return capsules.capsule_loss(poses, labels) + 0.0005 * error


def _dcgan(tf: ModuleType, batch: int, feed: dict[Any, np.ndarray]) -> Any:
    """The judge's loss, which has both networks in it: as much work as a pair of steps."""
    dcgan, rng = load(tf, "images/dcgan.py"), np.random.RandomState(0)
    real = _fed(tf, rng.uniform(-1, 1, (batch, 64, 64, 3)).astype(np.float32), feed)
    noise = _fed(tf, rng.uniform(-1, 1, (batch, 100)).astype(np.float32), feed)
    made = dcgan.dcgan_generator(noise)
    judge, _ = dcgan.dcgan_losses(dcgan.dcgan_discriminator(real), dcgan.dcgan_discriminator(made))
    return judge


def _word_lstm(tf: ModuleType, batch: int, feed: dict[Any, np.ndarray]) -> Any:
    lstm, rng = load(tf, "words/word_lstm.py"), np.random.RandomState(0)
    words = rng.randint(10_000, size=(batch, 36)).astype(np.int32)
    logits, _ = lstm.word_lstm(_fed(tf, words[:, :-1], feed))
    return lstm.word_loss(logits, _fed(tf, words[:, 1:], feed))


def _transformer(tf: ModuleType, batch: int, feed: dict[Any, np.ndarray]) -> Any:
    model, rng = load(tf, "words/transformer.py"), np.random.RandomState(0)
    words = rng.randint(1, 10_000, size=(2, batch, 32)).astype(np.int32)
    sources, targets = (_fed(tf, each, feed) for each in words)
    logits = model.transformer(sources, targets, vocabulary=10_000)
    return model.transformer_loss(logits, targets)


def _wide_and_deep(tf: ModuleType, batch: int, feed: dict[Any, np.ndarray]) -> Any:
    model, rng = load(tf, "tables/wide_and_deep.py"), np.random.RandomState(0)
    sizes = [1000] * 20
    categories = _fed(tf, rng.randint(1000, size=(batch, 20)), feed)
    crosses = _fed(tf, rng.randint(100_000, size=(batch, 4)), feed)
    numbers = _fed(tf, rng.standard_normal((batch, 13)).astype(np.float32), feed)
    logits = model.wide_and_deep(crosses, categories, numbers, 100_000, sizes)
    labels = _fed(tf, rng.randint(2, size=batch).astype(np.float32), feed)
    return model.wide_and_deep_loss(logits, labels)


#: First the four of Table 1 of Abadi et al., "TensorFlow: a system for large-scale machine
#: learning" (OSDI 2016).
CASES = (
    ModelCase("alexnet", "AlexNet", 16, classifier("alexnet.py", "alexnet", 224)),
    ModelCase("overfeat", "OverFeat", 8, classifier("overfeat.py", "overfeat", 231)),
    ModelCase("oxfordnet", "OxfordNet (VGG-A)", 2, classifier("oxfordnet.py", "vgg_a", 224)),
    ModelCase("googlenet", "GoogLeNet", 8, classifier("googlenet.py", "googlenet", 224)),
    ModelCase("lenet", "LeNet-5", 100, classifier("lenet.py", "lenet", 32, channels=1)),
    ModelCase("vgg_16", "VGG-16", 2, classifier("oxfordnet.py", "vgg_16", 224)),
    ModelCase(
        "inception_v3",
        "Inception-v3",
        2,
        classifier("inception_v3.py", "inception_v3", 299, training=True),
    ),
    ModelCase(
        "resnet_50", "ResNet-50", 4, classifier("resnet.py", "resnet_50", 224, training=True)
    ),
    ModelCase(
        "mobilenet_v1",
        "MobileNet-v1",
        8,
        classifier("mobilenet.py", "mobilenet_v1", 224, training=True),
    ),
    ModelCase(
        "nasnet_a",
        "NASNet-A (4 @ 1056)",
        4,
        classifier("nasnet.py", "nasnet_a", 224, training=True),
    ),
    ModelCase("dcgan", "DCGAN", 16, _dcgan),
    ModelCase("capsules", "capsules", 16, _capsules),
    ModelCase("word_lstm", "word LSTM, 2 x 650", 20, _word_lstm, "words", 35),
    ModelCase("transformer", "Transformer, base", 4, _transformer, "words", 32),
    ModelCase("wide_and_deep", "wide and deep", 256, _wide_and_deep, "rows"),
)


def step_times(built: Built, seconds: float) -> list[float]:
    """Seconds of each step, each waited for, until ``seconds`` are over from the second one on."""
    session, train, feed, watched = built
    times: list[float] = []
    while _goes_on(len(times), sum(times[1:]), seconds):
        start = time.perf_counter()
        session.run(train, feed)
        session.run(watched)
        times.append(time.perf_counter() - start)
    return times


def _goes_on(steps: int, taken: float, seconds: float) -> bool:
    if steps < LEAST_STEPS:
        return steps <= WARM_UP or taken < LONGEST
    return steps < MOST_STEPS and taken < seconds


def main() -> None:
    tf, (label, seconds, dtype), answers = arguments_of_side()
    start = time.perf_counter()
    built = ModelCase.named(label).build(tf, dtype)
    built_in = time.perf_counter() - start
    steps = step_times(built, float(seconds))
    json.dump({"version": tf.__version__, "build": built_in, "steps": steps}, answers)
    answers.flush()


if __name__ == "__main__":
    main()

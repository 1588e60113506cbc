"""The convnet of the talk in Estimators and by `fit`, beside plain Keras 3 on JAX.

    python benchmarks/keras_convnet.py [--repeat N]

Each repetition trains 24 steps in one call (`fit`, or `Estimator.train`), and gives the mean time
of those from the fifth on. Two processes do so in turn. Images have the size of MNIST's.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

STEPS, BEFORE, BATCH = 24, 4, 128


def data() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """1,024 images and their classes as rows with a one."""
    rng = np.random.RandomState(0)
    images = rng.random_sample((8 * BATCH, 28, 28, 1)).astype(np.float32)
    return images, np.eye(10, dtype=np.float32)[rng.randint(10, size=len(images))]


def network(layers: Any) -> list[Any]:
    """The layers of the convnet of the talk."""
    return [
        layers.Conv2D(32, (3, 3), activation="relu"),
        layers.MaxPooling2D((2, 2)),
        layers.Flatten(),
        layers.Dense(128, activation="relu"),
        layers.Dropout(0.2),
        layers.Dense(10, activation="softmax"),
    ]


class Clock:
    """When steps have ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def tick(self) -> None:
        self.ends.append(time.perf_counter())

    def seconds(self) -> float:
        """The mean time of a step of those that count."""
        return (self.ends[-1] - self.ends[BEFORE]) / (len(self.ends) - 1 - BEFORE)


def compiled(keras: Any) -> Any:
    """The convnet as a compiled model of the Keras ``keras``."""
    model = keras.Sequential([keras.layers.Input((28, 28, 1)), *network(keras.layers)])
    model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
    return model


def fit(keras: Any) -> Callable[[], float]:
    """Training by `fit`, timed from batch to batch: logs are numbers, so each has ended."""
    model = compiled(keras)
    images, labels = (np.tile(a, (3, *[1] * (a.ndim - 1))) for a in data())

    def run() -> float:
        clock = Clock()
        callback = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda batch, logs: clock.tick()
        )
        model.fit(images, labels, BATCH, verbose=0, callbacks=[callback])
        return clock.seconds()

    return run


def plain_fit() -> Callable[[], float]:
    """The same by plain Keras on JAX."""
    os.environ["KERAS_BACKEND"] = "jax"
    import keras

    return fit(keras)


def _train(tf: Any, estimator: Any) -> Callable[[], float]:
    class Hook(tf.train.SessionRunHook):
        def __init__(self, clock: Clock) -> None:
            self.clock = clock

        def after_run(self, context: Any, values: Any) -> None:
            self.clock.tick()

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices(data()).repeat().batch(BATCH).prefetch(2)

    def run() -> float:
        clock = Clock()
        estimator.train(input_fn, hooks=[Hook(clock)], steps=STEPS)
        return clock.seconds()

    return run


def model_fn(tf: Any) -> Callable[[], float]:
    """An Estimator with a `model_fn` of layers."""

    def build(features: Any, labels: Any, mode: str) -> Any:
        *hidden, dropout, last = network(tf.keras.layers)
        for layer in hidden:
            features = layer(features)
        outputs = last(dropout(features, training=mode == tf.estimator.ModeKeys.TRAIN))
        loss = tf.reduce_mean(tf.keras.losses.categorical_crossentropy(labels, outputs))
        train = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    return _train(tf, tf.estimator.Estimator(build))


def to_estimator(tf: Any) -> Callable[[], float]:
    """`model_to_estimator` of the compiled model."""
    return _train(tf, tf.keras.estimator.model_to_estimator(compiled(tf.keras)))


#: What is trained, by the names that the sides are told.
TRAINERS = {
    "model_fn": model_fn,
    "to_estimator": to_estimator,
    "fit": lambda tf: fit(tf.keras),
}
TITLES = {
    "model_fn": "Estimator with a model_fn of Keras layers",
    "to_estimator": "model_to_estimator",
    "fit": "Model.fit of tf.keras",
}


def answer() -> None:
    """Be a side: for each line with a name train that, and answer the seconds of a step."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever libraries print goes to standard error
    runs: dict[str, Callable[[], float]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in runs:
            if name == "plain":
                runs[name] = plain_fit()
            else:
                import headrace

                runs[name] = TRAINERS[name](headrace)
            runs[name]()  # compiles
        print(runs[name](), file=answers)


class Side:
    """A process that answers."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__)), "--answer"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def seconds(self, name: str) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(name, file=self._process.stdin)
        return float(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        answer()
        return
    plain, ours = Side(), Side()
    print("| work | Headrace | plain Keras | ratio | target |")
    print("|---|---|---|---|---|")
    try:
        for name, title in TITLES.items():
            pairs = [(ours.seconds(name), plain.seconds("plain")) for _ in range(options.repeat)]
            mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratio = statistics.median(a / b for a, b in pairs)
            print(f"| {title} | {1e3 * mine:.1f} ms | {1e3 * theirs:.1f} ms | {ratio:.2f} | 1.1 |")
    finally:
        plain.close()
        ours.close()


if __name__ == "__main__":
    main()

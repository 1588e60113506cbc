"""A compiled Keras model becomes an Estimator and is trained by `train_and_evaluate`."""

from __future__ import absolute_import, division, print_function

import argparse
import tempfile

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data_dir", default="MNIST_data")
parser.add_argument("--steps", type=int, default=250)
args = parser.parse_args()
mnist = input_data.read_data_sets(args.data_dir, one_hot=True, validation_size=0)

model = tf.keras.Sequential(
    [
        tf.keras.layers.Reshape((28, 28, 1), input_shape=(784,), name="digits"),
        tf.keras.layers.Conv2D(16, (3, 3), activation="relu"),
        tf.keras.layers.MaxPooling2D((2, 2)),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dropout(0.2),
        tf.keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
name = model.input_names[0]


def input_fn(part, epochs):
    data = tf.data.Dataset.from_tensor_slices(({name: part.images}, part.labels))
    return data.repeat(epochs).batch(64).prefetch(1)


estimator = tf.keras.estimator.model_to_estimator(model, model_dir=tempfile.mkdtemp())
result, _ = tf.estimator.train_and_evaluate(
    estimator,
    tf.estimator.TrainSpec(lambda: input_fn(mnist.train, None), max_steps=args.steps),
    tf.estimator.EvalSpec(lambda: input_fn(mnist.test, 1), steps=None),
)
print("accuracy %.4f" % result["acc" if "acc" in result else "accuracy"])

"""A Sequential Keras model of digits: compile, fit, callbacks, weights in HDF5."""

from __future__ import absolute_import, division, print_function

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data_dir", default="MNIST_data")
parser.add_argument("--epochs", type=int, default=4)
args = parser.parse_args()


def create_model():
    model = tf.keras.models.Sequential(
        [
            tf.keras.layers.Dense(128, activation=tf.nn.relu, input_shape=(784,)),
            tf.keras.layers.Dropout(0.2),
            tf.keras.layers.Dense(10, activation=tf.nn.softmax),
        ]
    )
    model.compile(
        optimizer=tf.keras.optimizers.Adam(lr=0.001),
        loss=tf.keras.losses.sparse_categorical_crossentropy,
        metrics=["accuracy"],
    )
    return model


tf.set_random_seed(1)
np.random.seed(1)
mnist = input_data.read_data_sets(args.data_dir, validation_size=0)
folder = tempfile.mkdtemp()
path = os.path.join(folder, "weights.h5")

model = create_model()
model.summary()
history = model.fit(
    mnist.train.images,
    mnist.train.labels,
    epochs=args.epochs,
    batch_size=64,
    validation_data=(mnist.test.images, mnist.test.labels),
    callbacks=[
        tf.keras.callbacks.EarlyStopping(monitor="val_loss", patience=2),
        tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True, verbose=0),
        tf.keras.callbacks.TensorBoard(os.path.join(folder, "logs")),
    ],
    verbose=2,
)
print("losses fall: %s" % (history.history["loss"][-1] < history.history["loss"][0]))

again = create_model()
again.load_weights(path)
loss, accuracy = again.evaluate(mnist.test.images, mnist.test.labels, verbose=0)
probabilities = again.predict(mnist.test.images[:3])
print("digits %s" % np.argmax(probabilities, axis=1).tolist())
print("accuracy %.4f" % accuracy)

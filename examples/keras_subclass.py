"""A subclassed Keras model trained on a `tf.data` dataset by `fit`, and by hand on batches."""

from __future__ import absolute_import, division, print_function

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=60)
args = parser.parse_args()


class Classifier(tf.keras.Model):
    """Two dense layers with dropout between them."""

    def __init__(self, classes):
        super(Classifier, self).__init__(name="classifier")
        self.first = tf.keras.layers.Dense(64, activation="relu")
        self.dropout = tf.keras.layers.Dropout(0.05)
        self.second = tf.keras.layers.Dense(classes, activation="softmax")

    def call(self, inputs, training=None):
        return self.second(self.dropout(self.first(inputs), training=training))


rng = np.random.RandomState(0)
angle = rng.uniform(0, 3 * np.pi, 900)
kind = rng.randint(0, 3, 900)
turned = angle + kind * 2 * np.pi / 3
points = np.stack([angle * np.cos(turned), angle * np.sin(turned), angle], 1) / 9
points = (points + 0.01 * rng.randn(900, 3)).astype("float32")
labels = tf.keras.utils.to_categorical(kind, 3)

data = tf.data.Dataset.from_tensor_slices((points[:750], labels[:750]))
data = data.shuffle(750, seed=1).batch(50).repeat()
model = Classifier(3)
model.compile(
    optimizer=tf.train.AdamOptimizer(0.02), loss="categorical_crossentropy", metrics=["accuracy"]
)
model.fit(data, epochs=args.epochs, steps_per_epoch=15, verbose=0)
for _ in range(5):
    chosen = rng.randint(0, 750, 50)
    model.train_on_batch(points[chosen], labels[chosen])
loss, accuracy = model.evaluate(points[750:], labels[750:], verbose=0)
print("accuracy %.4f" % accuracy)

"""A functional Keras model with two inputs and two outputs, a shared layer, and model.save."""

from __future__ import absolute_import, division, print_function

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=15)
args = parser.parse_args()

WORDS, LENGTH, DEPARTMENTS = 50, 12, 3
rng = np.random.RandomState(0)
title = rng.randint(1, WORDS, (1500, LENGTH // 2))
body = rng.randint(1, WORDS, (1500, LENGTH))
tags = rng.randint(0, 2, (1500, 4)).astype("float32")
department = np.clip((body < 17).sum(1) - 2, 0, 4) // 2
urgent = ((title < 12).sum(1) + tags[:, 0] > 1.5).astype("float32")

title_input = tf.keras.Input(shape=(None,), name="title")
body_input = tf.keras.Input(shape=(None,), name="body")
tags_input = tf.keras.Input(shape=(4,), name="tags")
embedding = layers.Embedding(WORDS, 8)
title_features = layers.GlobalAveragePooling1D()(embedding(title_input))
body_features = layers.GlobalAveragePooling1D()(embedding(body_input))
x = layers.concatenate([title_features, body_features, tags_input])
x = layers.Dense(32, activation="relu", kernel_regularizer=tf.keras.regularizers.l2(1e-5))(x)
urgent_output = layers.Dense(1, activation="sigmoid", name="urgent")(x)
department_output = layers.Dense(DEPARTMENTS, activation="softmax", name="department")(x)
model = tf.keras.Model(
    inputs=[title_input, body_input, tags_input], outputs=[urgent_output, department_output]
)
model.compile(
    optimizer=tf.keras.optimizers.RMSprop(0.01),
    loss=["binary_crossentropy", "sparse_categorical_crossentropy"],
    loss_weights=[1.0, 0.5],
)
inputs = {"title": title, "body": body, "tags": tags}
model.fit(
    inputs,
    {"urgent": urgent, "department": department},
    epochs=args.epochs,
    batch_size=50,
    verbose=0,
)
path = os.path.join(tempfile.mkdtemp(), "tickets.h5")
model.save(path)
model = tf.keras.models.load_model(path)
found = model.predict(inputs)
print("department %.4f" % np.mean(found[1].argmax(1) == department))
print("accuracy %.4f" % np.mean((found[0][:, 0] > 0.5) == urgent))

"""Text with Keras: Tokenizer, padded sequences, Embedding and LSTM, saved weights."""

from __future__ import absolute_import, division, print_function

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=6)
args = parser.parse_args()

rng = np.random.RandomState(1)
GOOD, BAD = ["good", "great", "nice"], ["bad", "poor", "sad"]
PLAIN = ["the", "a", "film", "song", "was", "very", "it"]


def sentence(label):
    words = list(rng.choice(PLAIN, rng.randint(3, 9)))
    # "not" turns the word behind it, so a bag of words is not enough.
    turned = rng.rand() < 0.5
    word = rng.choice(GOOD if label != turned else BAD)
    words[-2:] = ["not", word] if turned else [word]
    return " ".join(words)


labels = rng.randint(0, 2, 800)
texts = [sentence(bool(label)) for label in labels]
tokenizer = tf.keras.preprocessing.text.Tokenizer(num_words=30)
tokenizer.fit_on_texts(texts)
sequences = tokenizer.texts_to_sequences(texts)
x = tf.keras.preprocessing.sequence.pad_sequences(sequences, maxlen=10)

model = tf.keras.Sequential()
model.add(tf.keras.layers.Embedding(30, 16, mask_zero=True))
model.add(tf.keras.layers.LSTM(16))
model.add(tf.keras.layers.Dense(1, activation="sigmoid"))
model.compile(loss="binary_crossentropy", optimizer=tf.keras.optimizers.Adam(0.01), metrics=["acc"])
model.fit(x[:650], labels[:650], epochs=args.epochs, batch_size=25, verbose=0)
print("accuracy %.4f" % model.evaluate(x[650:], labels[650:], verbose=0)[1])

"""Sentiment of short texts: words to a vocabulary, embedding_column, DNNClassifier, its exports."""

from __future__ import absolute_import, division, print_function

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
args = parser.parse_args()

GOOD = ["great", "lovely", "superb", "fine", "charming", "clever", "warm", "fun"]
BAD = ["dull", "awful", "weak", "boring", "poor", "silly", "cold", "slow"]
PLAIN = ["the", "film", "plot", "cast", "was", "is", "a", "and", "it", "music", "scene", "very"]
FOLDER = tempfile.mkdtemp()


def sentences(count, seed):
    rng = np.random.RandomState(seed)
    texts, labels = [], []
    for _ in range(count):
        label = rng.randint(2)
        opinions = rng.choice(GOOD if label else BAD, rng.randint(1, 4))
        if rng.rand() < 0.2:
            opinions[-1] = rng.choice(BAD if label else GOOD)
        words = list(opinions) + list(rng.choice(PLAIN, rng.randint(3, 9)))
        rng.shuffle(words)
        texts.append(" ".join(words))
        labels.append(label)
    return np.array(texts), np.array(labels)


def input_fn(texts, labels, training):
    def split(texts, labels):
        return {"words": tf.string_split(texts)}, labels

    data = tf.data.Dataset.from_tensor_slices((texts, labels))
    if training:
        data = data.shuffle(1000, seed=5).repeat()
    return data.batch(32).map(split)


def serving_input_fn():
    texts = tf.placeholder(tf.string, [None], name="texts")
    features = {"words": tf.string_split(texts)}
    return tf.estimator.export.ServingInputReceiver(features, {"texts": texts})


vocabulary = os.path.join(FOLDER, "words.txt")
with open(vocabulary, "w") as f:
    f.write("\n".join(GOOD + BAD + PLAIN) + "\n")
words = tf.feature_column.categorical_column_with_vocabulary_file("words", vocabulary)
model = tf.estimator.DNNClassifier(
    hidden_units=[16],
    feature_columns=[tf.feature_column.embedding_column(words, 8, combiner="sqrtn")],
    optimizer=lambda: tf.train.AdamOptimizer(
        tf.train.exponential_decay(0.02, tf.train.get_global_step(), 100, 0.7)
    ),
    model_dir=os.path.join(FOLDER, "model"),
)
train, test = sentences(1000, 0), sentences(300, 1)
model.train(lambda: input_fn(train[0], train[1], True), steps=args.steps)
result = model.evaluate(lambda: input_fn(test[0], test[1], False))
exported = model.export_savedmodel(os.path.join(FOLDER, "export"), serving_input_fn)

predict = tf.contrib.predictor.from_saved_model(exported, signature_def_key="predict")
found = predict({"texts": ["a superb and clever film", "the plot was dull very slow"]})
print("classes %s" % found["classes"].ravel().tolist())
print("accuracy %.4f" % result["accuracy"])

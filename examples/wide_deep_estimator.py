"""Wide and deep on a census-like table: feature columns, DNNLinearCombinedClassifier, CSV."""

from __future__ import absolute_import, division, print_function

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch_size", type=int, default=40)
args = parser.parse_args()

COLUMNS = ["age", "workclass", "education", "hours_per_week", "occupation", "income"]
DEFAULTS = [[0], [""], [""], [0], [""], [""]]
WORK = ["Private", "State-gov", "Self-emp", "?"]
SCHOOL = ["HS-grad", "Bachelors", "Masters", "Some-college", "Doctorate"]
JOBS = ["Sales", "Tech-support", "Farming", "Exec", "Craft"]
FOLDER = tempfile.mkdtemp()


def write(name, count, seed):
    rng = np.random.RandomState(seed)
    path = os.path.join(FOLDER, name)
    with open(path, "w") as f:
        for _ in range(count):
            age, hours = rng.randint(18, 75), rng.randint(10, 70)
            work, school, job = rng.randint(4), rng.randint(5), rng.randint(5)
            score = 0.06 * (min(age, 55) - 40) + 0.05 * (hours - 40) + 0.9 * (school - 2)
            score += 2.0 * (school >= 2 and job == 3) - 1.0 * (job == 2)
            rich = rng.rand() < 1.0 / (1.0 + np.exp(-score))
            row = [age, WORK[work], SCHOOL[school], hours, JOBS[job], ">50K" if rich else "<=50K"]
            f.write(",".join(map(str, row)) + "\n")
    return path


def build_columns():
    age = tf.feature_column.numeric_column("age")
    hours = tf.feature_column.numeric_column("hours_per_week")
    education = tf.feature_column.categorical_column_with_vocabulary_list("education", SCHOOL)
    work = tf.feature_column.categorical_column_with_vocabulary_list("workclass", WORK)
    job = tf.feature_column.categorical_column_with_hash_bucket("occupation", 100)
    buckets = tf.feature_column.bucketized_column(age, [18, 25, 30, 35, 40, 45, 50, 55, 60, 65])
    wide = [
        education,
        work,
        job,
        buckets,
        tf.feature_column.crossed_column(["education", "occupation"], hash_bucket_size=1000),
        tf.feature_column.crossed_column([buckets, "education", "occupation"], 1000),
    ]
    deep = [
        age,
        hours,
        tf.feature_column.indicator_column(work),
        tf.feature_column.indicator_column(education),
        tf.feature_column.embedding_column(job, dimension=8),
    ]
    return wide, deep


def input_fn(path, epochs, shuffle):
    def parse(line):
        features = dict(zip(COLUMNS, tf.decode_csv(line, DEFAULTS)))
        return features, tf.equal(features.pop("income"), ">50K")

    data = tf.data.TextLineDataset(path)
    if shuffle:
        data = data.shuffle(2000, seed=3)
    return data.map(parse, num_parallel_calls=4).repeat(epochs).batch(args.batch_size)


wide, deep = build_columns()
model = tf.estimator.DNNLinearCombinedClassifier(
    model_dir=os.path.join(FOLDER, "model"),
    linear_feature_columns=wide,
    dnn_feature_columns=deep,
    dnn_hidden_units=[40, 20],
    dnn_optimizer=tf.train.AdagradOptimizer(0.01),
    config=tf.estimator.RunConfig(tf_random_seed=1),
)
train, test = write("adult.data", 2000, 0), write("adult.test", 600, 1)
for _ in range(args.epochs // 4):
    model.train(lambda: input_fn(train, 4, True))
    results = model.evaluate(lambda: input_fn(test, 1, False))
    for key in sorted(results):
        print("%s: %.4f" % (key, results[key]))
print("auc %.4f" % results["auc"])

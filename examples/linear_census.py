"""A LinearClassifier with crossed and bucketised columns, FTRL with L1, and its weights."""

from __future__ import absolute_import, division, print_function

import argparse
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=300)
args = parser.parse_args()

rng = np.random.RandomState(0)
COUNT = 1500
age = rng.randint(16, 80, COUNT)
city = np.array(["York", "Bath", "Leeds", "Hull"])[rng.randint(0, 4, COUNT)]
plan = np.array(["basic", "family", "student"])[rng.randint(0, 3, COUNT)]
visits = rng.poisson(3.0, COUNT)
score = -1.5 + 0.5 * visits + 2.0 * ((age < 30) & (plan == "student")) - 1.5 * (city == "Hull")
label = (rng.rand(COUNT) < 1 / (1 + np.exp(-score))).astype(np.int32)
features = {"age": age, "city": city, "plan": plan, "visits": visits.astype(np.float32)}


def part(first, last):
    return {key: value[first:last] for key, value in features.items()}


columns = tf.feature_column
buckets = columns.bucketized_column(columns.numeric_column("age"), [20, 30, 40, 50, 60])
plans = columns.categorical_column_with_vocabulary_list("plan", ["basic", "family", "student"])
model = tf.estimator.LinearClassifier(
    feature_columns=[
        columns.numeric_column("visits"),
        buckets,
        plans,
        columns.categorical_column_with_hash_bucket("city", 50),
        columns.crossed_column([buckets, "plan"], 200),
    ],
    optimizer=tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.2),
    model_dir=tempfile.mkdtemp(),
)
train = tf.estimator.inputs.numpy_input_fn(
    part(0, 1200), label[:1200], batch_size=64, num_epochs=None, shuffle=False
)
test = tf.estimator.inputs.numpy_input_fn(part(1200, COUNT), label[1200:], shuffle=False)


class PrintLoss(tf.train.SessionRunHook):
    """The losses of the first steps, from the summary that the head writes."""

    def begin(self):
        self.count = 0
        self.loss = tf.get_collection(tf.GraphKeys.LOSSES)[0]

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.loss)

    def after_run(self, run_context, run_values):
        if self.count < 10:
            print("step %d loss %.6f" % (self.count, run_values.results))
        self.count += 1


model.train(train, steps=args.steps, hooks=[PrintLoss()])
names = [name for name in model.get_variable_names() if name.endswith("weights")]
for name in sorted(names):
    weights = model.get_variable_value(name)
    print("%s: %d of %d are not zero" % (name, np.count_nonzero(weights), weights.size))
result = model.evaluate(test)
print("auc %.4f" % result["auc"])

"""Write `tests/golden/learn_checkpoint`: a directory of `tf.contrib.learn`, and what follows.

Run with TensorFlow 1.15.5 (Python 3.7; see `tools/peer/README.md`):

    .peer-115/bin/python tools/make_learn_goldens.py [predict DIRECTORY FILE]

With `predict`, nothing is trained: predictions from a directory, ours or TensorFlow's, go to a
file.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

OUT = Path(__file__).resolve().parent.parent / "tests" / "golden" / "learn_checkpoint"
AGE = np.array([[20.0], [35.0], [61.0], [44.0], [28.0], [70.0]], np.float32) / 50
JOBS = ["smith", "clerk", "nurse", "smith", "cook", "clerk"]
LABELS = np.array([[0], [1], [2], [0], [1], [2]])


def classifier(tf, folder):
    """The same wide and deep model in both libraries."""
    layers = tf.contrib.layers
    job = layers.sparse_column_with_hash_bucket("job", 20)
    age = layers.real_valued_column("age")
    ages = layers.bucketized_column(age, [0.6, 1.0])
    return tf.contrib.learn.DNNLinearCombinedClassifier(
        n_classes=3,
        linear_feature_columns=[job, ages, layers.crossed_column([ages, job], 50)],
        dnn_feature_columns=[age, layers.embedding_column(job, 3)],
        dnn_hidden_units=[5, 4],
        fix_global_step_increment_bug=True,
        config=tf.contrib.learn.RunConfig(model_dir=str(folder), tf_random_seed=3),
    )


def input_fn(tf):
    """One batch."""
    at = [[i, 0] for i in range(len(JOBS))]
    jobs = tf.SparseTensor(at, tf.constant(JOBS), [len(JOBS), 1])
    return {"age": tf.constant(AGE), "job": jobs}, tf.constant(LABELS)


def probabilities(tf, estimator):
    """Of all examples of the batch."""
    found = estimator.predict_proba(input_fn=lambda: input_fn(tf))
    return np.stack([next(found) for _ in JOBS])


def main():
    """Train, keep, train on."""
    import tensorflow as tf  # type: ignore[import-not-found,unused-ignore]

    tf.logging.set_verbosity(tf.logging.FATAL)
    if sys.argv[1:2] == ["predict"]:
        np.save(sys.argv[3], probabilities(tf, classifier(tf, sys.argv[2])))
        return
    folder = Path(tempfile.mkdtemp())
    estimator = classifier(tf, folder)
    estimator.fit(input_fn=lambda: input_fn(tf), steps=3)
    shutil.rmtree(str(OUT), ignore_errors=True)
    OUT.mkdir(parents=True)
    for path in sorted(folder.glob("model.ckpt-3.[di]*")):
        shutil.copy(str(path), str(OUT))
    text = 'model_checkpoint_path: "model.ckpt-3"\nall_model_checkpoint_paths: "model.ckpt-3"\n'
    (OUT / "checkpoint").write_text(text)
    results = {"predicted": probabilities(tf, estimator)}
    results["loss"] = estimator.evaluate(input_fn=lambda: input_fn(tf), steps=1)["loss"]
    estimator.fit(input_fn=lambda: input_fn(tf), steps=4)
    results["predicted_later"] = probabilities(tf, estimator)
    np.savez(str(OUT / "expected.npz"), **results)


if __name__ == "__main__":
    main()

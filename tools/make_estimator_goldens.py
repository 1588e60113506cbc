"""Write `tests/golden/estimator_checkpoint`: a DNNClassifier's directory, and what follows from it.

Run with TensorFlow 1.15.5 (Python 3.7; see `tools/peer/README.md`):

    .peer-115/bin/python tools/make_estimator_goldens.py [predict DIRECTORY FILE]
    .peer-115/bin/python tools/make_estimator_goldens.py train DIRECTORY N

With `predict`, nothing is trained: predictions from a directory, ours or TensorFlow's, go to a
file. With `train`, a directory is trained for three steps, its table cut into N parts.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

OUT = Path(__file__).resolve().parent.parent / "tests" / "golden" / "estimator_checkpoint"
X = (np.arange(24, dtype=np.float32).reshape(8, 3) * 0.37) % 1.5
COLORS = np.array([b"red", b"blue", b"green", b"red", b"blue", b"blue", b"green", b"red"])
LABELS = np.array([0, 1, 2, 0, 1, 1, 2, 0])


def classifier(tf, folder, **arguments):
    """The same model in both libraries."""
    color = tf.feature_column.categorical_column_with_vocabulary_list(
        "color", ["red", "green", "blue"]
    )
    columns = [
        tf.feature_column.numeric_column("x", shape=[3]),
        tf.feature_column.embedding_column(color, 2),
    ]
    config = tf.estimator.RunConfig(str(folder), tf_random_seed=3)
    return tf.estimator.DNNClassifier([6, 4], columns, n_classes=3, config=config, **arguments)


def input_fn(tf):
    """One batch."""
    return {"x": tf.constant(X), "color": tf.constant(COLORS)}, tf.constant(LABELS)


def probabilities(tf, estimator):
    """Of all examples of the batch."""
    found = estimator.predict(lambda: input_fn(tf), yield_single_examples=False)
    return next(iter(found))["probabilities"]


def main():
    """Train, keep, train on."""
    import tensorflow as tf  # type: ignore[import-not-found,unused-ignore]

    tf.logging.set_verbosity(tf.logging.FATAL)
    if sys.argv[1:2] == ["predict"]:
        np.save(sys.argv[3], probabilities(tf, classifier(tf, sys.argv[2])))
        return
    if sys.argv[1:2] == ["train"]:
        cut = tf.min_max_variable_partitioner(int(sys.argv[3]), min_slice_size=1)
        estimator = classifier(tf, sys.argv[2], input_layer_partitioner=cut)
        estimator.train(lambda: input_fn(tf), steps=3)
        return
    folder = Path(tempfile.mkdtemp())
    estimator = classifier(tf, folder)
    estimator.train(lambda: input_fn(tf), steps=3)
    shutil.rmtree(str(OUT), ignore_errors=True)
    OUT.mkdir(parents=True)
    for path in [folder / "checkpoint", *sorted(folder.glob("model.ckpt-3.[di]*"))]:
        shutil.copy(str(path), str(OUT))
    text = 'model_checkpoint_path: "model.ckpt-3"\nall_model_checkpoint_paths: "model.ckpt-3"\n'
    (OUT / "checkpoint").write_text(text)
    results = {"predicted": probabilities(tf, estimator)}
    results["loss"] = estimator.evaluate(lambda: input_fn(tf), steps=1)["loss"]
    estimator.train(lambda: input_fn(tf), steps=4)
    results["predicted_later"] = probabilities(tf, estimator)
    np.savez(str(OUT / "expected.npz"), **results)


if __name__ == "__main__":
    main()

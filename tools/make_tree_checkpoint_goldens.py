"""Write `tests/golden/tree_checkpoint`: a BoostedTreesRegressor's directory, and what follows.

Run with TensorFlow 1.15.5 (Python 3.7; see `tools/peer/README.md`):

    .peer-115/bin/python tools/make_tree_checkpoint_goldens.py [train DIRECTORY FILE]

With `train`, the training in a directory, ours or TensorFlow's, goes on to its end, and predictions
before and after go to a file.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

OUT = Path(__file__).resolve().parent.parent / "tests" / "golden" / "tree_checkpoint"
DRAW = np.random.RandomState(11)
X = DRAW.normal(size=[64, 3]).astype(np.float32)
COLORS = DRAW.choice([b"red", b"green", b"blue"], 64)
LABELS = (X[:, 0] * X[:, 1] + (COLORS == b"red") + 0.1 * DRAW.normal(size=64)).astype(np.float32)
#: Layers of the first part: it ends in the middle of a tree.
FIRST = 7


def regressor(tf, folder):
    """The same model in both libraries: three trees of three layers, after the bias."""
    color = tf.feature_column.categorical_column_with_vocabulary_list(
        "color", ["red", "green", "blue"]
    )
    columns = [
        tf.feature_column.numeric_column("x", shape=[3]),
        tf.feature_column.indicator_column(color),
    ]
    return tf.estimator.BoostedTreesRegressor(
        columns,
        2,
        n_trees=3,
        max_depth=3,
        min_node_weight=0.2,
        center_bias=True,
        config=tf.estimator.RunConfig(str(folder), tf_random_seed=3),
    )


def input_fn(tf):
    """Batches without an end."""
    rows = tf.data.Dataset.from_tensor_slices(({"x": X, "color": COLORS}, LABELS))
    return rows.batch(32, drop_remainder=True).repeat()


def predictions(tf, estimator):
    """Of all examples."""
    found = estimator.predict(lambda: input_fn(tf).take(2))
    return np.stack([row["predictions"] for row in found])


def serialized(tf, folder):
    """The trees of the last checkpoint, as bytes."""
    return tf.train.load_checkpoint(str(folder)).get_tensor("boosted_trees:0_serialized")


def go_on(tf, folder):
    """Predictions before the training goes on to its end, and afterwards."""
    estimator = regressor(tf, folder)
    before = predictions(tf, estimator)
    estimator.train(lambda: input_fn(tf))
    return before, predictions(tf, estimator)


def main():
    """Train, keep, train on."""
    import tensorflow as tf  # type: ignore[import-not-found,unused-ignore]

    tf.logging.set_verbosity(tf.logging.FATAL)
    if sys.argv[1:2] == ["train"]:
        before, after = go_on(tf, sys.argv[2])
        np.savez(sys.argv[3], before=before, after=after)
        return
    folder = Path(tempfile.mkdtemp())
    regressor(tf, folder).train(lambda: input_fn(tf), steps=2 * FIRST)
    shutil.rmtree(str(OUT), ignore_errors=True)
    OUT.mkdir(parents=True)
    for path in [folder / "checkpoint", *folder.glob(f"model.ckpt-{2 * FIRST}.[di]*")]:
        shutil.copy(str(path), str(OUT / path.name))
    lines = (OUT / "checkpoint").read_text().splitlines()
    (OUT / "checkpoint").write_text("\n".join([lines[0], lines[-1]]) + "\n")
    before, after = go_on(tf, folder)
    np.savez(str(OUT / "expected.npz"), before=before, after=after)


if __name__ == "__main__":
    main()

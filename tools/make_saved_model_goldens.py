"""Write ``tests/golden/saved_models/``: SavedModels of real TensorFlow, and their results.

    OLD_PEER_PYTHON tools/make_saved_model_goldens.py       under TensorFlow 1.15: `v1`
    TF_USE_LEGACY_KERAS=1 PEER_PYTHON tools/make_saved_model_goldens.py
                                                            under TensorFlow 2.21: `v2`

Each is a folder that TensorFlow wrote, with ``results.npz``: ``in/<key>`` and ``out/<key>`` of the
signature ``serving_default``.
"""

import os
import shutil
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as peer

OUT = Path(__file__).resolve().parent.parent / "tests" / "golden" / "saved_models"
tf = peer.compat.v1


def values(*shape, seed=0):
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def v1(folder):
    """A graph with reference variables, a conditional, a table with its file, and an init op."""
    vocabulary = folder.parent / "words.txt"
    vocabulary.write_text("zero\none\ntwo\n")
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 3], "x")
        words = tf.placeholder(tf.string, [None], "words")
        path = tf.constant(str(vocabulary), name="vocabulary")
        tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, path)
        table = peer.contrib.lookup.index_table_from_file(path, default_value=-1)
        w = tf.get_variable("w", initializer=values(3, 2, seed=1), use_resource=False)
        b = tf.get_variable("b", initializer=values(2, seed=2), use_resource=True)
        y = tf.nn.softmax(tf.matmul(x, w) + b)
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: y, lambda: 1 - y)
        ids = table.lookup(words)
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        feeds = {x: values(4, 3), words: np.array([b"two", b"none"])}
        results = sess.run([y, ids], feeds)
        tf.saved_model.simple_save(
            sess,
            str(folder),
            {"x": x, "words": words},
            {"y": y, "ids": ids},
            legacy_init_op=tf.tables_initializer(),
        )
    vocabulary.unlink()
    given = {"in/x": values(4, 3), "in/words": np.array([b"two", b"none"])}
    np.savez(
        str(folder / "results.npz"), **dict(given, **{"out/y": results[0], "out/ids": results[1]})
    )


def v2(folder):
    """What tf.saved_model.save writes today: functions that call functions."""

    class Model(peer.Module):
        def __init__(self):
            super().__init__()
            self.w = peer.Variable(values(3, 2, seed=1), name="w")
            self.b = peer.Variable(values(2, seed=2), name="b")

        @peer.function(input_signature=[peer.TensorSpec([None, 3], peer.float32, "x")])
        def __call__(self, x):
            i, y = peer.constant(0), peer.matmul(x, self.w) + self.b
            _, y = peer.while_loop(
                lambda i, y: i < 3, lambda i, y: (i + 1, peer.tanh(y) * 2), [i, y]
            )
            return {"y": peer.cond(peer.reduce_sum(x) > 0, lambda: y, lambda: -y)}

    model = Model()
    peer.saved_model.save(model, str(folder), signatures=model.__call__)
    x = values(4, 3)
    np.savez(folder / "results.npz", **{"in/x": x, "out/y": model(peer.constant(x))["y"].numpy()})


if __name__ == "__main__":
    name, make = ("v1", v1) if peer.__version__.startswith("1.") else ("v2", v2)
    shutil.rmtree(str(OUT / name), ignore_errors=True)
    OUT.mkdir(parents=True, exist_ok=True)
    make(OUT / name)
    for extra in ("fingerprint.pb",):
        (OUT / name / extra).unlink() if (OUT / name / extra).exists() else None

"""Write ``tests/golden/saved_models/``: SavedModels of real TensorFlow, and their results.

    OLD_PEER_PYTHON tools/make_saved_model_goldens.py       under TensorFlow 1.15: `v1`
    TF_USE_LEGACY_KERAS=1 PEER_PYTHON tools/make_saved_model_goldens.py
                                                            under TensorFlow 2.21: `v2`

Under 2.21 also `v2_layers` and `v2_recurrent`, layers of Keras, `v2_words`, a table with its file,
and `v2_programs`: a model with a Keras layer that Headrace wrote (its interpreter is taken from
`HEADRACE_PYTHON` or `.venv`), loaded and saved again.
Each is a folder that TensorFlow wrote, with ``results.npz``: ``in/<key>`` and ``out/<key>`` of the
signature ``serving_default``.
"""

import os
import shutil
import subprocess
import sys
import tempfile
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


def save_function(folder, module, function, given):
    """Save ``module`` with ``function`` as its signature, and what the function gives."""
    peer.saved_model.save(module, str(folder), signatures=function)
    found = function(**{k: peer.constant(v) for k, v in given.items()})
    results = {f"out/{k}": v.numpy() for k, v in found.items()}
    results = {k: v.astype("S") if v.dtype == object else v for k, v in results.items()}
    np.savez(folder / "results.npz", **{f"in/{k}": v for k, v in given.items()}, **results)


def spec(dtype, *shape):
    return peer.TensorSpec(shape, dtype)


def v2_layers(folder):
    """Convolution, batch normalisation, dropout and dense layers, after a step of training."""
    layers = peer.keras.layers
    model = peer.keras.Sequential(
        [
            layers.Conv2D(3, 3, activation="relu", input_shape=(6, 6, 2)),
            layers.BatchNormalization(),
            layers.SeparableConv2D(2, 2, padding="same"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(3, activation="softmax"),
        ]
    )
    model.compile("adam", "mse")
    model.fit(values(4, 6, 6, 2), values(4, 3), verbose=0)

    @peer.function(input_signature=[spec(peer.float32, None, 6, 6, 2)])
    def serve(x):
        return {"y": model(x, training=False)}

    save_function(folder, model, serve, {"x": values(2, 6, 6, 2, seed=3)})


def v2_recurrent(folder):
    """An embedding with its mask, an LSTM and a GRU."""
    layers = peer.keras.layers
    embedding = layers.Embedding(8, 4, mask_zero=True)
    first = layers.RNN(layers.LSTMCell(3), return_sequences=True)
    second = layers.Bidirectional(layers.RNN(layers.GRUCell(2)))

    @peer.function(input_signature=[spec(peer.int32, None, None)])
    def serve(ids):
        mask = embedding.compute_mask(ids)
        rows = first(embedding(ids), mask=mask)
        return {"rows": rows, "y": second(rows, mask=mask)}

    ids = np.array([[1, 2, 3, 0], [4, 7, 0, 0]], np.int32)
    serve(peer.constant(ids))
    module = peer.Module()  # layers would be saved with functions of their own
    module.weights = [w for layer in (embedding, first, second) for w in layer.weights]
    save_function(folder, module, serve, {"ids": ids})


def v2_words(folder):
    """Strings, a table made of a file, ragged rows, a mutable count and nested functions."""
    vocabulary = folder.parent / "words.txt"
    vocabulary.write_text("zero\none\ntwo\n")
    module = peer.Module()
    module.path = peer.saved_model.Asset(str(vocabulary))
    module.table = peer.lookup.StaticVocabularyTable(
        peer.lookup.TextFileInitializer(
            module.path,
            peer.string,
            peer.lookup.TextFileIndex.WHOLE_LINE,
            peer.int64,
            peer.lookup.TextFileIndex.LINE_NUMBER,
        ),
        2,
    )
    module.weights = peer.Variable(values(5, 2), name="weights")
    module.count = peer.Variable(0, name="count")

    @peer.function
    def mean(words):
        found = peer.ragged.map_flat_values(
            peer.nn.embedding_lookup, module.weights, module.table.lookup(words)
        )
        return peer.reduce_mean(found, axis=1)

    @peer.function(input_signature=[spec(peer.string, None)])
    def serve(text):
        words = peer.strings.split(peer.strings.lower(text), " ")
        module.count.assign_add(peer.shape(text)[0])
        joined = peer.strings.reduce_join(words, axis=1, separator="+")
        return {"mean": mean(words), "joined": joined, "count": peer.identity(module.count)}

    save_function(folder, module, serve, {"text": np.array([b"One two", b"ZERO many words"])})
    vocabulary.unlink()


HEADRACE_PROGRAM = """
import sys
import headrace as tf

tf.set_random_seed(1)
x = tf.placeholder(tf.float32, [None, 3], "x")
y = tf.keras.layers.Dense(2, activation="tanh")(x)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    tf.saved_model.simple_save(session, sys.argv[1], {"x": x}, {"y": y})
"""


def v2_programs(folder):
    """Programs of `jax.export`: a model of Headrace that TensorFlow has loaded and saved again."""
    python = os.environ.get("HEADRACE_PYTHON", str(OUT.parents[2] / ".venv" / "bin" / "python"))
    with tempfile.TemporaryDirectory() as scratch, tf.Session(graph=tf.Graph()) as session:
        first = os.path.join(scratch, "model")
        subprocess.run([python, "-c", HEADRACE_PROGRAM, first], check=True)
        message = tf.saved_model.loader.load(session, ["serve"], first)
        signature = message.signature_def["serving_default"]
        x = session.graph.get_tensor_by_name(signature.inputs["x"].name)
        y = session.graph.get_tensor_by_name(signature.outputs["y"].name)
        tf.saved_model.simple_save(session, str(folder), {"x": x}, {"y": y})
        results = {"in/x": values(4, 3), "out/y": session.run(y, {x: values(4, 3)})}
    np.savez(folder / "results.npz", **results)


def make(name, function):
    shutil.rmtree(str(OUT / name), ignore_errors=True)
    OUT.mkdir(parents=True, exist_ok=True)
    function(OUT / name)
    for extra in ("fingerprint.pb", "keras_metadata.pb"):
        (OUT / name / extra).unlink() if (OUT / name / extra).exists() else None


if __name__ == "__main__":
    of_two = [v2, v2_layers, v2_recurrent, v2_words, v2_programs]
    makers = [v1] if peer.__version__.startswith("1.") else of_two
    for maker in makers:
        if not sys.argv[1:] or maker.__name__ in sys.argv[1:]:
            make(maker.__name__, maker)

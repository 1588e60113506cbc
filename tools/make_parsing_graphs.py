"""Write graphs that parse Examples, as TensorFlow makes them, and what they give.

    PEER_PYTHON tools/make_parsing_graphs.py    # TensorFlow 2.21: the second versions of the ops
    PEER_115_PYTHON tools/make_parsing_graphs.py    # TensorFlow 1.15: the first ones

Both write ``tests/golden/parsing_graphs/<release>.pb`` and ``.json``: feeds and results by name,
bytes as Latin-1 text. `tests/ops/parsing/test_parsing_graphs.py` runs the graphs on Headrace.
This file stays within Python 3.7.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow

if tensorflow.__version__.startswith("1."):
    tf = tensorflow
else:
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()

FOLDER = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "tests", "golden", "parsing_graphs"
)


def feature(values):
    train = tf.train
    if isinstance(values[0], bytes):
        return train.Feature(bytes_list=train.BytesList(value=values))
    if isinstance(values[0], float):
        return train.Feature(float_list=train.FloatList(value=values))
    return train.Feature(int64_list=train.Int64List(value=values))


def example(**features):
    named = {key: feature(values) for key, values in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=named)).SerializeToString()


def sequence(number, **lists):
    train = tf.train
    named = {
        key: train.FeatureList(feature=[feature(step) for step in steps])
        for key, steps in lists.items()
    }
    return train.SequenceExample(
        context=train.Features(feature={"n": feature([number])}),
        feature_lists=train.FeatureLists(feature_list=named),
    ).SerializeToString()


def outputs(prefix, values):
    """Name every tensor of a dictionary of values."""
    for key, value in values.items():
        if hasattr(value, "dense_shape"):
            for part in ("indices", "values", "dense_shape"):
                tf.identity(getattr(value, part), name=f"out/{prefix}_{key}_{part}")
        else:
            tf.identity(value, name=f"out/{prefix}_{key}")


def build():
    """The graph of all ops; answers the feeds."""
    examples = tf.placeholder(tf.string, [None], name="examples")
    one = tf.placeholder(tf.string, [], name="one")
    sequences = tf.placeholder(tf.string, [None], name="sequences")
    lines = tf.placeholder(tf.string, [None], name="lines")
    features = {
        "x": tf.FixedLenFeature([3], tf.float32),
        "d": tf.FixedLenFeature([], tf.string, "missing"),
        "v": tf.VarLenFeature(tf.int64),
        "s": tf.FixedLenSequenceFeature([], tf.int64, True),
    }
    outputs("batch", tf.parse_example(examples, features))
    outputs("single", tf.parse_single_example(one, features))
    context = {"n": tf.FixedLenFeature([], tf.int64)}
    lists = {"t": tf.FixedLenSequenceFeature([], tf.int64), "w": tf.VarLenFeature(tf.string)}
    parsed = tf.io.parse_sequence_example(sequences, context, lists)
    for i, prefix in enumerate(("context", "lists", "lengths")):
        outputs(prefix, parsed[i])
    parsed = tf.parse_single_sequence_example(sequences[0], context, lists)
    for i, prefix in enumerate(("single_context", "single_lists")):
        outputs(prefix, parsed[i])
    fields = tf.decode_csv(lines, [[0], [0.0], [""]], select_cols=[0, 1, 2])
    outputs("csv", {str(i): field for i, field in enumerate(fields)})
    outputs("raw", {"bytes": tf.decode_raw(lines, tf.uint8)})
    batch = [
        example(x=[1.0, 2.0, 3.0], v=[5, 6], s=[1, 2, 3]),
        example(x=[4.0, 5.0, 6.0], d=[b"q"], s=[9]),
    ]
    steps = [sequence(3, t=[[1], [2]], w=[[b"a", b"b"], [b""]]), sequence(4, t=[[7]])]
    return {
        "examples": batch,
        "one": batch[1],
        "sequences": steps,
        "lines": [b"1,2.5,a", b"3,4.5,b"],
    }


def as_json(value):
    array = np.asarray(value)
    if array.dtype.kind == "O" or isinstance(value, bytes):
        items = [v.decode("latin-1") for v in np.asarray(value, object).reshape(-1).tolist()]
        return {"dtype": "string", "shape": list(array.shape), "values": items}
    kept = array.reshape(-1).tolist()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "values": kept}


def main():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        feeds = build()
        names = sorted(o.name for o in graph.get_operations() if o.name.startswith("out/"))
        fed = {name + ":0": value for name, value in feeds.items()}
        results = session.run([name + ":0" for name in names], fed)
        definition = graph.as_graph_def()
    release = ".".join(tensorflow.__version__.split(".")[:2])
    stored = {
        "feeds": {name: as_json(np.array(value, object)) for name, value in feeds.items()},
        "results": {name: as_json(results[i]) for i, name in enumerate(names)},
    }
    with open(os.path.join(FOLDER, release + ".pb"), "wb") as file:
        file.write(definition.SerializeToString())
    with open(os.path.join(FOLDER, release + ".json"), "w") as file:
        json.dump(stored, file, indent=1, sort_keys=True)
        file.write("\n")
    print(f"wrote {release}: {len(names)} results")


if __name__ == "__main__":
    sys.exit(main())

"""Feature columns of every kind on every kind of feature (TensorFlow 1.15), and texts of errors."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np

from . import golden


def filled(tf: Any, session: Any) -> None:
    """Tables and variables with values that tell their elements apart."""
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    for number, variable in enumerate(sorted(tf.global_variables(), key=lambda v: v.name)):
        shape = variable.shape.as_list()
        values = np.sin(np.arange(np.prod(shape)) * 0.7 + number).reshape(shape)
        variable.load(values.astype(np.float32), session)


def names(tf: Any, *collections: str) -> dict[str, Any]:
    """The names of variables, sorted: in all, trained, and in further collections."""
    keys = {"all": "variables", "trained": "trainable_variables", "model": "model_variables"}
    keys.update({name: name for name in collections})
    return {
        f"names/{what}": np.array(sorted({v.name for v in tf.get_collection(key)}) or [""])
        for what, key in keys.items()
    }


def dense_and_linear(tf: Any, session: Any, features: Any, dense: Any, linear: Any = None) -> Any:
    """`input_layer` of some columns and `linear_model` of others, with the variables' names."""
    found = {}
    by_column: dict[Any, Any] = {}
    if dense:
        found["dense"] = tf.feature_column.input_layer(features, dense, cols_to_vars=by_column)
    if linear:
        found["linear"] = tf.feature_column.linear_model(
            features, linear, units=2, cols_to_vars=by_column
        )
    filled(tf, session)
    results = dict(session.run(found))
    results.update(names(tf))
    for column, variables in by_column.items():
        name = column if isinstance(column, str) else column.name
        results[f"by_column/{name}"] = np.array([v.name for v in variables] or [""])
    return results


def messages(tf: Any, **calls: Any) -> dict[str, Any]:
    """The type and text of the error of each call, cut where Python's addresses begin."""
    found = {}
    for name, call in calls.items():
        with tf.Graph().as_default():
            try:
                call()
                text = "no error"
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
        text = text.replace("type _Sequence", "type Sequence")  # one class here, two there
        found[name] = np.array(text.split("Given (type")[0].split("Given:")[0].strip())
    return found


@golden(with_session=True)
def numbers(tf: Any, session: Any) -> dict[str, Any]:
    fc = tf.feature_column
    price = fc.numeric_column("price")
    features = {
        "price": tf.constant([1.0, np.nan, -np.inf, 4.0]),
        "count": tf.constant([[1], [2], [-3], [4]], tf.int64),
        "cube": tf.reshape(tf.range(16.0), [4, 2, 2]),
        "double": tf.constant([0.1, 0.2, 0.3, 0.4], tf.float64),
        "flag": tf.constant([True, False, True, True]),
    }
    columns = [
        price,
        fc.numeric_column("count", dtype=tf.int32, normalizer_fn=lambda x: x * 3),
        fc.numeric_column("cube", shape=(2, 2)),
        fc.numeric_column("double", normalizer_fn=lambda x: x - 0.1),
        fc.numeric_column("flag"),
        fc.bucketized_column(price, [-1.0, 1.0, 3.5]),
    ]
    return dense_and_linear(tf, session, features, columns, columns[1:4])


@golden(with_session=True)
def buckets(tf: Any, session: Any) -> dict[str, Any]:
    fc = tf.feature_column
    pair = fc.bucketized_column(fc.numeric_column("pair", shape=[2]), (0, 10))
    one = fc.bucketized_column(fc.numeric_column("one"), [2.5])
    features = {
        "pair": tf.constant([[-1.0, 0.0], [10.0, np.nan], [5.0, np.inf]]),
        "one": tf.constant([2, 3, 2], tf.int64),
    }
    cross = fc.crossed_column([one, pair], 50)
    columns = [pair, one, fc.indicator_column(cross), fc.embedding_column(pair, 3)]
    return dense_and_linear(tf, session, features, columns, [pair, one, cross])


def vocabulary(lines: str) -> str:
    path = os.path.join(tempfile.mkdtemp(), "words.txt")
    with open(path, "w") as file:
        file.write(lines)
    return path


@golden(with_session=True)
def categories(tf: Any, session: Any) -> dict[str, Any]:
    fc = tf.feature_column
    path = vocabulary("red\ngreen\nblue\n")
    words = tf.constant([["blue", ""], ["red", "pink"], ["", ""]])
    numbers = tf.constant([[3, -1], [0, 9], [1, 1]], tf.int32)
    features = {name: words for name in "abcde"}
    features.update({name: numbers for name in "fghi"})
    columns = [
        fc.categorical_column_with_vocabulary_file("a", path),
        fc.categorical_column_with_vocabulary_file("b", path, 2, num_oov_buckets=3),
        fc.categorical_column_with_vocabulary_list("c", ["blue", "red"], default_value=1),
        fc.categorical_column_with_vocabulary_list("d", ["blue"], num_oov_buckets=4),
        fc.categorical_column_with_hash_bucket("e", 7),
        fc.categorical_column_with_hash_bucket("f", 11, dtype=tf.int64),
        fc.categorical_column_with_vocabulary_list("g", [9, 3, 1], dtype=tf.int32),
        fc.categorical_column_with_vocabulary_list("h", [9], tf.int64, num_oov_buckets=3),
        fc.categorical_column_with_identity("i", 5, default_value=4),
    ]
    indicators = [fc.indicator_column(column) for column in columns]
    return dense_and_linear(tf, session, features, indicators, columns)


@golden(with_session=True)
def sparse_features(tf: Any, session: Any) -> dict[str, Any]:
    fc = tf.feature_column
    indices = [[0, 1], [2, 0], [2, 3]]
    features = {
        "word": tf.SparseTensor(indices, ["a", "", "zebra"], [4, 4]),
        "id": tf.SparseTensor(indices, np.array([2, -1, 0]), [4, 4]),
        "deep": tf.SparseTensor([[0, 0, 1], [3, 1, 0]], np.array([1, 2]), [4, 2, 2]),
        "weight": tf.SparseTensor(indices, np.array([0.5, 2.0, -1.0], np.float32), [4, 4]),
    }
    word = fc.categorical_column_with_hash_bucket("word", 20)
    known = fc.categorical_column_with_vocabulary_list("id", [0, 2])
    weighted = fc.weighted_categorical_column(known, "weight")
    deep = fc.categorical_column_with_identity("deep", 3)
    columns = [
        fc.embedding_column(word, 2, combiner="sum"),
        fc.embedding_column(known, 3, combiner="sqrtn"),
        fc.embedding_column(weighted, 2),
        fc.indicator_column(word),
        fc.indicator_column(known),
    ]
    return dense_and_linear(tf, session, features, columns, [word, weighted, deep])


@golden(with_session=True)
def weights(tf: Any, session: Any) -> dict[str, Any]:
    fc = tf.feature_column
    found: dict[str, Any] = {}
    features = {
        "id": tf.constant([[0, 1, 2], [2, 2, -1]]),
        "count": tf.constant([[1, 2, 3], [4, 5, 0]]),
        "share": tf.constant([[0.5, -2.0, 0.25], [1.0, 3.0, 0.0]]),
    }
    ids = fc.categorical_column_with_identity("id", 3)
    counted = fc.weighted_categorical_column(ids, "count", dtype=tf.int32)
    shared = fc.weighted_categorical_column(ids, "share")
    columns = [fc.indicator_column(counted), fc.indicator_column(shared)]
    for combiner in ("sum", "mean", "sqrtn"):
        columns += [fc.embedding_column(c, 2, combiner) for c in (counted,)]
        found[f"dense/{combiner}"] = fc.input_layer(features, columns)
        columns.pop()
        found[f"linear/{combiner}"] = fc.linear_model(
            features, [counted, shared], sparse_combiner=combiner
        )
    filled(tf, session)
    return {**session.run(found), **names(tf)}


@golden(with_session=True)
def crosses(tf: Any, session: Any) -> dict[str, Any]:
    fc = tf.feature_column
    features = {
        "city": tf.constant([["Oslo", "Rome"], ["Rome", ""]]),
        "day": tf.constant([[1], [5]], tf.int64),
        "small": tf.constant([3, 4], tf.int32),
        "tag": tf.SparseTensor([[0, 0], [0, 1]], ["x", "y"], [2, 2]),
        "age": tf.constant([17.0, 70.0]),
    }
    age = fc.bucketized_column(fc.numeric_column("age"), [18, 65])
    city = fc.categorical_column_with_vocabulary_list("city", ["Rome", "Oslo"])
    inner = fc.crossed_column(["city", "day"], 1000)
    columns = [
        inner,
        fc.crossed_column(["tag", "city"], 100, hash_key=5),
        fc.crossed_column([inner, age], 300),
        fc.crossed_column([city, "small", age], 10**6),
    ]
    found = {}
    for i, column in enumerate(columns):
        cache = tf.feature_column.linear_model(features, [column])
        hashes = tf.get_default_graph().get_operations()
        crossed = [op for op in hashes if op.type == "SparseCross"][-1]
        found[f"{i}/indices"], found[f"{i}/values"], found[f"{i}/shape"] = crossed.outputs
        found[f"{i}/linear"] = cache
    filled_later = [v.name for v in tf.trainable_variables()]
    session.run(tf.tables_initializer())
    results = session.run({k: v for k, v in found.items() if not k.endswith("linear")})
    results["names"] = np.array(filled_later)
    return results


@golden(with_session=True)
def embeddings(tf: Any, session: Any) -> dict[str, Any]:
    fc = tf.feature_column
    features = {"a": tf.constant([[0, 3], [1, 1]]), "b": tf.constant([[2], [-1]])}
    a, b = (fc.categorical_column_with_identity(name, 4) for name in "ab")
    columns = [
        fc.embedding_column(a, 3, max_norm=0.5),
        fc.embedding_column(b, 2, trainable=False),
        *fc.shared_embedding_columns([a, b], 2, combiner="sum"),
    ]
    found = dense_and_linear(tf, session, features, columns)
    with tf.variable_scope("again"):
        fc.input_layer(features, columns, trainable=False, weight_collections=["mine"])
    with tf.variable_scope("parts", partitioner=tf.fixed_size_partitioner(3)):
        layer = fc.input_layer(features, columns[:2])
        linear = fc.linear_model(features, [a, b], units=3)
    filled(tf, session)
    found["parts/layer"], found["parts/linear"] = session.run([layer, linear])
    found.update(names(tf, "mine"))
    return found


@golden(with_session=True)
def gradients(tf: Any, session: Any) -> dict[str, Any]:
    fc = tf.feature_column
    features = {"a": tf.constant([[0, 3], [1, 1]]), "x": tf.constant([1.0, 2.0])}
    a = fc.categorical_column_with_identity("a", 5)
    layer = fc.input_layer(features, [fc.embedding_column(a, 3), fc.numeric_column("x")])
    linear = fc.linear_model(features, [a, fc.numeric_column("x")])
    loss = tf.reduce_sum(tf.square(layer)) + tf.reduce_sum(tf.square(linear - 1))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    filled(tf, session)
    session.run(train)
    return {v.name: session.run(v) for v in tf.trainable_variables()}


@golden(with_session=True)
def unknown_and_empty_batches(tf: Any, session: Any) -> dict[str, Any]:
    fc = tf.feature_column
    features = {
        "x": tf.placeholder(tf.float32, [None, 1]),
        "rank": tf.placeholder(tf.float32),
        "word": tf.placeholder(tf.string, [None]),
        "id": tf.placeholder(tf.int64, [None, None]),
    }
    word = fc.categorical_column_with_vocabulary_list("word", ["a", "b"])
    ids = fc.categorical_column_with_identity("id", 3)
    columns = [
        fc.numeric_column("x"),
        fc.numeric_column("rank"),
        fc.indicator_column(word),
        fc.embedding_column(ids, 2),
    ]
    layer = fc.input_layer(features, columns)
    linear = fc.linear_model(features, [*columns[:2], word, ids])
    filled(tf, session)
    fed = {
        "two": (np.ones([2, 1]), np.arange(2.0), ["b", ""], [[0, -1], [2, 1]]),
        "one": (np.ones([1, 1]), [[3.0]], ["a"], [[-1]]),
        "none": (np.ones([0, 1]), np.ones([0]), np.array([], object), np.ones([0, 2], np.int64)),
    }
    found = {}
    for name, values in fed.items():
        feeds = {features[key]: value for key, value in zip(features, values)}  # noqa: B905
        found[f"{name}/dense"] = session.run(layer, feeds)
        if name != "none":  # TensorFlow's reshape of no ids fails
            found[f"{name}/linear"] = session.run(linear, feeds)
    return found


@golden(with_session=True)
def sequences(tf: Any, session: Any) -> dict[str, Any]:
    fc, more = tf.feature_column, tf.contrib.feature_column
    indices = [[0, 0], [0, 1], [2, 0]]
    features = {
        "id": tf.SparseTensor(indices, np.array([2, 0, 1]), [4, 2]),
        "word": tf.SparseTensor(indices, ["a", "b", "c"], [4, 2]),
        "x": tf.SparseTensor(indices, np.array([1.0, 2.0, 3.0], np.float32), [4, 2]),
        "pairs": tf.SparseTensor(
            [[0, 0], [0, 1], [0, 2], [0, 3], [2, 0], [2, 1]],
            np.arange(6, dtype=np.float32),
            [4, 4],
        ),
    }
    ids = fc.sequence_categorical_column_with_identity("id", 3)
    words = fc.sequence_categorical_column_with_vocabulary_list("word", ["c", "a"])
    columns = [
        fc.embedding_column(ids, 2),
        fc.indicator_column(words),
        more.sequence_numeric_column("x", default_value=-1.0),
        more.sequence_numeric_column("pairs", shape=(2,)),
    ]
    layer, lengths = more.sequence_input_layer(features, columns)
    filled(tf, session)
    found = dict(session.run({"layer": layer, "lengths": lengths}))
    return {**found, **names(tf)}


@golden(with_session=True)
def specs(tf: Any, session: Any) -> dict[str, Any]:
    fc = tf.feature_column
    word = fc.categorical_column_with_hash_bucket("word", 5)
    age = fc.numeric_column("age", shape=(2,), default_value=3)
    columns = [
        age,
        fc.numeric_column("double", dtype=tf.float64),
        fc.indicator_column(word),
        fc.weighted_categorical_column(fc.categorical_column_with_identity("id", 3), "weight"),
        fc.crossed_column(["word", fc.bucketized_column(fc.numeric_column("y"), [1])], 10),
        fc.sequence_numeric_column("steps"),
    ]
    spec = fc.make_parse_example_spec(columns[:5])
    spec.update(columns[5].parse_example_spec)
    found = {f"spec/{key}": np.array(str(value)) for key, value in spec.items()}
    found["names"] = np.array([column.name for column in columns])
    return found


@golden(with_session=True)
def errors(tf: Any, session: Any) -> dict[str, Any]:
    fc = tf.feature_column
    x, word = fc.numeric_column("x"), fc.categorical_column_with_hash_bucket("word", 3)
    steps = fc.sequence_categorical_column_with_identity("id", 3)
    return messages(
        tf,
        shape=lambda: fc.numeric_column("x", shape=0),
        shape_type=lambda: fc.numeric_column("x", shape=1.5),
        dtype=lambda: fc.numeric_column("x", dtype=tf.string),
        default=lambda: fc.numeric_column("x", default_value="a"),
        default_shape=lambda: fc.numeric_column("x", shape=2, default_value=[1.0]),
        default_int=lambda: fc.numeric_column("x", default_value=1.5, dtype=tf.int32),
        normalizer=lambda: fc.numeric_column("x", normalizer_fn=3),
        key=lambda: fc.numeric_column(["x"]),
        source=lambda: fc.bucketized_column(word, [1]),
        deep=lambda: fc.bucketized_column(fc.numeric_column("x", shape=(1, 2)), [1]),
        no_boundaries=lambda: fc.bucketized_column(x, []),
        boundaries=lambda: fc.bucketized_column(x, [1, 1]),
        bucket=lambda: fc.categorical_column_with_hash_bucket("w", 0),
        bucket_none=lambda: fc.categorical_column_with_hash_bucket("w", None),
        hash_dtype=lambda: fc.categorical_column_with_hash_bucket("w", 3, tf.float32),
        no_file=lambda: fc.categorical_column_with_vocabulary_file("w", ""),
        empty_list=lambda: fc.categorical_column_with_vocabulary_list("w", []),
        twice=lambda: fc.categorical_column_with_vocabulary_list("w", ["a", "a"]),
        both=lambda: fc.categorical_column_with_vocabulary_list("w", ["a"], None, 0, 1),
        negative=lambda: fc.categorical_column_with_vocabulary_list("w", ["a"], None, -1, -2),
        list_dtype=lambda: fc.categorical_column_with_vocabulary_list("w", ["a"], tf.int64),
        list_float=lambda: fc.categorical_column_with_vocabulary_list("w", [1.5]),
        identity=lambda: fc.categorical_column_with_identity("w", 0),
        identity_default=lambda: fc.categorical_column_with_identity("w", 2, 2),
        dimension=lambda: fc.embedding_column(word, 0),
        half=lambda: fc.embedding_column(word, 1, ckpt_to_load_from="a"),
        initializer=lambda: fc.embedding_column(word, 1, initializer="a"),
        one_key=lambda: fc.crossed_column(["a"], 3),
        cross_size=lambda: fc.crossed_column(["a", "b"], 0),
        cross_hashed=lambda: fc.crossed_column(["a", word], 3),
        cross_numeric=lambda: fc.crossed_column(["a", x], 3),
        weight=lambda: fc.weighted_categorical_column(word, "a", dtype=tf.string),
        empty=lambda: fc.input_layer({"x": [1.0]}, []),
        dictionary=lambda: fc.input_layer({"x": [1.0]}, {"x": x}),
        scalar=lambda: fc.input_layer({"x": tf.constant(1.0)}, [x]),
        sparse=lambda: fc.input_layer({"x": tf.SparseTensor([[0, 0]], [1.0], [1, 1])}, [x]),
        steps=lambda: fc.input_layer({"id": [[1]]}, [fc.embedding_column(steps, 2)]),
        batches=lambda: fc.input_layer({"x": [1.0], "y": [1.0, 2.0]}, [x, fc.numeric_column("y")]),
        kind=lambda: fc.linear_model({"word": [1]}, [word]),
    )


@golden(with_session=True)
def layers(tf: Any, session: Any) -> dict[str, Any]:
    fc = tf.feature_column
    features = {"a": tf.constant([[0, 3], [1, 1]]), "x": tf.constant([1.0, 2.0])}
    a = fc.categorical_column_with_identity("a", 4)
    columns = [fc.numeric_column("x"), fc.embedding_column(a, 3), fc.indicator_column(a)]
    layer = getattr(fc, "DenseFeatures", None) or tf.keras.layers.DenseFeatures
    found = {}
    for i in range(2):
        found[str(i)] = layer(columns)(features)
    with tf.variable_scope("scope", partitioner=tf.fixed_size_partitioner(2)):
        found["scope"] = layer(columns, name="named", trainable=False)(features)
    filled(tf, session)
    return {**session.run(found), **names(tf)}

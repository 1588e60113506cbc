"""`tf.feature_column`: numbers, variables' names, parsing and messages, against TensorFlow 1.15."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldens import golden

Outputs = Any


def text(values: Any) -> np.ndarray:
    return np.array([str(v) for v in values] or [""])


def small(tf: Any, seed: int) -> Any:
    return tf.random_normal_initializer(stddev=0.5, seed=seed)


def result(tf: Any, y: Any) -> Outputs:
    """The output, variables by name, and what the collections hold."""
    outputs: Outputs = {"y": y}
    outputs.update({v.op.name: v for v in tf.global_variables()})
    for key in ("trainable_variables", "model_variables"):
        outputs[key] = tf.constant(text(v.name for v in tf.get_collection(key)))
    return outputs


def fetched(tf: Any, session: Any, outputs: Any) -> Outputs:
    """The values, after variables and tables were initialised."""
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    found = {}
    for name, output in outputs.items():
        fetch, feed = output if isinstance(output, tuple) else (output, None)
        found[name] = session.run(fetch, feed_dict=feed)
    return found


def features(tf: Any) -> Any:
    sparse = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], ["York", "Bath", "Rome"], [3, 2])
    weights = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [0.5, 2.0, 3.0], [3, 2])
    return {
        "price": tf.constant([[1.0], [-2.0], [30.5]]),
        "area": tf.constant([4, 5, 60], tf.int64),
        "size": tf.constant([[1.0, 2.0], [3.0, 4.0], [50.0, 6.0]]),
        "city": sparse,
        "weight": weights,
        "pet": tf.constant([["cat", ""], ["dog", "cow"], ["", ""]]),
        "video": tf.constant([[3, 1], [-1, -1], [0, 9]]),
    }


def columns(tf: Any) -> Any:
    fc = tf.feature_column
    price = fc.numeric_column("price", normalizer_fn=lambda x: x * 10.0)
    cities = ("Bath", "York", "Hull")
    city = fc.categorical_column_with_vocabulary_list("city", cities)
    pet = fc.categorical_column_with_vocabulary_list("pet", ["cat", "dog"], num_oov_buckets=2)
    video = fc.categorical_column_with_identity("video", 6, default_value=5)
    size = fc.bucketized_column(fc.numeric_column("size", shape=[2]), [2.0, 4.0, 10.0])
    return {
        "price": price,
        "area": fc.numeric_column("area"),
        "size": size,
        "city": city,
        "pet": pet,
        "video": video,
        "hashed": fc.categorical_column_with_hash_bucket("pet", 7),
        "weighted": fc.weighted_categorical_column(city, "weight"),
        "cross": fc.crossed_column(["city", "pet"], 20),
        "cross3": fc.crossed_column(["city", size, video], 50, hash_key=5),
    }


@golden(with_session=True)
def dense(tf: Any, session: Any) -> Outputs:
    c = columns(tf)
    fc = tf.feature_column
    chosen = [c["price"], c["area"], c["size"], fc.indicator_column(c["city"])]
    chosen += [fc.indicator_column(c["pet"]), fc.indicator_column(c["cross"])]
    given: Any = {}
    y = fc.input_layer(features(tf), chosen, cols_to_output_tensors=given)
    outputs = result(tf, y)
    for column, tensor in given.items():
        outputs["of_" + column.name] = tensor
    return fetched(tf, session, outputs)


@golden(with_session=True)
def indicators(tf: Any, session: Any) -> Outputs:
    c = columns(tf)
    fc = tf.feature_column
    return fetched(
        tf,
        session,
        {
            name: fc.input_layer(features(tf), [fc.indicator_column(c[name])])
            for name in ("city", "pet", "video", "hashed", "weighted", "cross", "cross3", "size")
        },
    )


@golden(with_session=True)
def embeddings(tf: Any, session: Any) -> Outputs:
    c = columns(tf)
    fc = tf.feature_column
    chosen = [
        fc.embedding_column(c["city"], 3, initializer=small(tf, 1)),
        fc.embedding_column(c["pet"], 2, combiner="sum", initializer=small(tf, 2)),
        fc.embedding_column(c["video"], 4, combiner="sqrtn", initializer=small(tf, 3)),
        fc.embedding_column(c["weighted"], 2, initializer=small(tf, 4), max_norm=0.3),
        fc.embedding_column(c["cross"], 2, initializer=small(tf, 5), trainable=False),
        c["price"],
    ]
    return fetched(tf, session, result(tf, fc.input_layer(features(tf), chosen)))


@golden(with_session=True)
def default_embedding(tf: Any, session: Any) -> Outputs:
    tf.set_random_seed(3)
    video = tf.feature_column.categorical_column_with_identity("video", 10)
    column = tf.feature_column.embedding_column(video, 16)
    y = tf.feature_column.input_layer({"video": tf.constant([[1], [2]])}, [column])
    return fetched(
        tf,
        session,
        {"shape": tf.shape(y), "names": tf.constant(text(v.name for v in tf.global_variables()))},
    )


@golden(with_session=True)
def shared(tf: Any, session: Any) -> Outputs:
    fc = tf.feature_column
    seen = fc.categorical_column_with_identity("seen", 5)
    liked = fc.categorical_column_with_identity("liked", 5)
    both = fc.shared_embedding_columns([seen, liked], 3, initializer=small(tf, 1))
    given = {"seen": tf.constant([[1, 2], [0, -1]]), "liked": tf.constant([[4], [3]])}
    return fetched(tf, session, result(tf, fc.input_layer(given, both)))


@golden(with_session=True)
def twice(tf: Any, session: Any) -> Outputs:
    """Two layers in one graph, and one under a scope, that reuses."""
    video = columns(tf)["video"]
    column = tf.feature_column.embedding_column(video, 2, initializer=small(tf, 1))
    first = tf.feature_column.input_layer(features(tf), [column])
    second = tf.feature_column.input_layer(features(tf), [column])
    with tf.variable_scope("net"):
        third = tf.feature_column.input_layer(features(tf), [column], trainable=False)
    return fetched(tf, session, result(tf, tf.concat([first, second, third], 1)))


@golden(with_session=True)
def linear(tf: Any, session: Any) -> Outputs:
    c = columns(tf)
    chosen = [c[n] for n in ("price", "size", "city", "hashed", "video", "cross")]
    made: Any = {}
    y = tf.feature_column.linear_model(features(tf), chosen, units=2, cols_to_vars=made)
    steps = tf.train.GradientDescentOptimizer(0.05)
    loss = tf.reduce_sum(tf.square(y - [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    train = steps.minimize(loss)

    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    session.run(train)
    outputs = {v.op.name: session.run(v) for v in tf.global_variables()}
    outputs["y"] = session.run(y)
    names = [f"{getattr(k, 'name', k)}: {[v.name for v in made[k]]}" for k in made]
    outputs["cols_to_vars"] = np.array(sorted(names))
    return outputs


@golden(with_session=True)
def linear_combiners(tf: Any, session: Any) -> Outputs:
    c = columns(tf)
    outputs = {}
    for combiner in ("sum", "mean", "sqrtn"):
        with tf.variable_scope(combiner, initializer=tf.ones_initializer()):
            outputs[combiner] = tf.feature_column.linear_model(
                features(tf), [c["weighted"], c["video"]], sparse_combiner=combiner
            )
    return fetched(tf, session, outputs)


@golden(with_session=True)
def unknown_sizes(tf: Any, session: Any) -> Outputs:
    price = tf.placeholder(tf.float32, [None, 1])
    pet = tf.placeholder(tf.string, [None, None])
    city = tf.sparse_placeholder(tf.string)
    c = columns(tf)
    fc = tf.feature_column
    chosen = [fc.indicator_column(c["pet"]), fc.indicator_column(c["city"]), c["price"]]
    y = fc.input_layer({"price": price, "pet": pet, "city": city}, chosen)
    z = fc.linear_model(
        {"price": price, "pet": pet, "city": city}, [c["pet"], c["city"], c["price"]]
    )
    some = {
        price: [[1.0], [np.nan]],
        pet: [["dog", "cat"], ["cat", ""]],
        city: (np.array([[1, 0]]), np.array(["Hull"], object), np.array([2, 1])),
    }
    none = {
        price: np.zeros((0, 1)),
        pet: np.zeros((0, 2), object),
        city: (np.zeros((0, 2), np.int64), np.zeros(0, object), np.array([0, 1])),
    }
    return fetched(
        tf,
        session,
        {"some": (y, some), "none": (y, none), "linear": (z, some)},
    )


@golden(with_session=True)
def parsing(tf: Any, session: Any) -> Outputs:
    c = columns(tf)
    fc = tf.feature_column
    spec = fc.make_parse_example_spec(
        [c[n] for n in ("price", "size", "city", "video", "weighted", "cross3")]
    )
    shown = sorted(f"{key} {type(spec[key]).__name__}" for key in spec)
    example = tf.train.Example()
    example.features.feature["price"].float_list.value.append(3.0)
    example.features.feature["size"].float_list.value.extend([1.0, 11.0])
    example.features.feature["city"].bytes_list.value.append(b"York")
    example.features.feature["weight"].float_list.value.append(2.5)
    found = tf.parse_example([example.SerializeToString()], spec)
    y = fc.input_layer(found, [c["price"], c["size"], fc.indicator_column(c["weighted"])])
    return fetched(tf, session, {"kinds": tf.constant(text(shown)), "y": y})


@golden
def messages(tf: Any) -> Outputs:
    """The classes of errors."""
    fc = tf.feature_column
    city = fc.categorical_column_with_vocabulary_list("city", ["a", "b"])
    price = fc.numeric_column("price")
    wrong = {
        "missing": lambda: fc.input_layer({"cost": [[1.0]]}, [price]),
        "categories": lambda: fc.input_layer({"city": [["a"]]}, [city]),
        "no_column": lambda: fc.input_layer({"price": [[1.0]]}, ["price"]),
        "twice": lambda: fc.input_layer({"price": [[1.0]]}, [price, price]),
        "scalar": lambda: fc.input_layer({"price": 1.0}, [price]),
        "dimension": lambda: fc.embedding_column(city, 0),
        "initializer": lambda: fc.embedding_column(city, 2, initializer="ones"),
        "boundaries": lambda: fc.bucketized_column(price, [2, 1]),
        "shape": lambda: fc.numeric_column("x", shape=[0]),
        "dtype": lambda: fc.numeric_column("x", dtype=tf.string),
        "default": lambda: fc.numeric_column("x", default_value="a"),
        "buckets": lambda: fc.categorical_column_with_hash_bucket("x", 0),
        "duplicates": lambda: fc.categorical_column_with_vocabulary_list("x", ["a", "a"]),
        "range": lambda: fc.categorical_column_with_identity("x", 3, default_value=3),
        "one_key": lambda: fc.crossed_column(["x"], 3),
        "hash_cross": lambda: fc.crossed_column(
            ["x", fc.categorical_column_with_hash_bucket("y", 3)], 3
        ),
        "integers": lambda: fc.input_layer({"city": [[1]]}, [fc.indicator_column(city)]),
        "batches": lambda: fc.input_layer(
            {"price": [[1.0]], "x": [[1.0], [2.0]]}, [price, fc.numeric_column("x")]
        ),
    }
    found = []
    for name in sorted(wrong):
        try:
            wrong[name]()
        except (ValueError, TypeError) as error:
            found.append(name + " " + type(error).__name__)
    return {"errors": tf.constant(text(found))}

"""The first feature columns, of `tf.contrib.layers` (TensorFlow 1.15)."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden
from .feature_column_inputs import filled, messages, names


def features(tf: Any) -> dict[str, Any]:
    return {
        "age": tf.constant([[17.0], [18.0], [70.0]]),
        "pair": tf.constant([[1.0, -1.0], [2.0, 12.0], [0.0, 5.0]]),
        "word": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], ["a", "b", "zebra"], [3, 2]),
        "text": tf.constant([["a", "c"], ["", "b"], ["b", "b"]]),
        "id": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], np.array([9, 1, 3]), [3, 2]),
        "weight": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [0.5, 2.0, 3.0], [3, 2]),
    }


def columns(tf: Any) -> dict[str, Any]:
    c = tf.contrib.layers
    age = c.real_valued_column("age")
    pair = c.real_valued_column("pair", dimension=2, normalizer=lambda x: x * 2.0)
    hashed = c.sparse_column_with_hash_bucket("word", 7)
    ids = c.sparse_column_with_integerized_feature("id", 4, combiner="mean")
    return {
        "age": age,
        "pair": pair,
        "ages": c.bucketized_column(age, [18.0, 65.0]),
        "pairs": c.bucketized_column(pair, [0.0, 0.0, 3.0]),
        "word": hashed,
        "text": c.sparse_column_with_keys("text", ["b", "a"]),
        "id": ids,
        "two": c.sparse_column_with_hash_bucket("word", 9, hash_keys=[[1, 2], [3, 4]]),
        "weighted": c.weighted_sparse_column(
            c.sparse_column_with_keys("word", ["a", "b"]), "weight"
        ),
    }


@golden(with_session=True)
def inputs(tf: Any, session: Any) -> dict[str, Any]:
    c, own = tf.contrib.layers, columns(tf)
    given: dict[Any, Any] = {}
    chosen = [
        own["age"],
        own["pair"],
        own["ages"],
        own["pairs"],
        c.one_hot_column(own["text"]),
        c.one_hot_column(own["weighted"]),
        c.embedding_column(own["word"], 2),
        c.embedding_column(own["weighted"], 3, combiner="sqrtn", max_norm=0.7),
        *c.shared_embedding_columns([own["id"], own["id"]][:1], 2),
    ]
    layer = c.input_from_feature_columns(features(tf), chosen, cols_to_outs=given)
    filled(tf, session)
    found = {column.name: part for column, part in given.items()}
    results = dict(session.run({"layer": layer, **found}))
    results["order"] = np.array([column.name for column in given])
    return {**results, **names(tf)}


@golden(with_session=True)
def shared(tf: Any, session: Any) -> dict[str, Any]:
    c = tf.contrib.layers
    words = [c.sparse_column_with_hash_bucket(name, 5) for name in ("word", "text")]
    chosen = c.shared_embedding_columns(words, 2)
    layer = c.input_from_feature_columns(features(tf), chosen, weight_collections=["mine"])
    filled(tf, session)
    return {"layer": session.run(layer), **names(tf, "mine")}


@golden(with_session=True)
def sums(tf: Any, session: Any) -> dict[str, Any]:
    c, own = tf.contrib.layers, columns(tf)
    total, by_column, bias = c.weighted_sum_from_feature_columns(
        features(tf), [*list(own.values())[:-2], own["weighted"]], num_outputs=2
    )
    sparse = [own["word"], own["text"], own["two"]]  # buckets are int32: no join there
    joint, _, joint_bias = c.joint_weighted_sum_from_feature_columns(features(tf), sparse, 3)
    filled(tf, session)
    found = dict(session.run({"sum": total, "joint": joint}))
    found["bias"] = np.array([bias.name, joint_bias.name])
    found["by_column"] = np.array(
        sorted(column.name + " " + by_column[column][0].name for column in by_column)
    )
    return {**found, **names(tf)}


@golden(with_session=True)
def crosses(tf: Any, session: Any) -> dict[str, Any]:
    c, own = tf.contrib.layers, columns(tf)
    pairs = c.crossed_column([own["word"], own["text"]], 50, hash_key=1234567)
    more = c.crossed_column([pairs, own["ages"], own["pairs"]], 1000, hash_key=0xDECAFCAFFE)
    found = c.transform_features(features(tf), [pairs, more])
    total, _, _ = c.weighted_sum_from_feature_columns(features(tf), [pairs, more], 1)
    filled(tf, session)
    results = {"sum": session.run(total)}
    for name, column in (("pairs", pairs), ("more", more)):
        value = session.run(found[column])
        results.update({f"{name}/{i}": np.asarray(part) for i, part in enumerate(value)})
    return {**results, **names(tf)}


@golden(with_session=True)
def first_crosses(tf: Any, session: Any) -> dict[str, Any]:
    """Without a key the hash is another one, of signed numbers."""
    c, own = tf.contrib.layers, columns(tf)
    pairs = c.crossed_column([own["word"], own["text"]], 50)
    more = c.crossed_column([pairs, own["ages"], own["id"]], 1_000_003)
    found = c.transform_features(features(tf), [pairs, more])
    total, _, _ = c.weighted_sum_from_feature_columns(features(tf), [pairs, more], 1)
    filled(tf, session)
    results = {"sum": session.run(total)}
    for name, column in (("pairs", pairs), ("more", more)):
        value = session.run(found[column])
        results.update({f"{name}/{i}": np.asarray(part) for i, part in enumerate(value)})
    return results


@golden(with_session=True)
def scattered(tf: Any, session: Any) -> dict[str, Any]:
    c = tf.contrib.layers
    key = c.SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY
    # Two with equal names would share a scope's base name: each has a feature of its own.
    mean = c.scattered_embedding_column("word", 17, 3, key)
    root = c.scattered_embedding_column("id", 100, 5, 1234, combiner="sqrtn")
    total = c.scattered_embedding_column("empty", 7, 2, key, combiner="sum")
    empty = tf.SparseTensor(np.zeros([0, 2], np.int64), np.zeros([0], np.str_), [3, 2])
    given = {**features(tf), "empty": empty}
    layer = c.input_from_feature_columns(given, [mean, root, total])
    core = tf.feature_column.input_layer(given, [mean])
    filled(tf, session)
    spec = c.create_feature_spec_for_parsing([mean])
    found = session.run({"layer": layer, "core": core})
    return {**found, "spec": np.array(str(spec["word"])), **names(tf)}


@golden(with_session=True)
def placeholders(tf: Any, session: Any) -> dict[str, Any]:
    made = tf.contrib.layers.make_place_holder_tensors_for_base_features(columns(tf).values())
    return {
        key: np.array([value.values.name, value.dtype.name])
        if isinstance(value, tf.SparseTensor)
        else np.array([value.name, str(value.shape.as_list()), value.dtype.name])
        for key, value in made.items()
    }


@golden(with_session=True)
def sequence_examples(tf: Any, session: Any) -> dict[str, Any]:
    c = tf.contrib.layers
    example = tf.train.SequenceExample()
    example.context.feature["age"].float_list.value.append(30.0)
    example.context.feature["word"].bytes_list.value.extend([b"a", b"zebra"])
    for step in range(3):
        lists = example.feature_lists.feature_list
        lists["heat"].feature.add().float_list.value.extend([step + 0.5, -step])
        lists["id"].feature.add().int64_list.value.extend(range(step))
    context, lists = c.parse_feature_columns_from_sequence_examples(
        tf.constant([example.SerializeToString()]),
        [c.real_valued_column("age"), c.sparse_column_with_hash_bucket("word", 5)],
        [
            c.real_valued_column("heat", 2),
            c.real_valued_column("missing", default_value=3.0),
            c.sparse_column_with_integerized_feature("id", 4),
        ],
    )
    found = {}
    for name, value in session.run({**context, **lists}).items():
        parts = value if isinstance(value, tuple) else [value]
        found.update({f"{name}/{i}": np.asarray(part) for i, part in enumerate(parts)})
    return found


@golden(with_session=True)
def sequences(tf: Any, session: Any) -> dict[str, Any]:
    c = tf.contrib.layers
    ids = tf.SparseTensor([[0, 0, 0], [1, 2, 1]], np.array([1, 3], np.int64), [2, 3, 2])
    given = {"heat": tf.reshape(tf.range(6.0), [2, 3]), "id": ids}
    id_column = c.sparse_column_with_integerized_feature("id", 4)
    layer = c.sequence_input_from_feature_columns(
        given,
        [
            c.real_valued_column("heat"),
            c.one_hot_column(id_column),
            c.embedding_column(id_column, 2),
        ],
    )
    filled(tf, session)
    return {"layer": session.run(layer), **names(tf)}


@golden(with_session=True)
def core_models(tf: Any, session: Any) -> dict[str, Any]:
    """The functions of `tf.feature_column` take these columns, too."""
    c, own = tf.contrib.layers, columns(tf)
    dense = [own["age"], c.one_hot_column(own["text"]), c.embedding_column(own["word"], 2)]
    layer = tf.feature_column.input_layer(features(tf), dense)
    linear = tf.feature_column.linear_model(features(tf), [own["age"], own["word"], own["text"]])
    filled(tf, session)
    return {**session.run({"layer": layer, "linear": linear}), **names(tf)}


@golden(with_session=True)
def specs(tf: Any, session: Any) -> dict[str, Any]:
    c, own = tf.contrib.layers, columns(tf)
    full = c.real_valued_column("full", 2, default_value=[1, 2], dtype=tf.float64)
    spec = c.create_feature_spec_for_parsing([*own.values(), full][2:])
    found = {f"spec/{key}": np.array(str(value)) for key, value in spec.items()}
    inferred = c.infer_real_valued_columns({"x": tf.zeros([2, 3, 4])})
    found["inferred"] = np.array([inferred[0].dimension])
    return found


@golden(with_session=True)
def errors(tf: Any, session: Any) -> dict[str, Any]:
    c = tf.contrib.layers
    age = c.real_valued_column("age")
    word = c.sparse_column_with_hash_bucket("word", 7)
    return messages(
        tf,
        dimension=lambda: c.real_valued_column("x", 0),
        dimension_type=lambda: c.real_valued_column("x", 1.5),
        source=lambda: c.bucketized_column(word, [1])[:60],
        sorted=lambda: c.bucketized_column(age, [2, 1]),
        no_boundaries=lambda: c.bucketized_column(age, []),
        size=lambda: c.sparse_column_with_vocabulary_file("x", "y"),
        keys=lambda: c.sparse_column_with_hash_bucket("x", 3, hash_keys=[1]),
        no_keys=lambda: c.sparse_column_with_hash_bucket("x", 3, hash_keys=[]),
        shared=lambda: c.shared_embedding_columns([], 2),
        half=lambda: c.embedding_column(word, 2, ckpt_to_load_from="a"),
        twice=lambda: c.check_feature_columns([age, age]),
        dictionary=lambda: c.check_feature_columns({}),
        cross_size=lambda: c.crossed_column([word, word], 1),
        scattered_size=lambda: c.scattered_embedding_column("x", 0, 2, 1),
        scattered_combiner=lambda: c.scattered_embedding_column("x", 5, 2, 1, combiner="max"),
    )

"""Configurations of feature columns: those of TensorFlow 1.15.5, and back."""

from __future__ import annotations

import importlib.util
import json

import pytest

import headrace as tf
from headrace.feature_column.serialization import (
    deserialize_feature_column,
    deserialize_feature_columns,
    serialize_feature_column,
    serialize_feature_columns,
)

fc = tf.feature_column


def half(x):
    return x / 2.0


def _columns():
    price = fc.numeric_column("price", shape=[2], default_value=[1.0, 2.0])
    day = fc.categorical_column_with_identity("day", 7, default_value=0)
    word = fc.categorical_column_with_vocabulary_list("c", ["a", "b"], num_oov_buckets=2)
    hashed = fc.categorical_column_with_hash_bucket("h", 10)
    ages = fc.bucketized_column(fc.numeric_column("age"), [1, 2.5])
    return [
        price,
        day,
        word,
        hashed,
        ages,
        fc.crossed_column([word, "z", ages], 50),
        fc.weighted_categorical_column(hashed, "w"),
        fc.embedding_column(hashed, 3),
        fc.indicator_column(day),
        fc.sequence_numeric_column("s"),
        fc.sequence_categorical_column_with_identity("q", 4),
    ]


#: What TensorFlow 1.15.5's serialize_feature_column gives for these, as JSON.
_AGE = {
    "class_name": "NumericColumn",
    "config": {
        "key": "age",
        "shape": [1],
        "default_value": None,
        "dtype": "float32",
        "normalizer_fn": None,
    },
}
_WORD = {
    "class_name": "VocabularyListCategoricalColumn",
    "config": {
        "key": "c",
        "vocabulary_list": ["a", "b"],
        "dtype": "string",
        "default_value": -1,
        "num_oov_buckets": 2,
    },
}
_AGES = {
    "class_name": "BucketizedColumn",
    "config": {"source_column": _AGE, "boundaries": [1, 2.5]},
}
_HASHED = {
    "class_name": "HashedCategoricalColumn",
    "config": {"key": "h", "hash_bucket_size": 10, "dtype": "string"},
}
_DAY = {
    "class_name": "IdentityCategoricalColumn",
    "config": {"key": "day", "number_buckets": 7, "default_value": 0},
}
_OF_TENSORFLOW = [
    {
        "class_name": "NumericColumn",
        "config": {
            "key": "price",
            "shape": [2],
            "default_value": [1.0, 2.0],
            "dtype": "float32",
            "normalizer_fn": None,
        },
    },
    _DAY,
    _WORD,
    _HASHED,
    _AGES,
    {
        "class_name": "CrossedColumn",
        "config": {"keys": [_WORD, "z", _AGES], "hash_bucket_size": 50, "hash_key": None},
    },
    {
        "class_name": "WeightedCategoricalColumn",
        "config": {"categorical_column": _HASHED, "weight_feature_key": "w", "dtype": "float32"},
    },
    {
        "class_name": "EmbeddingColumn",
        "config": {
            "categorical_column": _HASHED,
            "dimension": 3,
            "combiner": "mean",
            "initializer": {
                "class_name": "TruncatedNormal",
                "config": {
                    "mean": 0.0,
                    "stddev": 0.5773502691896258,
                    "seed": None,
                    "dtype": "float32",
                },
            },
            "ckpt_to_load_from": None,
            "tensor_name_in_ckpt": None,
            "max_norm": None,
            "trainable": True,
        },
    },
    {"class_name": "IndicatorColumn", "config": {"categorical_column": _DAY}},
    {
        "class_name": "SequenceNumericColumn",
        "config": {
            "key": "s",
            "shape": [1],
            "default_value": 0.0,
            "dtype": "float32",
            "normalizer_fn": None,
        },
    },
    {
        "class_name": "SequenceCategoricalColumn",
        "config": {
            "categorical_column": {
                "class_name": "IdentityCategoricalColumn",
                "config": {"key": "q", "number_buckets": 4, "default_value": None},
            }
        },
    },
]


def test_they_are_those_of_tensorflow():
    found = json.loads(json.dumps(serialize_feature_columns(_columns())))
    assert found == _OF_TENSORFLOW


@pytest.mark.parametrize("number", range(len(_OF_TENSORFLOW)))
def test_they_make_equal_columns(number):
    """Also after JSON, in which tuples are lists."""
    column = _columns()[number]
    again = type(column).from_config(column.get_config())
    read = deserialize_feature_column(json.loads(json.dumps(serialize_feature_column(column))))
    for made in (again, read):
        assert type(made) is type(column)
        assert made.get_config() == column.get_config()
        assert made.name == column.name
    if not isinstance(column, type(fc.embedding_column(_columns()[1], 2))):
        assert again == read == column  # initialisers are compared by identity


def test_functions_of_the_program():
    column = fc.numeric_column("x", normalizer_fn=half)
    config = column.get_config()
    assert config["normalizer_fn"] == "half"
    assert type(column).from_config(config, {"half": half}) == column
    with pytest.raises(ValueError, match="Unknown function or class 'half': give it in custom_obj"):
        type(column).from_config(config)


def test_equal_columns_become_one():
    day = fc.categorical_column_with_identity("day", 7)
    configs = serialize_feature_columns([fc.indicator_column(day), fc.embedding_column(day, 2)])
    first, second = deserialize_feature_columns(configs)
    assert first.categorical_column is second.categorical_column


def test_what_is_no_configuration():
    with pytest.raises(ValueError, match="Instance: 3 is not a FeatureColumn"):
        serialize_feature_column(3)
    with pytest.raises(ValueError, match=r"Improper config format: .'class_name': 'NumericColumn'"):
        deserialize_feature_column({"class_name": "NumericColumn"})
    with pytest.raises(ValueError, match=r"Unknown feature column: NumericColum. Did you mean"):
        deserialize_feature_column({"class_name": "NumericColum", "config": {}})
    with pytest.raises(ValueError, match=r"has the fields \['key', .*given: \['ky'\]"):
        deserialize_feature_column({"class_name": "NumericColumn", "config": {"ky": 1}})
    day = fc.categorical_column_with_identity("day", 7)
    for make in (fc.shared_embeddings, fc.shared_embedding_columns):
        with pytest.raises(NotImplementedError, match="has no configuration: make column day"):
            make([day], 2)[0].get_config()


@pytest.mark.parametrize("make", [fc.DenseFeatures, fc.LinearModel])
def test_layers(make):
    with tf.Graph().as_default():
        layer = make(_columns()[:1] + _columns()[7:8], name="mine")
        config = json.loads(json.dumps(layer.get_config()))
        assert config["name"] == "mine"
        again = make.from_config(config)
        assert again.get_config() == layer.get_config()
        features = {"price": tf.zeros([4, 2]), "h": tf.constant([["a"]] * 4)}
        if make is fc.DenseFeatures:
            assert again(features).shape.as_list() == [4, 5]


@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="keras is not installed")
def test_layers_are_in_keras_too():
    assert tf.keras.layers.DenseFeatures is fc.DenseFeatures
    assert tf.keras.experimental.SequenceFeatures is fc.SequenceFeatures
    assert "DenseFeatures" in dir(tf.keras.layers)
    with tf.Graph().as_default():
        numbers = tf.keras.layers.DenseFeatures(_columns()[:1])({"price": tf.zeros([4, 2])})
        assert tf.keras.layers.Dense(3)(numbers).shape.as_list() == [4, 3]
        with pytest.raises(ValueError, match=r"keras.Layer.* can be added to a Sequential"):
            tf.keras.Sequential([tf.keras.layers.DenseFeatures(_columns()[:1])])

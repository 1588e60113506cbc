"""Example messages for tests of parsing, and running what was parsed."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as tf

Features = dict[str, Any]


def ints(*values: int) -> Any:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def floats(*values: float) -> Any:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def strings(*values: bytes) -> Any:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def example(**features: Any) -> bytes:
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def sequence(context: Features | None = None, **lists: list[Any]) -> bytes:
    named = {k: tf.train.FeatureList(feature=v) for k, v in lists.items()}
    return tf.train.SequenceExample(
        context=tf.train.Features(feature=context or {}),
        feature_lists=tf.train.FeatureLists(feature_list=named),
    ).SerializeToString()


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feed)


def same(sparse: Any, indices: Any, values: Any, shape: Any) -> None:
    np.testing.assert_array_equal(sparse.indices, indices)
    assert sparse.values.tolist() == values
    assert sparse.dense_shape.tolist() == shape

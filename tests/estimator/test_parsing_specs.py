"""What premade estimators read from examples."""

from __future__ import annotations

import pytest

import headrace as tf

X = tf.feature_column.numeric_column("x")
Y = tf.FixedLenFeature((1,), tf.int64)


def test_a_classifier_reads_labels_and_weights():
    spec = tf.estimator.classifier_parse_example_spec([X], "y", tf.string, "no", weight_column="w")
    assert spec["y"] == tf.FixedLenFeature((1,), tf.string, "no")
    assert spec["w"] == tf.FixedLenFeature((1,), tf.float32)
    weight = tf.feature_column.numeric_column("w", dtype=tf.int32, default_value=1)
    spec = tf.estimator.classifier_parse_example_spec([X], "y", weight_column=weight)
    assert spec == {
        "x": tf.FixedLenFeature((1,), tf.float32),
        "y": Y,
        "w": tf.FixedLenFeature((1,), tf.int32, (1,)),
    }


def test_a_regressor_reads_several_numbers():
    spec = tf.estimator.regressor_parse_example_spec([X], "y", label_dimension=3)
    assert spec["y"] == tf.FixedLenFeature((3,), tf.float32)


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        (("x",), ValueError, r"label should not be used as feature. label_key: x"),
        (("y", tf.int64, None, "x"), ValueError, "weight_column should not be used as feature"),
        (("y", tf.int64, None, "y"), ValueError, "weight_column should not be used as feature or"),
        (("y", tf.int64, None, 3), TypeError, "should be the name of a feature or a tf.feature_c"),
    ],
)
def test_what_cannot_be_read(given, kind, told):
    with pytest.raises(kind, match=told):
        tf.estimator.classifier_parse_example_spec([X], *given)

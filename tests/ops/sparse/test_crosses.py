"""Crosses of features by the ops of ``tf.contrib.layers``, beside those of ``tf.sparse``."""

import numpy as np
import pytest

import headrace as tf
from headrace.ops.core.build import raw

KEY = 0xDECAFCAFFE


def crossed(op, **given):
    indices, values, shape = op(
        indices=[],
        values=[],
        shapes=[],
        **given,
        hashed_output=True,
        num_buckets=1000,
        out_type=tf.int64,
        internal_type=tf.string,
    )
    with tf.Session() as session:
        return [x.tolist() for x in session.run([indices, values, shape])]


@pytest.mark.parametrize("key", [KEY, 1])
def test_the_second_op_of_contrib_crosses_as_sparse_cross_does(key):
    features = [np.array([["a", "b"], ["c", "d"]]), np.array([["x"], ["y"]])]
    ours = crossed(raw.SparseFeatureCrossV2, dense=features, hash_key=key)
    assert ours == crossed(raw.SparseCross, dense_inputs=features, hash_key=key)
    assert ours[0] == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert ours[2] == [2, 2]
    assert all(0 <= value < 1000 for value in ours[1])


def test_another_key_gives_other_hashes():
    features = [np.array([["a"], ["b"], ["c"]])]
    one, two = (
        crossed(raw.SparseFeatureCrossV2, dense=features, hash_key=key)[1] for key in (KEY, 1)
    )
    assert one != two

"""Slots of variables in parts restore into other parts, however the scope has cut their names."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

SCOPES = ["", "a", "dnn", "linear", "my_model", "a_longer_scope"]


def _model(scope, parts, size=24):
    partitioner = tf.fixed_size_partitioner(parts) if parts else None
    with tf.variable_scope(scope, partitioner=partitioner):
        w = tf.get_variable("w", [size, 2], initializer=tf.ones_initializer())
        rows = tf.cast(tf.range(size), tf.float32)
        loss = tf.reduce_sum(tf.expand_dims(rows, 1) * tf.convert_to_tensor(w))
        return tf.train.AdamOptimizer(0.1).minimize(loss)


def _values(session):
    """Of all variables, the parts put together."""
    found = {}
    for variable in sorted(tf.global_variables(), key=lambda v: v.name):
        info = variable._save_slice_info
        if info is not None:
            slot = variable.op.name.rpartition("/")[2]
            found.setdefault(slot, []).append((info.var_offset[0], session.run(variable)))
    return {
        key: np.concatenate([value for _, value in sorted(parts, key=lambda p: p[0])])
        for key, parts in found.items()
        if key.startswith("Adam")
    }


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (1, 2), (2, 1), (12, 5)])
def test_other_parts(tmp_path, scope, before, after):
    with tf.Graph().as_default(), tf.Session() as session:
        train = _model(scope, before)
        session.run(tf.global_variables_initializer())
        session.run(train)
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
        wanted = _values(session)
    with tf.Graph().as_default(), tf.Session() as session:
        train = _model(scope, after)
        tf.train.Saver().restore(session, path)
        found = _values(session)
        session.run(train)
    assert sorted(wanted) == sorted(found) == ["Adam", "Adam_1"]
    for key, value in wanted.items():
        assert (value != 0).any()
        np.testing.assert_array_equal(value, found[key])


def test_what_is_no_slot_of_a_part_is_missing_as_before(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        _model("dnn", 2)
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    reader = tf.train.load_checkpoint(path)
    assert reader.has_tensor("dnn/w/t_1/Adam")
    assert not reader.has_tensor("dnn/w/t_2/Adam")
    with pytest.raises(tf.errors.NotFoundError, match="Key dnn/w/t_2/Adam not found"):
        reader.get_tensor("dnn/w/t_2/Adam")
    with tf.Graph().as_default(), tf.Session() as session:
        _model("dnn", 2, size=25)
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not match the shape stored"):
            tf.train.Saver().restore(session, path)

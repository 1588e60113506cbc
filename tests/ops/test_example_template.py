"""Batches of Examples of one form give what the messages give one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace as tf
from headrace.ops.parsing.example_template import Forms, template

SLOTS = {b"label": 0, b"image": 1, b"weights": 2}
KINDS = [3, 1, 2]
FEATURES = {
    "label": tf.FixedLenFeature([], tf.int64, -1),
    "image": tf.FixedLenFeature([], tf.string, ""),
    "weights": tf.FixedLenFeature([2], tf.float32, [0.0, 0.0]),
    "tags": tf.VarLenFeature(tf.int64),
}


def _message(label=None, image=None, weights=None, tags=None, other=None, kind=None):
    features = {}
    if label is not None:
        features["label"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
    if image is not None:
        features["image"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[image]))
    if weights is not None:
        features["weights"] = tf.train.Feature(float_list=tf.train.FloatList(value=weights))
    if tags is not None:
        features["tags"] = tf.train.Feature(int64_list=tf.train.Int64List(value=tags))
    if other is not None:
        features["other"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[other]))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(
        deterministic=True
    )


def _dense(found, i):
    return found[i].values.tolist(), found[i].counts.tolist()


def test_messages_of_one_form_are_read_at_once():
    messages = [_message(i, b"%03d" % i, [i, -i], other=b"%d" % (i % 7)) for i in range(100)]
    found = Forms(SLOTS, KINDS).read(messages)
    assert found is not None
    assert _dense(found, 0) == (list(range(100)), [1] * 100)
    assert _dense(found, 1)[0] == [b"%03d" % i for i in range(100)]
    assert _dense(found, 2)[0] == [v for i in range(100) for v in (i, -i)]


def test_messages_of_several_lengths_keep_their_order():
    labels = [i * 37 % 400 for i in range(64)]  # varints of one byte and of two
    messages = [_message(label, b"abc", [1, label]) for label in labels]
    assert len(set(map(len, messages))) == 2
    found = Forms(SLOTS, KINDS).read(messages)
    assert found is not None
    assert _dense(found, 0)[0] == labels
    assert found[2].values[1::2].tolist() == labels


@pytest.mark.parametrize(
    "odd",
    [
        _message(1, b"abc"),
        _message(1, b"abc", [1, 2], other=b"x")[:-3],
        b"",
        b"\xff" * 40,
        _message(1, b"abcd", [1]),
    ],
    ids=["missing", "cut off", "empty", "no message", "another number of values"],
)
def test_what_has_another_form_is_left_to_the_parser_of_each(odd):
    messages = [_message(1, b"abc", [1, 2])] * 9
    assert template(odd, SLOTS, KINDS) is None or Forms(SLOTS, KINDS).read([*messages, odd]) is None
    assert Forms(SLOTS, KINDS).read([*messages, odd]) is None
    assert Forms(SLOTS, KINDS).read([odd, *messages]) is None


MESSAGES = st.builds(
    _message,
    label=st.sampled_from([0, 5, 127, 128, -1, 2**62, None]),
    image=st.sampled_from([b"", b"abc", b"x" * 200, None]),
    weights=st.sampled_from([[1.5, float("inf")], [0.0, -0.0], None]),
    tags=st.sampled_from([[1], [2], [200], [1, 2], [], None]),
    other=st.sampled_from([b"1", b"2", None]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(MESSAGES, min_size=1, max_size=3), st.lists(st.integers(0, 2), max_size=60))
def test_any_batch_gives_what_its_messages_give(kinds, chosen):
    messages = [kinds[i % len(kinds)] for i in chosen]
    with tf.Graph().as_default(), tf.Session() as session:
        given_messages = tf.placeholder(tf.string, [None])
        single = tf.placeholder(tf.string, [])
        whole = session.run(tf.parse_example(given_messages, FEATURES), {given_messages: messages})
        parse = tf.parse_single_example(single, FEATURES)
        each = [session.run(parse, {single: m}) for m in messages]
    for name in ("label", "image", "weights"):
        expected = [np.asarray(e[name]).tolist() for e in each]
        assert whole[name].tolist() == expected
    assert whole["tags"].values.tolist() == [v for e in each for v in e["tags"].values.tolist()]


def test_one_message_gives_arrays_in_the_first_run_too():
    with tf.Graph().as_default(), tf.Session() as session:
        dataset = tf.data.Dataset.from_tensor_slices([_message(1, b"a", [1, 2])] * 4)
        parsed = dataset.map(lambda m: tf.parse_single_example(m, {"image": FEATURES["image"]}))
        following = tf.data.make_one_shot_iterator(parsed.batch(4)).get_next()
        assert session.run(following)["image"].tolist() == [b"a"] * 4

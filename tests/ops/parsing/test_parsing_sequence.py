"""Parsing of SequenceExample messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from example_messages import ints, run, same, sequence, strings

import headrace as tf
from headrace.ops.core.build import raw


@pytest.fixture(autouse=True)
def fresh_graph() -> Any:
    with tf.Graph().as_default():
        yield


ONE = sequence(
    {"id": ints(7), "tags": strings(b"p", b"q")},
    t=[ints(1, 2), ints(3, 4), ints(5, 6)],
    w=[strings(b"a"), strings(), strings(b"c", b"d")],
)
TWO = sequence({"id": ints(8)}, t=[ints(9, 9)], w=[strings(b"z")])
CONTEXT = {"id": tf.FixedLenFeature([], tf.int64), "tags": tf.VarLenFeature(tf.string)}
LISTS = {"t": tf.FixedLenSequenceFeature([2], tf.int64), "w": tf.VarLenFeature(tf.string)}


def test_a_single_sequence() -> None:
    context, lists = tf.parse_single_sequence_example(ONE, CONTEXT, LISTS)
    assert lists["t"].shape.as_list() == [None, 2]
    context, lists = run((context, lists))
    assert context["id"] == 7
    same(context["tags"], [[0], [1]], [b"p", b"q"], [2])
    assert lists["t"].tolist() == [[1, 2], [3, 4], [5, 6]]
    same(lists["w"], [[0, 0], [2, 0], [2, 1]], [b"a", b"c", b"d"], [3, 2])


def test_a_batch_of_sequences() -> None:
    context, lists, lengths = run(tf.io.parse_sequence_example([ONE, TWO], CONTEXT, LISTS))
    assert context["id"].tolist() == [7, 8]
    same(context["tags"], [[0, 0], [0, 1]], [b"p", b"q"], [2, 2])
    assert lists["t"].tolist() == [[[1, 2], [3, 4], [5, 6]], [[9, 9], [0, 0], [0, 0]]]
    want = [[0, 0, 0], [0, 2, 0], [0, 2, 1], [1, 0, 0]]
    same(lists["w"], want, [b"a", b"c", b"d", b"z"], [2, 3, 2])
    assert {k: v.tolist() for k, v in lengths.items()} == {"t": [3, 1]}


def test_strings_of_sequences_are_padded_with_nothing() -> None:
    spec = {"s": tf.FixedLenSequenceFeature([], tf.string)}
    messages = [sequence(s=[strings(b"a"), strings(b"b")]), sequence(s=[strings(b"c")])]
    _, lists, _ = run(tf.io.parse_sequence_example(messages, None, spec))
    assert lists["s"].tolist() == [[b"a", b"b"], [b"c", b""]]


def test_feature_lists_that_may_be_missing() -> None:
    spec = {"t": tf.FixedLenSequenceFeature([2], tf.int64, allow_missing=True)}
    _, lists, lengths = run(tf.io.parse_sequence_example([ONE, sequence(), TWO], None, spec))
    assert lists["t"].tolist()[1:] == [[[0, 0]] * 3, [[9, 9], [0, 0], [0, 0]]]
    assert lengths["t"].tolist() == [3, 0, 1]
    _, lists = run(tf.parse_single_sequence_example(sequence(), None, spec))
    assert lists["t"].shape == (0, 2)
    _, lists = run(tf.parse_single_sequence_example(sequence(), None, {"t": LISTS["w"]}))
    same(lists["t"], np.empty((0, 2)), [], [0, 0])


def test_empty_batches_of_sequences() -> None:
    empty = np.empty(0, object)
    context, lists, lengths = run(tf.io.parse_sequence_example(empty, CONTEXT, LISTS))
    assert context["id"].shape == (0,)
    assert lists["t"].shape == (0, 0, 2)
    same(lists["w"], np.empty((0, 3)), [], [0, 0, 0])
    assert lengths["t"].shape == (0,)


@pytest.mark.parametrize(
    ("context", "lists", "message"),
    [
        ({"z": tf.FixedLenFeature([], tf.int64)}, None,
         "Name: me, Context feature 'z' is required but could not be found."),
        ({"id": tf.FixedLenFeature([], tf.float32)}, None,
         "Name: me, Context feature: id.  Data types don't match. Expected type: float, "
         "Actual type: int64"),
        ({"id": tf.FixedLenFeature([2], tf.int64)}, None,
         "Name: me, Key: id, Index: 0.  Number of int64 values != expected.  values size: 1 but "
         "output shape: [2]"),
        (None, {"z": tf.FixedLenSequenceFeature([2], tf.int64)},
         "Name: me, Feature list 'z' is required but could not be found.  Did you mean to include "
         "it in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?"),
        (None, {"t": tf.FixedLenSequenceFeature([3], tf.int64)},
         "Name: me, Key: t, Index: 0.  Number of int64 values != expected.  values size: 2 but "
         "output shape: [3]"),
        (None, {"w": tf.FixedLenSequenceFeature([], tf.string)},
         "Name: me, Key: w, Index: 1.  Number of bytes values != expected.  values size: 0 but "
         "output shape: []"),
        (None, {"t": tf.VarLenFeature(tf.float32)},
         "Name: me, Feature list: t, Index: 0.  Data types don't match. Expected type: float, "
         "Actual type: int64"),
    ],
)  # fmt: skip
def test_errors_of_sequences(context: Any, lists: Any, message: str) -> None:
    single = tf.parse_single_sequence_example(ONE, context, lists, example_name="me")
    batch = tf.io.parse_sequence_example([ONE], context, lists, example_names=["me"])
    for parsed in (single, batch):
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            run(parsed)
        assert error.value.message == message


def test_an_error_names_the_message_and_its_step() -> None:
    spec = {"w": tf.FixedLenSequenceFeature([1], tf.string)}
    parsed = tf.io.parse_sequence_example([TWO, TWO, ONE], None, spec, ["m0", "m1", "m2"])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Name: m2, Key: w, Index: 1\."):
        run(parsed)


def test_sequence_features_that_are_not_well_defined() -> None:
    with pytest.raises(ValueError, match="Missing features"):
        tf.parse_single_sequence_example(ONE)
    with pytest.raises(ValueError, match="Unsupported FixedLenFeature"):
        tf.parse_single_sequence_example(ONE, None, {"t": tf.FixedLenFeature([2], tf.int64)})
    with pytest.raises(ValueError, match="Unsupported FixedLenSequenceFeature"):
        tf.parse_single_sequence_example(ONE, LISTS)
    spec = {"t": tf.FixedLenSequenceFeature([2], tf.int64, True, 3)}
    with pytest.raises(ValueError, match="must be None"):
        tf.parse_single_sequence_example(ONE, None, spec)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse sequence example"):
        run(tf.parse_single_sequence_example(b"\x12\x70", CONTEXT))


def test_the_second_version_of_the_sequence_op() -> None:
    def build(serialized: Any) -> Any:
        return raw.ParseSequenceExampleV2(
            serialized, np.empty(0, object), ["tags"], ["id"], ["tags2"], ["w"], ["t"], ["r"],
            [True], [np.empty(0, np.int64)],
            Ncontext_sparse=1, Tcontext_dense=[tf.int64], context_sparse_types=[tf.string],
            context_ragged_value_types=[tf.int64], context_ragged_split_types=[tf.int64],
            context_dense_shapes=[[]], Nfeature_list_sparse=1, Nfeature_list_dense=1,
            feature_list_dense_types=[tf.int64], feature_list_sparse_types=[tf.string],
            feature_list_ragged_value_types=[tf.int64], feature_list_ragged_split_types=[tf.int64],
            feature_list_dense_shapes=[[2]],
        )  # fmt: skip

    three = sequence({"id": ints(3), "tags2": ints(4, 5)}, r=[ints(1), ints(), ints(2, 3)])
    outputs = build([ONE, three])
    got = [o[0].tolist() for o in run(list(outputs))]
    assert got[3:6] == [[7, 3], [4, 5], [0, 0, 2]]
    assert got[9] == [[[1, 2], [3, 4], [5, 6]], [[0, 0]] * 3]
    assert got[10:] == [[3, 0], [1, 2, 3], [0, 0, 3], [0, 1, 1, 3]]
    single = [o[0].tolist() for o in run(list(build(three)))]
    assert single[3:6] == [3, [4, 5], []]
    assert single[10:] == [0, [1, 2, 3], [], [0, 1, 1, 3]]

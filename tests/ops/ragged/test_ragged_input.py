"""Ragged tensors: constants, bad input, and what they cost where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ragged_rows import Rows, X, fed, run

import headrace as tf
from headrace.errors import InvalidArgumentError


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


# -- constants and bad input --------------------------------------------------------------------


def test_constants() -> None:
    constant = tf.ragged.constant
    got = run(
        {
            "none": constant([]),
            "empty_rows": constant([[], []]),
            "deep_empty": constant([[[]], []]),
            "inner": constant([[[1, 2], [3, 4]], [[5, 6]]], inner_shape=(2,)),
            "scalar": constant(7),
            "vector": constant([1, 2]),
            "int32": constant([[1], []], row_splits_dtype=tf.int32),
        }
    )
    assert got["none"].shape == (0,)
    assert got["empty_rows"].to_list() == [[], []]
    assert got["deep_empty"].to_list() == [[[]], []]
    assert got["inner"].values.shape == (3, 2)
    assert got["scalar"] == 7
    assert got["vector"].tolist() == [1, 2]
    assert got["int32"].row_splits.dtype == np.int32


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([[1], 2], {}, "same nesting depth"),
        ([[1, 2], [[]]], {}, "empty list nesting is greater"),
        ([[1, 2], [3]], {"ragged_rank": 3}, "scalar value depth greater than 3"),
        ([[[1], [2, 3]]], {"ragged_rank": 1}, "inconsistent shape"),
        ([[1]], {"ragged_rank": -1}, "must be nonnegative"),
        ([[1]], {"ragged_rank": 1, "inner_shape": (1,)}, "incompatible with ragged_rank"),
    ],
)
def test_bad_lists(rows: Rows, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tf.ragged.constant(rows, **options)
    with pytest.raises(ValueError, match=message):
        tf.ragged.constant_value(rows, **options)


def splits(values: Any) -> Any:
    return tf.placeholder_with_default(np.asarray(values, np.int64), [None])


BAD: list[tuple[Any, str]] = [
    (lambda: tf.RaggedTensor.from_row_splits([1, 2, 3], splits([0, 2, 1, 3])), "not decrease"),
    (lambda: tf.RaggedTensor.from_row_splits([1, 2, 3], splits([0, 5])), "number of values, 3"),
    (lambda: tf.RaggedTensor.from_row_splits([1, 2, 3], splits([1, 3])), "must be 0, but is 1"),
    (lambda: tf.RaggedTensor.from_row_splits([1], splits([])), "at least one entry"),
    (lambda: tf.RaggedTensor.from_row_lengths([1, 2], splits([1, 3])), "but is 4"),
    (lambda: tf.RaggedTensor.from_row_lengths([1, 2], splits([3, -1])), "length -1"),
    (lambda: tf.RaggedTensor.from_value_rowids([1, 2], splits([1, 0])), "must not decrease"),
    (lambda: tf.RaggedTensor.from_value_rowids([1, 2], splits([0, 4]), 3), r"not in \[0, 3\)"),
    (lambda: fed(X) + fed([[1.0], [2.0]]), "identical ragged splits|differ in their rows"),
    (lambda: fed(X) + fed([[1.0], [], [2.0], [2.0]]), "identical ragged splits"),
    (lambda: fed(X) + np.ones((4, 2)), "2 columns beside a ragged one"),
    (lambda: fed(X) + np.ones((3, 1)), "as many, or one, but has 3"),
    (lambda: tf.gather(fed(X), [7]), r"7 is not in \[0, 4\)"),
    (lambda: tf.gather_nd(fed(X), [[0, 2]]), "not in"),
    (lambda: tf.batch_gather(fed(X), fed([[2], [], [], []])), "not in"),
    (lambda: tf.ragged.boolean_mask(fed(X), fed(X) * 0 + fed(X)[::-1] > 0), "identical"),
    (lambda: tf.squeeze(fed(X), 1), "identical ragged splits"),
    (
        lambda: tf.RaggedTensor.from_sparse(tf.SparseTensor([[0, 1]], [1], [2, 2])),
        "not right-ragged",
    ),
    (lambda: fed(X)[9], "out of bounds"),
]


@pytest.mark.parametrize(("build", "message"), BAD)
def test_bad_values_are_refused_when_the_graph_runs(build: Any, message: str) -> None:
    fetch = build()
    with pytest.raises(InvalidArgumentError, match=message):
        run(fetch)


def test_bad_arguments_are_refused_while_the_graph_is_built() -> None:
    x, deep = fed(X), fed([[[1.0]]])
    with pytest.raises(ValueError, match="constructor is private"):
        tf.RaggedTensor([1], [0, 1])
    with pytest.raises(ValueError, match="same rank"):
        tf.concat([x, deep], 0)
    with pytest.raises(ValueError, match="axis=9 out of bounds"):
        tf.reduce_sum(x, 9)
    with pytest.raises(ValueError, match="out of bounds"):
        tf.expand_dims(x, 5)
    with pytest.raises(TypeError, match=r"RaggedTensor is no Tensor.*to_tensor\(\)"):
        tf.matmul(x, x)
    with pytest.raises(TypeError, match="RaggedTensor is no Tensor"):
        tf.convert_to_tensor(x)
    with pytest.raises(ValueError, match="lengths or padding"):
        tf.RaggedTensor.from_tensor([[1]], lengths=[1], padding=0)
    with pytest.raises(ValueError, match="rank"):
        tf.RaggedTensor.from_tensor([1, 2])
    with pytest.raises(ValueError, match="row_splits tensor may not be empty"):
        tf.RaggedTensor.from_row_splits([1], [])
    with pytest.raises(ValueError, match="same outer-dimension"):
        tf.ragged.map_flat_values(lambda v: v[:1], tf.ragged.constant([[1, 2], [3]]))
    with pytest.raises(TypeError, match="no truth value"):
        bool(x)
    with pytest.raises(TypeError, match="not iterable"):
        iter(x)


def test_plain_tensors_pay_nothing_for_it() -> None:
    """What dispatches is not even loaded by graphs without ragged tensors."""
    import subprocess
    import sys

    code = (
        "import sys, headrace as tf; x = tf.constant([[1.0]]);"
        "tf.reduce_sum(tf.concat([x, x], 0) + 1.0);"
        "assert 'headrace.ops.ragged.dispatch' not in sys.modules;"
        "assert 'headrace.ops.ragged.array' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_ops_of_files() -> None:
    """RaggedGather and RaggedTensorToTensor: what they refuse, and a gradient of the first."""
    values = tf.constant([1.0, 2.0, 3.0, 4.0])
    indices = tf.placeholder(tf.int64, [None])
    options = {"params_nested_splits": [[0, 3, 4]], "params_dense_values": values}
    (ends,), gathered = tf.raw_ops.RaggedGather(indices=indices, OUTPUT_RAGGED_RANK=1, **options)
    weighted = tf.reduce_sum(gathered * tf.range(1.0, 6.0))
    fetch = [ends, gathered, tf.gradients(weighted, values)[0]]
    got = run(fetch, {indices: [1, 0, 1]})
    assert [g.tolist() for g in got] == [[0, 1, 4, 5], [4, 1, 2, 3, 4], [2, 3, 4, 6]]
    with pytest.raises(InvalidArgumentError, match=r"indices\[1\] = 2 is not in \[0, 2\)"):
        run(gathered, {indices: [0, 2]})
    with pytest.raises(ValueError, match="Ragged rank of output"):
        tf.raw_ops.RaggedGather(indices=indices, OUTPUT_RAGGED_RANK=2, **options)

    def dense(shape: Any, splits: Any) -> Any:
        return tf.raw_ops.RaggedTensorToTensor(
            shape=tf.placeholder_with_default(np.int64(shape), None),
            values=values,
            default_value=0.0,
            row_partition_tensors=[tf.placeholder_with_default(np.int64(splits), None)],
            row_partition_types=["ROW_SPLITS"],
        )

    assert run(dense([-1, 2], [0, 3, 4])).tolist() == [[1, 2], [4, 0]]
    with pytest.raises(InvalidArgumentError, match="must begin with 0"):
        run(dense(-1, [0, 3]))
    with pytest.raises(InvalidArgumentError, match="3 dimensions, the tensor 2"):
        run(dense([1, 2, 3], [0, 3, 4]))

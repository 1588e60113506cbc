"""Steps that fail in math, nn, linalg, random and check ops: the whole message, op and line.

The static shapes are unknown: the mistake shows in the step, compiled or interpreted.
"""

import numpy as np
import pytest
from failing import Case, check, ints, ones

import headrace as tf

int32 = np.int32

CASES = [
    Case(
        "matmul",
        (ones(2, 3), ones(4, 5)),
        tf.matmul,
        "MatMul",
        "Dimensions must be equal, but are 3 and 4 for shapes (2, 3) and (4, 5) "
        "(inputs: Placeholder:0 float32[2, 3], Placeholder_1:0 float32[4, 5])",
    ),
    Case(
        "matmul_rank",
        (ones(3), ones(4, 5)),
        tf.matmul,
        "MatMul",
        "Shape must be at least rank 2 but is rank 1: (3,) (inputs: Placeholder:0 "
        "float32[3], Placeholder_1:0 float32[4, 5])",
    ),
    Case(
        "batch_matmul",
        (ones(2, 2, 3), ones(3, 3, 5)),
        tf.matmul,
        "MatMul",
        "Dimensions must be equal, but are 2 and 3. Incompatible shapes: [2] vs. [3] "
        "(inputs: Placeholder:0 "
        "float32[2, 2, 3], Placeholder_1:0 float32[3, 3, 5])",
    ),
    Case(
        "add",
        (ones(2, 3), ones(4)),
        lambda a, b: a + b,
        "add",
        "Dimensions must be equal, but are 3 and 4. Incompatible shapes: [2,3] vs. [4] "
        "(inputs: Placeholder:0 "
        "float32[2, 3], Placeholder_1:0 float32[4])",
    ),
    Case(
        "clip",
        (ones(2), ones(3)),
        lambda a, b: tf.clip_by_value(a, b, b),
        "clip_by_value/Minimum",
        "Dimensions must be equal, but are 2 and 3. Incompatible shapes: [2] vs. [3] "
        "(inputs: Placeholder:0 "
        "float32[2], Placeholder_1:0 float32[3])",
    ),
    Case(
        "add_n",
        (ones(2), ones(3)),
        lambda a, b: tf.add_n([a, b]),
        "AddN",
        "Shapes (2,) and (3,) are not compatible (inputs: Placeholder:0 float32[2], "
        "Placeholder_1:0 float32[3])",
    ),
    Case(
        "segment_order",
        (ones(3, 2), ints(0, 2, 1)),
        tf.segment_sum,
        "SegmentSum",
        "segment ids are not increasing",
    ),
    Case(
        "segment_length",
        (ones(3, 2), ints(0, 2)),
        tf.segment_sum,
        "SegmentSum",
        "segment_ids should be the same size as dimension 0 of the data: (2,) and (3, "
        "2) (inputs: Placeholder:0 float32[3, 2], Placeholder_1:0 int32[2])",
    ),
    Case(
        "unsorted_segment",
        (ones(3, 2), ints(0, 2, 9)),
        lambda a, i: tf.unsorted_segment_sum(a, i, 4),
        "UnsortedSegmentSum",
        "segment_ids[2] = 9 is out of range [0, 4)",
    ),
    Case(
        "dynamic_partition",
        (ones(3), ints(0, 1, 7)),
        lambda a, p: tf.dynamic_partition(a, p, 2),
        "DynamicPartition",
        "partitions[2] = 7 is not in [0, 2)",
    ),
    Case(
        "reduce_axis",
        (ones(3, 2), int32(9)),
        tf.reduce_sum,
        "Sum",
        "Invalid reduction dimension 9 for input with 2 dimensions (inputs: "
        "Placeholder:0 float32[3, 2], Placeholder_1:0 int32[] = 9)",
    ),
    Case(
        "argmax_axis",
        (ones(3, 2), int32(9)),
        tf.argmax,
        "ArgMax",
        "Expected dimension in the range [-2, 2), but got 9 (inputs: Placeholder:0 "
        "float32[3, 2], Placeholder_1:0 int32[] = 9)",
    ),
    Case(
        "argmax_empty",
        (ones(3, 0),),
        lambda a: tf.argmax(a, 1),
        "ArgMax",
        "Reduction axis 1 is empty in shape [3, 0] (inputs: Placeholder:0 float32[3, "
        "0], ArgMax/dimension:0 int32[] = 1)",
    ),
    Case(
        "cumsum_axis",
        (ones(2, 3), int32(5)),
        tf.cumsum,
        "Cumsum",
        "Expected scan axis in the range [-2, 2), but got 5 (inputs: Placeholder:0 "
        "float32[2, 3], Placeholder_1:0 int32[] = 5)",
    ),
    Case(
        "divide_by_zero",
        (int32(4), ints(1, 0)),
        lambda a, b: a // b,
        "floordiv",
        "Integer division by zero",
    ),
    Case(
        "modulo_zero",
        (int32(4), int32(0)),
        lambda a, b: a % b,
        "mod",
        "Integer division by zero",
    ),
    Case(
        "negative_power",
        (int32(4), int32(-1)),
        tf.pow,
        "Pow",
        "Integers to negative integer powers are not allowed",
    ),
    Case(
        "einsum",
        (ones(2, 3), ones(4, 5)),
        lambda a, b: tf.einsum("ij,jk->ik", a, b),
        "einsum/Einsum",
        "Expected dimension 3 for label 'j' but got 4 in an input of shape (4, 5) "
        "(inputs: Placeholder:0 float32[2, 3], Placeholder_1:0 float32[4, 5])",
    ),
    Case(
        "cross",
        (ones(2), ones(2)),
        tf.cross,
        "Cross",
        "The last dimension of cross must be 3, the shape is (2,) (inputs: "
        "Placeholder:0 float32[2], Placeholder_1:0 float32[2])",
    ),
    Case(
        "cholesky",
        (-np.eye(3, dtype=np.float32),),
        tf.cholesky,
        "Cholesky",
        "Cholesky decomposition was not successful. The input might not be valid.",
    ),
    Case(
        "cholesky_shape",
        (ones(2, 3),),
        tf.cholesky,
        "Cholesky",
        "Dimensions must be equal, but are 2 and 3: (2, 3) (inputs: Placeholder:0 float32[2, 3])",
    ),
    Case(
        "solve_singular",
        (ones(3, 3), ones(3, 1)),
        tf.matrix_solve,
        "MatrixSolve",
        "Input matrix is not invertible.",
    ),
    Case(
        "solve_shape",
        (np.eye(3, dtype=np.float32), ones(4, 1)),
        tf.matrix_solve,
        "MatrixSolve",
        "Shapes of matrix (3, 3) and rhs (4, 1) do not fit (inputs: Placeholder:0 "
        "float32[3, 3], Placeholder_1:0 float32[4, 1])",
    ),
    Case(
        "inverse_singular",
        (ones(3, 3),),
        tf.matrix_inverse,
        "MatrixInverse",
        "Input is not invertible.",
    ),
    Case(
        "triangular_singular",
        (np.zeros((3, 3), np.float32), ones(3, 1)),
        tf.matrix_triangular_solve,
        "MatrixTriangularSolve",
        "Input matrix is not invertible.",
    ),
    Case(
        "determinant",
        (ones(3, 4),),
        tf.matrix_determinant,
        "MatrixDeterminant",
        "Dimensions must be equal, but are 3 and 4: (3, 4) (inputs: Placeholder:0 float32[3, 4])",
    ),
    Case(
        "conv2d_depth",
        (ones(1, 5, 5, 3), ones(3, 3, 4, 2)),
        lambda a, f: tf.nn.conv2d(a, f, [1, 1, 1, 1], "SAME"),
        "Conv2D",
        "Depth of input (3) is not a multiple of input depth of filter (4) for a filter"
        " of shape (3, 3, 4, 2) (inputs: Placeholder:0 float32[1, 5, 5, 3], "
        "Placeholder_1:0 float32[3, 3, 4, 2])",
    ),
    Case(
        "conv2d_rank",
        (ones(5, 5, 3), ones(3, 3, 4, 2)),
        lambda a, f: tf.nn.conv2d(a, f, [1, 1, 1, 1], "SAME"),
        "Conv2D",
        "Shape must be rank 4 but is rank 3 for the input, of shape (5, 5, 3) (inputs: "
        "Placeholder:0 float32[5, 5, 3], Placeholder_1:0 float32[3, 3, 4, 2])",
    ),
    Case(
        "conv2d_window",
        (ones(1, 1, 1, 3), ones(3, 3, 3, 2)),  # one that is short by less than a stride gives none
        lambda a, f: tf.nn.conv2d(a, f, [1, 1, 1, 1], "VALID"),
        "Conv2D",
        "Negative dimension size caused by subtracting 3 from 1: a window of 3 does not"
        " fit into a dimension of 1 (inputs: Placeholder:0 float32[1, 1, 1, 3], "
        "Placeholder_1:0 float32[3, 3, 3, 2])",
    ),
    Case(
        "max_pool",
        (ones(2, 2),),
        lambda a: tf.nn.max_pool(a, [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
        "MaxPool",
        "Shape must be rank 4 but is rank 2 for the input, of shape (2, 2) (inputs: "
        "Placeholder:0 float32[2, 2])",
    ),
    Case(
        "bias_add",
        (ones(2, 3), ones(4)),
        tf.nn.bias_add,
        "BiasAdd",
        "Dimensions must be equal, but are 3 and 4: must provide as many biases as the "
        "input (2, 3) has channels (inputs: Placeholder:0 float32[2, 3], "
        "Placeholder_1:0 float32[4])",
    ),
    Case(
        "label_range",
        (ones(2, 3), ints(0, 7)),
        lambda a, b: tf.nn.sparse_softmax_cross_entropy_with_logits(logits=a, labels=b),
        "SparseSoftmaxCrossEntropyWithLogits/SparseSoftmaxCrossEntropyWithLogits",
        "Received a label value of 7 which is outside the valid range of [0, 3).",
    ),
    Case(
        "label_shape",
        (ones(2, 3), ints(0, 1, 2)),
        lambda a, b: tf.nn.sparse_softmax_cross_entropy_with_logits(logits=a, labels=b),
        "SparseSoftmaxCrossEntropyWithLogits/SparseSoftmaxCrossEntropyWithLogits",
        "Shapes (2,) and (3,) are not compatible (inputs: "
        "SparseSoftmaxCrossEntropyWithLogits/Reshape:0 float32[2, 3], "
        "SparseSoftmaxCrossEntropyWithLogits/Reshape_1:0 int32[3])",
    ),
    Case(
        "top_k",
        (ones(2, 3),),
        lambda a: tf.nn.top_k(a, 5),
        "TopKV2",
        "input must have last dimension >= k = 5 but is 3: (2, 3) (inputs: "
        "Placeholder:0 float32[2, 3], TopKV2/k:0 int32[] = 5)",
    ),
    Case(
        "in_top_k",
        (ones(2, 3), ints(0, 1, 2)),
        lambda a, t: tf.nn.in_top_k(a, t, 1),
        "in_top_k/InTopKV2",
        "Shapes (2,) and (3,) are not compatible (inputs: Placeholder:0 float32[2, 3], "
        "Placeholder_1:0 int32[3], in_top_k/InTopKV2/k:0 int32[])",
    ),
    Case(
        "embedding_lookup",
        (ones(2, 3), ints(0, 9)),
        tf.nn.embedding_lookup,
        "embedding_lookup",
        "indices[1] = 9 is not in [0, 2)",
    ),
    Case(
        "check_nan",
        (np.array([1, np.nan], np.float32),),
        lambda a: tf.check_numerics(a, "the loss"),
        "CheckNumerics",
        "the loss : Tensor had NaN values",
    ),
    Case(
        "check_infinite",
        (np.array([1, np.inf], np.float32),),
        lambda a: tf.check_numerics(a, "the loss"),
        "CheckNumerics",
        "the loss : Tensor had Inf values",
    ),
    Case(
        "assert_op",
        (ones(2),),
        lambda a: tf.Assert(tf.reduce_all(a > 5), [a, "too small"]),
        "Assert",
        "assertion failed: [1 1] [too small]",
    ),
    Case(
        "ensure_shape",
        (ones(2),),
        lambda a: tf.ensure_shape(a, [3]),
        "EnsureShape",
        "Shapes (2,) and (3,) are not compatible (inputs: Placeholder:0 float32[2])",
    ),
    Case(
        "random_shape",
        (ints(-2),),
        tf.random_normal,
        "random_normal/RandomStandardNormal",
        "Dimension -2 must be >= 0: shape [-2] (inputs: Placeholder:0 int32[1] = [-2])",
    ),
    Case(
        "random_range",
        (int32(3),),
        lambda low: tf.random_uniform([2], low, 1, tf.int32),
        "random_uniform",
        "Need minval < maxval, got 3 >= 1",
    ),
    Case(
        "multinomial",
        (ones(3),),
        lambda a: tf.multinomial(a, 2),
        "multinomial/Multinomial",
        "logits must be rank 2 but is rank 1: shape (3,) (inputs: Placeholder:0 "
        "float32[3], multinomial/Multinomial/num_samples:0 int32[] = 2)",
    ),
    Case(
        "map_scalar",
        (np.float32(1),),
        lambda a: tf.map_fn(lambda x: x, a),
        "map/Scan",
        "a sequence of map/Scan is a scalar; elements are taken along the first axis "
        "(inputs: Placeholder:0 float32[])",
    ),
    Case(
        "cond_predicate",
        (np.array([True, False]), ones(2)),
        lambda p, a: tf.cond(p, lambda: a, lambda: a + 1),
        "cond/EnsureShape",
        "Shapes (2,) and () are not compatible (inputs: Placeholder:0 bool[2])",
    ),
    Case(
        "not_fed",
        (),
        lambda: tf.placeholder(tf.float32, [2], name="late") + 1,
        "late",
        "You must feed a value for placeholder tensor 'late' with dtype float32 and "
        "shape (2,): sess.run(..., feed_dict={late: value}).",
    ),
    Case(
        "py_func_count",
        (ones(2),),
        lambda a: tf.py_func(np.copy, [a], [tf.float32, tf.float32]),
        "PyFunc",
        "PYFUNC returns 1 values, but expects to see 2 values.",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_failing_step(case: Case, interpret: str) -> None:
    check(case)


@pytest.mark.parametrize(
    ("gradient", "shape"), [(ones(4), "(4,)"), (ones(2), "(2,)"), (ones(1, 1), "(1, 1)")]
)
def test_gradients_are_not_broadcast(interpret: str, gradient: np.ndarray, shape: str) -> None:
    v = tf.Variable(ones(3, 2), name="v")
    fed = tf.placeholder(tf.float32)
    step = tf.train.GradientDescentOptimizer(0.1, name="SGD").apply_gradients([(fed, v)])
    with tf.Session() as session:
        session.run(v.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(step, {fed: gradient})
        assert caught.value.message.startswith(
            f"The gradient has shape {shape}; the variable has shape (3, 2) (inputs: v:0 float32"
        )
        assert caught.value.op.type == "ResourceApplyGradientDescent"
        np.testing.assert_array_equal(session.run(v), ones(3, 2))


def test_rows_of_sparse_gradients(interpret: str) -> None:
    v = tf.Variable(ones(3, 2), name="v")
    rows, indices = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    optimizer = tf.train.AdagradOptimizer(0.1)
    step = optimizer.apply_gradients([(tf.IndexedSlices(rows, indices), v)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for bad in (ones(2, 1), ones(1, 2), ones(2)):
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                session.run(step, {rows: bad, indices: [0, 2]})
            assert "2 rows of a variable of shape (3, 2) have (2, 2)" in caught.value.message
        np.testing.assert_array_equal(session.run(v), ones(3, 2))

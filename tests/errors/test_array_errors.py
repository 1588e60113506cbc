"""Steps that fail in array ops: the whole message, the op, the line.

The static shapes are unknown: the mistake shows in the step, compiled or interpreted.
"""

import numpy as np
import pytest
from failing import Case, check, ints, ones

import headrace as tf

int32 = np.int32

CASES = [
    Case(
        "reshape",
        (ones(2, 3), ints(4, 5)),
        tf.reshape,
        "Reshape",
        "Cannot reshape a tensor with 6 elements to shape [4,5] (20 elements) (inputs: "
        "Placeholder:0 float32[2, 3], Placeholder_1:0 int32[2] = [4, 5])",
    ),
    Case(
        "reshape_two_open",
        (ones(2, 3), ints(-1, -1)),
        tf.reshape,
        "Reshape",
        "Only one input size may be -1, not both 0 and another: shape [-1, -1].",
    ),
    Case(
        "reshape_negative",
        (ones(2, 3), ints(-2, 3)),
        tf.reshape,
        "Reshape",
        "Input to reshape is a tensor with 6 values, but the requested shape [-2, 3] has -6.",
    ),
    Case(
        "reshape_no_multiple",
        (ones(2, 3), ints(-1, 4)),
        tf.reshape,
        "Reshape",
        "Dimension size must be evenly divisible by 4 but is 6: cannot reshape a tensor"
        " of shape (2, 3) to (?, 4) (inputs: Placeholder:0 float32[2, 3], "
        "Placeholder_1:0 int32[2] = [-1, 4])",
    ),
    Case(
        "concat",
        (ones(2, 3), ones(2, 4)),
        lambda a, b: tf.concat([a, b], 0),
        "concat",
        "Shapes must match in all dimensions but 0 to be concatenated: (2, 3), (2, 4) (inputs: "
        "Placeholder:0 float32[2, 3], Placeholder_1:0 float32[2, 4], concat/axis:0 int32[] = 0)",
    ),
    Case(
        "concat_axis",
        (ones(2, 3), ones(2, 3)),
        lambda a, b: tf.concat([a, b], 5),
        "concat",
        "Concatenation dimension 5 is out of valid range [-2, 2) (inputs: "
        "Placeholder:0 float32[2, 3], Placeholder_1:0 float32[2, 3], concat/axis:0 "
        "int32[] = 5)",
    ),
    Case(
        "stack",
        (ones(2, 3), ones(2, 4)),
        lambda a, b: tf.stack([a, b]),
        "stack",
        "Shapes must be equal to be stacked: (2, 3), (2, 4) (inputs: Placeholder:0 "
        "float32[2, 3], Placeholder_1:0 float32[2, 4])",
    ),
    Case(
        "unstack",
        (ones(5, 3),),
        lambda a: tf.unstack(a, 4),
        "unstack",
        "Dimension 0 of shape (5, 3) must be 4 to be unstacked (inputs: Placeholder:0 "
        "float32[5, 3])",
    ),
    Case(
        "split",
        (ones(5, 3),),
        lambda a: tf.split(a, 2),
        "split",
        "Dimension size must be evenly divisible by 2 but is 5: cannot split shape (5, "
        "3) along dimension 0 (inputs: split/split_dim:0 int32[] = 0, Placeholder:0 "
        "float32[5, 3])",
    ),
    Case(
        "split_axis",
        (ones(5, 3), int32(4)),
        lambda a, axis: tf.split(a, 2, axis),
        "split",
        "split_dim 4 is out of valid range [-2, 2) (inputs: Placeholder_1:0 int32[]"
        " = 4, Placeholder:0 float32[5, 3])",
    ),
    Case(
        "split_sizes",
        (ones(5, 3),),
        lambda a: tf.split(a, [2, 2]),
        "split",
        "Determined shape must either match input shape along split_dim exactly if "
        "fully specified, or be less than the size of the input along split_dim if not "
        "fully specified.  Got: 4 for sizes [2, 2], the input has 5 (inputs: "
        "Placeholder:0 float32[5, 3], Const:0 int32[2] = [2, 2], split/split_dim:0 "
        "int32[] = 0)",
    ),
    Case(
        "transpose",
        (ones(2, 3), ints(0, 0)),
        tf.transpose,
        "transpose",
        "perm must be a permutation of the 2 dimensions, got [0, 0] (inputs: "
        "Placeholder:0 float32[2, 3], Placeholder_1:0 int32[2] = [0, 0])",
    ),
    Case(
        "transpose_rank",
        (ones(2, 3), ints(0, 1, 2)),
        tf.transpose,
        "transpose",
        "transpose expects a vector of size 2. But input(1) is a vector of size 3 "
        "(inputs: Placeholder:0 float32[2, 3], Placeholder_1:0 int32[3] = [0, 1, 2])",
    ),
    Case(
        "index",
        (ones(2, 3),),
        lambda a: a[5],
        "strided_slice",
        "slice index 5 of dimension 0 out of bounds: its size is 2.",
    ),
    Case(
        "index_tensor",
        (ones(2, 3), int32(7)),
        lambda a, i: a[i],
        "strided_slice",
        "slice index 7 of dimension 0 out of bounds: its size is 2.",
    ),
    Case(
        "index_rank",
        (ones(2, 3),),
        lambda a: a[0, 0, 0],
        "strided_slice",
        "Index out of range using input dim 2; input has only 2 dims (inputs: "
        "Placeholder:0 float32[2, 3], strided_slice/stack:0 int32[3], "
        "strided_slice/stack_1:0 int32[3], strided_slice/stack_1:0 int32[3] = [1, 1, "
        "1])",
    ),
    Case(
        "slice",
        (ones(2, 3),),
        lambda a: tf.slice(a, [0, 1], [2, 9]),
        "Slice",
        "Expected size[1] in [0, 2], but got 9 (inputs: Placeholder:0 float32[2, 3], "
        "Const:0 int32[2], Const_1:0 int32[2] = [2, 9])",
    ),
    Case(
        "slice_rank",
        (ones(2, 3),),
        lambda a: tf.slice(a, [0], [2]),
        "Slice",
        "Slice of shape (2, 3) needs 2 begins and sizes, got 1 (inputs: Placeholder:0 "
        "float32[2, 3], Const:0 int32[1], Const_1:0 int32[1] = [2])",
    ),
    Case(
        "stride_zero",
        (ones(2, 3), ints(0)),
        lambda a, s: tf.strided_slice(a, [0], [2], s),
        "StridedSlice",
        "strides[0] must be non-zero (inputs: Placeholder:0 float32[2, 3], Const:0 "
        "int32[1], Const_1:0 int32[1], Placeholder_1:0 int32[1] = [0])",
    ),
    Case(
        "expand_dims",
        (ones(3, 2), int32(9)),
        tf.expand_dims,
        "ExpandDims",
        "dim 9 is out of valid range [-3, 3) (inputs: Placeholder:0 float32[3, 2], "
        "Placeholder_1:0 int32[] = 9)",
    ),
    Case(
        "squeeze",
        (ones(3, 2),),
        lambda a: tf.squeeze(a, [0]),
        "Squeeze",
        "Can not squeeze dim[0], expected a dimension of 1, got 3 (inputs: "
        "Placeholder:0 float32[3, 2])",
    ),
    Case(
        "tile",
        (ones(2, 3), ints(2)),
        tf.tile,
        "Tile",
        "Expected multiples argument to be a vector of length 2 but got length 1: shape"
        " (2, 3) (inputs: Placeholder:0 float32[2, 3], Placeholder_1:0 int32[1] = [2])",
    ),
    Case(
        "tile_negative",
        (ones(2, 3), ints(2, -1)),
        tf.tile,
        "Tile",
        "Expected multiples >= 0, but got [2, -1] (inputs: Placeholder:0 float32[2, 3],"
        " Placeholder_1:0 int32[2] = [2, -1])",
    ),
    Case(
        "pad",
        (ones(2, 3), ints([1, 1])),
        tf.pad,
        "Pad",
        "The first dimension of paddings must be the rank of inputs: 1 and 2 for shape "
        "(2, 3) (inputs: Placeholder:0 float32[2, 3], Placeholder_1:0 int32[1, 2] = "
        "[[1, 1]])",
    ),
    Case(
        "pad_negative",
        (ones(2, 3), ints([1, 1], [-1, 0])),
        tf.pad,
        "Pad",
        "Paddings must be non-negative: [(1, 1), (-1, 0)] (inputs: Placeholder:0 "
        "float32[2, 3], Placeholder_1:0 int32[2, 2] = [[1, 1], [-1, 0]])",
    ),
    Case(
        "pad_reflect",
        (ones(2, 3), ints([5, 5], [1, 0])),
        lambda a, p: tf.pad(a, p, "REFLECT"),
        "MirrorPad",
        "paddings must be less than the dimension size: 5, 5 not less than 2 in dimension 0",
    ),
    Case(
        "reverse",
        (ones(2, 3), ints(5)),
        tf.reverse,
        "ReverseV2",
        "reverse axis 5 is out of valid range [-2, 2) (inputs: Placeholder:0 "
        "float32[2, 3], Placeholder_1:0 int32[1] = [5])",
    ),
    Case(
        "roll",
        (ones(2),),
        lambda a: tf.roll(a, 1, 4),
        "Roll",
        "roll axis 4 is out of valid range [-1, 1) (inputs: Placeholder:0 "
        "float32[2], Roll/shift:0 int32[], Roll/axis:0 int32[] = 4)",
    ),
    Case(
        "one_hot",
        (ints(0), int32(-3)),
        tf.one_hot,
        "one_hot",
        "depth must be non-negative, got: -3 (inputs: Placeholder:0 int32[1], "
        "Placeholder_1:0 int32[] = -3, one_hot/on_value:0 float32[], "
        "one_hot/off_value:0 float32[])",
    ),
    Case(
        "fill",
        (ints(-2),),
        lambda d: tf.fill(d, 1.0),
        "Fill",
        "dims must have no negative size, got [-2] (inputs: Placeholder:0 int32[1] = "
        "[-2], Fill/value:0 float32[])",
    ),
    Case(
        "zeros",
        (ints(-2),),
        tf.zeros,
        "zeros",
        "dims must have no negative size, got [-2] (inputs: Placeholder:0 int32[1] = "
        "[-2], zeros/Const:0 float32[])",
    ),
    Case(
        "eye",
        (int32(-1),),
        tf.eye,
        "eye/zeros",
        "dims must have no negative size, got [-1, -1] (inputs: eye/ConcatV2:0 int32[2]"
        " = [-1, -1], eye/zeros/Const:0 float32[])",
    ),
    Case(
        "range_zero",
        (int32(0),),
        lambda d: tf.range(0, 10, d),
        "range",
        "Requires delta != 0 (inputs: range/start:0 int32[] = 0, range/limit:0 int32[] "
        "= 10, Placeholder:0 int32[] = 0)",
    ),
    Case(
        "range_backwards",
        (int32(-1),),
        lambda d: tf.range(0, 10, d),
        "range",
        "Requires start >= limit when delta < 0: 0/10 (inputs: range/start:0 int32[] = "
        "0, range/limit:0 int32[] = 10, Placeholder:0 int32[] = -1)",
    ),
    Case(
        "broadcast_to",
        (ones(3, 2), ints(4, 5)),
        tf.broadcast_to,
        "BroadcastTo",
        "Incompatible shapes: cannot broadcast (3, 2) to (4, 5) (inputs: Placeholder:0 "
        "float32[3, 2], Placeholder_1:0 int32[2] = [4, 5])",
    ),
    Case(
        "where",
        (np.array([True]), ones(3, 2), ones(4, 2)),
        tf.where,
        "Select",
        "Dimensions of t and e must be equal to select from: (3, 2), (4, 2) (inputs: "
        "Placeholder:0 bool[1], Placeholder_1:0 float32[3, 2], Placeholder_2:0 "
        "float32[4, 2])",
    ),
    Case(
        "gather",
        (ones(2, 3), ints(0, 9)),
        tf.gather,
        "GatherV2",
        "indices[1] = 9 is not in [0, 2)",
    ),
    Case(
        "gather_negative",
        (ones(2, 3), ints(0, -1)),
        tf.gather,
        "GatherV2",
        "indices[1] = -1 is not in [0, 2)",
    ),
    Case(
        "gather_scalar",
        (np.float32(1), ints(0)),
        tf.gather,
        "GatherV2",
        "Shape must be at least rank 1 but is rank 0: params of gather (inputs: "
        "Placeholder:0 float32[], Placeholder_1:0 int32[1], GatherV2/axis:0 int32[] = "
        "0)",
    ),
    Case(
        "gather_nd",
        (ones(2, 3), ints([0, 9])),
        tf.gather_nd,
        "GatherNd",
        "indices[0] = [0,9] does not index into param shape [2,3]",
    ),
    Case(
        "gather_nd_depth",
        (ones(2, 3), ints([0, 0, 0])),
        tf.gather_nd,
        "GatherNd",
        "indices.shape[-1] must be <= params.rank, but saw indices shape: (1, 3), "
        "params shape: (2, 3) (inputs: Placeholder:0 float32[2, 3], Placeholder_1:0 "
        "int32[1, 3])",
    ),
    Case(
        "scatter_nd",
        (ints([9]), ones(1)),
        lambda i, u: tf.scatter_nd(i, u, [4]),
        "ScatterNd",
        "indices[0] = [9] does not index into shape [4]",
    ),
    Case(
        "scatter_nd_shape",
        (ints([1]), ones(3)),
        lambda i, u: tf.scatter_nd(i, u, [4]),
        "ScatterNd",
        "Dimensions of updates (3,) must be (1,): indices have shape (1, 1), the result"
        " (4,) (inputs: Placeholder:0 int32[1, 1], Placeholder_1:0 float32[3], shape:0 "
        "int32[1] = [4])",
    ),
    Case(
        "reverse_sequence",
        (ones(2, 3), ints(9, 1)),
        lambda a, n: tf.reverse_sequence(a, n, seq_axis=1, batch_axis=0),
        "ReverseSequence",
        "seq_lengths[0] = 9 is not in [0, 4)",
    ),
    Case(
        "reverse_twice",
        (ones(2, 3), ints(0, -2)),
        tf.reverse,
        "ReverseV2",
        "reverse axis 0 specified more than once: [0, -2] (inputs: Placeholder:0 "
        "float32[2, 3], Placeholder_1:0 int32[2] = [0, -2])",
    ),
    Case(
        "invert_permutation",
        (ints(0, 0),),
        tf.invert_permutation,
        "InvertPermutation",
        "0 is duplicated in the input.",
    ),
    Case(
        "matrix_diag",
        (np.float32(1),),
        tf.matrix_diag,
        "diag",
        "Shape must be at least rank 1 but is rank 0: () (inputs: Placeholder:0 float32[])",
    ),
    Case(
        "diag_part",
        (ones(2, 3),),
        tf.diag_part,
        "DiagPart",
        "Input must be square in halves of its shape, got (2, 3) (inputs: Placeholder:0"
        " float32[2, 3])",
    ),
    Case(
        "space_to_depth",
        (ones(1, 3, 3, 1),),
        lambda a: tf.space_to_depth(a, 2),
        "SpaceToDepth",
        "Dimension size must be evenly divisible by 2 but is 3 (inputs: Placeholder:0 "
        "float32[1, 3, 3, 1])",
    ),
    Case(
        "bitcast",
        (ones(3),),
        lambda a: tf.bitcast(a, tf.float64),
        "Bitcast",
        "Cannot bitcast from float32 to float64: the last dimension must be 2, but the "
        "shape is (3,) (inputs: Placeholder:0 float32[3])",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_failing_step(case: Case, interpret: str) -> None:
    check(case)


@pytest.mark.parametrize("axis", [2, -3])
def test_the_axis_of_stack_and_unstack(axis):
    text = rf"axis = {axis} not in \[-2, 2\)"
    with pytest.raises(ValueError, match=text):
        tf.stack([[1.0], [2.0]], axis=axis)
    with pytest.raises(ValueError, match=text):
        tf.unstack([[1.0]], axis=axis)

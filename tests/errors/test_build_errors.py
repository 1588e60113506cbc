"""Mistakes found while the graph is built: class and whole message, one by one."""

import re

import numpy as np
import pytest

import headrace as tf


def t(*shape, dtype=tf.float32):
    return tf.placeholder(dtype, shape)


#: Name, the mistake, the class, the message; LINE and SITE stand for this file and the line.
CASES = [
    (
        "matmul",
        lambda: tf.matmul(t(2, 3), t(4, 5)),
        ValueError,
        "Dimensions must be equal, but are 3 and 4 for shapes (2, 3) and (4, 5) (building"
        " operation 'MatMul' of type MatMul from Placeholder:0: (2, 3) float32, "
        "Placeholder_1:0: (4, 5) float32; made at LINE)",
    ),
    (
        "add",
        lambda: t(2, 3) + t(4),
        ValueError,
        "Dimensions must be equal, but are 3 and 4. Incompatible shapes: [2,3] vs. [4] "
        "(building operation 'add' of type AddV2 from Placeholder:0: (2, 3) float32, "
        "Placeholder_1:0: (4,) float32; made at LINE)",
    ),
    (
        "add_types",
        lambda: t(2) + t(2, dtype=tf.int32),
        TypeError,
        "Input 'y' of 'AddV2' Op has type int32 that does not match type float32 of "
        "argument 'x' (<tf.Tensor 'Placeholder_1:0' shape=(2,) dtype=int32>). Use tf.cast"
        " to convert.",
    ),
    (
        "add_string",
        lambda: t(2) + "abc",
        TypeError,
        "Expected float32, got 'abc' of type 'str' instead.",
    ),
    (
        "add_none",
        lambda: t(2) + None,
        ValueError,
        "None values not supported.",
    ),
    (
        "int_plus_float",
        lambda: t(2, dtype=tf.int32) + 1.5,
        TypeError,
        "Expected int32, got 1.5 of type 'float' instead.",
    ),
    (
        "exp_of_int",
        lambda: tf.exp(t(2, dtype=tf.int32)),
        TypeError,
        "Value passed to parameter 'T' of Exp is int32, which is not in the list of "
        "allowed values: bfloat16, complex128, complex64, float16, float32, float64",
    ),
    (
        "logical_and",
        lambda: tf.logical_and(t(2), t(2)),
        TypeError,
        "Input 'x' of 'LogicalAnd' Op has type float32 that does not match expected type "
        "of bool (<tf.Tensor 'Placeholder:0' shape=(2,) dtype=float32>). Use tf.cast to "
        "convert.",
    ),
    (
        "reshape",
        lambda: tf.reshape(t(2, 3), [4, 2]),
        ValueError,
        "Cannot reshape a tensor with 6 elements to shape [4,2] (8 elements) (building "
        "operation 'Reshape' of type Reshape from Placeholder:0: (2, 3) float32, "
        "Reshape/shape:0: (2,) int32; made at LINE)",
    ),
    (
        "reshape_float",
        lambda: tf.reshape(t(2, 3), [3.0, 2.0]),
        TypeError,
        "Value passed to parameter 'Tshape' of Reshape is float32, which is not in the "
        "list of allowed values: int32, int64",
    ),
    (
        "concat",
        lambda: tf.concat([t(2, 3), t(2, 4)], 0),
        ValueError,
        "Shapes must match in all dimensions but 0 to be concatenated: (2, 3), (2, 4) "
        "(building operation 'concat' of type ConcatV2 from Placeholder:0: (2, 3) "
        "float32, Placeholder_1:0: (2, 4) float32, concat/axis:0: () int32; made at LINE)",
    ),
    (
        "split",
        lambda: tf.split(t(5, 3), 2),
        ValueError,
        "Dimension size must be evenly divisible by 2 but is 5: cannot split shape (5, 3)"
        " along dimension 0. (building operation 'split' of type Split from "
        "split/split_dim:0: () int32, Placeholder:0: (5, 3) float32; made at LINE)",
    ),
    (
        "transpose",
        lambda: tf.transpose(t(2, 3), [0, 0]),
        ValueError,
        "perm must be a permutation of the 2 dimensions, got [0, 0] (building operation "
        "'transpose' of type Transpose from Placeholder:0: (2, 3) float32, "
        "transpose/perm:0: (2,) int32; made at LINE)",
    ),
    (
        "index",
        lambda: t(2, 3)[5],
        ValueError,
        "slice index 5 of dimension 0 out of bounds: its size is 2. (building operation "
        "'strided_slice' of type StridedSlice from Placeholder:0: (2, 3) float32, "
        "strided_slice/stack:0: (1,) int32, strided_slice/stack_1:0: (1,) int32, "
        "strided_slice/stack_2:0: (1,) int32; made at LINE)",
    ),
    (
        "index_rank",
        lambda: t(2, 3)[0, 0, 0],
        ValueError,
        "Index out of range using input dim 2; input has only 2 dims. (building operation"
        " 'strided_slice' of type StridedSlice from Placeholder:0: (2, 3) float32, "
        "strided_slice/stack:0: (3,) int32, strided_slice/stack_1:0: (3,) int32, "
        "strided_slice/stack_2:0: (3,) int32; made at LINE)",
    ),
    (
        "index_string",
        lambda: t(2, 3)["a"],
        TypeError,
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
        "tf.int32/tf.int64 tensors are valid indices, got 'a'",
    ),
    (
        "index_float",
        lambda: t(2, 3)[0.5],
        TypeError,
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
        "tf.int32/tf.int64 tensors are valid indices, got 0.5",
    ),
    (
        "gather_float",
        lambda: tf.gather(t(2, 3), [0.5]),
        TypeError,
        "Value passed to parameter 'Tindices' of GatherV2 is float32, which is not in the"
        " list of allowed values: int16, int32, int64",
    ),
    (
        "one_hot",
        lambda: tf.one_hot([0], -3),
        ValueError,
        "depth must be non-negative, got: -3 (building operation 'one_hot' of type OneHot"
        " from one_hot/Const:0: (1,) int32, one_hot/depth:0: () int32, "
        "one_hot/on_value:0: () float32, one_hot/off_value:0: () float32; made at LINE)",
    ),
    (
        "tile",
        lambda: tf.tile(t(2, 3), [2]),
        ValueError,
        "Expected multiples argument to be a vector of length 2 but got length 1: shape "
        "(2, 3). (building operation 'Tile' of type Tile from Placeholder:0: (2, 3) "
        "float32, Tile/multiples:0: (1,) int32; made at LINE)",
    ),
    (
        "pad",
        lambda: tf.pad(t(2, 3), [[1, 1]]),
        ValueError,
        "The first dimension of paddings must be the rank of inputs: 1 and 2 for shape "
        "(2, 3). (building operation 'Pad' of type Pad from Placeholder:0: (2, 3) "
        "float32, Const:0: (1, 2) int32; made at LINE)",
    ),
    (
        "pad_mode",
        lambda: tf.pad(t(2, 3), [[1, 1], [1, 1]], "foo"),
        ValueError,
        "Unknown padding mode: foo; use CONSTANT, REFLECT or SYMMETRIC.",
    ),
    (
        "segment_sum",
        lambda: tf.segment_sum(t(3, 2), [0, 1]),
        ValueError,
        "segment_ids should be the same size as dimension 0 of the data: (2,) and (3, 2) "
        "(building operation 'SegmentSum' of type SegmentSum from Placeholder:0: (3, 2) "
        "float32, SegmentSum/segment_ids:0: (2,) int32; made at LINE)",
    ),
    (
        "reduce_axis",
        lambda: tf.reduce_sum(t(3, 2), 5),
        ValueError,
        "Invalid reduction dimension 5 for input with 2 dimensions. (building operation "
        "'Sum' of type Sum from Placeholder:0: (3, 2) float32, Sum/reduction_indices:0: "
        "() int32; made at LINE)",
    ),
    (
        "fill",
        lambda: tf.fill([-1], 1.0),
        ValueError,
        "dims must have no negative size, got [-1]. (building operation 'Fill' of type "
        "Fill from Fill/dims:0: (1,) int32, Fill/value:0: () float32; made at LINE)",
    ),
    (
        "broadcast_to",
        lambda: tf.broadcast_to(t(2, 3), [4, 5]),
        ValueError,
        "Incompatible shapes: cannot broadcast (2, 3) to (4, 5) (building operation "
        "'BroadcastTo' of type BroadcastTo from Placeholder:0: (2, 3) float32, "
        "BroadcastTo/shape:0: (2,) int32; made at LINE)",
    ),
    (
        "einsum",
        lambda: tf.einsum("ij,jk->ik", t(2, 3), t(4, 5)),
        ValueError,
        "Expected dimension 3 for label 'j' but got 4 in an input of shape (4, 5). "
        "(building operation 'einsum/Einsum' of type Einsum from Placeholder:0: (2, 3) "
        "float32, Placeholder_1:0: (4, 5) float32; made at LINE)",
    ),
    (
        "cast_string",
        lambda: tf.cast(t(2), tf.string),
        ValueError,
        "Cast float32 to string is not supported; strings have tf.string_to_number, "
        "tf.as_string and tf.decode_raw. (building operation 'Cast' of type Cast from "
        "Placeholder:0: (2,) float32; made at LINE)",
    ),
    (
        "cast_misspelt",
        lambda: tf.cast(t(2), "flaot32"),
        TypeError,
        "Cannot convert 'flaot32' to a headrace DType. Did you mean 'float32'?",
    ),
    (
        "conv2d",
        lambda: tf.nn.conv2d(t(1, 5, 5, 3), t(3, 3, 4, 2), [1, 1, 1, 1], "SAME"),
        ValueError,
        "Depth of input (3) is not a multiple of input depth of filter (4) for a filter "
        "of shape (3, 3, 4, 2) (building operation 'Conv2D' of type Conv2D from "
        "Placeholder:0: (1, 5, 5, 3) float32, Placeholder_1:0: (3, 3, 4, 2) float32; made"
        " at LINE)",
    ),
    (
        "conv2d_padding",
        lambda: tf.nn.conv2d(t(1, 5, 5, 3), t(3, 3, 3, 2), [1, 1, 1, 1], "same"),
        ValueError,
        "Value passed to parameter 'padding' of Conv2D is 'same', which is not in the "
        "list of allowed values: 'EXPLICIT', 'SAME', 'VALID'",
    ),
    (
        "max_pool",
        lambda: tf.nn.max_pool(t(1, 2, 2, 1), [1, 3, 3, 1], [1, 1, 1, 1], "VALID"),
        ValueError,
        "Negative dimension size caused by subtracting 3 from 2: a window of 3 does not "
        "fit into a dimension of 2. (building operation 'MaxPool' of type MaxPool from "
        "Placeholder:0: (1, 2, 2, 1) float32; made at LINE)",
    ),
    (
        "xent_positional",
        lambda: tf.nn.softmax_cross_entropy_with_logits(t(2, 3), logits=t(2, 3)),
        ValueError,
        "Only call `softmax_cross_entropy_with_logits` with named arguments (labels=..., "
        "logits=..., ...)",
    ),
    (
        "xent_label_type",
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(logits=t(2, 3), labels=t(2)),
        TypeError,
        "Value passed to parameter 'Tlabels' of SparseSoftmaxCrossEntropyWithLogits is "
        "float32, which is not in the list of allowed values: int32, int64",
    ),
    (
        "constant_ragged",
        lambda: tf.constant([[1], [1, 2]]),
        ValueError,
        "Argument must be a dense tensor: [[1], [1, 2]] - got 2 elements at values[1], "
        "but wanted 1 as at values[0].",
    ),
    (
        "constant_none",
        lambda: tf.constant(None),
        ValueError,
        "None values not supported.",
    ),
    (
        "constant_type",
        lambda: tf.constant("a", tf.float32),
        TypeError,
        "Expected float32, got 'a' of type 'str' instead.",
    ),
    (
        "constant_range",
        lambda: tf.constant(2**40, tf.int32),
        TypeError,
        "Cannot convert 1099511627776 to int32: it is outside [-2147483648, 2147483647].",
    ),
    (
        "set_shape",
        lambda: t(2).set_shape([3]),
        ValueError,
        "Shapes (2,) and (3,) are not compatible",
    ),
    (
        "as_list",
        lambda: tf.placeholder(tf.float32).shape.as_list(),
        ValueError,
        "as_list() is not defined on an unknown TensorShape.",
    ),
    (
        "bool_of_tensor",
        lambda: bool(t()),
        TypeError,
        "Using a `tf.Tensor` as a Python `bool` is not allowed: Placeholder:0 has no "
        "value while the graph is built. Use `if t is not None:` to test whether a tensor"
        " is defined, and tf.cond or tf.where to choose by its value.",
    ),
    (
        "iterate",
        lambda: list(t(2)),
        TypeError,
        "Tensor Placeholder:0 is not iterable: its value is not known while the graph is "
        "built. Use tf.unstack, tf.map_fn or tf.while_loop.",
    ),
    (
        "len_of_tensor",
        lambda: len(t(2)),
        TypeError,
        "len is not defined for a symbolic tensor (Placeholder:0); call `x.shape[0]` for "
        "the static size or tf.shape(x)[0] for the one known when the graph runs.",
    ),
    (
        "float_of_tensor",
        lambda: float(t()),
        TypeError,
        "Tensor Placeholder:0 cannot become a Python float: it has no value while the "
        "graph is built. Use tf.cast to convert, or Session.run to get its value.",
    ),
    (
        "numpy_of_tensor",
        lambda: np.array(t(2)),
        NotImplementedError,
        "Cannot convert the symbolic tensor Placeholder:0 to a NumPy array: it has a "
        "value only inside Session.run.",
    ),
    (
        "name_with_space",
        lambda: tf.constant(1, name="a b"),
        ValueError,
        "'a b' is not a valid operation name. A name starts with a letter, digit or '.', "
        "followed by letters, digits and any of _ . \\ / > -",
    ),
    (
        "tensor_by_op_name",
        lambda: (tf.constant(1, name="abc"), tf.get_default_graph().get_tensor_by_name("abc")),
        ValueError,
        "The name 'abc' refers to an Operation, not a Tensor. Tensor names must be of the"
        ' form "<op_name>:<output_index>". Use "abc:0".',
    ),
    (
        "unknown_op",
        lambda: (tf.constant(1, name="abc"), tf.get_default_graph().get_operation_by_name("abd")),
        KeyError,
        "\"The name 'abd' refers to an Operation not in the graph. Did you mean 'abc'?\"",
    ),
    (
        "unknown_attribute",
        lambda: tf.matmull,
        AttributeError,
        "module 'headrace' has no attribute 'matmull'. Did you mean 'matmul'?",
    ),
    (
        "raw_unknown",
        lambda: tf.raw_ops.MatMull,
        AttributeError,
        "Op type not registered: 'MatMull'. Did you mean 'MatMul'?",
    ),
    (
        "raw_argument",
        lambda: tf.raw_ops.MatMul(a=t(2, 2), b=t(2, 2), transposed=True),
        TypeError,
        "MatMul got an unexpected argument 'transposed'. Did you mean 'transpose_b'?",
    ),
    (
        "raw_missing",
        lambda: tf.raw_ops.MatMul(t(2, 2)),
        TypeError,
        "MatMul needs a value for input 'b'.",
    ),
    (
        "device_name",
        lambda: tf.device("/foo:bar:baz").__enter__(),
        ValueError,
        "Malformed device name '/foo:bar:baz': component 'foo:bar:baz' is no part of a "
        "device name; valid ones are '/cpu:0', '/device:GPU:1', '/job:ps/task:3' and "
        "'/job:worker/replica:0/task:17/device:GPU:*'.",
    ),
    (
        "variable_twice",
        lambda: [tf.get_variable("a", [2]) for _ in range(2)],
        ValueError,
        "Variable a already exists, disallowed. Did you mean to set reuse=True or "
        "reuse=tf.AUTO_REUSE in VarScope? Originally defined at:\n"
        "\n"
        "  SITE\n",
    ),
    (
        "variable_shape",
        lambda: tf.get_variable("a", [None, 2], initializer=tf.zeros_initializer),
        ValueError,
        "Shape of a new variable (a) must be fully defined for its initializer "
        "<headrace.ops.state.initializers.Zeros object>, but instead was (?, 2). Give all "
        "sizes, or an initializer without arguments.",
    ),
    (
        "variable_no_value",
        lambda: tf.Variable(),
        ValueError,
        "initial_value must be specified.",
    ),
    (
        "assign_shape",
        lambda: tf.Variable([1.0, 2.0], name="v").assign([1.0, 2.0, 3.0]),
        ValueError,
        "Cannot assign value to variable 'v': Shape mismatch. The variable shape (2,), "
        "and the assigned value shape (3,) are incompatible. Dimension 0 in both shapes "
        "must be equal, but are 2 and 3. (building operation 'Assign' of type "
        "AssignVariableOp from v:0: () resource, value:0: (3,) float32; made at "
        "LINE)",
    ),
    (
        "assign_type",
        lambda: tf.Variable([1.0]).assign(tf.constant([1])),
        ValueError,
        "Tensor conversion requested dtype float32 for Tensor with dtype int32: "
        "<tf.Tensor 'Const:0' shape=(1,) dtype=int32>. Use tf.cast to convert.",
    ),
    (
        "assign_to_constant",
        lambda: tf.assign(tf.constant(1.0), 2.0),
        TypeError,
        "Expected a tf.Variable, but <tf.Tensor 'Const:0' shape=() dtype=float32> is no "
        "variable's value.",
    ),
    (
        "gradient_of_string",
        lambda: tf.gradients(tf.constant("a"), t(2)),
        TypeError,
        "Gradients of Const:0 are not defined: its type is string; only floating and "
        "complex tensors have gradients.",
    ),
    (
        "grad_ys_count",
        lambda: tf.gradients([t(2)], t(2), grad_ys=[tf.ones([2]), tf.ones([2])]),
        ValueError,
        "Passed 2 grad_ys for 1 ys",
    ),
    (
        "minimize_without_variables",
        lambda: tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0)),
        ValueError,
        "No variables to optimize.",
    ),
    (
        "minimize_nothing",
        lambda: tf.train.GradientDescentOptimizer(0.1).minimize(None),
        TypeError,
        "loss must be a tensor, but got None",
    ),
    (
        "minimize_int",
        lambda: tf.train.GradientDescentOptimizer(0.1).minimize(tf.Variable(1) * 2),
        ValueError,
        "Invalid type tf.int32 for mul:0, expected: ['bfloat16', 'float16', 'float32', 'float64'].",
    ),
    (
        "apply_nothing",
        lambda: tf.train.GradientDescentOptimizer(0.1).apply_gradients([]),
        ValueError,
        "No variables provided.",
    ),
    (
        "apply_to_tensor",
        lambda: tf.train.GradientDescentOptimizer(0.1).apply_gradients([(t(2), t(2))]),
        NotImplementedError,
        "Trying to update <tf.Tensor 'Placeholder_1:0' shape=(2,) dtype=float32>: only "
        "variables can be updated. Pairs are (gradient, variable).",
    ),
    (
        "cond_number",
        lambda: tf.cond(3.0, lambda: 1, lambda: 2),
        TypeError,
        "pred must be a boolean scalar, not <tf.Tensor 'cond/pred:0' shape=() "
        "dtype=float32>. Compare it: x > 0.",
    ),
    (
        "cond_vector",
        lambda: tf.cond(t(2, dtype=tf.bool), lambda: 1, lambda: 2),
        ValueError,
        "pred must be a scalar, not <tf.Tensor 'Placeholder:0' shape=(2,) dtype=bool>. To"
        " choose element by element use tf.where.",
    ),
    (
        "cond_python_bool",
        lambda: tf.cond(True, lambda: tf.constant(1), lambda: tf.constant(2)),
        TypeError,
        "pred must not be a Python bool",
    ),
    (
        "cond_types",
        lambda: tf.cond(t(dtype=tf.bool), lambda: tf.constant(1), lambda: tf.constant(2.0)),
        ValueError,
        "Outputs of true_fn and false_fn must have the same type: int32, float32",
    ),
    (
        "cond_no_function",
        lambda: tf.cond(t(dtype=tf.bool), tf.constant(1), tf.constant(2)),
        TypeError,
        "true_fn must be callable.",
    ),
    (
        "while_shape",
        lambda: tf.while_loop(lambda x: True, lambda x: tf.concat([x, x], 0), [tf.ones([2])]),
        ValueError,
        "The shape for while/body/ones:0 is not an invariant for the loop. It enters the "
        "loop with shape (2,), but has shape (4,) after one iteration. Provide shape "
        "invariants using either the `shape_invariants` argument of tf.while_loop or "
        "set_shape() on the loop variables.",
    ),
    (
        "while_type",
        lambda: tf.while_loop(lambda i: i < 3, lambda i: tf.cast(i, tf.float32), [0]),
        TypeError,
        "Loop var while/Const:0 enters the loop with type tf.int32, but has type "
        "tf.float32 after 1 iteration.",
    ),
    (
        "while_condition",
        lambda: tf.while_loop(lambda i: i, lambda i: i + 1, [0]),
        TypeError,
        "cond must return a boolean scalar, not a int32 tensor of shape ().",
    ),
    (
        "map_scalar",
        lambda: tf.map_fn(lambda x: x, 3.0),
        ValueError,
        "elems must be at least of rank 1; map/elem:0 is a scalar, and elements are taken"
        " along the first axis.",
    ),
    (
        "scan_type",
        lambda: tf.scan(lambda a, x: tf.cast(a + x, tf.int32), tf.ones([2])),
        TypeError,
        "fn changes the type of the accumulated value from float32 to int32.",
    ),
    (
        "case_empty",
        lambda: tf.case([]),
        ValueError,
        "case(): pred_fn_pairs must not be empty.",
    ),
    (
        "py_func_no_function",
        lambda: tf.py_func(3, [], tf.float32),
        ValueError,
        "Expected func to be callable, got func of type <class 'int'>",
    ),
    (
        "group_number",
        lambda: tf.group(3),
        TypeError,
        "'inputs' should be zero or more (nested) Tensors. Received '3' with type '<class 'int'>'.",
    ),
]


@pytest.mark.parametrize(
    ("build", "kind", "message"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_mistake(build, kind, message):
    before = tf.get_default_graph()
    with pytest.raises(kind) as caught:
        build()
    assert type(caught.value) is kind
    text = str(caught.value)
    if "made at" in text:
        assert f"made at {__file__}:" in text
    text = re.sub(r"made at [^);]*", "made at LINE", text)
    text = re.sub(r'File "[^"]*", line \d+, in .*\n.*\n', "SITE\n", text)
    assert re.sub(r" at 0x\w+", "", text) == message
    assert tf.get_default_graph() is before

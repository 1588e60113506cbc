"""Conversion of Python values to arrays and TensorProtos, against TensorFlow's own bytes."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tensor_proto_cases import CASES

from headrace.graph import dtypes
from headrace.graph.proto import GraphDef, TensorProto
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor_proto import MakeNdarray, make_tensor_proto, to_ndarray

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "proto" / "tensors.pb"
PROTOS = {
    node.name: node.attr["value"].tensor for node in GraphDef.FromString(GOLDEN.read_bytes()).node
}


def dtype_of(case):
    return None if case.dtype is None else dtypes.as_dtype(case.dtype)


def same(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    if a.dtype == object:
        assert a.tolist() == b.tolist()
    else:
        assert a.tobytes() == b.tobytes()


def test_every_case_has_a_golden():
    assert [case.name for case in CASES] == list(PROTOS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
class TestAgainstTensorFlow:
    def test_proto_is_the_same(self, case):
        assert make_tensor_proto(case.values, case.dtype, case.shape) == PROTOS[case.name]

    def test_array_is_that_of_the_proto(self, case):
        array = to_ndarray(case.values, dtype_of(case), case.shape)
        same(array, MakeNdarray(PROTOS[case.name]))

    def test_array_makes_a_proto_of_the_same_value(self, case):
        array = to_ndarray(case.values, dtype_of(case), case.shape)
        proto = make_tensor_proto(array, PROTOS[case.name].dtype)
        same(MakeNdarray(proto), array)


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        (1.5, "int32", "Expected int32, got 1.5 of type 'float' instead."),
        ([1, 2.5], "int32", "Expected int32, got 2.5 of type 'float' instead."),
        (1, "bool", "Expected bool, got 1 of type 'int' instead."),
        ([True, 1], "bool", "Expected bool, got 1 of type 'int' instead."),
        ("a", "float32", "Expected float32, got 'a' of type 'str' instead."),
        ([1, "a"], "int32", "Expected int32, got 'a' of type 'str' instead."),
        (1, "string", "Expected string, got 1 of type 'int' instead."),
        ([[1.5]], "string", "Expected string, got 1.5 of type 'float' instead."),
        (1j, "float32", "Expected float32, got 1j of type 'complex' instead."),
        ([None], "float32", "Expected float32, got None of type 'NoneType' instead."),
        (300, "int8", "Cannot convert 300 to int8: it is outside [-128, 127]."),
        ([0, -1], "uint8", "Cannot convert -1 to uint8: it is outside [0, 255]."),
        (
            [2**63, -1],
            "uint64",
            "Cannot convert -1 to uint64: it is outside [0, 18446744073709551615].",
        ),
        (
            [2**63, 0.5],
            "int64",
            "Cannot convert 9223372036854775808 to int64: it is outside "
            "[-9223372036854775808, 9223372036854775807].",
        ),
        ([1, 0.5], "uint64", "Expected uint64, got 0.5 of type 'float' instead."),
        (2**64, None, "Cannot convert 18446744073709551616: it does not fit into 64 bits."),
        (1, "resource", "A value cannot be converted to a tensor of type resource."),
        (
            ["a", 1],
            None,
            "Expected binary or unicode string, got 1 of type 'int' at values[1].",
        ),
        (
            np.array([["a", 2]], object),
            None,
            "Expected binary or unicode string, got 2 of type 'int' at values[0][1].",
        ),
        (
            {1},
            None,
            "Failed to convert object of type <class 'set'> to Tensor. Contents: {1}. "
            "Consider casting elements to a supported type.",
        ),
        (
            [None],
            None,
            "Failed to convert object of type <class 'list'> to Tensor. Contents: [None]. "
            "Consider casting elements to a supported type.",
        ),
    ],
)
def test_wrong_kind_of_value(values, dtype, expected):
    with pytest.raises(TypeError) as error:
        to_ndarray(values, None if dtype is None else dtypes.as_dtype(dtype))
    assert str(error.value) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (None, "None values not supported."),
        (
            [[1, 2], [3]],
            "Argument must be a dense tensor: [[1, 2], [3]] - got 1 elements at values[1], "
            "but wanted 2 as at values[0].",
        ),
        (
            [[1], 2],
            "Argument must be a dense tensor: [[1], 2] - got the single value 2 at values[1], "
            "but wanted 1 as at values[0].",
        ),
        (
            [[["a"]], [[["b"]]]],
            "Argument must be a dense tensor: [[['a']], [[['b']]]] - got 1 elements at "
            "values[1][0][0], but wanted a single value as at values[0][0][0].",
        ),
    ],
)
def test_values_that_are_no_tensor(values, expected):
    with pytest.raises(ValueError) as error:  # noqa: PT011  the whole text is compared below
        to_ndarray(values)
    assert str(error.value) == expected


def test_symbolic_tensor_in_a_list():
    class Symbolic:
        op = value_index = None

        def __array__(self, *_, **__):
            raise NotImplementedError

    with pytest.raises(TypeError, match=r"^List of Tensors when single Tensor expected$"):
        to_ndarray([1.0, Symbolic()])


def test_result_shares_no_memory_with_the_argument():
    source = np.zeros([2, 3], np.float32)
    for shape in (None, [2, 3], [3, 2]):
        assert not np.shares_memory(to_ndarray(source, None, shape), source)
    assert not np.shares_memory(to_ndarray(source, dtypes.float32), source)
    assert to_ndarray(source.T).flags.c_contiguous


def test_index_like_elements_count_as_integers():
    class Dimension:
        def __init__(self, value):
            self.value = value

        def __index__(self):
            return self.value

    same(to_ndarray([[Dimension(2), 3]]), np.array([[2, 3]], np.int32))
    same(to_ndarray([Dimension(2)], dtypes.int64), np.array([2], np.int64))
    same(to_ndarray(TensorShape([4, 5])), np.array([4, 5], np.int32))


def test_swapped_bytes_become_native():
    same(to_ndarray(np.array([1, 2], ">i4")), np.array([1, 2], np.int32))
    same(MakeNdarray(make_tensor_proto(np.array([1.5, 2], ">f8"))), np.array([1.5, 2.0]))


def test_lists_of_arrays_keep_their_type_except_double():
    same(to_ndarray([np.ones(2, np.int8)] * 2), np.ones([2, 2], np.int8))
    same(to_ndarray([np.ones(2)] * 2), np.ones([2, 2], np.float32))
    one = np.ones(2, ml_dtypes.bfloat16)
    same(to_ndarray([one, one], dtypes.float32), np.ones([2, 2], np.float32))
    with pytest.raises(TypeError, match=r"^Expected int32, got"):
        to_ndarray([one, one], dtypes.int32)


def test_wide_integers_beside_small_ones_are_exact():
    """NumPy reads such a list as floats (and TensorFlow's result is zeros)."""
    same(to_ndarray([2**64 - 1, 0], dtypes.uint64), np.array([2**64 - 1, 0], np.uint64))


def test_reference_type_is_its_base():
    same(to_ndarray(3, dtypes.float32_ref), np.array(3, np.float32))
    assert make_tensor_proto(3.0, dtypes.float32_ref).dtype == 1


def test_a_tensor_proto_is_returned_as_it_is():
    proto = make_tensor_proto([1, 2])
    assert make_tensor_proto(proto) is proto


@pytest.mark.parametrize(
    ("arguments", "error", "expected"),
    [
        (
            {"values": [1, 2, 3], "shape": [2]},
            ValueError,
            "Too many elements provided. Needed at most 2, but received 3.",
        ),
        (
            {"values": [1, 2], "shape": [2, 1], "verify_shape": True},
            TypeError,
            "Expected Tensor's shape: (2, 1), got (2,).",
        ),
        (
            {"values": [1, 2], "shape": [3], "allow_broadcast": True},
            TypeError,
            "Expected Tensor's shape: (3,), got (2,).",
        ),
        (
            {"values": 1, "shape": [], "allow_broadcast": True, "verify_shape": True},
            ValueError,
            "allow_broadcast and verify_shape are not both allowed.",
        ),
        (
            {"values": 1, "shape": [None]},
            ValueError,
            "Expected a fully defined shape of sizes >= 0, got [None].",
        ),
    ],
)
def test_shapes_that_do_not_fit(arguments, error, expected):
    with pytest.raises(error) as caught:
        make_tensor_proto(**arguments)
    assert str(caught.value) == expected


def test_broadcast_of_one_element_stores_one_element():
    proto = make_tensor_proto([7], shape=[1000], allow_broadcast=True)
    assert list(proto.int_val) == [7]
    same(MakeNdarray(proto), np.full(1000, 7, np.int32))


def test_arrays_from_protos_are_writable():
    array = MakeNdarray(make_tensor_proto([1.5, 2.5]))
    array[0] = 0
    assert array.tolist() == [0, 2.5]


def test_strings_as_content():
    long = b"x" * 200
    proto = TensorProto(dtype=7, tensor_content=b"\x01\x00\xc8\x01" + b"a" + long)
    proto.tensor_shape.dim.add().size = 3
    assert MakeNdarray(proto).tolist() == [b"a", b"", long]
    proto.tensor_content = proto.tensor_content[:-1]
    with pytest.raises(ValueError, match=r"^tensor_content of 204 bytes does not hold 3 strings"):
        MakeNdarray(proto)


@pytest.mark.parametrize(
    ("text", "error", "expected"),
    [
        ("dtype: DT_RESOURCE", TypeError, "Unsupported tensor type: resource has no value"),
        ("dtype: DT_FLOAT8_E5M2", TypeError, "24 is not the number of a data type"),
        ("dtype: DT_FLOAT tensor_shape { unknown_rank: true }", ValueError, "fully known shape"),
        ("dtype: DT_FLOAT tensor_shape { dim { size: -1 } }", ValueError, "fully known shape"),
        (
            "dtype: DT_FLOAT tensor_shape { dim { size: 2 } } tensor_content: 'abcd'",
            ValueError,
            "tensor_content has 4 bytes: 2 elements of float32 need 8.",
        ),
        (
            "dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: [1, 2]",
            ValueError,
            r"shape \[1\] has 2 elements: at most 1 fit",
        ),
        ("dtype: DT_COMPLEX64 scomplex_val: 1", ValueError, "complex ones need pairs"),
    ],
)
def test_protos_that_are_refused(text, error, expected):
    from google.protobuf import text_format

    with pytest.raises(error, match=expected):
        MakeNdarray(text_format.Parse(text, TensorProto()))

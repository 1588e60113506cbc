"""DType: the table of types against TensorFlow's numbers, conversion, and the sets."""

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

from headrace.graph import dtypes as dt

NUMBERS = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7,
    "complex64": 8, "int64": 9, "bool": 10, "qint8": 11, "quint8": 12, "qint32": 13,
    "bfloat16": 14, "qint16": 15, "quint16": 16, "uint16": 17, "complex128": 18, "float16": 19,
    "resource": 20, "variant": 21, "uint32": 22, "uint64": 23,
}  # fmt: skip
NAMES_OF = {
    "is_floating": "float16 bfloat16 float32 float64",
    "is_integer": "int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "is_unsigned": "uint8 uint16 uint32 uint64",
    "is_complex": "complex64 complex128",
    "is_bool": "bool",
    "is_quantized": "qint8 quint8 qint16 quint16 qint32",
}
SIZES = {
    "string": 8, "resource": 1, "variant": 1, "bool": 1, "bfloat16": 2, "float16": 2,
    "complex128": 16, "qint32": 4, "quint16": 2, "uint64": 8,
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_name_number_and_reference_type(name):
    dtype, number = getattr(dt, name), NUMBERS[name]
    ref = getattr(dt, name + "_ref")
    assert (dtype.name, dtype.as_datatype_enum, int(dtype), hash(dtype)) == (name, *[number] * 3)
    assert (ref.name, ref.as_datatype_enum) == (name + "_ref", number + 100)
    assert (dtype._is_ref_dtype, ref._is_ref_dtype) == (False, True)
    assert dtype.base_dtype is dtype
    assert ref.base_dtype is dtype
    assert dtype._as_ref is ref
    assert ref._as_ref is ref
    assert ref.as_numpy_dtype == dtype.as_numpy_dtype
    for spelling in (dtype, name, number):
        assert dt.as_dtype(spelling) is dtype
    for spelling in (ref, name + "_ref", number + 100):
        assert dt.as_dtype(spelling) is ref
    assert dt.DType(number) is dtype


@pytest.mark.parametrize("name", NUMBERS)
def test_kinds(name):
    for dtype in (getattr(dt, name), getattr(dt, name + "_ref")):
        for kind, names in NAMES_OF.items():
            assert getattr(dtype, kind) is (name in names.split())
        assert dtype.is_numpy_compatible == (name not in ("resource", "variant"))


@pytest.mark.parametrize("name", SIZES)
def test_size(name):
    assert getattr(dt, name).size == SIZES[name]


def test_text():
    assert repr(dt.float32) == "tf.float32"
    assert str(dt.float32) == "<dtype: 'float32'>"
    assert repr(dt.bool_ref) == "tf.bool_ref"
    assert f"{dt.string}" == "<dtype: 'string'>"


def test_aliases():
    assert dt.half is dt.float16
    assert dt.double is dt.float64
    assert dt.double_ref is dt.float64_ref


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("float", "float32"), ("half", "float16"), ("double", "float64"), 
        ("int32_ref", "int32_ref"),
        ("float_ref", "float32_ref"), (float, "float32"), (int, "int32"), (bool, "bool"),
        (complex, "complex128"), (str, "string"), (bytes, "string"), (object, "string"),
        (np.float16, "float16"), (np.bool_, "bool"), (np.object_, "string"), (np.str_, "string"),
        (np.bytes_, "string"), (np.dtype("<U7"), "string"), (np.dtype("S3"), "string"),
        (np.dtype("float64"), "float64"), (np.dtype(">f4"), "float32"), (np.dtype(">i8"), "int64"),
        (ml_dtypes.bfloat16, "bfloat16"), (np.dtype(ml_dtypes.bfloat16), "bfloat16"),
        (np.dtype([("qint8", np.int8)]), "qint8"), (np.dtype([("quint16", np.uint16)]), "quint16"),
    ],
)  # fmt: skip
def test_as_dtype(value, name):
    assert dt.as_dtype(value) is getattr(dt, name)
    assert getattr(dt, name) == value


@pytest.mark.parametrize("c_type", "bhilqBHILQ")
def test_every_c_integer_type_maps_by_its_size(c_type):
    wanted = f"{'u' if c_type.isupper() else ''}int{np.dtype(c_type).itemsize * 8}"
    assert dt.as_dtype(np.dtype(c_type)) is getattr(dt, wanted)
    assert dt.as_dtype(np.dtype(c_type).type) is getattr(dt, wanted)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("flaot32", "Cannot convert 'flaot32' to a headrace DType. Did you mean 'float32'?"),
        ("Int64", "Cannot convert 'Int64' to a headrace DType. Did you mean 'int64'?"),
        ("xyz", "Cannot convert 'xyz' to a headrace DType."),
        (None, "Cannot convert None to a headrace DType."),
        (0, "Cannot convert 0 to a headrace DType."),
        (True, "Cannot convert True to a headrace DType."),
        ([1], "Cannot convert [1] to a headrace DType."),
        (list, "Cannot convert <class 'list'> to a headrace DType."),
        (
            np.dtype("datetime64[s]"),
            "Cannot convert dtype('<M8[s]') to a headrace DType.",
        ),
        (
            np.dtype([("a", np.int8)]),
            "Cannot convert dtype([('a', 'i1')]) to a headrace DType.",
        ),
    ],
)
def test_as_dtype_refuses(value, text):
    with pytest.raises(TypeError) as caught:
        dt.as_dtype(value)
    assert str(caught.value) == text
    assert dt.float32 != value


@pytest.mark.parametrize("number", [0, 24, 100, 124])
def test_no_type_of_that_number(number):
    with pytest.raises(TypeError) as caught:
        dt.DType(number)
    assert str(caught.value) == (
        f"{number} is not the number of a data type; valid numbers are 1 to 23, and 101 to 123 "
        "for the reference types."
    )


def test_equality():
    assert dt.float32 == np.float32
    assert dt.float32 == "float"
    assert dt.float32 == 1
    assert dt.float32 != dt.float64
    assert dt.float32 != dt.float32_ref
    assert dt.float32 != None  # noqa: E711
    assert dt.float32 != np.zeros(3)
    assert (dt.float32 != "float32") is False
    assert {dt.float32: "x"}[dt.as_dtype("float")] == "x"


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))]
)
def test_there_is_one_object_per_type(duplicate):
    assert duplicate(dt.bfloat16) is dt.bfloat16
    assert duplicate(dt.int8_ref) is dt.int8_ref


def test_types_are_immutable():
    with pytest.raises(AttributeError) as caught:
        dt.int8.name = "int9"
    assert str(caught.value) == "DType is immutable: cannot set 'name' of tf.int8."
    with pytest.raises(AttributeError) as caught:
        del dt.int8.name
    assert str(caught.value) == "DType is immutable: cannot delete 'name' of tf.int8."


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("int8", -128, 127),
        ("uint16", 0, 65535),
        ("int64", -(2**63), 2**63 - 1),
        ("uint64", 0, 2**64 - 1),
        ("int32_ref", -(2**31), 2**31 - 1),
        ("float16", -65504.0, 65504.0),
        ("float32", -float.fromhex("0x1.fffffep127"), float.fromhex("0x1.fffffep127")),
        ("bfloat16", -float.fromhex("0x1.fep127"), float.fromhex("0x1.fep127")),
    ],
)
def test_min_and_max(name, low, high):
    dtype = getattr(dt, name)
    assert float(dtype.min) == float(low)
    assert float(dtype.max) == float(high)
    if dtype.is_integer:
        assert (dtype.min, dtype.max) == (low, high)


@pytest.mark.parametrize("name", ["bool", "string", "complex64", "resource", "qint8"])
def test_no_extremes(name):
    dtype = getattr(dt, name)
    with pytest.raises(TypeError) as caught:
        _ = dtype.min
    assert str(caught.value) == f"Cannot find minimum value of tf.{name}."
    with pytest.raises(TypeError) as caught:
        _ = dtype.max
    assert str(caught.value) == f"Cannot find maximum value of tf.{name}."


def test_limits():
    assert dt.float32.limits == (0, 1)
    assert dt.uint8.limits == (0, 255)
    assert dt.int8.limits == (0, 127)
    assert dt.bool.limits == (0, True)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        _ = dt.string.limits
    assert str(caught.value) == "tf.string does not have defined limits."


def test_real_dtype():
    assert dt.complex64.real_dtype is dt.float32
    assert dt.complex128.real_dtype is dt.float64
    assert dt.complex64_ref.real_dtype is dt.float32
    assert dt.int32.real_dtype is dt.int32


def test_a_reference_can_stand_for_its_value_only():
    assert dt.float32.is_compatible_with(dt.float32)
    assert dt.float32.is_compatible_with("float32_ref")
    assert dt.float32_ref.is_compatible_with(dt.float32_ref)
    assert not dt.float32_ref.is_compatible_with(dt.float32)
    assert not dt.float32.is_compatible_with(np.float64)
    with pytest.raises(TypeError):
        dt.float32.is_compatible_with("nothing")


def test_numpy_types_of_quantised_types():
    assert dt.quint8.as_numpy_dtype == np.dtype([("quint8", np.uint8)])
    assert dt.quint8.np_dtype == np.dtype(np.uint8)
    assert dt.string.as_numpy_dtype is object
    assert dt.string.np_dtype == np.dtype(object)
    assert dt.bfloat16.as_numpy_dtype is ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("array", "name"),
    [
        (np.zeros(2, np.float32), "float32"),
        (np.zeros(2, ">i2"), "int16"),
        (np.array(["a"]), "string"),
        (np.array([b"a", None]), "string"),
        (np.zeros(0, ml_dtypes.bfloat16), "bfloat16"),
        (np.bool_(True), "bool"),
        (np.zeros(1, [("qint32", np.int32)]), "qint32"),
    ],
)
def test_np_array_dtype(array, name):
    assert dt.np_array_dtype(array) is getattr(dt, name)


@pytest.mark.parametrize("numpy_type", ["datetime64[s]", "timedelta64[s]", "V4", [("a", "i4")]])
def test_arrays_that_no_tensor_holds(numpy_type):
    array = np.zeros(1, numpy_type)
    with pytest.raises(TypeError) as caught:
        dt.np_array_dtype(array)
    assert str(caught.value) == f"A tensor cannot hold elements of NumPy type {array.dtype!r}."


def test_sets_of_types():
    assert len(dt.ALL_TYPES) == 23
    assert not any(t._is_ref_dtype for t in dt.ALL_TYPES)
    assert {dt.half, dt.bfloat16, dt.float32, dt.float64} == dt.FLOAT_TYPES
    assert dt.SIGNED_INTEGER_TYPES | dt.UNSIGNED_INTEGER_TYPES == dt.INTEGER_TYPES
    assert len(dt.INTEGER_TYPES) == 8
    assert len(dt.NUMBER_TYPES) == 14
    assert len(dt.NUMERIC_TYPES) == 19
    assert dt.ALL_TYPES - {dt.string, dt.resource, dt.variant} == dt.XLA_TYPES
    assert {dt.int32, dt.int64} == dt.INDEX_TYPES
    assert dt.FLOAT_TYPES | {dt.complex64, dt.complex128} == dt.INEXACT_TYPES

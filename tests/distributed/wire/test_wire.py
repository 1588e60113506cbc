"""Values on the wire: every kind comes back as it went, and no description does harm."""

from __future__ import annotations

import random

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from jax import numpy as jnp

from headrace.distributed.protocol import wire_pb2 as pb
from headrace.distributed.protocol.wire_pb2 import TensorMeta
from headrace.distributed.wire.codec import MAX_DEPTH, decode, decode_many, encode, encode_many
from headrace.distributed.wire.compress import ErrorFeedback
from headrace.errors import DataLossError, InvalidArgumentError
from headrace.executor.resources import ResourceHandle
from headrace.graph import dtypes
from headrace.ops.control.tensor_list_kernels import TensorList

NUMERIC = sorted(dtypes.NUMBER_TYPES | {dtypes.bool}, key=lambda t: t.as_datatype_enum)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def received(buffer):
    """A buffer as transports hand it over."""
    copy = np.frombuffer(bytes(buffer), np.uint8)
    assert not copy.flags.writeable
    return copy


def there_and_back(value, *args):
    meta, buffers = encode(value, *args)
    assert all(b.flags.c_contiguous and b.dtype == np.uint8 and b.size for b in buffers)
    return decode(TensorMeta.FromString(meta.SerializeToString()), [received(b) for b in buffers])


def assert_same(came, sent):
    if isinstance(sent, TensorList):
        assert type(came) is TensorList
        assert type(came.size) is type(sent.size) or not isinstance(sent.size, int)
        np.testing.assert_array_equal(came.size, sent.size)
        if sent.items is not None:
            for a, b in zip(came.items, sent.items, strict=True):
                assert_same(a, b)
        for name in ("buffer", "repeated"):
            assert_same(getattr(came, name), getattr(sent, name))
    elif sent is None:
        assert came is None
    else:
        sent = np.asarray(sent)
        assert (came.dtype, came.shape) == (sent.dtype, sent.shape)
        assert came.tobytes() == sent.tobytes() or came.dtype == object
        if came.dtype == object:
            assert came.tolist() == sent.tolist()


# -- arrays -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3), (2, 0, 3), (1,) * 8])
def test_every_type_and_shape(dtype, shape):
    content = np.random.default_rng(0).integers(0, 2, (*shape, dtype.size), np.uint8)
    value = content.view(dtype.np_dtype).reshape(shape) if shape else np.ones((), dtype.np_dtype)
    if dtype is dtypes.bool:
        value = content.astype(bool).reshape(shape)
    came = there_and_back(value)
    assert_same(came, value)
    assert not came.flags.writeable


@settings(deadline=None, max_examples=100)
@given(st.sampled_from([t for t in NUMERIC if t.np_dtype.kind in "biufc"]), SHAPES, st.data())
def test_arrays_come_back_bit_for_bit(dtype, shape, data):
    value = data.draw(hnp.arrays(dtype.np_dtype, shape))
    assert_same(there_and_back(value), value)
    assert_same(there_and_back(value.T), value.T)
    if shape:
        assert_same(there_and_back(value[::-1]), value[::-1])


@settings(deadline=None, max_examples=60)
@given(hnp.arrays(object, SHAPES, elements=st.binary(max_size=20)))
def test_strings_come_back(value):
    assert_same(there_and_back(value), value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, np.int32(3)),
        (-(2**40), np.int64(-(2**40))),
        (2.5, np.float32(2.5)),
        (True, np.bool_(True)),
        (1j, np.complex128(1j)),
        (np.float16(0.5), np.float16(0.5)),
        (ml_dtypes.bfloat16(0.5), np.array(0.5, ml_dtypes.bfloat16)),
        (np.bool_(False), np.bool_(False)),
        (b"a\0b", np.array(b"a\0b", object)),
        ("\u00e9", np.array("\u00e9".encode(), object)),
        (np.array(["a", "bc"]), np.array([b"a", b"bc"], object)),
        (np.array(["a", b"\xff"], object), np.array([b"a", b"\xff"], object)),
        (np.array([b"", b""], object), np.array([b"", b""], object)),
        (np.arange(3, dtype=">i4"), np.arange(3, dtype="<i4")),
        (np.arange(3, dtype=">f8")[::2], np.array([0.0, 2.0])),
        (np.array([(1,), (-2,)], [("qint8", np.int8)]), np.array([1, -2], np.int8)),
    ],
    ids=repr,
)
def test_scalars_and_unusual_arrays(value, expected):
    assert_same(there_and_back(value), expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "int32", "complex64"])
def test_jax_arrays_are_not_copied(dtype):
    value = jnp.ones((3, 40), dtype)
    meta, (buffer,) = encode(value)
    assert np.shares_memory(buffer, np.asarray(value))
    assert_same(decode(meta, [buffer]), np.asarray(value))


def test_neither_side_copies():
    value = np.arange(6.0).reshape(2, 3)
    meta, buffers = encode(value)
    came = decode(meta, buffers)
    assert np.shares_memory(buffers[0], value)
    assert np.shares_memory(came, value)
    assert value.flags.writeable
    assert not came.flags.writeable


@pytest.mark.parametrize("wrap", [bytes, memoryview, np.asarray])
def test_any_kind_of_buffer_at_any_address(wrap):
    content = b"x" + np.arange(5, dtype=np.float64).tobytes()
    buffer = np.frombuffer(content, np.uint8)[1:]
    if wrap is not np.asarray:
        buffer = wrap(buffer)
    came = decode(TensorMeta(dtype=2, dims=[5], buffers=1), [buffer])
    np.testing.assert_array_equal(came, np.arange(5.0))
    assert came.flags.aligned


@pytest.mark.parametrize(
    "value",
    [np.datetime64("2020-01-01"), np.longdouble(1), np.array([object()]), 2**63, object(), [1, 2],
     {"a": 1}, np.zeros(2, ml_dtypes.float8_e4m3fn), TensorList((object(),))],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_what_no_tensor_holds_is_refused(value):
    with pytest.raises(InvalidArgumentError, match=r"cannot|can be sent"):
        encode(value)


# -- lists and handles --------------------------------------------------------------------------


LISTS = [
    TensorList(()),
    TensorList((None, None)),
    TensorList((np.ones(2), None, np.zeros((3, 0)), np.array(b"s", object))),
    TensorList((TensorList((np.ones(2),)), TensorList(()))),
    TensorList.stack_of(np.arange(6.0).reshape(3, 2)),
    TensorList.stack_of(np.arange(6.0).reshape(3, 2), np.int32(2)),
    TensorList.stack_of(np.zeros((0, 2), np.float32)),
    TensorList.repeat(np.ones(2), 5),
    TensorList.repeat(np.ones(2), np.array(5, np.int64)),
    TensorList((TensorList.repeat(np.ones(2), 3), TensorList.stack_of(np.ones((2, 2))))),
]


@pytest.mark.parametrize("value", LISTS, ids=repr)
def test_lists_of_each_form(value):
    assert_same(there_and_back(value), value)


def test_stacks_of_lists():
    rows = [TensorList.stack_of(np.full((4, 2), float(i)), np.int32(i)) for i in range(3)]
    value = TensorList(tuple(rows)).stacked()
    assert isinstance(value.buffer, TensorList)
    came = there_and_back(value)
    assert jax.tree.structure(came) == jax.tree.structure(value)
    for a, b in zip(jax.tree.leaves(came), jax.tree.leaves(value), strict=True):
        np.testing.assert_array_equal(a, b)


def test_too_deep_lists_are_refused_on_both_sides():
    value, meta = TensorList(()), TensorMeta(dtype=21, encoding=pb.LIST_ITEMS)
    for _ in range(MAX_DEPTH - 1):
        value = TensorList((value,))
        meta = TensorMeta(dtype=21, encoding=pb.LIST_ITEMS, items=[meta])
    assert_same(there_and_back(value), value)
    with pytest.raises(InvalidArgumentError, match="deeper than 32"):
        encode(TensorList((value,)))
    with pytest.raises(InvalidArgumentError, match="deeper than 32"):
        decode(TensorMeta(dtype=21, encoding=pb.LIST_ITEMS, items=[meta]), [])


def test_handles_are_the_same_object():
    handle = ResourceHandle("Variable", "box", "a/v")
    assert there_and_back(handle) is handle
    came = there_and_back(TensorList((handle,)))
    assert came.items == (handle,)


def test_nothing():
    assert there_and_back(None) is None


# -- many values, compressed values -------------------------------------------------------------


def test_many_values_share_one_row_of_buffers():
    values = [
        np.ones(3),
        np.array([b"text"], object),
        np.zeros((0, 2)),
        TensorList((np.ones(2), None)),
        None,
        np.int32(7),
    ]
    metas, buffers = encode_many(values)
    assert len(buffers) == 5
    for came, sent in zip(decode_many(metas, buffers), values, strict=True):
        assert_same(came, sent)
    with pytest.raises(DataLossError, match="6 buffers came for values that have 5"):
        decode_many(metas, [*buffers, b""])
    with pytest.raises(DataLossError, match="needs more than the 4 buffers"):
        decode_many(metas, buffers[:-1])
    with pytest.raises(ValueError, match="zip"):
        encode_many(values, ["int8"])


@pytest.mark.parametrize("precision", ["bfloat16", "float16", "int8"])
@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray])
def test_compressed_values_keep_type_and_shape(precision, kind):
    value = np.linspace(-2, 2, 600, dtype=np.float32).reshape(20, 30)
    came = there_and_back(kind(value), precision)
    assert (came.dtype, came.shape) == (value.dtype, value.shape)
    np.testing.assert_allclose(came, value, atol=2 / 127)
    assert (came != value).any()
    assert not came.flags.writeable


@pytest.mark.parametrize("precision", ["bfloat16", "float16", "int8"])
@pytest.mark.parametrize(
    "value",
    [np.arange(3), np.float16([1 / 3]), np.array([True]), np.zeros((2, 0), np.float32), b"x",
     TensorList((np.float32([1 / 3]),)), None],
    ids=repr,
)  # fmt: skip
def test_what_is_no_float_tensor_goes_exactly(precision, value):
    meta, buffers = encode(value, precision)
    exact_meta, exact_buffers = encode(value)
    assert meta == exact_meta
    assert [b.tobytes() for b in buffers] == [b.tobytes() for b in exact_buffers]


def test_compressed_among_many():
    values = [np.float32([1 / 3] * 9), np.float32([1 / 3]), np.arange(4)]
    feedback = ErrorFeedback()
    metas, buffers = encode_many(values, ["int8", "", "bfloat16"], [feedback, None, None])
    coarse, exact, whole = decode_many(metas, buffers)
    np.testing.assert_allclose(coarse, values[0], rtol=1e-6)
    np.testing.assert_array_equal(exact, values[1])
    np.testing.assert_array_equal(whole, values[2])
    assert feedback.nbytes == 36


# -- malformed descriptions ---------------------------------------------------------------------

BYTES = np.zeros(16, np.uint8)
ENDS = np.array([1, 3], np.int64).view(np.uint8)
ROWS = TensorMeta(dtype=1, dims=[2, 2], buffers=1)


def stack(*items, **fields):
    return TensorMeta(dtype=21, encoding=pb.LIST_STACKED, items=items, **fields)


@pytest.mark.parametrize(
    ("meta", "buffers", "message"),
    [
        (TensorMeta(dtype=99, dims=[4], buffers=1), [BYTES], "malformed: unknown element type 99"),
        (TensorMeta(dtype=7, dims=[4], buffers=1), [BYTES], "unknown element type 7"),
        (TensorMeta(dtype=-1, dims=[4], buffers=1), [BYTES], "unknown element type -1"),
        (TensorMeta(dtype=1, dims=[-4], buffers=1), [BYTES], r"negative dimension in \[-4\]"),
        (TensorMeta(dtype=1, dims=[-2, -2], buffers=1), [BYTES], "negative dimension"),
        (TensorMeta(dtype=1, dims=[0, -1]), [], "negative dimension"),
        (TensorMeta(dtype=1, dims=[1] * 65, buffers=1), [BYTES], "65 dimensions; there may be 64"),
        (TensorMeta(dtype=1, dims=[2**62] * 64, buffers=1), [BYTES], "damaged: float32"),
        (TensorMeta(dtype=1, dims=[2**32, 2**32], buffers=1), [BYTES], "in 16 bytes"),
        (TensorMeta(dtype=1, dims=[5], buffers=1), [BYTES], r"float32\[5\] in 16 bytes"),
        (TensorMeta(dtype=1, dims=[3], buffers=1), [BYTES], r"float32\[3\] in 16 bytes"),
        (TensorMeta(dtype=1, dims=[0, 2**62, 2**62]), [], "are too large"),
        (TensorMeta(dtype=1, dims=[4]), [], "4 elements in 0 buffers"),
        (TensorMeta(dtype=1, dims=[0], buffers=1), [BYTES], "0 elements in 1 buffers"),
        (TensorMeta(dtype=1, dims=[4], buffers=2), [BYTES, BYTES], "4 elements in 2 buffers"),
        (TensorMeta(dtype=1, dims=[4], buffers=1), [], "0 buffers came for a value that has 1"),
        (TensorMeta(dtype=10, dims=[2], buffers=1), [b"\1\2"], "neither 0 nor 1"),
        (TensorMeta(dtype=1, dims=[4], encoding=42, buffers=1), [BYTES], "unknown encoding 42"),
        (TensorMeta(dtype=1, dims=[2], encoding=pb.STRINGS), [], "strings of element type 1"),
        (TensorMeta(dtype=7, dims=[3], encoding=pb.STRINGS, buffers=2), [ENDS, b"abc"], "offsets"),
        (TensorMeta(dtype=7, dims=[2], encoding=pb.STRINGS, buffers=2), [ENDS, b"ab"], "of 3 byte"),
        (TensorMeta(dtype=7, dims=[2], encoding=pb.STRINGS, buffers=1), [ENDS], "needs more than"),
        (
            TensorMeta(dtype=7, dims=[2], encoding=pb.STRINGS, buffers=2),
            [np.array([3, 1], np.int64).view(np.uint8), b"a"],
            "not in order",
        ),
        (
            TensorMeta(dtype=7, dims=[2], encoding=pb.STRINGS, buffers=2),
            [np.array([-5, 1], np.int64).view(np.uint8), b"a"],
            "not in order",
        ),
        (
            TensorMeta(dtype=7, dims=[2], encoding=pb.STRINGS, buffers=2),
            [np.array([0, 0], np.int64).view(np.uint8), b"a"],
            "takes 1 buffers but names 2",
        ),
        (TensorMeta(dtype=1, encoding=pb.FLOAT16, dims=[0]), [], "has no elements"),
        (TensorMeta(dtype=1, encoding=pb.FLOAT16, dims=[8]), [], "in 0 buffers"),
        (TensorMeta(dtype=7, encoding=pb.FLOAT16, dims=[8], buffers=1), [BYTES], "unknown element"),
        (TensorMeta(dtype=3, encoding=pb.FLOAT16, dims=[8], buffers=1), [BYTES], "never compress"),
        (TensorMeta(dtype=1, encoding=pb.FLOAT16, dims=[9], buffers=1), [BYTES], "in 16 bytes"),
        (TensorMeta(dtype=1, encoding=pb.INT8_BLOCKS, dims=[2**50], buffers=2), [BYTES] * 2, "sca"),
        (TensorMeta(encoding=pb.NONE, buffers=1), [BYTES], "takes 0 buffers but names 1"),
        (stack(), [], "made of 0 items"),
        (stack(ROWS, ROWS, ROWS, buffers=3), [BYTES] * 3, "made of 3 items"),
        (stack(ROWS, list_size=3, buffers=1), [BYTES], "size 3 where at most 2"),
        (stack(ROWS, list_size=-1, buffers=1), [BYTES], "size -1 where"),
        (stack(ROWS, ROWS, buffers=2), [BYTES] * 2, "size of a list is no integer"),
        (stack(TensorMeta(encoding=pb.NONE)), [], "no common first dimension"),
        (stack(TensorMeta(dtype=1, buffers=1), buffers=1), [BYTES[:4]], "no common first dim"),
        (
            stack(TensorMeta(encoding=pb.HANDLE, handle=pb.ResourceName(name="v"))),
            [],
            "no common first dimension",
        ),
        (
            TensorMeta(encoding=pb.LIST_REPEATED, items=[ROWS], list_size=2**40, buffers=1),
            [BYTES],
            "a list of size 1099511627776",
        ),
    ],
)
def test_malformed_values_are_refused_with_a_reason(meta, buffers, message):
    with pytest.raises((InvalidArgumentError, DataLossError), match=message):
        decode(meta, buffers)


SAMPLES = [
    np.arange(6.0).reshape(2, 3),
    np.array([b"ab", b"", b"cde"], object),
    *LISTS,
    ResourceHandle("Variable", "", "v"),
    (np.ones(300, np.float32), "int8"),
    (np.float32([1, np.nan] * 200), "int8"),
    (np.ones(5, np.float32), "bfloat16"),
]


def mutate(rng, meta):
    """One change somewhere in the description."""
    while meta.items and rng.random() < 0.5:
        meta = rng.choice(meta.items)
    number = rng.choice([-1, 0, 1, 2, 3, 7, 63, 2**31 - 1, 2**62, -(2**63), rng.randrange(20)])
    kind = rng.randrange(6)
    if kind == 0:
        meta.dtype = max(min(number, 2**31 - 1), -(2**31))
    elif kind == 1:
        meta.dims[:] = [number if rng.random() < 0.5 else d for d in meta.dims] or [number]
    elif kind == 2:
        meta.encoding = rng.randrange(12)
    elif kind == 3:
        meta.buffers = rng.randrange(5)
    elif kind == 4:
        meta.list_size = number
    elif meta.items and rng.random() < 0.5:
        del meta.items[rng.randrange(len(meta.items))]
    else:
        meta.items.add(dtype=1, dims=[1], buffers=1)


def test_mutated_descriptions_give_a_value_or_a_clean_error():
    rng = random.Random(20)
    refused = 0
    for _ in range(3000):
        sample = rng.choice(SAMPLES)
        meta, buffers = encode(*sample) if isinstance(sample, tuple) else encode(sample)
        for _ in range(rng.randrange(1, 4)):
            mutate(rng, meta)
        if rng.random() < 0.3 and buffers:
            at = rng.randrange(len(buffers))
            noise = np.frombuffer(rng.randbytes(buffers[at].size), np.uint8)
            buffers[at] = rng.choice([noise, noise[: rng.randrange(noise.size + 1)]])
        try:
            decode(meta, buffers)
        except (InvalidArgumentError, DataLossError):
            refused += 1
    assert refused > 2000

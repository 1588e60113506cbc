"""Transfers in fewer bits: how far off values may be, what stays exact, what is kept back."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import headrace as tf
from headrace.distributed.protocol import wire_pb2 as pb
from headrace.distributed.wire import compress
from headrace.distributed.wire.compress import BLOCK, CHUNK, ErrorFeedback, precision_of
from headrace.errors import DataLossError, InvalidArgumentError

F32 = np.finfo(np.float32)
LENGTHS = st.one_of(st.integers(1, 3), st.integers(250, 260), st.integers(500, 1100))


def vectors(dtype=np.float32, **limits):
    width = 8 * np.dtype(dtype).itemsize
    return hnp.arrays(dtype, LENGTHS, elements=st.floats(width=width, **limits))


finite = vectors(allow_nan=False, allow_infinity=False)


def there_and_back(x, precision, feedback=None):
    encoding, buffers = compress.compress(x, precision, feedback)
    return compress.expand(encoding, x.dtype, x.size, buffers).reshape(x.shape)


def bits(x):
    return x.view(np.uint32)


# -- bfloat16 -----------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(finite)
def test_bfloat16_keeps_the_upper_half_of_the_bits(x):
    y = there_and_back(x, "bfloat16")
    np.testing.assert_array_equal(bits(y), bits(x) & np.uint32(0xFFFF0000))


@settings(deadline=None, max_examples=60)
@given(vectors(allow_nan=False, allow_infinity=False, allow_subnormal=False))
def test_bfloat16_is_off_by_less_than_a_128th_towards_zero(x):
    y = there_and_back(x, "bfloat16").astype(np.float64)
    wide = x.astype(np.float64)
    assert (np.abs(y) <= np.abs(wide)).all()
    assert (np.signbit(y) == np.signbit(wide)).all()
    assert (np.abs(y - wide) <= 2.0**-7 * np.abs(wide)).all()
    assert (np.abs(y - wide)[wide != 0] < 2.0**-7 * np.abs(wide)[wide != 0]).all()


@settings(deadline=None, max_examples=30)
@given(vectors())
def test_values_that_16_bits_hold_stay_as_they_are(x):
    once = there_and_back(x, "bfloat16")
    np.testing.assert_array_equal(bits(there_and_back(once, "bfloat16")), bits(once))


@pytest.mark.parametrize("pattern", [0x7F800001, 0xFF800001, 0x7FC00000, 0xFFFFFFFF, 0x7F80FFFF])
def test_bfloat16_keeps_nan_whatever_its_bits(pattern):
    x = np.zeros(300, np.float32)
    x.view(np.uint32)[7] = pattern
    y = there_and_back(x, "bfloat16")
    assert np.isnan(y[7])
    assert np.signbit(y[7]) == bool(pattern >> 31)
    assert np.count_nonzero(y) == 1


@pytest.mark.parametrize("precision", ["bfloat16", "float16", "int8"])
def test_infinities_and_zeros_stay(precision):
    x = np.float32([np.inf, -np.inf, 0.0, 1.0, F32.max if precision != "float16" else 2.0])
    y = there_and_back(x, precision)
    np.testing.assert_array_equal(y[:4], x[:4])
    assert np.isfinite(y[4])


# -- float16 ------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(vectors())
def test_float16_is_numpys_half(x):
    with np.errstate(all="ignore"):
        expected = x.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(there_and_back(x, "float16"), expected)


def test_float16_overflows_to_infinity_without_a_warning():
    y = there_and_back(np.float32([65504, 65520, -1e30, 1e-30]), "float16")
    np.testing.assert_array_equal(y, np.float32([65504, np.inf, -np.inf, 0]))


# -- int8 ---------------------------------------------------------------------------------------


def blockwise_largest(x):
    padded = np.zeros(-(-x.size // BLOCK) * BLOCK)
    padded[: x.size] = np.abs(x.ravel())
    return np.repeat(padded.reshape(-1, BLOCK).max(axis=1), BLOCK)[: x.size]


@settings(deadline=None, max_examples=60)
@given(finite)
def test_int8_is_off_by_at_most_a_254th_of_the_largest_of_the_block(x):
    y = there_and_back(x, "int8")
    assert np.isfinite(y).all()
    largest = blockwise_largest(x)
    error = np.abs(y.astype(np.float64) - x.astype(np.float64))
    assert (error <= largest * (1 / 254 + 2**-20) + 1.5e-36).all()


@settings(deadline=None, max_examples=60)
@given(vectors())
def test_int8_keeps_whatever_is_not_finite_and_its_block_exactly(x):
    y = there_and_back(x, "int8")
    odd = ~np.isfinite(x)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(x))
    np.testing.assert_array_equal(y[odd], x[odd])
    blocks_with_odd = np.unique(np.nonzero(odd)[0] // BLOCK)
    for block in blocks_with_odd:
        at = slice(block * BLOCK, (block + 1) * BLOCK)
        np.testing.assert_array_equal(y[at], x[at])


def test_int8_of_zeros_and_of_the_smallest_numbers():
    x = np.zeros(3 * BLOCK, np.float32)
    x[BLOCK : 2 * BLOCK] = F32.smallest_subnormal
    x[2 * BLOCK :] = 3.0
    np.testing.assert_array_equal(there_and_back(x, "int8"), np.where(x == 3, x, 0))


def test_int8_of_the_largest_numbers_stays_finite():
    x = np.full(BLOCK, F32.max)
    y = there_and_back(x, "int8")
    np.testing.assert_allclose(y, x, rtol=1e-6)


def test_int8_takes_one_byte_an_element_and_a_scale_a_block():
    _, buffers = compress.compress(np.ones(10 * BLOCK + 1, np.float32), "int8")
    assert [b.nbytes for b in buffers] == [4 * 11, 10 * BLOCK + 1]


@pytest.mark.parametrize("size", [CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + BLOCK + 3])
@pytest.mark.parametrize("precision", ["bfloat16", "float16", "int8"])
def test_chunks_join_without_seams(size, precision):
    x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    x[-1] = x[CHUNK - 2] = np.nan
    y = there_and_back(x, precision)
    np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
    # Halves below 6.1e-5 have fewer digits.
    slack = {"bfloat16": 0, "float16": 2**-25, "int8": 0.03}[precision]
    np.testing.assert_allclose(y, x, rtol=2**-7, atol=slack)


# -- other types --------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_float64_goes_through_float32(precision):
    x = np.array([1 / 3, -1e300, 1e-300, 2.5, np.nan])
    y = there_and_back(x, precision)
    assert y.dtype == np.float64
    with np.errstate(over="ignore"):
        through = there_and_back(x.astype(np.float32), precision)
    np.testing.assert_array_equal(y, through)
    assert y[1] == -np.inf


def test_float64_becomes_half_in_one_rounding():
    # Through float32 this would round twice, to the other neighbour.
    x = np.array([1 + 2.0**-11 + 2.0**-40])
    assert there_and_back(x, "float16")[0] == 1 + 2.0**-10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("precision", ["bfloat16", "float16", "int8"])
def test_signalling_nan_pass_without_a_warning(dtype, precision):
    x = np.ones(3, dtype)
    x.view(np.uint32 if dtype is np.float32 else np.uint64)[1] = (
        0x7F800001 if dtype is np.float32 else 0x7FF0000000000001
    )
    for feedback in (None, ErrorFeedback()):
        np.testing.assert_array_equal(there_and_back(x, precision, feedback), [1, np.nan, 1])


@pytest.mark.parametrize("dtype", [np.int32, np.float16, np.complex64, np.bool_, object])
@pytest.mark.parametrize("precision", ["bfloat16", "float16", "int8"])
def test_other_types_are_left_alone(dtype, precision):
    assert compress.compress(np.ones(3, dtype), precision) is None


@pytest.mark.parametrize("precision", ["", "float32"])
def test_exact_means_untouched(precision):
    assert compress.compress(np.ones(3, np.float32), precision) is None


def test_unknown_precisions_are_refused():
    with pytest.raises(InvalidArgumentError, match="no wire precision 'int4'"):
        compress.compress(np.ones(3, np.float32), "int4")


@pytest.mark.parametrize("precision", ["bfloat16", "float16", "int8"])
def test_strided_and_scalar_arrays(precision):
    x = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]
    np.testing.assert_allclose(there_and_back(x, precision), x, atol=11 / 254)
    np.testing.assert_array_equal(
        there_and_back(np.array(2.0, np.float32), precision), np.float32(2)
    )


# -- error feedback -----------------------------------------------------------------------------


def test_what_is_left_out_comes_with_the_next_transfers():
    rng = np.random.default_rng(1)
    feedback = ErrorFeedback()
    sent, came = np.zeros(1000), np.zeros(1000)
    for _ in range(30):
        x = rng.standard_normal(1000).astype(np.float32)
        sent += x
        came += there_and_back(x, "int8", feedback)
    # Of all 30 transfers, only the last one's rounding is missing.
    assert np.abs(sent - came).max() < 4.5 / 254 + 1e-4


def test_without_feedback_small_elements_are_lost_for_ever_and_with_it_none():
    x = np.full(BLOCK, 1e-3, np.float32)
    x[0] = 1.0
    assert there_and_back(x, "int8")[1] == 0
    feedback = ErrorFeedback()
    total = sum(there_and_back(x, "int8", feedback)[1] for _ in range(1000))
    assert total == pytest.approx(1.0, abs=1 / 127)


def test_feedback_does_not_touch_the_value_sent():
    x = np.linspace(-1, 1, 300, dtype=np.float32)
    kept, feedback = x.copy(), ErrorFeedback()
    for _ in range(3):
        there_and_back(x, "int8", feedback)
    np.testing.assert_array_equal(x, kept)


def test_feedback_is_dropped_when_the_shape_changes():
    feedback = ErrorFeedback()
    x = np.linspace(0, 1, 6, dtype=np.float32)
    first = there_and_back(x, "int8", feedback)
    assert feedback.nbytes == 24
    np.testing.assert_array_equal(there_and_back(x.reshape(2, 3), "int8", feedback).ravel(), first)
    feedback.reset()
    assert feedback.nbytes == 0
    np.testing.assert_array_equal(there_and_back(x, "int8", feedback), first)


def test_blocks_that_are_not_finite_leave_no_residue():
    feedback = ErrorFeedback()
    x = np.full(2 * BLOCK + 5, 0.3, np.float32)
    x[3] = np.inf
    x[-1] = np.nan
    there_and_back(x, "int8", feedback)
    clean = np.full(x.size, 0.3, np.float32)
    y = there_and_back(clean, "int8", feedback)
    assert np.isfinite(y).all()
    np.testing.assert_allclose(y, clean, rtol=1 / 127)


def test_transfers_of_one_edge_at_once_lose_nothing():
    feedback = ErrorFeedback()
    x = np.linspace(0.0, 1.0, 3000, dtype=np.float32)
    came: list[np.ndarray] = []

    def send():
        came.extend(there_and_back(x, "int8", feedback) for _ in range(20))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.abs(np.sum(came, axis=0, dtype=np.float64) - 80.0 * x).max() < 1.01 / 254 + 1e-4


# -- contents that do not fit -------------------------------------------------------------------


def packed(size=300):
    return compress.compress(np.linspace(0, 1, size, dtype=np.float32), "int8")[1]


@pytest.mark.parametrize(
    ("encoding", "buffers", "message"),
    [
        (pb.BFLOAT16_TRUNCATED, [b"123"], "300 16-bit elements in 3 bytes"),
        (pb.FLOAT16, [b"1" * 600, b""], "2 buffers of 16-bit elements"),
        (pb.INT8_BLOCKS, [packed()[0]], "1 buffers of 8-bit elements"),
        (pb.INT8_BLOCKS, [b"1234", packed()[1]], "2 scales in 4 bytes"),
        (pb.INT8_BLOCKS, [packed()[0], b"1234"], "300 8-bit elements in 4 bytes"),
        (pb.INT8_BLOCKS, [*packed(), b"1234"], "4 bytes of exact elements where 0 are missing"),
        (
            pb.INT8_BLOCKS,
            [np.float32([1, np.nan]).view(np.uint8), packed()[1]],
            "0 bytes of exact elements where 176 are missing",
        ),
        (pb.INT8_BLOCKS, [np.float32([1, -1]).view(np.uint8), packed()[1]], "a scale that no"),
        (pb.INT8_BLOCKS, [np.float32([1, np.inf]).view(np.uint8), packed()[1]], "a scale that no"),
    ],
)
def test_buffers_that_do_not_fit_are_refused(encoding, buffers, message):
    with pytest.raises(DataLossError, match=message):
        compress.expand(encoding, np.dtype(np.float32), 300, buffers)


def test_types_that_are_never_compressed_are_refused():
    with pytest.raises(InvalidArgumentError, match="int32 elements are never compressed"):
        compress.expand(pb.FLOAT16, np.dtype(np.int32), 1, [b"12"])


# -- choosing -----------------------------------------------------------------------------------


def test_nothing_is_compressed_unless_asked_for():
    assert precision_of({}) == ""
    assert precision_of({}, tf.ConfigProto()) == ""


def test_the_scope_wins_over_the_session():
    session = tf.ConfigProto(graph_options=tf.GraphOptions(enable_bfloat16_sendrecv=True))
    assert precision_of({}, session) == "bfloat16"
    assert precision_of({"_wire_precision": "int8"}, session) == "int8"
    assert precision_of({"_wire_precision": "float32"}, session) == ""
    assert precision_of({"_wire_precision": b"float16"}) == "float16"
    with pytest.raises(InvalidArgumentError, match="'int7'"):
        precision_of({"_wire_precision": "int7"})

"""Values of ops that no other test computes, worked out by hand or taken from TensorFlow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.ops.core.build import raw

IMAGES = Path(__file__).resolve().parents[2] / "tools" / "goldens" / "images"
SPARSE = (
    np.array([[0, 0], [0, 1], [1, 0]], np.int64),
    np.array([2, 9, 5], np.int64),
    np.array([2, 2], np.int64),
)
BOXES = np.float32([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]])
SCORES = np.float32([0.9, 0.8, 0.7])


def run(make):
    """The outputs of an op as nested lists."""
    fetches = make()
    with tf.Session() as session:
        found = session.run(list(fetches) if isinstance(fetches, tuple) else [fetches])
    return [np.asarray(f).tolist() for f in found]


def quantized(values, kind=tf.quint8):
    return tf.bitcast(tf.constant(np.array(values, kind.as_numpy_dtype)), kind)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: raw.StringStrip([" a \n"]), [b"a"]),
        (lambda: raw.StringUpper(["aé"]), ["Aé".encode()]),
        (lambda: raw.StringUpper(["aé"], encoding="utf-8"), ["AÉ".encode()]),
        (lambda: raw.StringToHashBucket(["a", "b"], num_buckets=10), [8, 0]),
        (
            lambda: raw.StringToHashBucketStrong(["a", "b"], num_buckets=1000, key=(1, 2)),
            [646, 184],
        ),
        (lambda: raw.RegexReplace(["banana"], "a(.)", r"<\1>"), [b"b<n><n>a"]),
        (lambda: raw.RegexReplace(["banana"], "a", "o", replace_global=False), [b"bonana"]),
        (lambda: raw.RegexFullMatch(["ab", "b"], "a.*"), [True, False]),
        (lambda: raw.EncodeBase64(["a?>"]), [b"YT8-"]),
        (lambda: raw.EncodeBase64(["a"], pad=True), [b"YQ=="]),
        (lambda: raw.DecodeBase64(["YT8-", "YQ"]), [b"a?>", b"a"]),
    ],
)
def test_strings(make, expected):
    assert run(make) == [expected]


@pytest.mark.parametrize(
    ("make", "integers", "limit"),
    [
        (
            lambda: raw.QuantizedMatMul(
                quantized([[1, 2], [3, 4]]), quantized([[1, 0], [2, 1]]), 0.0, 255.0, 0.0, 255.0
            ),
            [[5, 2], [11, 4]],
            2.0**31,
        ),
        (
            lambda: raw.QuantizedMul(
                quantized([10, 20]), quantized([1, 2]), 0.0, 255.0, 0.0, 255.0
            ),
            [10, 40],
            2.0**31,
        ),
        (  # sums of the reals, in steps of 255 / 2**17
            lambda: raw.QuantizedAdd(
                quantized([10, 20]), quantized([1, 2]), 0.0, 255.0, 0.0, 255.0
            ),
            [5654, 11308],
            255.0 * 2**14,
        ),
        (
            lambda: raw.QuantizedBiasAdd(
                quantized([[10, 20]]), quantized([1, 2]), 0.0, 255.0, 0.0, 255.0, out_type=tf.qint32
            ),
            [[707, 1414]],
            255.0 * 2**17,
        ),
    ],
)
def test_quantized_arithmetic(make, integers, limit):
    values, low, high = run(make)
    assert values == integers
    assert [low, high] == pytest.approx([-limit, limit], rel=1e-3)


def test_quantized_limits_and_ranges():
    features = quantized([10, 2, 5, 0])
    assert run(lambda: raw.QuantizedRelu6(features, 0.0, 255.0)) == [[6, 2, 5, 0], 0.0, 255.0]
    assert run(lambda: raw.QuantizedReluX(features, 4.0, 0.0, 255.0))[0] == [4, 2, 4, 0]
    image = quantized(np.arange(4).reshape(1, 2, 2, 1) * 10)
    window = {"ksize": (1, 2, 2, 1), "strides": (1, 1, 1, 1), "padding": "VALID"}
    assert run(lambda: raw.QuantizedAvgPool(image, 0.0, 255.0, **window)) == [
        [[[[15]]]],
        0.0,
        255.0,
    ]
    wide = quantized([0, 1 << 20, 1 << 21], tf.qint32)
    shrunk = run(lambda: raw.QuantizeDownAndShrinkRange(wide, -1.0, 1.0, out_type=tf.quint8))
    assert shrunk == [[0, 127, 255], 0.0, pytest.approx(2.0**-10)]


def test_sets():
    some = np.array([[1, 2, 2], [3, 4, 5]], np.int64)
    others = np.array([[2, 9, 0], [3, 5, 5]], np.int64)
    places = [[0, 0], [1, 0], [1, 1]]
    both = raw.DenseToDenseSetOperation(some, others, set_operation="intersection")
    assert run(lambda: both) == [places, [2, 3, 5], [2, 2]]
    without = raw.DenseToSparseSetOperation(some, *SPARSE, set_operation="a-b")
    assert run(lambda: without) == [places, [1, 3, 4], [2, 2]]


def test_sparse_tensors_kept_as_text_and_in_maps():
    expected = [part.tolist() for part in SPARSE]
    text = raw.SerializeSparse(*SPARSE)
    assert run(lambda: raw.DeserializeSparse(text, dtype=tf.int64)) == expected
    handles = raw.AddManySparseToTensorsMap(*SPARSE, shared_name="m")
    taken = raw.TakeManySparseFromTensorsMap(handles, dtype=tf.int64, shared_name="m")
    assert run(lambda: taken) == expected


def test_candidates():
    given = {"num_true": 1, "num_sampled": 4}
    everything = raw.AllCandidateSampler([[3]], unique=True, **given)
    assert run(lambda: everything) == [[0, 1, 2, 3], [[1.0]], [1.0] * 4]
    seeds = {"unique": False, "seed": 3, "seed2": 4}
    uniform = raw.UniformCandidateSampler([[3]], range_max=8, **given, **seeds)
    assert run(lambda: uniform) == [[1, 1, 7, 1], [[0.5]], [0.5] * 4]
    unigram = raw.ThreadUnsafeUnigramCandidateSampler([[1]], range_max=3, **given, **seeds)
    third = pytest.approx(4 / 3)
    assert run(lambda: unigram)[1:] == [[[third]], [third] * 4]


def test_boxes():
    distances = np.float32([[0.5, 0.1], [0.2, 0.3], [0.05, 0.4]])
    assert run(lambda: raw.BipartiteMatch(distances, 3.0)) == [[1, -1, 0], [2, 0]]
    padded = raw.NonMaxSuppressionV4(BOXES, SCORES, 3, 0.5, 0.0, pad_to_max_output_size=True)
    assert run(lambda: padded) == [[0, 2, 0], 2]
    order, scores, count = run(
        lambda: raw.NonMaxSuppressionV5(BOXES, SCORES, 3, 1.0, 0.0, soft_nms_sigma=0.5)
    )
    assert (order, count) == ([0, 2, 1], 3)
    assert scores == pytest.approx([0.9, 0.7, 0.4096038], rel=1e-5)
    overlaps = np.float32([[1, 0.8, 0], [0.8, 1, 0], [0, 0, 1]])
    assert run(lambda: raw.NonMaxSuppressionWithOverlaps(overlaps, SCORES, 3, 0.5, 0.0)) == [[0, 2]]
    many = BOXES.reshape(1, 3, 1, 4) / 4, SCORES.reshape(1, 3, 1)
    boxes, scores, classes, count = run(
        lambda: raw.CombinedNonMaxSuppression(*many, 2, 2, 0.5, 0.0)
    )
    assert boxes == [[[0.0, 0.0, 0.25, 0.25], [0.0, 0.5, 0.25, 0.75]]]
    assert scores == [pytest.approx([0.9, 0.7])]
    assert (classes, count) == ([[0.0, 0.0]], [2])


def test_image_files():
    jpeg = (IMAGES / "rgb.jpg").read_bytes()
    ((height, width, channels),) = run(lambda: raw.ExtractJpegShape(jpeg))
    (whole,) = run(lambda: raw.DecodeJpeg(jpeg))
    assert np.shape(whole) == (height, width, channels)
    (part,) = run(lambda: raw.DecodeAndCropJpeg(jpeg, [1, 2, 3, 4]))
    assert part == np.array(whole)[1:4, 2:6].tolist()
    data = (IMAGES / "rgb.bmp").read_bytes()
    start, width, height = (int.from_bytes(data[i : i + 4], "little") for i in (10, 18, 22))
    rows = np.frombuffer(data, np.uint8, offset=start).reshape(height, -1)[::-1, : 3 * width]
    pixels = rows.reshape(height, width, 3)[..., ::-1]
    assert run(lambda: raw.DecodeBmp(data)) == [pixels.tolist()]
    (frames,) = run(lambda: raw.DecodeGif((IMAGES / "animated.gif").read_bytes()))
    assert np.shape(frames)[0] == 4
    assert np.shape(frames)[-1] == 3


def test_summaries():
    ((text,), (sound,)) = (
        run(lambda: raw.TensorSummary(tf.constant([1.0, 2.0]))),
        run(lambda: raw.AudioSummary("t", np.float32([[0, 0.5]]), sample_rate=8000.0)),
    )
    (value,) = tf.Summary.FromString(text).value
    assert tf.make_ndarray(value.tensor).tolist() == [1.0, 2.0]
    (value,) = tf.Summary.FromString(sound).value
    assert (value.tag, value.audio.sample_rate) == ("t/audio/0", 8000.0)
    assert (value.audio.length_frames, value.audio.num_channels) == (2, 1)


def test_a_copy_made_on_each_read_may_be_left_out():
    variable = tf.get_variable("v", initializer=[1.0, 2.0])
    left_out = raw.DisableCopyOnRead(variable.handle)
    with tf.control_dependencies([left_out]):
        value = variable.read_value()
    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run(left_out) is None
        assert session.run(value).tolist() == [1.0, 2.0]

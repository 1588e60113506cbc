"""Summary ops; expected messages are those of TensorFlow 2.21 where they are written out."""

from __future__ import annotations

import io
import wave

import numpy as np
import pytest
from PIL import Image

import headrace as tf

LARGEST = np.finfo(np.float64).max


def _summary(tensor, feed=None):
    with tf.Session() as sess:
        return tf.Summary.FromString(sess.run(tensor, feed))


def _values(tensor, feed=None):
    return list(_summary(tensor, feed).value)


def test_scalars_have_unique_tags():
    first, second = tf.summary.scalar("s", 3.0), tf.summary.scalar("s", tf.constant(4))
    with tf.name_scope("scope"):
        third = tf.summary.scalar("s:1 x", 5.0, family="fam")
    assert first.op.name == "s"
    assert first.op.type == "ScalarSummary"
    assert third.op.name == "scope/fam/s_1_x"
    found = [_values(t)[0] for t in (first, second, third)]
    assert [v.tag for v in found] == ["s", "s_1", "fam/scope/fam/s_1_x"]
    assert [v.simple_value for v in found] == [3.0, 4.0, 5.0]


def test_a_vector_is_no_scalar():
    summary = tf.summary.scalar("v", tf.placeholder_with_default([1.0, 2.0], None))
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"not the same shape: .* \(2,\) \(tag 'v'\)"
    ):
        _values(summary)


def test_old_scalar_summaries_take_many_tags():
    (tensor,) = [tf.raw_ops.ScalarSummary(tf.constant(["a", "b"]), tf.constant([1.0, 2.0]))]
    assert [(v.tag, v.simple_value) for v in _values(tensor)] == [("a", 1.0), ("b", 2.0)]


def test_histogram_buckets():
    (value,) = _values(tf.summary.histogram("h v", [[1.0, 2.0], [-0.5, 0.0]], family="fam"))
    assert value.tag == "fam/fam/h_v"
    histo = value.histo
    assert (histo.min, histo.max, histo.num) == (-0.5, 2.0, 4.0)
    assert (histo.sum, histo.sum_squares) == (2.5, 5.25)
    np.testing.assert_allclose(
        histo.bucket_limit,
        [
            *(-0.51776167404891815, -0.47069243095356195, 0, 1e-12, 0.917246389039776),
            *(1.0089710279437536, 1.9661990955585713, 2.1628190051144287, LARGEST),
        ],
        rtol=1e-15,
    )
    assert list(histo.bucket) == [0, 1, 0, 1, 0, 1, 0, 1, 0]


def test_histogram_of_the_largest_numbers_and_of_nothing():
    (value,) = _values(tf.summary.histogram("large", tf.constant([1e30, -1e30, 1e-20])))
    np.testing.assert_allclose(
        value.histo.bucket_limit,
        [-LARGEST, -9.9207756218597835e19, 0, 1e-12, 9.9207756218597835e19, LARGEST],
    )
    assert list(value.histo.bucket) == [0, 1, 0, 1, 0, 1]
    (value,) = _values(tf.summary.histogram("empty", tf.constant([], tf.float32)))
    assert (value.histo.min, value.histo.max, value.histo.num) == (LARGEST, -LARGEST, 0)
    assert list(value.histo.bucket) == [0]


@pytest.mark.parametrize("dtype", [tf.int8, tf.uint8, tf.int64, tf.float16, tf.bfloat16])
def test_histograms_count_every_element(dtype):
    values = np.arange(7)
    (value,) = _values(tf.summary.histogram("h", tf.cast(values, dtype)))
    assert sum(value.histo.bucket) == 7
    assert value.histo.sum_squares == np.square(values).sum()


@pytest.mark.parametrize(
    ("wrong", "said"), [(np.nan, "Nan in summary histogram"), (np.inf, "Infinity in Histogram")]
)
def test_histograms_of_what_is_not_finite(wrong, said):
    summary = tf.summary.histogram("bad", tf.constant([1.0, wrong]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{said} for: bad: 1 of 2"):
        _values(summary)


def _pixels(value):
    return np.asarray(Image.open(io.BytesIO(value.image.encoded_image_string)))


def test_images_are_pngs():
    pixels = np.random.RandomState(0).randint(0, 256, (2, 3, 4, 3), np.uint8)
    values = _values(tf.summary.image("im", pixels))
    assert [v.tag for v in values] == ["im/image/0", "im/image/1"]
    for value, picture in zip(values, pixels, strict=True):
        image = value.image
        assert (image.height, image.width, image.colorspace) == (3, 4, 3)
        np.testing.assert_array_equal(_pixels(value), picture)
    (value,) = _values(tf.summary.image("one", pixels, max_outputs=1))
    assert value.tag == "one/image"


def test_float_images_are_stretched():
    picture = np.float32([[0.0, 1.0], [2.0, 4.0]]).reshape(1, 2, 2, 1)
    (value,) = _values(tf.summary.image("positive", picture))
    np.testing.assert_array_equal(_pixels(value), [[0, 63], [127, 255]])
    (value,) = _values(tf.summary.image("signed", picture - 2))
    np.testing.assert_array_equal(_pixels(value), [[1, 64], [128, 255]])
    (value,) = _values(tf.summary.image("black", 0 * picture))
    np.testing.assert_array_equal(_pixels(value), [[0, 0], [0, 0]])


def test_pixels_that_are_not_finite_are_red():
    picture = np.float32([[[0.0, 1.0, np.nan], [0.0, 0.5, 1.0]]])[None]
    (value,) = _values(tf.summary.image("nan", picture))
    np.testing.assert_array_equal(_pixels(value), [[[255, 0, 0], [0, 127, 255]]])


@pytest.mark.parametrize("shape", [(2, 2), (1, 2, 2, 5), (1, 2, 2, 2)])
def test_what_is_no_batch_of_images(shape):
    with pytest.raises(ValueError, match="4-D with last dim 1, 3, or 4"):
        tf.summary.image("im", tf.zeros(shape))
    later = tf.placeholder_with_default(tf.zeros(shape), None)
    with pytest.raises(tf.errors.InvalidArgumentError, match="4-D with last dim 1, 3, or 4"):
        _values(tf.summary.image("im", later))


def test_audio_is_wav():
    sound = [[0.5, -1.0, 1.0, 2.0, -3.0, 0.1, 1e-5]]
    (value,) = _values(tf.summary.audio("au", tf.constant(sound), 16000.0, max_outputs=1))
    audio = value.audio
    assert value.tag == "au/audio"
    assert (audio.sample_rate, audio.num_channels, audio.length_frames) == (16000.0, 1, 7)
    assert audio.content_type == "audio/wav"
    with wave.open(io.BytesIO(audio.encoded_audio_string)) as file:
        assert file.getframerate() == 16000
        samples = np.frombuffer(file.readframes(7), "<i2")
    assert samples.tolist() == [16384, -32768, 32767, 32767, -32768, 3277, 0]


def test_bad_audio():
    with pytest.raises(tf.errors.InvalidArgumentError, match="sample_rate must be above 0"):
        _values(tf.summary.audio("au", tf.zeros([1, 2]), 0.0))
    with pytest.raises(ValueError, match="3-D or 2-D"):
        tf.summary.audio("au", tf.zeros([2]), 8000.0)
    later = tf.placeholder_with_default(tf.zeros([2]), None)
    with pytest.raises(tf.errors.InvalidArgumentError, match="3-D or 2-D"):
        _values(tf.summary.audio("au", later, 8000.0))


def test_text_and_tensors():
    (value,) = _values(tf.summary.text("note", tf.constant(["a", "b"])))
    assert value.metadata.plugin_data.plugin_name == "text"
    assert list(value.tensor.string_val) == [b"a", b"b"]
    summary = tf.summary.tensor_summary("t", [1, 2], summary_description="what", display_name="T")
    (value,) = _values(summary)
    assert (value.metadata.display_name, value.metadata.summary_description) == ("T", "what")
    np.testing.assert_array_equal(tf.make_ndarray(value.tensor), [1, 2])
    with pytest.raises(ValueError, match="to have dtype string"):
        tf.summary.text("number", tf.constant(1))


def test_merging():
    one, two = tf.summary.scalar("one", 1.0), tf.summary.scalar("two", 2.0, collections=["other"])
    assert [v.tag for v in _values(tf.summary.merge([one, two]))] == ["one", "two"]
    assert [v.tag for v in _values(tf.summary.merge_all())] == ["one"]
    assert [v.tag for v in _values(tf.summary.merge_all("other"))] == ["two"]
    assert tf.summary.merge_all("nothing") is None
    assert tf.summary.merge([one], ["merged"], name="m").op.name == "m/m"
    assert len(tf.get_collection("merged")) == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="Duplicate tag one found"):
        _values(tf.summary.merge([one, one]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse"):
        _values(tf.summary.merge([tf.constant(b"\xff\xff")]))


def test_summaries_run_with_the_training_step():
    x = tf.Variable(1.0)
    summary = tf.summary.merge([tf.summary.scalar("x", x), tf.summary.histogram("h", x)])
    train = tf.assign_add(x, 1.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(4):
            data, _ = sess.run([summary, train])
        assert [v.tag for v in tf.Summary.FromString(data).value] == ["x", "h"]

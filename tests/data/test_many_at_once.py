"""What travels through pipelines in place of arrays: bytes and numbers, many at a time."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import headrace as tf
from headrace.executor import region
from headrace.ops.data import pipeline
from headrace.ops.image import jpeg

Dataset = tf.data.Dataset
RECORDS = [bytes([i]) * (i % 5) + b"\0" for i in range(200)]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "a.tfrecord"
    with tf.python_io.TFRecordWriter(str(path)) as writer:
        for record in RECORDS:
            writer.write(record)
    return path


def test_records_stay_bytes_until_a_batch_is_made(records, monkeypatch):
    """No array is made for a single record."""

    def refused(value):
        raise AssertionError("an array for one record")

    monkeypatch.setattr(pipeline, "as_string", refused)
    dataset = tf.data.TFRecordDataset(str(records)).shuffle(7, seed=1).repeat(2).skip(3).take(300)
    following = tf.data.make_one_shot_iterator(dataset.prefetch(2).batch(100)).get_next()
    with tf.Session() as session:
        batches = [session.run(following) for _ in range(3)]
    assert [b.shape for b in batches] == [(100,)] * 3
    assert set(np.concatenate(batches)) <= set(RECORDS)


@pytest.mark.parametrize("taken", [0, 1, 37, 199])
@pytest.mark.parametrize("kind", ["records", "lines", "pieces"])
def test_a_position_in_a_file_is_saved(kind, taken, records, tmp_path):
    """Between any two records, lines (with either ending) or pieces, in a shuffle as well."""
    path = tmp_path / "lines"
    path.write_bytes(b"".join(b"line %d%s\n" % (i, b"\r" * (i % 2)) for i in range(200)))
    made = {
        "records": lambda: tf.data.TFRecordDataset(str(records)),
        "lines": lambda: tf.data.TextLineDataset(str(path)),
        "pieces": lambda: tf.data.FixedLengthRecordDataset(str(path), 8, 2, 4),
    }[kind]()
    dataset = made.take(200).shuffle(3, seed=5)
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
    with tf.Session() as session:
        session.run(iterator.initializer)
        for _ in range(taken):
            session.run(following)
        where = saver.save(session, str(tmp_path / "iterator"))
        expected = rest(session, following)
    with tf.Session() as session:
        session.run(iterator.initializer)
        saver.restore(session, where)
        assert rest(session, following) == expected


def rest(session, following):
    found = []
    while True:
        try:
            found.append(session.run(following))
        except tf.errors.OutOfRangeError:
            return found


def test_what_comes_before_a_damaged_record_is_not_lost(records):
    """A shuffle that pulls many at once keeps those before the error."""
    content = bytearray(records.read_bytes())
    at = 0
    for _ in range(100):
        at += struct.unpack_from("<Q", content, at)[0] + 16
    content[at + 12] ^= 1
    records.write_bytes(content)
    dataset = tf.data.TFRecordDataset(str(records)).shuffle(300, seed=1)
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        with pytest.raises(tf.errors.DataLossError, match=f"a.tfrecord: corrupted record at {at}"):
            session.run(following)
        assert sorted(rest(session, following)) == sorted(RECORDS[:100])


@pytest.mark.parametrize("size", [1, 2, 7, 300])
@pytest.mark.parametrize("again", [True, False])
def test_a_shuffle_gives_the_same_one_by_one_and_in_batches(size, again):
    dataset = Dataset.range(50).shuffle(size, seed=3, reshuffle_each_iteration=again).repeat(3)
    one = tf.data.make_one_shot_iterator(dataset).get_next()
    many = tf.data.make_one_shot_iterator(dataset.batch(17)).get_next()
    with tf.Session() as session:
        assert rest(session, one) == np.concatenate(rest(session, many)).tolist()


def image_bytes(height, width, mode="RGB"):
    rng = np.random.default_rng(height)
    pixels = rng.integers(0, 255, (height, width, 3 if mode == "RGB" else 1)).astype(np.uint8)
    return jpeg.encode_jpeg(pixels, jpeg.JpegStyle())


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("channels", [0, 1, 3])
@pytest.mark.parametrize("fancy", [True, False])
def test_both_readers_of_jpeg_files_give_the_same_pixels(mode, channels, fancy, monkeypatch):
    data = image_bytes(33, 50, mode)
    options = jpeg.JpegOptions(channels=channels, fancy_upscaling=fancy)
    quick = jpeg.decode_jpeg(data, options)
    monkeypatch.setattr(jpeg, "_decode_common", lambda *_: None)
    np.testing.assert_array_equal(quick, jpeg.decode_jpeg(data, options))


def test_images_of_many_sizes_are_resized_without_a_program_for_each(tmp_path, monkeypatch):
    """They used to be compiled for every size."""
    paths = []
    for i in range(12):
        paths.append(str(tmp_path / f"{i}.jpg"))
        (tmp_path / f"{i}.jpg").write_bytes(image_bytes(16 + i % 4, 20))

    def image(path):
        pixels = tf.image.decode_jpeg(tf.read_file(path), channels=3)
        return tf.image.resize_images(pixels, [8, 8])

    dataset = Dataset.from_tensor_slices(paths).map(image, 2).batch(4)
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    monkeypatch.setattr(region.Region, "_run_patiently", None)
    with tf.Session() as session:
        found = rest(session, following)
    assert [f.shape for f in found] == [(4, 8, 8, 3)] * 3

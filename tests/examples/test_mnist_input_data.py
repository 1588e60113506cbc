"""The reader of MNIST files: what it reads, how it shuffles, what it refuses."""

import gzip
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from headrace import errors
from headrace.examples.tutorials.mnist import input_data

MNIST = Path(__file__).parents[1] / "data" / "mnist5k"


@pytest.fixture
def folder(tmp_path):
    """A folder of tiny files: 6 training images of 2x3 pixels, 2 test images."""
    for prefix, count in (("train", 6), ("t10k", 2)):
        pixels = np.repeat(np.arange(count, dtype=np.uint8) * 10, 6)
        write_idx(tmp_path / f"{prefix}-images-idx3-ubyte.gz", (count, 2, 3), pixels.tobytes())
        write_idx(tmp_path / f"{prefix}-labels-idx1-ubyte.gz", (count,), bytes(range(count)))
    return tmp_path


def write_idx(path, shape, data):
    sizes = b"".join(n.to_bytes(4, "big") for n in shape)
    path.write_bytes(gzip.compress(bytes([0, 0, 8, len(shape)]) + sizes + data, mtime=0))


def make_dataset(count, **kwargs):
    """`count` images of one pixel, whose value is the label."""
    values = np.arange(count, dtype=np.uint8)
    kwargs.setdefault("dtype", np.uint8)
    return input_data.DataSet(values.reshape(count, 1, 1, 1), values, **kwargs)


def test_reads_the_mnist_files():
    data = input_data.read_data_sets(MNIST, one_hot=True, validation_size=500)
    assert [part.num_examples for part in data] == [3500, 500, 1000]
    assert data.train.images.shape == (3500, 784)
    assert data.train.images.dtype == np.float32
    assert data.train.images.min() == 0.0
    assert data.train.images.max() == pytest.approx(1.0)
    assert data.train.labels.shape == (3500, 10)
    np.testing.assert_array_equal(data.test.labels.sum(axis=0), np.full(10, 100.0))


def test_a_linear_classifier_finds_the_labels_in_the_images():
    """Images and labels are in step: least squares would find nothing in shuffled pairs."""
    data = input_data.read_data_sets(MNIST, one_hot=True, validation_size=0)
    weights = np.linalg.lstsq(data.train.images, data.train.labels, rcond=None)[0]
    guesses = (data.test.images @ weights).argmax(axis=1)
    assert (guesses == data.test.labels.argmax(axis=1)).mean() > 0.75


def test_forms_of_images_and_labels(folder):
    data = input_data.read_data_sets(folder, dtype=np.uint8, reshape=False, validation_size=2)
    assert data.train.images.shape == (4, 2, 3, 1)
    assert data.train.images.dtype == np.uint8
    np.testing.assert_array_equal(data.validation.labels, [0, 1])
    np.testing.assert_array_equal(data.train.labels, [2, 3, 4, 5])
    np.testing.assert_array_equal(data.train.images[:, 0, 0, 0], [20, 30, 40, 50])


def test_reads_files_that_are_not_gzipped(folder):
    for path in folder.glob("*.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    assert input_data.read_data_sets(folder, validation_size=0).train.num_examples == 6


def test_an_epoch_shows_every_example_once():
    data = make_dataset(10, seed=3)
    batches = [data.next_batch(5)[1] for _ in range(2)]
    assert sorted(np.concatenate(batches)) == list(range(10))
    assert list(np.concatenate(batches)) != list(range(10))
    assert data.epochs_completed == 0


def test_a_batch_across_the_end_takes_the_rest_and_then_the_new_order():
    data = make_dataset(5, seed=0)
    _, first = data.next_batch(3)
    images, second = data.next_batch(3)
    assert data.epochs_completed == 1
    assert sorted([*first, *second[:2]]) == list(range(5))
    assert second[2] == data.labels[0]
    np.testing.assert_array_equal(images[:, 0], second)
    _, third = data.next_batch(4)
    np.testing.assert_array_equal([second[2], *third], data.labels)


def test_without_shuffling_the_order_is_that_of_the_file():
    data = make_dataset(4)
    labels = [list(data.next_batch(3, shuffle=False)[1]) for _ in range(3)]
    assert labels == [[0, 1, 2], [3, 0, 1], [2, 3, 0]]


def test_a_batch_may_be_larger_than_the_data():
    data = make_dataset(2)
    _, labels = data.next_batch(5, shuffle=False)
    assert list(labels) == [0, 1, 0, 1, 0]
    assert data.epochs_completed == 2


def test_batches_handed_out_outlive_the_next_shuffle():
    data = make_dataset(4, seed=1)
    images, labels = data.next_batch(4)
    before = labels.copy()
    data.next_batch(4)
    np.testing.assert_array_equal(labels, before)
    np.testing.assert_array_equal(images[:, 0], before)


def test_the_same_seed_gives_the_same_batches():
    one, two, other = (make_dataset(50, seed=seed).next_batch(50)[1] for seed in (7, 7, 8))
    np.testing.assert_array_equal(one, two)
    assert list(one) != list(other)


def test_fake_data_needs_no_files():
    data = input_data.read_data_sets("nowhere", fake_data=True, one_hot=True)
    images, labels = data.train.next_batch(2)
    assert np.shape(images) == (2, 784)
    assert labels == [[1] + [0] * 9] * 2


def test_missing_files_are_named(folder):
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(errors.NotFoundError) as caught:
        input_data.read_data_sets(folder)
    assert caught.value.message == (
        f"no MNIST files in '{folder}': t10k-labels-idx1-ubyte.gz missing. Headrace downloads "
        "nothing: put the four files of the MNIST distribution there, gzipped or not "
        "(train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz, "
        "t10k-labels-idx1-ubyte.gz)."
    )


def test_a_validation_part_larger_than_the_data_is_refused(folder):
    message = "validation_size must be from 0 to the number of training images, 6, not 5000"
    with pytest.raises(ValueError, match=f"^{message}$"):
        input_data.read_data_sets(folder)


def test_torn_and_foreign_files_are_refused(folder):
    path = folder / "train-images-idx3-ubyte.gz"
    good = path.read_bytes()
    cases = {
        good[:-9]: "is no complete gzip file",
        gzip.compress(gzip.decompress(good)[:-1]): r"declares \[6, 2, 3\], 36 bytes, but holds 35",
        gzip.compress(b"\x00\x00\x08\x01"): "must begin with 00 00 08 03 .* but begins with",
        gzip.compress(b"\x00\x00\x08\x03\x00"): "ends within its header",
        b"plain text": "is no complete gzip file",
    }
    for data, message in cases.items():
        path.write_bytes(data)
        with pytest.raises(errors.DataLossError, match=f"'{re.escape(str(path))}' {message}"):
            input_data.read_data_sets(folder, validation_size=0)


def test_one_hot_refuses_labels_above_nine(folder):
    write_idx(folder / "t10k-labels-idx1-ubyte.gz", (2,), bytes([1, 47]))
    with pytest.raises(ValueError, match=r"one_hot=True takes labels from 0 to 9, but .* holds 47"):
        input_data.read_data_sets(folder, one_hot=True, validation_size=0)


def test_parts_that_do_not_fit_are_refused(folder):
    shutil.copy(folder / "t10k-labels-idx1-ubyte.gz", folder / "train-labels-idx1-ubyte.gz")
    with pytest.raises(ValueError, match=r"images has shape .* and labels has shape"):
        input_data.read_data_sets(folder, validation_size=0)
    with pytest.raises(TypeError, match="dtype must be uint8 or float32"):
        make_dataset(2, dtype=np.float64)
    with pytest.raises(ValueError, match="cannot take a batch of 1 from 0 examples"):
        make_dataset(0).next_batch(1)


def test_the_parts_of_the_reader(folder):
    images = folder / "train-images-idx3-ubyte.gz"
    assert input_data.extract_images(images).shape == (6, 2, 3, 1)
    with open(images, "rb") as file:
        assert input_data.extract_images(file).shape == (6, 2, 3, 1)
    labels = str(folder / "t10k-labels-idx1-ubyte.gz")
    np.testing.assert_array_equal(input_data.extract_labels(labels), [0, 1])
    one_hot = input_data.extract_labels(labels, one_hot=True, num_classes=3)
    np.testing.assert_array_equal(one_hot, [[1, 0, 0], [0, 1, 0]])
    with pytest.raises(errors.DataLossError):
        input_data.extract_images(labels)

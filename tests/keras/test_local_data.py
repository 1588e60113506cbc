"""`tf.keras.datasets` from files on this machine, in the layouts of the originals."""

from __future__ import annotations

import gzip
import pickle
import struct

import numpy as np
import pytest

import headrace as tf

IMAGES = np.arange(3 * 28 * 28).reshape(3, 28, 28).astype(np.uint8)
LABELS = np.array([2, 0, 1], np.uint8)
SENTENCES = np.array([[5, 6], [7], [8, 9, 10]], object)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    (tmp_path / "datasets").mkdir()
    return tmp_path / "datasets"


def digits():
    return {"x_train": IMAGES, "y_train": LABELS, "x_test": IMAGES[:1], "y_test": LABELS[:1]}


def test_digits_under_their_name_and_by_a_path(folder, tmp_path):
    np.savez(folder / "mnist.npz", **digits())
    np.savez(tmp_path / "mine.npz", **digits())
    before = (folder / "mnist.npz").read_bytes()
    for arguments in ((), (str(tmp_path / "mine.npz"),)):
        (x, y), (x_test, y_test) = tf.keras.datasets.mnist.load_data(*arguments)
        np.testing.assert_array_equal(x, IMAGES)
        assert (y.tolist(), x_test.shape, y_test.tolist()) == ([2, 0, 1], (1, 28, 28), [2])
    assert (folder / "mnist.npz").read_bytes() == before


def test_clothes(folder):
    home = folder / "fashion-mnist"
    home.mkdir()
    for kind, count in (("train", 3), ("t10k", 2)):
        labels = struct.pack(">II", 2049, count) + LABELS[:count].tobytes()
        images = struct.pack(">IIII", 2051, count, 28, 28) + IMAGES[:count].tobytes()
        (home / f"{kind}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
        (home / f"{kind}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
    (x, y), (x_test, _) = tf.keras.datasets.fashion_mnist.load_data()
    np.testing.assert_array_equal(x, IMAGES)
    assert (y.tolist(), len(x_test)) == ([2, 0, 1], 2)


@pytest.mark.parametrize("home", ["cifar-10-batches-py", "cifar-10-batches-py-target"])
def test_pictures_as_old_and_new_releases_unpack_them(folder, home):
    place = folder / home
    if home.endswith("target"):
        place = place / "cifar-10-batches-py"
    place.mkdir(parents=True)
    batch = {b"data": np.ones([10_000, 3072], np.uint8), b"labels": [7] * 10_000}
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        (place / name).write_bytes(pickle.dumps(batch, protocol=3))
    (x, y), (x_test, _) = tf.keras.datasets.cifar10.load_data()
    assert (x.shape, y.shape, x_test.shape) == (
        (50_000, 32, 32, 3),
        (50_000, 1),
        (10_000, 32, 32, 3),
    )
    assert set(y.flat) == {7}


def test_houses(folder):
    np.savez(folder / "boston_housing.npz", x=np.eye(10), y=np.arange(10.0))
    (x, y), (x_test, _) = tf.keras.datasets.boston_housing.load_data()
    assert (x.shape, len(y), x_test.shape) == ((8, 10), 8, (2, 10))


@pytest.mark.parametrize("name", ["imdb", "reuters"])
def test_sentences(folder, name):
    if name == "imdb":
        names = {"x_train": SENTENCES, "x_test": SENTENCES[:1]}
        names |= {"y_train": LABELS, "y_test": LABELS[:1]}
    else:
        names = {"x": SENTENCES, "y": LABELS}
    np.savez(folder / f"{name}.npz", **names)
    (x, _), _ = getattr(tf.keras.datasets, name).load_data(num_words=9, seed=0)
    assert all(row[0] == 1 and max(row) < 12 for row in x)

"""Reads MNIST and data sets in its format from local files.

The files are those of the original distribution (`train-images-idx3-ubyte.gz` and three more),
gzipped or not. Nothing is downloaded: files that are missing are named in the error.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace import errors
from headrace.files.paths import as_path
from headrace.graph.graph import get_default_graph
from headrace.graph.random_seed import get_seed

__all__ = [
    "DataSet",
    "Datasets",
    "dense_to_one_hot",
    "extract_images",
    "extract_labels",
    "read_data_sets",
]

TRAIN_IMAGES = "train-images-idx3-ubyte.gz"
TRAIN_LABELS = "train-labels-idx1-ubyte.gz"
TEST_IMAGES = "t10k-images-idx3-ubyte.gz"
TEST_LABELS = "t10k-labels-idx1-ubyte.gz"
FILES = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)

_MAX_PIXEL = 255
_CLASSES = 10
_UINT8 = 8  # the IDX code of unsigned bytes, the only element type that MNIST uses
_FAKE_EXAMPLES = 10_000  # what `num_examples` says of fake data


class Datasets(NamedTuple):
    """The three parts of a data set."""

    train: DataSet
    validation: DataSet
    test: DataSet


class DataSet:
    """Images and their labels, handed out in batches, shuffled anew in each epoch."""

    def __init__(
        self,
        images: NDArray[Any],
        labels: NDArray[Any],
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = np.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        """Take the data as it came from the files.

        Args:
            images: uint8 [n, rows, columns, 1].
            labels: [n] digits, or [n, classes] one-hot.
            fake_data: hand out constant batches and ignore the data; `one_hot` gives their form.
            one_hot: the form of the labels of fake data; real labels stay as they are.
            dtype: float32 scales the pixels to 0..1; uint8 leaves them at 0..255. A NumPy or a
                Headrace type.
            reshape: flatten the images to [n, rows * columns].
            seed: NumPy's generator, which shuffles, is seeded with it; None: with the graph's
                seed, and where there is none with something new.

        Raises:
            TypeError: for any other `dtype`.
            ValueError: images and labels differ in number, or an image has several channels.
        """
        pixel_type = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))
        if pixel_type not in (np.dtype(np.uint8), np.dtype(np.float32)):
            raise TypeError(f"dtype must be uint8 or float32, not {dtype!r}")
        # NumPy's own generator, as programs of the time expect: ``np.random.seed`` repeats a run.
        graph_seed, op_seed = get_seed(get_default_graph(), seed)
        np.random.seed(graph_seed if seed is None else op_seed)
        self._fake_data = fake_data
        self._one_hot = one_hot
        self._epochs_completed = 0
        self._index_in_epoch = 0
        if not fake_data:
            if images.shape[0] != labels.shape[0]:
                raise ValueError(
                    f"each image needs one label, but images has shape {images.shape} "
                    f"and labels has shape {labels.shape}"
                )
            if reshape:
                if images.ndim != 4 or images.shape[3] != 1:
                    raise ValueError(
                        "reshape=True takes images of shape [n, rows, columns, 1], "
                        f"not {list(images.shape)}"
                    )
                images = images.reshape(images.shape[0], images.shape[1] * images.shape[2])
            if pixel_type == np.float32:
                images = images.astype(np.float32) * np.float32(1.0 / _MAX_PIXEL)
        self._images = images
        self._labels = labels
        self._num_examples = _FAKE_EXAMPLES if fake_data else images.shape[0]

    @property
    def images(self) -> NDArray[Any]:
        """All images, in the order of the current epoch."""
        return self._images

    @property
    def labels(self) -> NDArray[Any]:
        """All labels, in the order of the current epoch."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """How many images there are."""
        return self._num_examples

    @property
    def epochs_completed(self) -> int:
        """How often `next_batch` has come past the end of the data."""
        return self._epochs_completed

    def next_batch(
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[Any, Any]:
        """Return the next images and labels.

        A batch that reaches past the end takes the rest of this epoch and its remainder from the
        next one, which `shuffle` puts into a new order first. The first epoch is shuffled too.

        Raises:
            ValueError: `batch_size` is below 1, or there are no examples at all.
        """
        if fake_data or self._fake_data:
            return self._fake_batch(batch_size)
        if batch_size < 1 or self._num_examples == 0:
            raise ValueError(
                f"cannot take a batch of {batch_size} from {self._num_examples} examples"
            )
        if self._index_in_epoch == 0 and self._epochs_completed == 0 and shuffle:
            self._shuffle()
        images: list[NDArray[Any]] = []
        labels: list[NDArray[Any]] = []
        missing = batch_size
        while missing > self._num_examples - self._index_in_epoch:
            images.append(self._images[self._index_in_epoch :])
            labels.append(self._labels[self._index_in_epoch :])
            missing -= len(labels[-1])
            self._epochs_completed += 1
            self._index_in_epoch = 0
            if shuffle:
                self._shuffle()
        rows = slice(self._index_in_epoch, self._index_in_epoch + missing)
        self._index_in_epoch = rows.stop
        if not images:
            return self._images[rows], self._labels[rows]
        images.append(self._images[rows])
        labels.append(self._labels[rows])
        return np.concatenate(images), np.concatenate(labels)

    def _shuffle(self) -> None:
        """Put the data into a new order, in new arrays: batches handed out are views of the old."""
        order = np.arange(self._num_examples)
        np.random.shuffle(order)
        self._images = self._images[order]
        self._labels = self._labels[order]

    def _fake_batch(self, batch_size: int) -> tuple[list[list[int]], list[Any]]:
        """A batch of white images, all labelled zero."""
        label: Any = [1] + [0] * 9 if self._one_hot else 0
        return [[1] * 784 for _ in range(batch_size)], [label for _ in range(batch_size)]


def read_data_sets(
    train_dir: str | Path,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = np.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str | None = None,
) -> Datasets:
    """Read the four MNIST files of a folder.

    Args:
        train_dir: the folder.
        fake_data: read nothing; all parts hand out constant batches.
        one_hot: labels become float64 ``[n, 10]`` instead of uint8 ``[n]``.
        dtype: float32 (pixels from 0 to 1) or uint8 (0 to 255).
        reshape: images become [n, 784] instead of [n, 28, 28, 1].
        validation_size: how many images, from the start of the training file, become the
            validation part.
        seed: of NumPy's generator, which does the shuffling in `next_batch`.
        source_url: accepted for old programs; nothing is ever downloaded.

    Returns:
        The parts `train`, `validation` and `test`.

    Raises:
        NotFoundError: a file is missing; the message names it.
        DataLossError: a file is torn, or is no IDX file of bytes.
        ValueError: `validation_size` is negative or above the number of training images.
    """
    del source_url
    if fake_data:
        nothing = np.zeros([0])
        return Datasets(
            *(DataSet(nothing, nothing, True, one_hot, dtype, seed=seed) for _ in range(3))
        )
    folder = Path(as_path(train_dir))
    paths = _find_files(folder)
    train_images, test_images = _read_images(paths[0]), _read_images(paths[2])
    classes = _CLASSES if one_hot else None
    train_labels, test_labels = _read_labels(paths[1], classes), _read_labels(paths[3], classes)
    if not 0 <= validation_size <= len(train_images):
        raise ValueError(
            "validation_size must be from 0 to the number of training images, "
            f"{len(train_images)}, not {validation_size}"
        )

    def part(images: NDArray[Any], labels: NDArray[Any]) -> DataSet:
        return DataSet(images, labels, dtype=dtype, reshape=reshape, seed=seed)

    return Datasets(
        train=part(train_images[validation_size:], train_labels[validation_size:]),
        validation=part(train_images[:validation_size], train_labels[:validation_size]),
        test=part(test_images, test_labels),
    )


def dense_to_one_hot(labels_dense: Any, num_classes: int) -> NDArray[Any]:
    """Labels ``[n]`` as rows of zeros with a one: float64 ``[n, num_classes]``.

    Raises:
        IndexError: if a label is beyond the classes.
    """
    one_hot: NDArray[Any] = np.eye(num_classes)[np.asarray(labels_dense).ravel()]
    return one_hot


def extract_images(f: Any) -> NDArray[np.uint8]:
    """The images of an IDX file, gzipped or not: uint8 ``[n, rows, columns, 1]``.

    Args:
        f: its path, or the open file.

    Raises:
        DataLossError: if it is no such file, or not whole.
    """
    return _read_images(_path_of(f))


def extract_labels(f: Any, one_hot: bool = False, num_classes: int = 10) -> NDArray[Any]:
    """The labels of an IDX file, gzipped or not: uint8 ``[n]``, or one-hot.

    Args:
        f: its path, or the open file.
        one_hot: give float64 [n, num_classes].
        num_classes: how many classes there are.

    Raises:
        DataLossError: if it is no such file, or not whole.
        ValueError: if a label to give one-hot is beyond the classes.
    """
    return _read_labels(_path_of(f), num_classes if one_hot else None)


def _path_of(file: Any) -> Path:
    return Path(as_path(file if isinstance(file, (str, bytes, os.PathLike)) else file.name))


def _find_files(folder: Path) -> list[Path]:
    """The paths of the four files, gzipped or not, in the order of FILES."""
    paths: list[Path] = []
    missing: list[str] = []
    for name in FILES:
        found = [p for p in (folder / name, folder / name.removesuffix(".gz")) if p.is_file()]
        if found:
            paths.append(found[0])
        else:
            missing.append(name)
    if missing:
        raise errors.NotFoundError(
            None,
            None,
            f"no MNIST files in '{folder}': {', '.join(missing)} missing. Headrace downloads "
            "nothing: put the four files of the MNIST distribution there, gzipped or not "
            f"({', '.join(FILES)}).",
        )
    return paths


def _read_images(path: Path) -> NDArray[np.uint8]:
    """Images as uint8 [n, rows, columns, 1]."""
    return _read_idx(path, rank=3)[..., np.newaxis]


def _read_labels(path: Path, classes: int | None) -> NDArray[Any]:
    """Labels as uint8 [n], or one-hot as float64 [n, classes]."""
    labels = _read_idx(path, rank=1)
    if classes is None:
        return labels
    if labels.size and labels.max() >= classes:
        raise ValueError(
            f"one_hot=True takes labels from 0 to {classes - 1}, but '{path}' holds {labels.max()}"
        )
    return np.eye(classes)[labels]


def _read_idx(path: Path, rank: int) -> NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes with the given number of dimensions."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise errors.DataLossError(
                None, None, f"'{path}' is no complete gzip file: {error}"
            ) from error
    magic = bytes([0, 0, _UINT8, rank])
    if data[:4] != magic:
        raise errors.DataLossError(
            None,
            None,
            f"'{path}' must begin with {magic.hex(' ')} (IDX, unsigned bytes, {rank} dimensions), "
            f"but begins with '{data[:4].hex(' ')}'",
        )
    header = 4 + 4 * rank
    if len(data) < header:
        raise errors.DataLossError(None, None, f"'{path}' ends within its header")
    shape = struct.unpack(f">{rank}I", data[4:header])
    if len(data) - header != math.prod(shape):
        raise errors.DataLossError(
            None,
            None,
            f"'{path}' declares {list(shape)}, {math.prod(shape)} bytes, "
            f"but holds {len(data) - header}",
        )
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)

"""Dataset pipelines: records per second of Headrace and TensorFlow on the same files.

    python benchmarks/datasets.py [--quick] [--only NAME ...]

As `pipelines.py` does it, with ``tf.data``. The target is TensorFlow's records per second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pipelines

TARGET = 1.0
BATCH = pipelines.BATCH
IMAGES = 200
FEATURES = {"label": ([], "int64"), "image": ([], "string"), "weights": ([8], "float32")}


def _features(tf: Any) -> Any:
    return {name: tf.FixedLenFeature(*form) for name, form in FEATURES.items()}


def _records(tf: Any, folder: str) -> Any:
    return tf.data.TFRecordDataset(f"{folder}/examples.tfrecord").repeat()


def _pixels(tf: Any, example: Any) -> Any:
    pixels = tf.cast(tf.decode_raw(example["image"], tf.uint8), tf.float32) * (1 / 255.0)
    return pixels, example["label"]


def parse_each(tf: Any, folder: str) -> Any:
    """TFRecord, parse_single_example and pixels in one map, shuffle, batch, prefetch."""
    dataset = _records(tf, folder).map(
        lambda r: _pixels(tf, tf.parse_single_example(r, _features(tf)))
    )
    return dataset.shuffle(2000).batch(BATCH).prefetch(1)


def parse_only(tf: Any, folder: str) -> Any:
    """TFRecord, parse_single_example, shuffle, batch, prefetch."""
    dataset = _records(tf, folder).map(lambda r: tf.parse_single_example(r, _features(tf)))
    return dataset.shuffle(2000).batch(BATCH).prefetch(1)


def parse_threads(tf: Any, folder: str) -> Any:
    """As parse_each, with num_parallel_calls=4."""
    dataset = _records(tf, folder).map(
        lambda r: _pixels(tf, tf.parse_single_example(r, _features(tf))), 4
    )
    return dataset.shuffle(2000).batch(BATCH).prefetch(1)


def parse_batches(tf: Any, folder: str) -> Any:
    """TFRecord, shuffle, batch, then parse_example and pixels of whole batches, prefetch."""
    dataset = _records(tf, folder).shuffle(2000).batch(BATCH)
    return dataset.map(lambda r: _pixels(tf, tf.parse_example(r, _features(tf)))).prefetch(1)


def mnist_slices(tf: Any, folder: str) -> Any:
    """from_tensor_slices of arrays as large as MNIST, shuffle, batch."""
    rng = np.random.default_rng(0)
    images = rng.random((60_000, 784), np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((images, np.arange(60_000) % 10))
    return dataset.shuffle(10_000).repeat().batch(BATCH)


def image_files(tf: Any, folder: str) -> Any:
    """JPEG files of 300 x 200, decode, resize to 128 x 128, batch."""
    paths = [f"{folder}/{i}.jpg" for i in range(IMAGES)]

    def image(path: Any) -> Any:
        pixels = tf.image.decode_jpeg(tf.read_file(path), channels=3)
        return tf.image.resize_images(pixels, [128, 128])

    return tf.data.Dataset.from_tensor_slices(paths).repeat().map(image, 4).batch(32).prefetch(1)


def generator(tf: Any, folder: str) -> Any:
    """from_generator of pairs of an array and a label, batch."""
    row = np.zeros(784, np.float32)

    def rows() -> Any:
        while True:
            yield row, 1

    shapes = (tf.TensorShape([784]), tf.TensorShape([]))
    return tf.data.Dataset.from_generator(rows, (tf.float32, tf.int64), shapes).batch(BATCH)


def python_map(tf: Any, folder: str) -> Any:
    """A map of a Python function by py_func, batch."""
    dataset = tf.data.Dataset.range(1 << 40)
    return dataset.map(lambda x: tf.py_func(lambda v: v * 2, [x], tf.int64)).batch(BATCH)


def arithmetic_map(tf: Any, folder: str) -> Any:
    """Slices, a map of a few operations on each row, batch."""
    rows = np.random.default_rng(0).random((10_000, 784), np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(rows).repeat()
    return dataset.map(lambda x: (x - 0.5) * 2.0).batch(BATCH)


DATASETS: dict[str, Callable[[Any, str], Any]] = {
    f.__name__: f
    for f in (
        parse_each,
        parse_only,
        parse_threads,
        parse_batches,
        mnist_slices,
        image_files,
        generator,
        python_map,
        arithmetic_map,
    )
}


def write_files(tf: Any, folder: str) -> None:
    """The files that all pipelines read."""
    import io

    from PIL import Image

    pipelines.write_files(tf, folder)
    rng = np.random.default_rng(0)
    for i in range(IMAGES):
        coarse = rng.integers(0, 255, (20, 30, 3), np.uint8)
        content = io.BytesIO()
        Image.fromarray(coarse).resize((300, 200)).save(content, "JPEG")
        Path(folder, f"{i}.jpg").write_bytes(content.getvalue())


def measure(tf: Any, name: str, folder: str, seconds: float) -> float:
    """Records per second of a dataset, after what its first buffers hold."""
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = tf.data.make_initializable_iterator(DATASETS[name](tf, folder))
        batch = iterator.get_next()
        first = next(iter(batch.values())) if isinstance(batch, dict) else batch
        first = first[0] if isinstance(first, tuple) else first
        session.run(iterator.initializer)
        step = session.make_callable(batch)
        size = len(session.run(first))
        for _ in range(5):
            step()
        count = 0
        start = time.perf_counter()
        while time.perf_counter() < start + seconds:
            step()
            count += size
        return count / (time.perf_counter() - start)


def main() -> None:
    options = pipelines.arguments(__doc__ or "", list(DATASETS), "datasets.json")
    if options.side:
        pipelines.serve(options.side, options.folder, write_files, measure)
        return
    pipelines.compare(options.only, options.repeat, options.seconds, options.json, __file__, TARGET)


if __name__ == "__main__":
    main()

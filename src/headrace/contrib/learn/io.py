"""``tf.contrib.learn.io``: input of arrays, generators, and files through queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import headrace as tf
from headrace.contrib.learn.frames import (
    extract_dask_data,
    extract_dask_labels,
    extract_pandas_data,
    extract_pandas_labels,
    extract_pandas_matrix,
)
from headrace.estimator.inputs.arrays import numpy_input_fn as _numpy_input_fn
from headrace.estimator.inputs.frames import pandas_input_fn as _pandas_input_fn

__all__ = [
    "extract_dask_data",
    "extract_dask_labels",
    "extract_pandas_data",
    "extract_pandas_labels",
    "extract_pandas_matrix",
    "generator_input_fn",
    "numpy_input_fn",
    "pandas_input_fn",
    "read_batch_examples",
    "read_batch_features",
    "read_batch_record_features",
    "read_keyed_batch_examples",
    "read_keyed_batch_features",
]


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool = True,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """`tf.estimator.inputs.numpy_input_fn`, which shuffles unless it is told not to.

    Arrays have shape ``[examples, ...]``.

    Raises:
        TypeError: if ``x`` is neither an array nor a dictionary.
        ValueError: if it is empty, sizes differ, or names are in both.
    """
    return _numpy_input_fn(x, y, batch_size, num_epochs, shuffle, queue_capacity, num_threads)


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool = True,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """`tf.estimator.inputs.pandas_input_fn`, which shuffles unless it is told not to.

    Features have shape ``[batch]``.

    Raises:
        TypeError: if ``x`` is no data frame.
        ValueError: if indices differ, or a column has the name of the target.
    """
    return _pandas_input_fn(
        x, y, batch_size, num_epochs, shuffle, queue_capacity, num_threads, target_column
    )


def generator_input_fn(
    x: Callable[[], Any],
    target_key: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool = True,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    pad_value: Any = None,
) -> Callable[[], Any]:
    """An input function of a generator's dictionaries, one for each example.

    Args:
        x: a function that gives a generator of dictionaries of arrays of equal shapes.
        target_key: the name of the label, or names of several; without it there are no labels.
        batch_size: so many examples in a batch; the last one may be smaller.
        num_epochs: so many times the whole generator; None for ever.
        shuffle: whether examples are drawn from a buffer of ``queue_capacity``.
        queue_capacity: its size.
        num_threads: has no effect: a generator gives one example after the other.
        pad_value: cannot be given: sequences of different lengths go through
            `tf.data.Dataset.padded_batch`.

    Raises:
        TypeError: if ``x`` is no function that gives a generator of dictionaries.
        ValueError: if the generator is empty, for unknown target keys, and for a ``pad_value``.

    >>> def numbers():
    ...     for i in range(3):
    ...         yield {"x": np.float32(i), "y": np.int64(2 * i)}
    >>> features, labels = tf.contrib.learn.io.generator_input_fn(numbers, "y", shuffle=False)()
    >>> with tf.train.MonitoredSession() as sess:
    ...     print(sess.run([features["x"], labels]))
    [array([0., 1., 2.], dtype=float32), array([0, 2, 4])]
    """
    if pad_value is not None:
        raise ValueError(
            "pad_value is not part of Headrace; tf.data.Dataset.from_generator(...).padded_batch() "
            "fills up sequences of different lengths."
        )
    if not callable(x):
        raise TypeError(f"x must be generator function; got {type(x).__name__}")
    keys = [target_key] if isinstance(target_key, str) else list(target_key or ())

    def input_fn() -> Any:
        first = _first_example(x())
        unknown = [key for key in keys if key not in first]
        if unknown:
            raise ValueError(f"target_key not in yielded dict: {unknown}; it has {sorted(first)}")
        arrays = {name: np.asarray(value) for name, value in first.items()}
        data = tf.data.Dataset.from_generator(
            x,
            {name: tf.as_dtype(array.dtype) for name, array in arrays.items()},
            {name: array.shape for name, array in arrays.items()},
        ).repeat(num_epochs)
        if shuffle:
            data = data.shuffle(queue_capacity)
        features: dict[str, Any] = data.batch(batch_size).make_one_shot_iterator().get_next()
        labels = {key: features.pop(key) for key in keys}
        if not keys:
            return features
        return features, labels[target_key] if isinstance(target_key, str) else labels

    return input_fn


def _first_example(generator: Any) -> dict[str, Any]:
    if not hasattr(generator, "__next__"):
        raise TypeError(f"x() must be generator; got {type(generator).__name__}")
    try:
        first = next(generator)
    except StopIteration:
        raise ValueError("x() must yield at least one example; it is empty.") from None
    finally:
        if hasattr(generator, "close"):
            generator.close()
    if not isinstance(first, dict):
        raise TypeError(f"x() must yield dict; got {type(first).__name__}")
    return first


def _files(pattern: str | Sequence[str]) -> list[str]:
    patterns = [pattern] if isinstance(pattern, str) else list(pattern)
    if not patterns:
        raise ValueError("No files given.")
    found = [name for each in patterns for name in sorted(tf.gfile.Glob(each))]
    if not found:
        raise ValueError(f"No files match {pattern}.")
    return found


def read_keyed_batch_examples(
    file_pattern: str | Sequence[str],
    batch_size: int,
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    num_threads: int = 1,
    read_batch_size: int = 1,
    parse_fn: Callable[[Any], Any] | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> tuple[Any, Any]:
    """Keys and examples of files, by queues that `tf.train.start_queue_runners` fills.

    Args:
        file_pattern: a pattern of files' names, or several.
        batch_size: so many examples in a batch; the last one may be smaller.
        reader: makes a reader such as `tf.TFRecordReader`.
        randomize_input: whether files and examples come in another order each time.
        num_epochs: so many times all files; None for ever.
        queue_capacity: how many examples wait.
        num_threads: so many readers.
        read_batch_size: how many examples a reader takes at once.
        parse_fn: what is made of an example, before the queue.

    Returns:
        Strings ``[batch]``, and what ``parse_fn`` gives of each, or strings ``[batch]``.

    Raises:
        ValueError: if no file fits, or sizes are not positive.
    """
    names = _files(file_pattern)
    for what, value in (("batch_size", batch_size), ("read_batch_size", read_batch_size)):
        if value is None or value <= 0:
            raise ValueError(f"Invalid {what} {value}.")
    if queue_capacity <= batch_size:
        raise ValueError(f"Invalid queue_capacity {queue_capacity}: batches have {batch_size}.")
    with tf.name_scope(name, "read_batch_examples"):
        queue = tf.train.string_input_producer(
            names, num_epochs=num_epochs, shuffle=randomize_input, seed=seed, name="file_names"
        )
        found = []
        for _ in range(num_threads):
            one = reader()
            if read_batch_size > 1:
                keys, examples = one.read_up_to(queue, read_batch_size)
            else:
                keys, examples = one.read(queue)
            found.append((keys, parse_fn(examples) if parse_fn else examples))
        given: dict[str, Any] = {
            "capacity": queue_capacity,
            "enqueue_many": read_batch_size > 1,
            "allow_smaller_final_batch": num_epochs is not None,
        }
        if randomize_input:
            given |= {"min_after_dequeue": max(queue_capacity // 2 - batch_size, 0), "seed": seed}
            batch = tf.train.shuffle_batch_join(found, batch_size, **given)
        else:
            batch = tf.train.batch_join(found, batch_size, **given)
    return batch[0], batch[1]


def read_batch_examples(
    file_pattern: str | Sequence[str], batch_size: int, reader: Callable[[], Any], **given: Any
) -> Any:
    """The examples of `read_keyed_batch_examples`, ``[batch]``, without their keys.

    Raises:
        ValueError: as that function, whose further arguments may be given.
    """
    return read_keyed_batch_examples(file_pattern, batch_size, reader, **given)[1]


def read_keyed_batch_features(
    file_pattern: str | Sequence[str],
    batch_size: int,
    features: Mapping[str, Any],
    reader: Callable[[], Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    **given: Any,
) -> tuple[Any, dict[str, Any]]:
    """Keys, and the parsed features of ``tf.train.Example`` messages in files.

    Args:
        features: what `tf.parse_example` needs.
        given: ``parse_fn``, ``name`` and ``read_batch_size`` of `read_keyed_batch_examples`, whose
            arguments the others are; capacities and threads of parsing have no effect.

    Returns:
        Strings ``[batch]``, and tensors ``[batch, ...]`` by name.

    Raises:
        ValueError: as that function.
    """
    keys, messages = read_keyed_batch_examples(
        file_pattern,
        batch_size,
        reader,
        randomize_input,
        num_epochs,
        queue_capacity,
        reader_num_threads,
        given.get("read_batch_size") or 1,
        given.get("parse_fn"),
        given.get("name"),
    )
    return keys, tf.parse_example(messages, dict(features))


def read_batch_features(
    file_pattern: str | Sequence[str],
    batch_size: int,
    features: Mapping[str, Any],
    reader: Callable[[], Any],
    **given: Any,
) -> dict[str, Any]:
    """The features of `read_keyed_batch_features`, ``[batch, ...]``, without keys.

    Raises:
        ValueError: as that function, whose further arguments may be given.
    """
    return read_keyed_batch_features(file_pattern, batch_size, features, reader, **given)[1]


def read_batch_record_features(
    file_pattern: str | Sequence[str],
    batch_size: int,
    features: Mapping[str, Any],
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    name: str = "dequeue_record_examples",
) -> dict[str, Any]:
    """`read_batch_features` of TFRecord files: ``[batch, ...]``.

    Raises:
        ValueError: as that function.
    """
    return read_keyed_batch_features(
        file_pattern,
        batch_size,
        features,
        tf.TFRecordReader,
        randomize_input,
        num_epochs,
        queue_capacity,
        reader_num_threads,
        name=name,
    )[1]

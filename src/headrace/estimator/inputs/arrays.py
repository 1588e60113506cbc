"""Input functions of NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from headrace.data.dataset import Dataset
from headrace.data.iterators import make_initializable_iterator
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph

__all__ = ["batches_fn", "check_shuffle", "numpy_input_fn"]

Arrays = dict[str, "np.ndarray[Any, Any]"]


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """An input function that gives batches of arrays.

    A batch may hold the end of one epoch and the begin of the next; the last one may be smaller.

    Args:
        x: an array of shape (examples, ...), or a dictionary of such: the features.
        y: the labels: the same, or None.
        batch_size: so many examples in a batch.
        num_epochs: so many times all examples; None for ever.
        shuffle: whether examples come in another order in each epoch; it has to be given. The
            order repeats itself if the graph has a seed.
        queue_capacity, num_threads: taken, but not needed: batches are made ahead in any case.

    Returns:
        A function that gives features, or a pair of features and labels: tensors.

    Raises:
        TypeError: if ``x`` is neither an array nor a dictionary.
        ValueError: if it is empty, sizes differ, names are in both, or ``shuffle`` is no bool.

    >>> x, y = {"age": np.array([20.0, 30.0, 40.0])}, np.array([0, 1, 1])
    >>> input_fn = tf.estimator.inputs.numpy_input_fn(x, y, batch_size=2, shuffle=False)
    >>> features, labels = input_fn()
    >>> with tf.train.MonitoredSession() as sess:
    ...     while not sess.should_stop():
    ...         print(sess.run([features["age"], labels]))
    [array([20., 30.]), array([0, 1])]
    [array([40.]), array([1])]
    """
    check_shuffle(shuffle)
    features = _named(x)
    labels: Arrays = {}
    if y is not None:
        if isinstance(y, Mapping) and not y:
            raise ValueError("y cannot be empty dict, use None instead.")
        labels = _named(y, "y")
        both = sorted(set(labels) & set(features)) if isinstance(y, Mapping) else []
        if both:
            raise ValueError(f"{len(both)} duplicate keys are found in both x and y: {both}")
    _check_lengths(features, labels)
    return batches_fn(
        features,
        labels if y is not None else None,
        batch_size,
        num_epochs,
        bool(shuffle),
        plain=(not isinstance(x, Mapping), not isinstance(y, Mapping)),
    )


def check_shuffle(shuffle: Any) -> None:
    """Raise ValueError unless ``shuffle`` is True or False."""
    if not isinstance(shuffle, (bool, np.bool_)):
        raise ValueError(
            "shuffle must be provided and explicitly set as boolean (it is recommended to set it "
            f"as True for training); got {shuffle}"
        )


def _named(value: Any, name: str = "x") -> Arrays:
    if isinstance(value, Mapping):
        if not value:
            raise ValueError(f"{name} cannot be an empty dict")
        return {key: np.asarray(value[key]) for key in sorted(value)}
    if not isinstance(value, np.ndarray) and name == "x":
        raise TypeError(f"x must be a dict or array; got {type(value).__name__}")
    array = np.asarray(value)
    if array.size == 0 and name == "x":
        raise ValueError("x cannot be an empty array")
    return {"": array}


def _check_lengths(features: Arrays, labels: Arrays) -> None:
    parts = [*features.values(), *labels.values()]
    if any(a.ndim == 0 for a in parts) or len({len(a) for a in parts}) > 1:
        raise ValueError(
            "Length of tensors in x and y is mismatched. All elements in x and y must have the "
            f"same length.\nShapes in x: {_shapes(features)}\nShapes in y: {_shapes(labels)}\n"
        )


def _shapes(arrays: Arrays) -> Any:
    shapes = {key: array.shape for key, array in arrays.items()}
    return shapes.get("", shapes)


def batches_fn(
    features: Arrays,
    labels: Arrays | None,
    batch_size: int,
    num_epochs: int | None,
    shuffle: bool,
    plain: tuple[bool, bool],
) -> Callable[[], Any]:
    """The input function of arrays by name.

    Args:
        plain: whether features, and labels, are the only array in place of a dictionary.
    """
    if batch_size <= 0:
        raise ValueError(f"batch_size must be positive, not {batch_size}.")
    columns = [*features.values(), *(labels or {}).values()]
    static = batch_size if num_epochs is None else None

    def input_fn() -> Any:
        seed = get_default_graph().seed

        def rows() -> Iterator[tuple[Any, ...]]:
            for chosen in _batches(len(columns[0]), batch_size, num_epochs, shuffle, seed):
                yield tuple(column[chosen] for column in columns)

        types = tuple(_dtype(column) for column in columns)
        shapes = tuple((static, *column.shape[1:]) for column in columns)
        dataset = Dataset.from_generator(rows, types, shapes).prefetch(1)
        tensors = make_initializable_iterator(dataset).get_next()
        given: Any = dict(zip(features, tensors, strict=False))
        given = given[""] if plain[0] else given
        if labels is None:
            return given
        wanted: Any = dict(zip(labels, tensors[len(features) :], strict=True))
        return given, wanted[""] if plain[1] else wanted

    return input_fn


def _dtype(column: Any) -> Any:
    return dtypes.string if column.dtype.kind in "OUS" else dtypes.as_dtype(column.dtype)


def _batches(
    count: int, size: int, num_epochs: int | None, shuffle: bool, seed: int | None
) -> Iterator[Any]:
    """The rows of each batch; epochs follow each other without a gap."""
    random = np.random.default_rng(seed)
    left = np.zeros(0, np.int64)
    epoch = 0
    while num_epochs is None or epoch < num_epochs:
        epoch += 1
        left = np.concatenate([left, random.permutation(count) if shuffle else np.arange(count)])
        full = len(left) // size * size
        yield from left[:full].reshape(-1, size)
        left = left[full:]
    if len(left):
        yield left

"""``tf.contrib.data``: older names of `tf.data` and `tf.data.experimental`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.data import Dataset, FixedLengthRecordDataset, Iterator, TextLineDataset
from headrace.data import TFRecordDataset as TFRecordDataset
from headrace.data.experimental import (
    AUTOTUNE,
    CheckpointInputPipelineHook,
    Counter,
    CsvDataset,
    Optional,
    RandomDataset,
    Reducer,
    SqlDataset,
    TFRecordWriter,
    bucket_by_sequence_length,
    choose_from_datasets,
    copy_to_device,
    dense_to_sparse_batch,
    enumerate_dataset,
    get_next_as_optional,
    get_single_element,
    group_by_reducer,
    group_by_window,
    ignore_errors,
    make_batched_features_dataset,
    make_csv_dataset,
    make_saveable_from_iterator,
    map_and_batch,
    parallel_interleave,
    parse_example_dataset,
    prefetch_to_device,
    rejection_resample,
    sample_from_datasets,
    scan,
    shuffle_and_repeat,
    unbatch,
    unique,
)
from headrace.data.structure import Component, flat_attrs, flatten_up_to, pack
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.ops.core.build import convert_to_tensor, raw

Transformation = Callable[[Dataset], Dataset]


def batch_and_drop_remainder(batch_size: Any) -> Transformation:
    """`Dataset.batch` without a last batch that is smaller: all have the same static shape.

    Raises:
        InvalidArgumentError: when the graph runs, if ``batch_size`` is below 1.
    """
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: Any, padded_shapes: Any, padding_values: Any = None
) -> Transformation:
    """`Dataset.padded_batch` without a last batch that is smaller.

    Args:
        padded_shapes, padding_values: in the structure of an element; -1 or None in a shape is for
            the largest size in a batch.

    Raises:
        ValueError: if the padded shapes do not fit those of elements.
        InvalidArgumentError: when the graph runs, if an element is larger than its shape.
    """
    return lambda dataset: dataset.padded_batch(
        batch_size, padded_shapes, padding_values, drop_remainder=True
    )


def sloppy_interleave(
    map_func: Callable[..., Dataset], cycle_length: Any, block_length: Any = 1
) -> Transformation:
    """`Dataset.interleave`; elements keep their shapes.

    Raises:
        TypeError: if ``map_func`` returns no dataset.
    """
    return parallel_interleave(map_func, cycle_length, block_length, sloppy=True)


def sliding_window_batch(
    window_size: int,
    stride: int | None = None,
    window_shift: int | None = None,
    window_stride: int = 1,
) -> Transformation:
    """Batches of ``window_size`` elements, each beginning ``window_shift`` after the last one.

    Args:
        stride: an older name of ``window_shift``, which is 1 by default.
        window_stride: how many elements apart those of a window lie.

    Returns:
        elements of shape ``[window_size, ...]``.

    Raises:
        ValueError: if both ``stride`` and ``window_shift`` are given.
    """
    if stride is not None and window_shift is not None:
        raise ValueError("Cannot specify both `stride` and `window_shift`.")
    shift = next((value for value in (window_shift, stride) if value is not None), 1)

    def apply(dataset: Dataset) -> Dataset:
        windows = dataset.window(window_size, shift, window_stride, drop_remainder=True)

        def whole(*parts: Dataset) -> Dataset:
            batches = tuple(part.batch(window_size) for part in parts)
            return batches[0] if len(batches) == 1 else Dataset.zip(batches)

        return windows.flat_map(whole)

    return apply


def reduce_dataset(dataset: Dataset, reducer: Reducer) -> Any:
    """What a `Reducer` makes of all elements: tensors, of the shapes that it gives them.

    Raises:
        TypeError, ValueError: if a new state is of another type or structure than the first.
    """
    from headrace.ops.core.build import convert_to_tensor

    start = reducer.init_func(convert_to_tensor(0, "int64"))
    return reducer.finalize_func(dataset.reduce(start, reducer.reduce_func))


class LMDBDataset(Dataset):
    """Pairs of key and value, both strings, of LMDB databases, in the order of the keys.

    They are read with the package ``lmdb``: ``pip install headrace[lmdb]``.

    Args:
        filenames: one or more databases: folders, or files.

    Raises:
        UnimplementedError: when the graph runs, if the package is not there.
        NotFoundError: when the graph runs, if there is no such database.
        DataLossError: when the graph runs, if a database is damaged.

    >>> import lmdb
    >>> import headrace as tf
    >>> with lmdb.open("numbers") as database, database.begin(write=True) as transaction:
    ...     _ = transaction.put(b"one", b"1")
    >>> pair = tf.contrib.data.LMDBDataset("numbers").make_one_shot_iterator().get_next()
    >>> tf.Session().run(pair)
    (b'one', b'1')
    """

    def __init__(self, filenames: Any) -> None:
        text = Component(dtypes.string, [])
        structure = (text, text)
        names = convert_to_tensor(filenames, dtypes.string)
        super().__init__(raw.LMDBDataset(names, **flat_attrs(structure)), structure)


def assert_element_shape(expected_shapes: Any) -> Transformation:
    """The same elements, whose shapes must fit: what the graph knows of them is known more exactly.

    Args:
        expected_shapes: in the structure of an element; None for an axis of any size.

    Raises:
        ValueError: if the static shapes do not fit.
        InvalidArgumentError: when the graph runs, if the shape of an element does not fit.
    """

    def apply(dataset: Dataset) -> Dataset:
        wanted = [TensorShape(s) for s in flatten_up_to(dataset._structure, expected_shapes)]

        def checked(*element: Any) -> Any:
            structure = dataset._structure
            whole = element if type(structure) is tuple else element[0]
            made = [
                _checked_shape(part, shape)
                for part, shape in zip(flatten_up_to(structure, whole), wanted, strict=True)
            ]
            return pack(structure, made)

        return dataset.map(checked)

    return apply


def _checked_shape(tensor: Any, shape: TensorShape) -> Any:
    if not tensor.shape.is_compatible_with(shape):
        raise ValueError(
            f"Expected shape {shape} for tensor {tensor.name} of static shape {tensor.shape}."
        )
    if shape.ndims is None:
        return tensor
    sizes = [-1 if size is None else size for size in shape.as_tuple or ()]
    given = raw.Shape(tensor, out_type=dtypes.int32)
    is_right = raw.Equal(raw.Size(given), shape.ndims)
    if sizes:
        at = np.array([i for i, size in enumerate(sizes) if size >= 0], np.int32)
        known = np.array([size for size in sizes if size >= 0], np.int32)
        message = "The rank of an element does not fit."
        ranked = raw.Assert(is_right, [message, given])
        with get_default_graph().control_dependencies([ranked]):
            is_right = raw.All(raw.Equal(raw.GatherV2(given, at, 0), known), 0)
    check = raw.Assert(is_right, [f"Expected an element of shape {shape}, but it has shape", given])
    with get_default_graph().control_dependencies([check]):
        tensor = raw.Identity(tensor)
    tensor.set_shape(shape)
    return tensor


def read_batch_features(
    file_pattern: Any,
    batch_size: int,
    features: Any,
    reader: Any = TFRecordDataset,
    reader_args: Any = None,
    randomize_input: bool = True,
    num_epochs: int | None = None,
    capacity: int = 10000,
) -> Any:
    """Batches of Examples of files that match a pattern, as the tensors of a next batch.

    Args:
        features: what `tf.io.parse_example` takes; capacity: how many examples a shuffle chooses
            from; num_epochs: None for no end.

    Returns:
        a dict of tensors of shape ``[batch_size, ...]``.

    Raises:
        NotFoundError: when the graph runs, if a file is not there.
    """
    dataset = make_batched_features_dataset(
        file_pattern,
        batch_size,
        features,
        reader=reader,
        reader_args=reader_args,
        shuffle=randomize_input,
        num_epochs=num_epochs,
        shuffle_buffer_size=capacity,
    )
    return dataset.make_one_shot_iterator().get_next()


__all__ = [
    "AUTOTUNE",
    "CheckpointInputPipelineHook",
    "Counter",
    "CsvDataset",
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "LMDBDataset",
    "Optional",
    "RandomDataset",
    "Reducer",
    "SqlDataset",
    "TFRecordDataset",
    "TFRecordWriter",
    "TextLineDataset",
    "assert_element_shape",
    "batch_and_drop_remainder",
    "bucket_by_sequence_length",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "get_next_as_optional",
    "get_single_element",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "make_saveable_from_iterator",
    "map_and_batch",
    "padded_batch_and_drop_remainder",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "read_batch_features",
    "reduce_dataset",
    "rejection_resample",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "sliding_window_batch",
    "sloppy_interleave",
    "unbatch",
    "unique",
]

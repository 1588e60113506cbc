"""``tf.contrib.data``: older names of `tf.data` and `tf.data.experimental`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    prefetch_to_device,
    rejection_resample,
    sample_from_datasets,
    scan,
    shuffle_and_repeat,
    unbatch,
    unique,
)

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


__all__ = [
    "AUTOTUNE",
    "CheckpointInputPipelineHook",
    "Counter",
    "CsvDataset",
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "Optional",
    "RandomDataset",
    "Reducer",
    "SqlDataset",
    "TFRecordDataset",
    "TextLineDataset",
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
    "prefetch_to_device",
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

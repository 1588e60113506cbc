"""`tf.data.experimental`: functions for `Dataset.apply`, and datasets for less common sources."""

from headrace.data.dataset import AUTOTUNE
from headrace.data.optionals import Optional, get_next_as_optional
from headrace.data.options import OptimizationOptions, ThreadingOptions
from headrace.data.records import CsvDataset, make_batched_features_dataset, make_csv_dataset
from headrace.data.resampling import rejection_resample, sample_from_datasets
from headrace.data.saveable import make_saveable_from_iterator
from headrace.data.transformations import (
    Counter,
    RandomDataset,
    Reducer,
    bucket_by_sequence_length,
    choose_from_datasets,
    copy_to_device,
    dense_to_sparse_batch,
    enumerate_dataset,
    get_single_element,
    group_by_reducer,
    group_by_window,
    ignore_errors,
    map_and_batch,
    parallel_interleave,
    prefetch_to_device,
    scan,
    shuffle_and_repeat,
    take_while,
    unbatch,
    unique,
)

__all__ = [
    "AUTOTUNE",
    "Counter",
    "CsvDataset",
    "OptimizationOptions",
    "Optional",
    "RandomDataset",
    "Reducer",
    "ThreadingOptions",
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
    "parallel_interleave",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "take_while",
    "unbatch",
    "unique",
]

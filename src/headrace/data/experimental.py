"""`tf.data.experimental`: functions for `Dataset.apply`, and datasets for less common sources."""

from headrace.data.checkpoint_hook import CheckpointInputPipelineHook
from headrace.data.counting import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    assert_cardinality,
    cardinality,
)
from headrace.data.dataset import AUTOTUNE
from headrace.data.multi_device import MultiDeviceIterator
from headrace.data.optionals import Optional, get_next_as_optional
from headrace.data.options import (
    DistributeOptions,
    MapVectorizationOptions,
    OptimizationOptions,
    StatsOptions,
    ThreadingOptions,
)
from headrace.data.records import CsvDataset, make_batched_features_dataset, make_csv_dataset
from headrace.data.resampling import rejection_resample, sample_from_datasets
from headrace.data.saveable import make_saveable_from_iterator
from headrace.data.specs import (
    DatasetStructure,
    OptionalStructure,
    RaggedTensorStructure,
    SparseTensorStructure,
    Structure,
    TensorStructure,
    from_variant,
    get_structure,
    to_variant,
)
from headrace.data.sql import SqlDataset
from headrace.data.statistics import (
    StatsAggregator,
    bytes_produced_stats,
    latency_stats,
    set_stats_aggregator,
)
from headrace.data.transformations import (
    Counter,
    RandomDataset,
    Reducer,
    bucket_by_sequence_length,
    choose_from_datasets,
    copy_to_device,
    dense_to_ragged_batch,
    dense_to_sparse_batch,
    enumerate_dataset,
    get_single_element,
    group_by_reducer,
    group_by_window,
    ignore_errors,
    map_and_batch,
    parallel_interleave,
    parse_example_dataset,
    prefetch_to_device,
    scan,
    shuffle_and_repeat,
    take_while,
    unbatch,
    unique,
)
from headrace.data.transformations import (
    map_and_batch as map_and_batch_with_legacy_function,
)
from headrace.data.writers import TFRecordWriter

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "CheckpointInputPipelineHook",
    "Counter",
    "CsvDataset",
    "DatasetStructure",
    "DistributeOptions",
    "MapVectorizationOptions",
    "MultiDeviceIterator",
    "OptimizationOptions",
    "Optional",
    "OptionalStructure",
    "RaggedTensorStructure",
    "RandomDataset",
    "Reducer",
    "SparseTensorStructure",
    "SqlDataset",
    "StatsAggregator",
    "StatsOptions",
    "Structure",
    "TFRecordWriter",
    "TensorStructure",
    "ThreadingOptions",
    "assert_cardinality",
    "bucket_by_sequence_length",
    "bytes_produced_stats",
    "cardinality",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_ragged_batch",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "from_variant",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "latency_stats",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "make_saveable_from_iterator",
    "map_and_batch",
    "map_and_batch_with_legacy_function",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "scan",
    "set_stats_aggregator",
    "shuffle_and_repeat",
    "take_while",
    "to_variant",
    "unbatch",
    "unique",
]

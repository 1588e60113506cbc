"""Functions for `Dataset.apply`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.data import structure as nested
from headrace.data.dataset import AUTOTUNE, Dataset, _int64, check_predicate, dataset_seeds
from headrace.data.functions import ElementFunction
from headrace.data.structure import Component, RaggedComponent, flat_attrs
from headrace.graph import dtypes
from headrace.graph.devices import DeviceSpec
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw

Transformation = Callable[[Dataset], Dataset]


def unbatch() -> Transformation:
    """Elements along the first axis of each component: the inverse of `Dataset.batch`.

    Raises:
        ValueError: if a component is a scalar.
        InvalidArgumentError: when the graph runs, if first axes differ.
    """

    return lambda dataset: dataset.unbatch()


def enumerate_dataset(start: Any = 0) -> Transformation:
    """Pairs of a number (int64, a scalar), from ``start`` on, and an element.

    Raises:
        TypeError: if ``start`` is no integer.
    """

    return lambda dataset: dataset.enumerate(start)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """`Dataset.map`, then `Dataset.batch`: components of shape ``[batch_size, ...]``.

    Raises:
        ValueError: if both ways to say how many calls there are at a time are given.
        InvalidArgumentError: when the graph runs, if ``batch_size`` is below 1.
    """
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError(
            "The `num_parallel_batches` and `num_parallel_calls` arguments are mutually exclusive."
        )
    calls = num_parallel_calls
    if num_parallel_batches is not None:
        calls = AUTOTUNE
    return lambda dataset: dataset.map(map_func, calls).batch(batch_size, drop_remainder)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Transformation:
    """Shuffled epochs one after another, with one buffer for all; elements keep their shapes.

    Args:
        buffer_size: how many elements to choose from; count: epochs, None for no end.

    Raises:
        InvalidArgumentError: when the graph runs, if ``buffer_size`` is below 1.
    """

    def apply(dataset: Dataset) -> Dataset:
        size, times = (
            _int64(buffer_size, "buffer_size"),
            _int64(-1 if count is None else count, "n"),
        )
        return dataset._same(raw.ShuffleAndRepeatDataset, size, *dataset_seeds(seed), times)

    return apply


def parse_example_dataset(features: Any, num_parallel_calls: Any = 1) -> Transformation:
    """Batches of serialized Examples, string vectors, parsed as `tf.io.parse_example` does it.

    Raises:
        TypeError: if elements are not vectors of strings.
    """
    from headrace.ops.parsing.api import parse_example

    def apply(dataset: Dataset) -> Dataset:
        leaf = dataset._structure
        if type(leaf) is not Component or leaf.dtype is not dtypes.string or leaf.shape.ndims != 1:
            raise TypeError(f"Elements must be vectors of strings, but are {leaf!r:.100}.")
        return dataset.map(lambda serialized: parse_example(serialized, features))

    return apply


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """The elements before the first for which ``predicate`` gives False.

    Raises:
        ValueError: if it does not give a boolean scalar.
    """

    def apply(dataset: Dataset) -> Dataset:
        function = ElementFunction(predicate, [dataset._structure], "take_while")
        check_predicate(function.output)
        return dataset._same(raw.TakeWhileDataset, function.captured, predicate=function.body)

    return apply


def scan(initial_state: Any, scan_func: Callable[..., Any]) -> Transformation:
    """Elements that ``scan_func(state, element)`` gives, beside the state for the next one.

    Args:
        initial_state: a nested structure; states keep its types and shapes.

    Raises:
        TypeError: if ``scan_func`` gives no pair, or a state of another type.
    """

    def apply(dataset: Dataset) -> Dataset:
        state = nested.of_value(initial_state)
        made: list[Any] = []

        def checked(*args: Any) -> Any:
            result = scan_func(*args)
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise TypeError("The scan function must return a pair: the new state and a value.")
            made.append(nested.of_value(result[1]))
            return tuple(
                [*nested.components(state, result[0]), *nested.components(made[-1], result[1])]
            )

        function = ElementFunction(checked, [state, dataset._structure], "scan", spread=False)
        variant = raw.ScanDataset(
            dataset._variant_tensor,
            nested.components(state, initial_state),
            function.captured,
            f=function.body,
            **flat_attrs(made[-1]),
        )
        return Dataset(variant, made[-1])

    return apply


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: Any = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Transformation:
    """The elements of datasets that are made of windows of elements with one key.

    Args:
        key_func: the key of an element, an int64 scalar.
        reduce_func: makes a dataset of a key and the dataset of a window's elements.
        window_size: how many elements at most; ``window_size_func`` tells it by key.

    Raises:
        ValueError: unless one of the two is given, or if a function returns something else.
    """
    if (window_size is None) == (window_size_func is None):
        raise ValueError("Must pass either window_size or window_size_func, and not both.")

    def size_of(key: Any) -> Any:
        size = window_size if window_size_func is None else window_size_func(key)
        return _int64(size, "window_size")

    def apply(dataset: Dataset) -> Dataset:
        key_leaf, window = Component(dtypes.int64, []), nested.of_value(dataset)
        keys = _keys(key_func, dataset)
        sizes = ElementFunction(size_of, [key_leaf], "window_size_func")
        reduced = ElementFunction(reduce_func, [key_leaf, window], "reduce_func", spread=False)
        if not hasattr(reduced.output, "structure"):
            raise TypeError("`reduce_func` must return a Dataset.")
        structure = reduced.output.structure
        variant = raw.GroupByWindowDataset(
            dataset._variant_tensor,
            keys.captured,
            reduced.captured,
            sizes.captured,
            key_func=keys.body,
            reduce_func=reduced.body,
            window_size_func=sizes.body,
            **flat_attrs(structure),
        )
        return Dataset(variant, structure)

    return apply


def _keys(key_func: Callable[..., Any], dataset: Dataset) -> ElementFunction:
    """The function of elements that gives their keys."""
    keys = ElementFunction(key_func, [dataset._structure], "key_func")
    leaf = keys.output
    if type(leaf) is not Component or leaf.dtype is not dtypes.int64 or leaf.shape.ndims:
        raise ValueError(f"`key_func` must return a scalar tf.int64, not {leaf!r}.")
    return keys


class Reducer:
    """Three functions that make one element of many: see `group_by_reducer`.

    >>> import headrace as tf
    >>> total = tf.data.experimental.Reducer(
    ...     lambda key: 0.0, lambda state, x: state + x, lambda state: state
    ... )
    >>> dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0])
    >>> by_key = tf.data.experimental.group_by_reducer(lambda x: tf.to_int64(x < 3), total)
    >>> sums = dataset.apply(by_key).make_one_shot_iterator().get_next()
    >>> with tf.Session() as sess:
    ...     float(sess.run(sums)), float(sess.run(sums))
    (3.0, 3.0)
    """

    def __init__(
        self,
        init_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        finalize_func: Callable[..., Any],
    ) -> None:
        self.init_func, self.reduce_func = init_func, reduce_func
        self.finalize_func = finalize_func


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Transformation:
    """For each key, in their order, what a `Reducer` makes of the elements that have it.

    Args:
        key_func: the key of an element, an int64 scalar.

    Raises:
        TypeError: if ``reducer`` is none.
        ValueError: if ``key_func`` gives something else.
    """
    if not isinstance(reducer, Reducer):
        raise TypeError(f"`reducer` must be a Reducer, not {reducer!r:.100}.")

    def apply(dataset: Dataset) -> Dataset:
        key_leaf = Component(dtypes.int64, [])
        keys = _keys(key_func, dataset)
        begin = ElementFunction(reducer.init_func, [key_leaf], "init_func")
        state = begin.output
        step = ElementFunction(
            reducer.reduce_func,
            [state, dataset._structure],
            "reduce_func",
            output=state,
            spread=False,
        )
        end = ElementFunction(reducer.finalize_func, [state], "finalize_func")
        variant = raw.GroupByReducerDataset(
            dataset._variant_tensor,
            keys.captured,
            begin.captured,
            step.captured,
            end.captured,
            key_func=keys.body,
            init_func=begin.body,
            reduce_func=step.body,
            finalize_func=end.body,
            **flat_attrs(end.output),
        )
        return Dataset(variant, end.output)

    return apply


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """Batches of elements of about the same length, padded to one.

    Args:
        element_length_func: the length of an element, an int32 scalar.
        bucket_boundaries: upper bounds (excluded) of the lengths in a bucket, but for the last.
        bucket_batch_sizes: the size of batches for each bucket, one more.
        pad_to_bucket_boundary: pad to the bound less one; lengths above the last are an error.

    Raises:
        ValueError: unless there is one batch size more than bounds.
        InvalidArgumentError: when the graph runs, if an element is too long for the last bound.
    """
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise ValueError("len(bucket_batch_sizes) must equal len(bucket_boundaries) + 1")
    sizes = np.array(bucket_batch_sizes, np.int64)
    bounds = np.array(bucket_boundaries, np.int32)

    def bucket(*element: Any) -> Any:
        length = convert_to_tensor(element_length_func(*element))
        above = raw.GreaterEqual(raw.Cast(length, DstT=dtypes.int32), bounds)
        return raw.Sum(raw.Cast(above, DstT=dtypes.int64), 0)

    def batch(bucket_id: Tensor, window: Dataset) -> Dataset:
        size = raw.GatherV2(sizes, bucket_id, 0)
        if no_padding:
            return window.batch(size, drop_remainder)
        shapes = padded_shapes
        if shapes is None:
            shapes = nested.map_leaves(lambda leaf: leaf.shape, window._structure)
        if pad_to_bucket_boundary:
            check = raw.Assert(
                raw.Less(bucket_id, np.int64(len(bounds))),
                ["When pad_to_bucket_boundary=True, elements must have length < max(bounds)."],
            )
            with bucket_id.graph.control_dependencies([check]):
                most = raw.GatherV2(bounds.astype(np.int64) - 1, raw.Identity(bucket_id), 0)

            def bounded(leaf: Component, shape: Any) -> Any:
                dims = TensorShape(shape).as_tuple or ()
                return raw.Pack([most if d is None else np.int64(d) for d in dims]) if dims else []

            shapes = nested.map_leaves(bounded, window._structure, shapes)
        return window.padded_batch(size, shapes, padding_values, drop_remainder)

    return group_by_window(bucket, batch, window_size_func=lambda key: raw.GatherV2(sizes, key, 0))


def dense_to_ragged_batch(
    batch_size: Any, drop_remainder: Any = False, row_splits_dtype: Any = dtypes.int64
) -> Transformation:
    """Batches of tensors of different sizes as ragged tensors.

    Components whose static shape is fully known stay dense; one of shape ``[None]`` gives a
    RaggedTensor of shape ``[batch_size, None]``, sparse and ragged tensors are batched as they are.

    Raises:
        ValueError: if the rank of a component is not known.
    """
    splits = dtypes.as_dtype(row_splits_dtype)

    def ragged(leaf: Component) -> Component:
        if type(leaf) is not Component or leaf.dtype is dtypes.variant:
            return leaf
        if leaf.shape.ndims is None:
            raise ValueError("dense_to_ragged_batch needs tensors of a known rank.")
        open_axes = [i for i, size in enumerate(leaf.shape.as_tuple or ()) if size is None]
        return RaggedComponent(leaf.dtype, leaf.shape, open_axes[-1], splits) if open_axes else leaf

    def apply(dataset: Dataset) -> Dataset:
        structure = nested.map_leaves(ragged, dataset._structure)
        return dataset._held_as(structure).batch(batch_size, drop_remainder)

    return apply


def dense_to_sparse_batch(batch_size: Any, row_shape: Any) -> Transformation:
    """Batches of tensors of different sizes as sparse tensors of ``[batch] + row_shape``.

    Raises:
        TypeError: if elements are not single tensors.
        InvalidArgumentError: when the graph runs, if one does not fit ``row_shape``.
    """

    def apply(dataset: Dataset) -> Dataset:
        leaf = dataset._structure
        if type(leaf) is not Component:
            raise TypeError(f"Elements must be single tensors, but are {leaf!r:.100}.")
        shape = TensorShape(row_shape)
        made = nested.SparseComponent(leaf.dtype, TensorShape([None]).concatenate(shape))
        dims = [-1 if size is None else size for size in shape.as_tuple or ()]
        variant = raw.DenseToSparseBatchDataset(
            dataset._variant_tensor,
            _int64(batch_size, "batch_size"),
            np.array(dims, np.int64),
            **flat_attrs(made),
        )
        return Dataset(variant, made)

    return apply


def ignore_errors() -> Transformation:
    """The elements, of the same shapes, but for those whose functions fail."""
    return lambda dataset: dataset._same(raw.IgnoreErrorsDataset)


def unique() -> Transformation:
    """Each scalar or tensor once, where it comes first.

    Raises:
        TypeError: if elements are not single tensors.
    """

    def apply(dataset: Dataset) -> Dataset:
        if type(dataset._structure) is not Component:
            raise TypeError(f"Elements must be single tensors: {dataset._structure!r:.100}.")
        return dataset._same(raw.UniqueDataset)

    return apply


def parallel_interleave(
    map_func: Callable[..., Dataset],
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: Any = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Transformation:
    """`Dataset.interleave` with a thread for each open dataset; elements keep their shapes.

    Args:
        sloppy: whether a dataset that has an element ready goes before one that is slow.

    Raises:
        TypeError: if ``map_func`` returns no dataset.
        InvalidArgumentError: when the graph runs, if ``cycle_length`` or ``block_length`` is
            below 1.
    """

    def apply(dataset: Dataset) -> Dataset:
        function, made = dataset._datasets(map_func, "parallel_interleave")
        cycle = _int64(cycle_length, "cycle_length")
        variant = raw.ParallelInterleaveDatasetV2(
            dataset._variant_tensor,
            function.captured,
            cycle,
            _int64(block_length, "block_length"),
            cycle,
            f=function.body,
            sloppy=bool(sloppy),
            **flat_attrs(made),
        )
        return Dataset(variant, made)

    return apply


def prefetch_to_device(device: Any, buffer_size: Any = None) -> Transformation:
    """`Dataset.prefetch`: programs of a device take what they need by themselves; shapes stay.

    Raises:
        TypeError: when applied, if ``buffer_size`` is no integer.
        ValueError: if ``device`` is no name of a device.
        InvalidArgumentError: when the graph runs, if ``buffer_size`` is below -1.
    """
    DeviceSpec.from_string(device)
    return lambda dataset: dataset.prefetch(1 if buffer_size is None else buffer_size)


def copy_to_device(target_device: Any, source_device: Any = "/cpu:0") -> Transformation:
    """The dataset itself, shapes and all: programs of a device take what they need by themselves.

    Raises:
        ValueError: if a device is no name of one.
    """
    for device in (target_device, source_device):
        DeviceSpec.from_string(device)
    return lambda dataset: dataset


def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: Dataset) -> Dataset:
    """Elements of several datasets, each from the one whose number ``choice_dataset`` gives.

    Raises:
        TypeError: unless that has int64 scalars.
    """
    leaf = choice_dataset._structure
    if not (
        type(leaf) is Component and leaf.dtype is dtypes.int64 and leaf.shape.ndims in (0, None)
    ):
        raise TypeError("`choice_dataset` must be a dataset of scalar tf.int64 tensors.")
    both = datasets[0]
    for other in datasets[1:]:
        both = both.concatenate(other)  # finds what differs, and the common shapes
    made = raw.DirectedInterleaveDataset(
        choice_dataset._variant_tensor,
        [d._variant_tensor for d in datasets],
        **flat_attrs(both._structure),
    )
    return Dataset(made, both._structure)


def get_single_element(dataset: Dataset) -> Any:
    """The tensors of the one element of a dataset, in its structure and of its shapes.

    Raises:
        InvalidArgumentError: when the graph runs, if it has none or more.
    """
    found = raw.DatasetToSingleElement(dataset._variant_tensor, **flat_attrs(dataset._structure))
    return nested.values(dataset._structure, found)


class RandomDataset(Dataset):
    """Random int64 numbers in [0, 2**32) without end.

    >>> import headrace as tf
    >>> number = tf.data.experimental.RandomDataset(seed=7).make_one_shot_iterator().get_next()
    >>> with tf.Session() as sess:
    ...     bool(0 <= sess.run(number) < 2**32)
    True
    """

    def __init__(self, seed: int | None = None) -> None:
        leaf = Component(dtypes.int64, [])
        super().__init__(raw.RandomDataset(*dataset_seeds(seed), **flat_attrs(leaf)), leaf)


def Counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64) -> Dataset:
    """Numbers from ``start`` on, ``step`` apart, without end: scalars of ``dtype``.

    Raises:
        TypeError: if ``start`` or ``step`` is no integer.
    """
    by = _int64(step, "step")
    dataset = Dataset.range(0, dtypes.int64.max).map(lambda i: _int64(start, "start") + i * by)
    return dataset.map(lambda i: raw.Cast(i, DstT=dtypes.as_dtype(dtype)))


__all__: list[str] = []

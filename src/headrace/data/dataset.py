"""`Dataset`: a sequence of elements as a value of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from headrace.data import structure as nested
from headrace.data.functions import ElementFunction
from headrace.data.padding import padded
from headrace.data.structure import (
    Component,
    DatasetComponent,
    SparseComponent,
    flat_attrs,
)
from headrace.errors import InvalidArgumentError
from headrace.graph import dtypes
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.static import static_value
from headrace.ops.data.generators import Registered
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.state.scopes_api import get_seed

if TYPE_CHECKING:
    from headrace.data.iterators import Iterator

#: Lets the runtime choose a number.
AUTOTUNE = -1


class Dataset:
    """A sequence of elements, each a nested structure of tensors of the same form.

    Nothing is computed before an iterator asks for elements. Each method gives a new dataset.

    >>> import headrace as tf
    >>> dataset = tf.data.Dataset.from_tensor_slices([3, 1, 2]).map(lambda x: x + 1)
    >>> next_element = dataset.make_one_shot_iterator().get_next()
    >>> with tf.Session() as sess:
    ...     [int(sess.run(next_element)) for _ in range(3)]
    [4, 2, 3]
    """

    def __init__(self, variant_tensor: Tensor, structure: Any) -> None:
        self._variant_tensor = variant_tensor
        self._structure = structure

    # -- what it is -----------------------------------------------------------------------------

    @property
    def output_types(self) -> Any:
        """The dtype of each component of an element, in the structure of an element."""
        return nested.map_leaves(lambda leaf: leaf.dtype, self._structure)

    @property
    def output_shapes(self) -> Any:
        """The static shape of each component."""
        return nested.map_leaves(lambda leaf: leaf.shape, self._structure)

    @property
    def output_classes(self) -> Any:
        """`tf.Tensor` or `tf.SparseTensor` for each component."""
        return nested.map_leaves(lambda leaf: leaf.python_class, self._structure)

    @property
    def element_spec(self) -> Any:
        """What describes an element: a `tf.TensorSpec`, or one of its kin, for each component."""
        from headrace.data.specs import spec_of_structure

        return spec_of_structure(self._structure)

    def __repr__(self) -> str:
        shapes, types = self.output_shapes, nested.map_leaves(lambda t: t.name, self.output_types)
        return f"<{type(self).__name__} shapes: {shapes}, types: {types}>"

    def __iter__(self) -> Any:
        raise RuntimeError(
            "A dataset of a graph has no elements before a session runs. Use "
            "tf.data.make_one_shot_iterator(dataset).get_next() and run what it gives."
        )

    def __bool__(self) -> bool:
        return True

    @staticmethod
    def _of(variant_tensor: Tensor, structure: Any) -> Dataset:
        """A dataset that is an element of another, or comes from a function."""
        return Dataset(variant_tensor, structure)

    def _flat(self) -> dict[str, Any]:
        """The attributes that most dataset ops declare."""
        return flat_attrs(self._structure)

    def _same(self, op: Any, *inputs: Any, **attrs: Any) -> Dataset:
        """A dataset of elements like these."""
        return Dataset(op(self._variant_tensor, *inputs, **attrs, **self._flat()), self._structure)

    # -- sources --------------------------------------------------------------------------------

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """A dataset of one element."""
        structure = nested.of_value(tensors)
        made = raw.TensorDataset(
            nested.components(structure, tensors), output_shapes=nested.flat_shapes(structure)
        )
        return Dataset(made, structure)

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """The slices of tensors along their first axis, which must be of one size.

        Raises:
            ValueError: if there is a scalar, or if sizes differ.
            InvalidArgumentError: when the dataset is made in a session, if they differ only then.
        """
        batch = nested.of_value(tensors)
        leaves = nested.flatten(batch)
        if not leaves:
            raise ValueError("from_tensor_slices needs at least one tensor.")
        batch = nested.map_leaves(nested.in_rows, batch)
        sizes = [leaf.shape[0].value if leaf.shape.ndims else None for leaf in leaves]
        if len({size for size in sizes if size is not None}) > 1:
            raise ValueError(f"Dimensions along the first axis differ: {sizes}.")
        if any(isinstance(leaf, SparseComponent) for leaf in leaves):
            return _sparse_slices(tensors, leaves)
        structure = nested.map_leaves(lambda leaf: leaf.unbatched(), batch)
        made = raw.TensorSliceDataset(
            nested.components(batch, tensors), output_shapes=nested.flat_shapes(structure)
        )
        return Dataset(made, structure)

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor: Any) -> Dataset:
        """The slices of a SparseTensor along its first axis, as sparse tensors."""
        sparse = SparseTensor.from_value(sparse_tensor)
        rank = sparse.get_shape().ndims
        below = None if rank is None else rank - 1
        structure = (
            Component(dtypes.int64, [None, below]),
            Component(sparse.dtype, [None]),
            Component(dtypes.int64, [below]),
        )
        made = Dataset(
            raw.SparseTensorSliceDataset(sparse.indices, sparse.values, sparse.dense_shape),
            structure,
        )
        return made.map(lambda i, v, s: SparseTensor(i, v, s))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any,
        output_shapes: Any = None,
        args: Sequence[Any] | None = None,
    ) -> Dataset:
        """The elements of an iterable that ``generator(*args)`` makes for each iteration.

        Args:
            output_types, output_shapes: of an element; shapes are unknown by default.
            args: tensors, whose values the function gets as arrays.

        Raises:
            TypeError: if ``generator`` cannot be called.
            InvalidArgumentError: when the graph runs, if an element does not fit.
        """
        if not callable(generator):
            raise TypeError("`generator` must be callable.")
        structure = nested.of_types(output_types, output_shapes)

        def flat(*values: Any) -> Any:
            for element in generator(*values):
                try:
                    yield nested.flatten_up_to(structure, element)
                except ValueError as error:
                    raise InvalidArgumentError(
                        None, None, f"`generator` yielded an element of another structure: {error}"
                    ) from error

        registered = Registered(flat)
        inputs = [convert_to_tensor(value) for value in args or ()]
        made = raw.PythonGeneratorDataset(inputs, token=registered.token, **flat_attrs(structure))
        made.graph.outermost.__dict__.setdefault("_generators", []).append(registered)
        return Dataset(made, structure)

    @staticmethod
    def range(*args: Any) -> Dataset:
        """``range(stop)``, ``range(start, stop)`` or ``range(start, stop, step)``, as int64."""
        if not 1 <= len(args) <= 3:
            raise ValueError(f"Dataset.range takes one to three numbers, not {len(args)}.")
        start, stop, step = {1: (0, *args, 1), 2: (*args, 1), 3: args}[len(args)]
        numbers = [convert_to_tensor(value, dtypes.int64) for value in (start, stop, step)]
        structure = Component(dtypes.int64, [])
        return Dataset(raw.RangeDataset(*numbers, **flat_attrs(structure)), structure)

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """Elements whose parts come from several datasets; it ends with the shortest."""
        flat = nested.flatten(datasets)
        if isinstance(datasets, list) or not all(isinstance(d, Dataset) for d in flat):
            raise TypeError(
                f"The argument to Dataset.zip must be a nested structure (tuples, dicts) of "
                f"datasets, not {datasets!r:.100}."
            )
        structure = nested.pack(datasets, [d._structure for d in flat])
        variants = [d._variant_tensor for d in flat]
        return Dataset(raw.ZipDataset(variants, **flat_attrs(structure)), structure)

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: int | None = None
    ) -> Dataset:
        """The names of files that match patterns, in a random order unless ``shuffle=False``.

        Raises:
            InvalidArgumentError: when the graph runs, if no file matches.
        """
        patterns = convert_to_tensor(file_pattern, dtypes.string)
        found = raw.MatchingFiles(patterns)
        count = raw.Size(found, out_type=dtypes.int64)
        message = raw.StringJoin(
            [
                "No files matched pattern: ",
                raw.ReduceJoin(raw.Reshape(patterns, [-1]), 0, separator=", "),
            ]
        )
        check = raw.Assert(raw.Greater(count, np.int64(0)), [message])
        with found.graph.control_dependencies([check]):
            found = raw.Identity(found)
        dataset = Dataset.from_tensor_slices(found)
        if shuffle is None or shuffle:
            least = raw.Maximum(count, np.int64(1))
            return dataset.shuffle(least, seed)
        return dataset

    # -- elements as they are -------------------------------------------------------------------

    def concatenate(self, dataset: Dataset) -> Dataset:
        """The elements of this one, then those of another of the same types and classes."""
        mine, other = nested.flatten(self._structure), nested.flatten(dataset._structure)
        if self.output_types != dataset.output_types:
            raise TypeError(
                f"Two datasets to concatenate have different types {self.output_types} and "
                f"{dataset.output_types}"
            )
        if self.output_classes != dataset.output_classes:
            raise TypeError(
                f"Two datasets to concatenate have different classes {self.output_classes} and "
                f"{dataset.output_classes}"
            )
        both = [
            a.with_shape(a.shape.most_specific_compatible_shape(b.shape))
            for a, b in zip(mine, other, strict=True)
        ]
        structure = nested.pack(self._structure, both)
        made = raw.ConcatenateDataset(
            self._variant_tensor, dataset._variant_tensor, **flat_attrs(structure)
        )
        return Dataset(made, structure)

    def take(self, count: Any) -> Dataset:
        """The first ``count`` elements; all for -1."""
        return self._same(raw.TakeDataset, _int64(count, "count"))

    def skip(self, count: Any) -> Dataset:
        """All but the first ``count`` elements; none for -1."""
        return self._same(raw.SkipDataset, _int64(count, "count"))

    def repeat(self, count: Any = None) -> Dataset:
        """The elements ``count`` times over; without end for None or -1."""
        return self._same(raw.RepeatDataset, _int64(-1 if count is None else count, "count"))

    def shard(self, num_shards: Any, index: Any) -> Dataset:
        """Every ``num_shards``-th element, beginning with that at ``index``.

        Raises:
            InvalidArgumentError: unless ``0 <= index < num_shards``, when both are numbers here;
                else when the graph runs.
        """
        shards, at = _int64(num_shards, "num_shards"), _int64(index, "index")
        known = static_value(shards), static_value(at)
        if known[0] is not None and known[0] < 1:
            raise ValueError(f"num_shards must be >= 1; got {known[0]}")
        if known[1] is not None and known[1] < 0:
            raise ValueError(f"index must be >= 0; got {known[1]}")
        if known[0] is not None and known[1] is not None and known[1] >= known[0]:
            raise ValueError(f"index must be <= num_shards - 1; {known[1]} and {known[0]}")
        return self._same(raw.ShardDataset, shards, at)

    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = None
    ) -> Dataset:
        """The elements in random order: each is chosen from a buffer of the next ``buffer_size``.

        Args:
            seed: for the same order in each run of the program, which is TensorFlow's.
            reshuffle_each_iteration: whether repetitions have other orders; they do by default.
        """
        again = reshuffle_each_iteration is None or reshuffle_each_iteration
        seeds = dataset_seeds(seed)
        size = _int64(buffer_size, "buffer_size")
        return self._same(raw.ShuffleDataset, size, *seeds, reshuffle_each_iteration=again)

    def cache(self, filename: Any = "") -> Dataset:
        """The same elements, computed once: kept in memory, or in a file of that name."""
        return self._same(raw.CacheDataset, convert_to_tensor(filename, dtypes.string))

    def prefetch(self, buffer_size: Any) -> Dataset:
        """The same elements; a thread computes ``buffer_size`` of them ahead of their use."""
        return self._same(raw.PrefetchDataset, _int64(buffer_size, "buffer_size"))

    def with_options(self, options: Any) -> Dataset:
        """The same dataset. Options are kept; `StatsOptions` say where statistics go.

        With ``experimental_deterministic = False`` what several threads compute comes as it is
        ready.

        Raises:
            ValueError: if two sets of options have another statistics aggregator.
        """
        variant = self._variant_tensor
        stats = options.experimental_stats
        if stats.aggregator is not None:
            before = self.options().experimental_stats.aggregator
            if before is not None and before is not stats.aggregator:
                raise ValueError("The options of a dataset name two statistics aggregators.")
            texts = [stats.prefix or "", stats.counter_prefix or ""]
            resource = stats.aggregator._resource
            variant = raw.SetStatsAggregatorDataset(variant, resource, *texts, **self._flat())
        if options.experimental_deterministic is False:
            variant = raw.OptimizeDataset(variant, ["make_sloppy"], **self._flat())
        made = Dataset(variant, self._structure)
        made._options = self.options().merge(options)  # type: ignore[attr-defined]
        return made

    def options(self) -> Any:
        """The options given with `with_options`."""
        from headrace.data.options import Options

        found = getattr(self, "_options", None)
        return Options() if found is None else found

    def enumerate(self, start: Any = 0) -> Dataset:
        """Pairs of a number (int64, a scalar), from ``start`` on, and an element."""
        first = _int64(start, "start")
        return Dataset.zip((Dataset.range(first, dtypes.int64.max), self))

    def unbatch(self) -> Dataset:
        """Elements along the first axis of each component: the inverse of `batch`.

        Raises:
            ValueError: if a component is a scalar.
            InvalidArgumentError: when the graph runs, if first axes differ.
        """
        base = self._held_as(nested.map_leaves(nested.in_rows, self._structure))
        structure = nested.map_leaves(lambda leaf: leaf.unbatched(), base._structure)
        made = raw.UnbatchDataset(base._variant_tensor, **flat_attrs(structure))
        return Dataset(made, structure)

    def _held_as(self, structure: Any) -> Dataset:
        """The same elements, their components held as ``structure`` says."""
        pairs = zip(nested.flatten(self._structure), nested.flatten(structure), strict=True)
        if all(a is b for a, b in pairs):
            return self
        function = ElementFunction(
            lambda element: element, [self._structure], "map", output=structure, spread=False
        )
        attrs = {"f": function.body, **flat_attrs(structure)}
        return Dataset(raw.MapDataset(self._variant_tensor, function.captured, **attrs), structure)

    # -- functions of elements ------------------------------------------------------------------

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None) -> Dataset:
        """What ``map_func`` makes of each element.

        Args:
            map_func: takes the items of a tuple as one argument each, anything else as one.
            num_parallel_calls: how many elements to compute at a time; the order stays. -1
                (AUTOTUNE): as many as bring something, found while it runs.
        """
        function = ElementFunction(map_func, [self._structure], "map")
        base, captured = self._variant_tensor, function.captured
        attrs = {"f": function.body, **flat_attrs(function.output)}
        if num_parallel_calls is None:
            made = raw.MapDataset(base, captured, **attrs)
        else:
            calls = convert_to_tensor(num_parallel_calls, dtypes.int32)
            made = raw.ParallelMapDataset(base, captured, calls, **attrs)
        return Dataset(made, function.output)

    def flat_map(self, map_func: Callable[..., Dataset]) -> Dataset:
        """The elements of the datasets that ``map_func`` makes of each element, one after another.

        Raises:
            TypeError: if it returns something else.
        """
        function, made = self._datasets(map_func, "flat_map")
        variant = raw.FlatMapDataset(
            self._variant_tensor, function.captured, f=function.body, **flat_attrs(made)
        )
        return Dataset(variant, made)

    def interleave(
        self,
        map_func: Callable[..., Dataset],
        cycle_length: Any = AUTOTUNE,
        block_length: Any = 1,
        num_parallel_calls: Any = None,
    ) -> Dataset:
        """The elements of such datasets, ``block_length`` of each of ``cycle_length`` in turn."""
        function, made = self._datasets(map_func, "interleave")
        base, captured = self._variant_tensor, function.captured
        cycle, block = _int64(cycle_length, "cycle_length"), _int64(block_length, "block_length")
        attrs = {"f": function.body, **flat_attrs(made)}
        if num_parallel_calls is None:
            variant = raw.InterleaveDataset(base, captured, cycle, block, **attrs)
        else:
            calls = _int64(num_parallel_calls, "num_parallel_calls")
            variant = raw.ParallelInterleaveDatasetV2(base, captured, cycle, block, calls, **attrs)
        return Dataset(variant, made)

    def _datasets(self, map_func: Callable[..., Any], name: str) -> tuple[ElementFunction, Any]:
        function = ElementFunction(map_func, [self._structure], name)
        if not isinstance(function.output, DatasetComponent):
            raise TypeError(
                f"The function of Dataset.{name} must return a Dataset, not {function.output!r}."
            )
        return function, function.output.structure

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which ``predicate`` gives True.

        Raises:
            ValueError: if it does not give a boolean scalar.
        """
        function = ElementFunction(predicate, [self._structure], "filter")
        check_predicate(function.output)
        body = function.body
        return self._same(raw.FilterDataset, function.captured, predicate=body)

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
        """``reduce_func(state, element)`` over all elements, beginning with ``initial_state``.

        Returns:
            tensors of the structure of the state, for a session to run.
        """
        state = nested.of_value(initial_state)
        function = ElementFunction(
            reduce_func, [state, self._structure], "reduce", output=state, spread=False
        )
        found = raw.ReduceDataset(
            self._variant_tensor,
            nested.components(state, initial_state),
            function.captured,
            f=function.body,
            **flat_attrs(state),
        )
        return nested.values(state, found)

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """What a function makes of the dataset.

        Raises:
            TypeError: if that is no dataset.
        """
        made = transformation_func(self)
        if not isinstance(made, Dataset):
            raise TypeError(f"`transformation_func` must return a Dataset, not {made!r:.100}.")
        return made

    # -- several elements in one ----------------------------------------------------------------

    def batch(self, batch_size: Any, drop_remainder: Any = False) -> Dataset:
        """Elements of ``batch_size`` of these, along a new first axis.

        Args:
            drop_remainder: whether to leave out a last batch that is smaller; the size of batches
                is then known in the graph.
        """
        size, drop = _int64(batch_size, "batch_size"), convert_to_tensor(drop_remainder, "bool")
        known = static_value(size) if static_value(drop) else None
        axis = None if known is None else int(known)
        base = self._held_as(nested.map_leaves(nested.in_one, self._structure))
        structure = nested.map_leaves(lambda leaf: leaf.batched(axis), base._structure)
        made = raw.BatchDatasetV2(base._variant_tensor, size, drop, **flat_attrs(structure))
        return Dataset(made, structure)

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any,
        padding_values: Any = None,
        drop_remainder: Any = False,
    ) -> Dataset:
        """Batches of elements of different sizes, which are filled up.

        Args:
            padded_shapes: in the structure of an element, the shape of each component; None or -1
                for the largest size in a batch.
            padding_values: scalars in the same structure; 0 or an empty string by default.

        Raises:
            InvalidArgumentError: when the graph runs, if an element is larger than its shape.
        """
        return Dataset(*padded(self, batch_size, padded_shapes, padding_values, drop_remainder))

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: Any = False
    ) -> Dataset:
        """Datasets of ``size`` elements each.

        Args:
            shift: how many elements further the next window begins; ``size`` by default.
            stride: how many elements apart those of a window lie.
        """
        structure = nested.map_leaves(lambda leaf: DatasetComponent(leaf, Dataset), self._structure)
        made = raw.WindowDataset(
            self._variant_tensor,
            _int64(size, "size"),
            _int64(size if shift is None else shift, "shift"),
            _int64(stride, "stride"),
            convert_to_tensor(drop_remainder, "bool"),
            **flat_attrs(structure),
        )
        return Dataset(made, structure)

    # -- iterators ------------------------------------------------------------------------------

    def make_one_shot_iterator(self) -> Iterator:
        """See `tf.data.make_one_shot_iterator`."""
        from headrace.data.iterators import make_one_shot_iterator

        return make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        """See `tf.data.make_initializable_iterator`."""
        from headrace.data.iterators import make_initializable_iterator

        return make_initializable_iterator(self, shared_name)

    #: TensorFlow 1.15 traces functions in two ways; here there is one.
    map_with_legacy_function = map
    filter_with_legacy_function = filter

    def __copy__(self) -> Self:
        return self


def check_predicate(structure: Any) -> None:
    """Raise ValueError unless a function gives a boolean scalar."""
    fits = type(structure) is Component and structure.dtype == dtypes.bool
    if not fits or not structure.shape.is_compatible_with([]):
        raise ValueError(f"`predicate` must return a scalar boolean tensor, not {structure!r}.")


def check_dataset(value: Any) -> None:
    """Raise TypeError unless ``value`` is a dataset."""
    if not isinstance(value, Dataset):
        raise TypeError(f"Expected a tf.data.Dataset, not {value!r:.100}.")


def dataset_seeds(seed: Any) -> tuple[Tensor, Tensor]:
    """The two seeds of a shuffle, by the rule of random ops; (0, 0) for none."""
    if isinstance(seed, Tensor):
        first, _ = get_seed(0)
        return _int64(first or 0, "seed"), _int64(seed, "seed2")
    first, second = get_seed(seed)
    return _int64(first or 0, "seed"), _int64(second or 0, "seed2")


def _int64(value: Any, name: str) -> Tensor:
    if isinstance(value, Tensor) and value.dtype is not dtypes.int64:
        return raw.Cast(value, DstT=dtypes.int64)
    return convert_to_tensor(value, dtypes.int64, name=name)


def _sparse_slices(tensors: Any, leaves: Sequence[Component]) -> Dataset:
    if len(leaves) == 1:
        return Dataset.from_sparse_tensor_slices(nested.flatten(tensors)[0])
    parts = [Dataset.from_tensor_slices(t) for t in nested.flatten(tensors)]
    return Dataset.zip(nested.pack(tensors, parts))


#: The shape of one number.
SCALAR = TensorShape([])

__all__: list[str] = ["AUTOTUNE", "Dataset"]

"""Datasets that feed steps that train: each worker reads its share, at the source where it can.

An iterator whose elements a training step needs gets another dataset: the same stages, with one
more that keeps every n-th element, as early as that leaves the workers' elements together those of
the script; and with batches of an n-th of the size, so that a step of all workers has one batch of
the script. Stages that count (`take`, `skip`) come before it, those that treat each element by
itself, shuffle or repeat come after it. Other iterators (of an evaluation) stay as they are.
"""

from __future__ import annotations

from typing import NamedTuple

from headrace import logging
from headrace.data_parallel.state import GraphState
from headrace.data_parallel.steps import needed, reads_dataset, where
from headrace.graph import dtypes
from headrace.graph.graph import Graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.static import static_value
from headrace.ops.data.pipeline import element_attrs

__all__ = ["shard", "shard_inputs"]

_EACH = ("Map", "ParallelMap", "Prefetch", "Cache", "Options", "Model", "Optimize", "IgnoreErrors")
#: Stages that may see some of the elements only.
_FREE = (*_EACH, "Shuffle", "Repeat", "ShuffleAndRepeat", "Filter")
_BATCHES = ("Batch", "PaddedBatch", "MapAndBatch", "DenseToSparseBatch")
#: Stages that make several elements of one, a file for instance.
_EXPANDS = ("FlatMap", "Interleave", "ParallelInterleave")
_SHUFFLES = ("Shuffle", "ShuffleAndRepeat")


class _Chain(NamedTuple):
    """A dataset's operations.

    Attributes:
        source: the first dataset.
        stages: what is done to it, in order.
    """

    source: Tensor
    stages: list[Operation]


def shard_inputs(graph: Graph, state: GraphState, worker: int, workers: int, seed: int) -> None:
    """Give the iterators of training steps this worker's shares of their datasets."""
    if workers == 1:
        return
    roots = [u.op for u in state.updates if u.op not in state.sharded]
    state.sharded.update(roots)
    for op in needed(roots, set()) if roots else ():
        if reads_dataset(op):
            iterator = op.inputs[0].op
            if iterator not in state.sharded:
                state.sharded.add(iterator)
                _shard_iterator(graph, iterator, worker, workers, seed)


def _shard_iterator(
    graph: Graph, iterator: Operation, worker: int, workers: int, seed: int
) -> None:
    if iterator.type == "OneShotIterator":
        body = iterator.attrs["dataset_factory"]
        with body.as_default():
            body.outputs[0] = shard(body.outputs[0], worker, workers, seed)
        graph._mutations += 1
        return
    makers = [op for op in iterator.outputs[0]._consumers if op.type == "MakeIterator"]
    if not makers:
        logging.warning(
            "The dataset of the iterator %s is not known here: each worker reads all of it.",
            where(iterator),
        )
    for maker in _of_training(makers):
        with graph.as_default(), graph.control_dependencies(None):
            maker._update_input(0, shard(maker.inputs[0], worker, workers, seed))


def _of_training(makers: list[Operation]) -> list[Operation]:
    """Of the datasets that an iterator may go over, those that are for training."""
    endless = [
        m
        for m in makers
        if any(_is(s, "Shuffle", "Repeat", "ShuffleAndRepeat") for s in _chain(m.inputs[0]).stages)
    ]
    return endless or makers[:1]


def shard(dataset: Tensor, worker: int, workers: int, seed: int) -> Tensor:
    """The same dataset with this worker's share of the elements, in the default graph.

    Args:
        seed: of shuffles without one, that all workers must do alike.
    """
    source, stages = _chain(dataset)
    batch = next((i for i, s in enumerate(stages) if _is(s, *_BATCHES)), len(stages))
    at = _place(source, stages[:batch], workers)
    if not at and _has_too_few(source, workers):
        logging.info(
            "The dataset %s has fewer elements than there are workers: each reads all of it.",
            where(source.op),
        )
        return dataset
    made = source
    for i in range(len(stages) + 1):
        if i == at:
            made = _every(made, worker, workers)
        if i < len(stages):
            made = _again(stages[i], made, workers if i == batch else 1, seed if i < at else None)
    return made


def _is(op: Operation, *names: str) -> bool:
    """Whether an operation is one of these stages, of whatever version."""
    kind = op.type.removesuffix("V2").removesuffix("V3")
    return kind.removesuffix("Dataset") in names


def _chain(dataset: Tensor) -> _Chain:
    stages: list[Operation] = []
    while True:
        op = dataset.op
        before = [t for t in op.inputs if t.dtype is dtypes.variant]
        known = _is(op, *_FREE, *_BATCHES, *_EXPANDS, "Take", "Skip", "Shard")
        if not (known and len(before) == 1 and before[0] is op.inputs[0]):
            return _Chain(dataset, stages[::-1])
        stages.append(op)
        dataset = op.inputs[0]


def _place(source: Tensor, stages: list[Operation], workers: int) -> int:
    """Before which stage the elements are shared out."""
    at = 0
    for i, stage in enumerate(stages):
        if _is(stage, *_EXPANDS):
            if at or not _divides(source, workers):
                at = i + 1
        elif not _is(stage, *_FREE):
            at = i + 1
    return at


def _divides(source: Tensor, workers: int) -> bool:
    """Whether a dataset has as many elements for each worker, as far as the graph tells."""
    count = _count(source.op)
    return count is not None and count > 0 and count % workers == 0


def _has_too_few(source: Tensor, workers: int) -> bool:
    """Whether some worker would get nothing, and could not train."""
    count = _count(source.op)
    return count is not None and 0 < count < workers


def _count(op: Operation) -> int | None:
    """How many elements the first dataset has, as far as the graph tells."""
    if op.type == "TensorDataset":
        return 1
    if op.type == "TensorSliceDataset":
        dims = op.inputs[0].dims
        return dims[0] if dims else None
    if op.type == "RangeDataset":
        start, stop, step = (static_value(t) for t in op.inputs)
        if start is None or stop is None or not step:
            return None
        return len(range(int(start), int(stop), int(step)))
    return None


def _every(dataset: Tensor, worker: int, workers: int) -> Tensor:
    count, index = (convert_to_tensor(n, dtypes.int64) for n in (workers, worker))
    made: Tensor = raw.ShardDataset(dataset, count, index, **element_attrs(dataset.op))
    return made


def _again(stage: Operation, dataset: Tensor, parts: int, seed: int | None) -> Tensor:
    """A stage on another dataset.

    Args:
        parts: into how many parts its batches go.
        seed: of a shuffle that has none.
    """
    inputs = [dataset, *stage.inputs[1:]]
    if parts > 1 and _has_open_rows(stage):
        at = next(i for i, t in enumerate(stage.inputs) if i and _is_size(stage, i, t))
        inputs[at] = _share_of(stage.inputs[at], parts)
    elif parts > 1:
        logging.warning(
            "The dataset's batches %s have a fixed size: each worker trains on batches of that "
            "size, so a step of all workers has %d. Without drop_remainder they are shared.",
            where(stage),
            parts,
        )
    if seed is not None and _is(stage, *_SHUFFLES):
        given = [static_value(t) for t in stage.inputs[2:4]]
        if all(v is not None and int(v) == 0 for v in given):
            inputs[2] = convert_to_tensor(seed, dtypes.int64)
    types = [t.dtype for t in stage.outputs]
    graph = stage.graph
    op = graph.add_op(stage.op_def, tuple(inputs), dict(stage.attrs), types, f"{stage.name}_share")
    return op.outputs[0]


def _has_open_rows(stage: Operation) -> bool:
    shapes = stage.attrs["output_shapes"]
    return all(s.as_tuple is None or (s.as_tuple and s.as_tuple[0] is None) for s in shapes)


def _is_size(stage: Operation, position: int, tensor: Tensor) -> bool:
    """Whether an input is the size of a batch: the first number that is no captured argument."""
    captured = len(stage.attrs.get("Targuments", ()))
    return position == 1 + captured and tensor.dtype is dtypes.int64


def _share_of(size: Tensor, parts: int) -> Tensor:
    known = static_value(size)
    if known is not None:
        return convert_to_tensor(-(-int(known) // parts), dtypes.int64)
    more = raw.AddV2(size, convert_to_tensor(parts - 1, dtypes.int64))
    made: Tensor = raw.FloorDiv(more, convert_to_tensor(parts, dtypes.int64))
    return made

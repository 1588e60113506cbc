"""``RecordInput``: batches of the records of many files, in random order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace.files.tfrecord import TFRecordOptions
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import raw
from headrace.ops.core.registry import EXTERNAL, NotDifferentiable, define_op
from headrace.ops.io.record_input_kernels import RecordYielder, strings

__all__: list[str] = []


@dataclass(frozen=True, slots=True)
class _YielderKey:
    """Key of what an op reads from, in a store."""

    op_name: str


def _yield(
    context: Any,
    *,
    file_pattern: str,
    file_random_seed: int,
    file_shuffle_shift_ratio: float,
    file_buffer_size: int,
    batch_size: int,
    compression_type: str,
) -> Any:
    yielder = context.store.object(
        _YielderKey(context.node.name),
        lambda: RecordYielder(
            file_pattern,
            compression_type,
            file_random_seed,
            file_shuffle_shift_ratio,
            file_buffer_size,
        ),
    )
    return strings(yielder.take(batch_size))


define_op(
    "RecordInput() -> records: string",
    attrs="file_pattern: string, file_random_seed: int = 301, file_shuffle_shift_ratio: float = 0, "
    "file_buffer_size: int = 10000, file_parallelism: int = 16, batch_size: int = 32, "
    "compression_type: string = ''",
    shape=lambda op: [(op.attrs["batch_size"],)],
    host=_yield,
    effects=EXTERNAL,
    gradient=NotDifferentiable("it reads files"),
)


class RecordInput:
    """Batches of the records of many TFRecord files, in random order, epoch after epoch.

    Args:
        file_pattern: path of the files, which may have wildcards.
        batch_size: how many records a batch has.
        buffer_size: among how many records the next one is drawn.
        parallelism: taken for compatibility: the order of records does not depend on threads.
        shift_ratio: by which part of the files their order moves on after an epoch.
        seed: decides the order.
        batches: None for one batch; or how many batches to make, as lists of single records.
        compression_type: of the files: "GZIP", "ZLIB", "" or a TFRecordCompressionType.
    """

    def __init__(
        self,
        file_pattern: str,
        batch_size: int = 1,
        buffer_size: int = 1,
        parallelism: int = 1,
        shift_ratio: float = 0,
        seed: int = 0,
        name: str | None = None,
        batches: int | None = None,
        compression_type: Any = None,
    ) -> None:
        self._batch_size = batch_size * (1 if batches is None else batches)
        self._batches = batches
        self._name = name
        options = TFRecordOptions(compression_type)
        self._attrs: dict[str, Any] = {
            "file_pattern": file_pattern,
            "file_buffer_size": buffer_size,
            "file_parallelism": parallelism,
            "file_shuffle_shift_ratio": shift_ratio,
            "file_random_seed": seed,
            "batch_size": self._batch_size,
            "compression_type": TFRecordOptions.get_compression_type_string(options),
        }

    def get_yield_op(self) -> Any:
        """The next records: a vector, or for several batches a list of lists of scalars."""
        records: Tensor = raw.RecordInput(**self._attrs, name=self._name)
        if self._batches is None:
            return records
        with get_default_graph().name_scope(self._name or "RecordInput"):
            rows = raw.Unpack(records, num=self._batch_size)
        return [list(rows[i :: self._batches]) for i in range(self._batches)]

"""Reader ops: making readers, reading records, their state.

The readers themselves are in ``headrace.ops.io.readers_kernels``, the public classes in
``headrace.ops.io.readers_api``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph import dtypes
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.core.traits import Traits
from headrace.ops.io import readers_kernels
from headrace.ops.io.queues import BLOCKS, host_resource
from headrace.ops.io.readers_kernels import Reader

_NO_GRADIENT = NotDifferentiable("a reader gives strings")

Attrs = dict[str, Any]


def _provider(make: Callable[[str, Attrs], Reader]) -> Callable[[Any, Any, Any], None]:
    def provide(store: Any, handle: Any, node: Any) -> None:
        try:
            found = store.object(handle, lambda: make(node.name, node.attrs))
        except InvalidArgumentError as error:
            raise InvalidArgumentError(None, node.op, error.message) from None
        wanted = node.type.removesuffix("V2")
        kind = type(found).__name__.removesuffix("Resource")
        if kind != wanted:
            message = f"Reader '{handle.name}' is a {kind}, not a {wanted}."
            raise InvalidArgumentError(None, node.op, message)

    return provide


_COMMON = "container: string = '', shared_name: string = ''"
_MAKERS: dict[str, tuple[str, Callable[[str, Attrs], Reader]]] = {
    "IdentityReaderV2": ("", lambda name, a: readers_kernels.IdentityReaderResource(name)),
    "WholeFileReaderV2": ("", lambda name, a: readers_kernels.WholeFileReaderResource(name)),
    "TextLineReaderV2": (
        "skip_header_lines: int = 0, ",
        lambda name, a: readers_kernels.TextLineReaderResource(name, a["skip_header_lines"]),
    ),
    "FixedLengthRecordReaderV2": (
        "header_bytes: int = 0, record_bytes: int, footer_bytes: int = 0, hop_bytes: int = 0, "
        "encoding: string = '', ",
        lambda name, a: readers_kernels.FixedLengthRecordReaderResource(
            name,
            a["header_bytes"],
            a["record_bytes"],
            a["footer_bytes"],
            a["hop_bytes"],
            a["encoding"],
        ),
    ),
    "LMDBReader": ("", lambda name, a: readers_kernels.LMDBReaderResource(name)),
    "TFRecordReaderV2": (
        "compression_type: string = '', ",
        lambda name, a: readers_kernels.TFRecordReaderResource(name, a["compression_type"]),
    ),
}

for _name, (_attrs, _make) in _MAKERS.items():
    define_op(
        f"{_name}() -> reader_handle: resource",
        attrs=_attrs + _COMMON,
        makes_handle="reader",
        provide=_provider(_make),
        shape=lambda op: [()],
        gradient=_NO_GRADIENT,
    )

# -- reading ------------------------------------------------------------------------------------


def _reader(context: Any, handle: Any) -> Reader:
    result: Reader = host_resource(context, handle)
    return result


def _work_of(context: Any, handle: Any) -> Callable[[], bytes]:
    """Takes the next piece of work from a queue.

    As it is called it raises InvalidArgumentError if that is no queue of single strings.
    """

    def take() -> bytes:
        queue = host_resource(context, handle)
        if queue.spec.types != (dtypes.string,):
            held = ", ".join(t.name for t in queue.spec.types)
            message = f"A reader takes its work from a queue of one string, not of ({held})."
            raise InvalidArgumentError(None, None, message)
        work = queue.take(1, False, queue.family, context.step)[0][0]
        if isinstance(work, np.ndarray):
            if work.size != 1:
                message = f"A reader takes one string as work, not an array of {work.size}."
                raise InvalidArgumentError(None, None, message)
            work = work.reshape(-1)[0]
        return work if isinstance(work, bytes) else str(work).encode()

    return take


def _text(value: bytes) -> Any:
    array = np.empty((), object)
    array[()] = value
    return array


def _read(context: Any, reader: Any, queue: Any) -> Any:
    key, value = _reader(context, reader).read(_work_of(context, queue), context.step)
    return _text(key), _text(value)


def _read_up_to(context: Any, reader: Any, queue: Any, num_records: Any) -> Any:
    count = int(num_records)
    if count < 0:
        raise InvalidArgumentError(None, None, f"num_records must be >= 0, but is {count}.")
    found: list[tuple[bytes, bytes]] = []
    if count:
        work = _work_of(context, queue)
        found = _reader(context, reader).read_up_to(count, work, context.step)
    columns = np.empty((2, len(found)), object)
    if found:
        columns[0], columns[1] = zip(*found, strict=True)
    return columns[0], columns[1]


def _scalars(op: Operation) -> list[Dims]:
    for handle in op.inputs[:2]:
        if handle.dtype is dtypes.resource and handle.dims not in (None, ()):
            raise ValueError(f"Shape must be rank 0 but is rank {len(handle.dims or ())}.")
    return [()] * len(op.op_def.outputs)


define_op(
    "ReaderReadV2(reader_handle: resource, queue_handle: resource) -> (key: string, value: string)",
    shape=_scalars,
    host=_read,
    effects=BLOCKS,
    gradient=_NO_GRADIENT,
    traits=Traits(takes_out="element"),
)

define_op(
    "ReaderReadUpToV2(reader_handle: resource, queue_handle: resource, num_records: int64)"
    " -> (keys: string, values: string)",
    shape=lambda op: [(None,)] * len(_scalars(op)),
    host=_read_up_to,
    effects=BLOCKS,
    gradient=_NO_GRADIENT,
    traits=Traits(takes_out="rows"),
)

# -- counts and state ---------------------------------------------------------------------------


def _restore(context: Any, handle: Any, state: Any) -> Any:
    _reader(context, handle).restore_state(bytes(np.asarray(state)[()]), context.step)
    return ()


def _reset(context: Any, handle: Any) -> Any:
    _reader(context, handle).reset(context.step)
    return ()


for _signature, _host in (
    (
        "ReaderNumRecordsProducedV2(reader_handle: resource) -> records_produced: int64",
        lambda context, handle: np.int64(_reader(context, handle).num_records_produced),
    ),
    (
        "ReaderNumWorkUnitsCompletedV2(reader_handle: resource) -> units_completed: int64",
        lambda context, handle: np.int64(_reader(context, handle).num_work_units_completed),
    ),
    (
        "ReaderSerializeStateV2(reader_handle: resource) -> state: string",
        lambda context, handle: _text(_reader(context, handle).serialize_state(context.step)),
    ),
    ("ReaderRestoreStateV2(reader_handle: resource, state: string)", _restore),
    ("ReaderResetV2(reader_handle: resource)", _reset),
):
    define_op(
        _signature,
        shape=_scalars,
        host=_host,
        effects=BLOCKS,  # behind steps that read
        gradient=_NO_GRADIENT,
    )

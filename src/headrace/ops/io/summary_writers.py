"""Ops that write summaries to event files within a step.

The functions that make them are in ``headrace.contrib.summary``; the messages are those of
``headrace.ops.io.summary``.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError, NotFoundError
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.registry import EXTERNAL, HostResource, NotDifferentiable, define_op
from headrace.ops.io import summary as messages
from headrace.ops.io.queues import host_resource

_NO_GRADIENT = NotDifferentiable("it writes its input down")


class _Writer(HostResource):
    """An event file that is opened by an op."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._file: Any = None

    def open(self, logdir: str, max_queue: int, flush_seconds: float, suffix: str) -> None:
        """Begin a file, unless one is open."""
        from headrace.ops.io.event_file import EventFile

        with self._lock:
            if self._file is None:
                self._file = EventFile(logdir, max_queue, flush_seconds, suffix)

    @property
    def file(self) -> Any:
        """The open file.

        Raises:
            NotFoundError: if none is.
        """
        if self._file is None:
            message = (
                f"The summary writer '{self._name}' is not open: run "
                "tf.contrib.summary.summary_writer_initializer_op(), or call "
                "tf.contrib.summary.initialize(), first."
            )
            raise NotFoundError(None, None, message)
        return self._file

    def close(self) -> None:
        """Write out what is buffered, and close the file."""
        with self._lock:
            file, self._file = self._file, None
        if file is not None:
            file.close()

    def abandon(self) -> None:
        """Its session is gone."""
        self.close()


def _provide(store: Any, handle: Any, node: Any) -> None:
    found = store.object(handle, lambda: _Writer(handle.name))
    if not isinstance(found, _Writer):
        raise InvalidArgumentError(None, node.op, f"'{handle.name}' is no summary writer.")


define_op(
    "SummaryWriter() -> writer: resource",
    attrs="shared_name: string = '', container: string = ''",
    makes_handle="summary_writer",
    provide=_provide,
    shape=lambda op: [()],
    gradient=_NO_GRADIENT,
)


def _text(value: Any) -> str:
    data = np.asarray(value, object).item()
    return data.decode() if isinstance(data, bytes) else str(data)


def _open(
    context: Any,
    writer: Any,
    logdir: Any,
    max_queue: Any,
    flush_millis: Any,
    filename_suffix: Any,
) -> Any:
    host_resource(context, writer).open(
        _text(logdir), int(max_queue), int(flush_millis) / 1000, _text(filename_suffix)
    )
    return ()


def _flush(context: Any, writer: Any) -> Any:
    host_resource(context, writer).file.flush()
    return ()


def _close(context: Any, writer: Any) -> Any:
    host_resource(context, writer).close()
    return ()


def _no_outputs(op: Operation) -> list[Dims]:
    return []


def _define(signature: str, attrs: str, host: Any) -> None:
    define_op(
        signature,
        attrs=attrs,
        shape=_no_outputs,
        host=host,
        effects=EXTERNAL,
        gradient=_NO_GRADIENT,
    )


_define(
    "CreateSummaryFileWriter(writer: resource, logdir: string, max_queue: int32, "
    "flush_millis: int32, filename_suffix: string)",
    "",
    _open,
)
_define("FlushSummaryWriter(writer: resource)", "", _flush)
_define("CloseSummaryWriter(writer: resource)", "", _close)


# -- writing ------------------------------------------------------------------------------------


def _event(step: Any = 0, **kwargs: Any) -> Any:
    from headrace.graph.proto import Event

    return Event(wall_time=time.time(), step=int(step), **kwargs)


def _add(context: Any, writer: Any, step: Any, packed: Any) -> Any:
    """Write a Summary in serialised form."""
    event = _event(step)
    event.summary.ParseFromString(packed.item())
    host_resource(context, writer).file.add(event)
    return ()


def _tensor(
    context: Any, writer: Any, step: Any, tensor: Any, tag: Any, summary_metadata: Any
) -> Any:
    return _add(context, writer, step, messages.pack_tensor(context, tag, tensor, summary_metadata))


def _scalar(context: Any, writer: Any, step: Any, tag: Any, value: Any) -> Any:
    return _add(context, writer, step, messages.pack_scalars(context, tag, value))


def _histogram(context: Any, writer: Any, step: Any, tag: Any, values: Any) -> Any:
    return _add(context, writer, step, messages.pack_histogram(context, tag, values))


def _image(
    context: Any,
    writer: Any,
    step: Any,
    tag: Any,
    tensor: Any,
    bad_color: Any,
    *,
    max_images: int,
    T: Any,
) -> Any:
    packed = messages.pack_images(
        context, tag, tensor, max_images=max_images, bad_color=bad_color, T=T
    )
    return _add(context, writer, step, packed)


def _audio(
    context: Any,
    writer: Any,
    step: Any,
    tag: Any,
    tensor: Any,
    sample_rate: Any,
    *,
    max_outputs: int,
) -> Any:
    packed = messages.pack_audio(context, tag, tensor, sample_rate, max_outputs=max_outputs)
    return _add(context, writer, step, packed)


def _parsed(context: Any, kind: str, parse: Any, data: Any) -> Any:
    from google.protobuf.message import DecodeError

    try:
        return parse(data)
    except DecodeError as error:
        message = f"Could not parse {kind}: {error}"
        raise InvalidArgumentError(None, context.node.op, message) from None


def _raw(context: Any, writer: Any, step: Any, tensor: Any) -> Any:
    event = _event(step)
    for data in np.asarray(tensor, object).reshape(-1).tolist():
        _parsed(context, "a Summary", event.summary.MergeFromString, data)
    host_resource(context, writer).file.add(event)
    return ()


def _graph(context: Any, writer: Any, step: Any, tensor: Any) -> Any:
    from headrace.graph.proto import GraphDef

    data = np.asarray(tensor, object).item()
    _parsed(context, "a GraphDef", GraphDef.FromString, data)
    host_resource(context, writer).file.add(_event(step, graph_def=data))
    return ()


def _import(context: Any, writer: Any, event: Any) -> Any:
    from headrace.graph.proto import Event

    data = np.asarray(event, object).item()
    host_resource(context, writer).file.add(_parsed(context, "an Event", Event.FromString, data))
    return ()


_TO = "writer: resource, step: int64"
_define(
    f"WriteSummary({_TO}, tensor: T, tag: string, summary_metadata: string)", "T: type", _tensor
)
_define(f"WriteScalarSummary({_TO}, tag: string, value: T)", "T: real", _scalar)
_define(f"WriteHistogramSummary({_TO}, tag: string, values: T)", "T: real = float32", _histogram)
_define(
    f"WriteImageSummary({_TO}, tag: string, tensor: T, bad_color: uint8)",
    "max_images: int >= 1 = 3, T: {uint8, float32, float16, float64} = float32",
    _image,
)
_define(
    f"WriteAudioSummary({_TO}, tag: string, tensor: float32, sample_rate: float32)",
    "max_outputs: int >= 1 = 3",
    _audio,
)
_define(f"WriteRawProtoSummary({_TO}, tensor: string)", "", _raw)
_define(f"WriteGraphSummary({_TO}, tensor: string)", "", _graph)
_define("ImportEvent(writer: resource, event: string)", "", _import)

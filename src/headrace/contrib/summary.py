"""``tf.contrib.summary``: summaries that the step itself writes to event files.

Nothing is written before a writer is the default and recording is switched on::

    writer = tf.contrib.summary.create_file_writer("logs")
    with writer.as_default(), tf.contrib.summary.always_record_summaries():
        tf.contrib.summary.scalar("loss", loss)
    tf.contrib.summary.initialize(session=sess)
    sess.run(tf.contrib.summary.all_summary_ops())
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from headrace import logging
from headrace.files.paths import as_path
from headrace.graph import dtypes
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.stacks import inherit
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.basic import no_op
from headrace.ops.control.flow_api import cond
from headrace.ops.core.build import convert_to_tensor, placeholder, raw
from headrace.ops.core.old_arguments import note
from headrace.ops.state import share
from headrace.ops.state.scopes_api import control_dependencies
from headrace.session.session import get_default_session
from headrace.summary.ops import summary_scope
from headrace.train.global_step import get_or_create_global_step

__all__ = [
    "SummaryWriter",
    "all_summary_ops",
    "always_record_summaries",
    "audio",
    "create_file_writer",
    "create_summary_file_writer",
    "eval_dir",
    "flush",
    "generic",
    "graph",
    "histogram",
    "image",
    "import_event",
    "initialize",
    "never_record_summaries",
    "record_summaries_every_n_global_steps",
    "scalar",
    "should_record_summaries",
    "summary_writer_initializer_op",
]

_INITIALIZERS = "_SUMMARY_WRITER_V2"


class _Defaults(threading.local):
    """What summaries are made for, in each thread."""

    writer: SummaryWriter | None = None
    recording: Any = False


_defaults = _Defaults()
inherit(_defaults)


class SummaryWriter:
    """An event file that a session opens; ``create_file_writer`` makes it.

    Without a handle it writes nothing.

    >>> step = tf.train.get_or_create_global_step()
    >>> writer = tf.contrib.summary.create_file_writer("written")
    >>> with writer.as_default(), tf.contrib.summary.always_record_summaries():
    ...     summary = tf.contrib.summary.scalar("loss", 0.5)
    ...     with tf.Session() as sess:
    ...         sess.run(step.initializer)
    ...         tf.contrib.summary.initialize(session=sess)
    ...         done = sess.run(summary)
    ...         sess.run(writer.close())
    >>> len(tf.gfile.Glob("written/events.*"))
    1
    """

    def __init__(
        self, handle: Any = None, open_file: Callable[[], Operation] | None = None
    ) -> None:
        self._handle = handle
        self._open_file = open_file
        if open_file is not None:
            get_default_graph().add_to_collection(_INITIALIZERS, open_file())

    def set_as_default(self) -> None:
        """Let the summaries made from here on in this thread go to this writer."""
        if self._handle is not None:
            _defaults.writer = self

    @contextlib.contextmanager
    def as_default(self) -> Iterator[SummaryWriter]:
        """Let the summaries made within go to this writer."""
        old = _defaults.writer
        self.set_as_default()
        try:
            yield self
        finally:
            _defaults.writer = old

    def init(self) -> Operation | None:
        """An operation that opens the file, unless it is open."""
        return None if self._open_file is None else self._open_file()

    def flush(self) -> Operation | None:
        """An operation that writes out what is buffered."""
        return None if self._handle is None else flush(self)

    def close(self) -> Operation | None:
        """An operation that closes the file."""
        if self._handle is None:
            return None
        op: Operation = raw.CloseSummaryWriter(self._handle)
        return op


class _Silent(SummaryWriter):
    """Of a worker that leaves summaries to the chief: its operations do nothing."""

    def init(self) -> Operation | None:
        return no_op()

    flush = close = init


def create_file_writer(
    logdir: Any,
    max_queue: Any = None,
    flush_millis: Any = None,
    filename_suffix: Any = None,
    name: str | None = None,
) -> SummaryWriter:
    """A writer of an event file in ``logdir``; for None one that writes nothing.

    Args:
        max_queue: after so many summaries they are written to the file, a scalar; 10 by default.
        flush_millis: and after so many milliseconds, a scalar; two minutes by default.
        filename_suffix: the end of the file's name, ``.v2`` by default.
        name: writers of one name in a session are one; by default that of the folder.

    Raises:
        TypeError: if ``logdir`` is no path, a number no integer, or the suffix no string.
    """
    if logdir is None:
        return SummaryWriter()
    logdir = as_path(logdir)
    if not share.writes():
        logging.info("Summaries for %s are written by the chief alone.", logdir)
        return _Silent()
    inputs = (
        np.asarray(logdir.encode(), object),
        convert_to_tensor(10 if max_queue is None else max_queue, dtypes.int32),
        convert_to_tensor(120_000 if flush_millis is None else flush_millis, dtypes.int32),
        convert_to_tensor(".v2" if filename_suffix is None else filename_suffix, dtypes.string),
    )
    shared = f"logdir:{logdir}" if name is None else name
    handle = raw.SummaryWriter(shared_name=shared)
    return SummaryWriter(handle, lambda: raw.CreateSummaryFileWriter(handle, *inputs))


def create_summary_file_writer(*args: Any, **kwargs: Any) -> SummaryWriter:
    """The former name of ``create_file_writer``, with its arguments: numbers are scalars.

    Raises:
        TypeError: for other arguments.
    """
    note("tf.contrib.summary.create_summary_file_writer", "tf.contrib.summary.create_file_writer")
    return create_file_writer(*args, **kwargs)


# -- whether to record --------------------------------------------------------------------------


@contextlib.contextmanager
def _record_if(condition: Any) -> Iterator[None]:
    old = _defaults.recording
    _defaults.recording = condition
    try:
        yield
    finally:
        _defaults.recording = old


def always_record_summaries() -> contextlib.AbstractContextManager[None]:
    """Record the summaries made within."""
    return _record_if(True)


def never_record_summaries() -> contextlib.AbstractContextManager[None]:
    """Do not record the summaries made within. So it is without a context, too."""
    return _record_if(False)


def record_summaries_every_n_global_steps(
    n: int, global_step: Any = None
) -> contextlib.AbstractContextManager[None]:
    """Record the summaries made within at every ``n``-th step.

    Args:
        global_step: an integer scalar; by default the global step, which is made if need be.

    Raises:
        TypeError: if ``n`` is no integer.
        ValueError: if ``n`` is below 1, or the step no number.
    """
    if not isinstance(n, (int, np.integer)):
        raise TypeError(f"n must be an integer, how many steps there are to a summary; got {n!r}.")
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}.")
    step = _step(global_step)
    return _record_if(raw.Equal(raw.FloorMod(step, np.int64(n)), np.int64(0)))


def should_record_summaries() -> Tensor:
    """A bool scalar: whether summaries made here are recorded.

    Raises:
        RuntimeError: if the graph is finalized.
    """
    return convert_to_tensor(_defaults.recording, dtypes.bool)


# -- summaries ----------------------------------------------------------------------------------


def _step(step: Any) -> Tensor:
    given = get_or_create_global_step() if step is None else step
    tensor = convert_to_tensor(given)
    if tensor.dtype is not dtypes.int64:
        tensor = raw.Cast(tensor, DstT=dtypes.int64)
    return tensor


def _write(name: str, family: str | None, step: Any, make: Callable[..., Operation]) -> Any:
    """The op that ``make(handle, step, tag, name)`` gives, if summaries are recorded."""
    writer, recording = _defaults.writer, _defaults.recording
    if writer is None:
        return no_op()
    if recording is False:
        result: Any = convert_to_tensor(False)
    else:
        chosen = _step(step)
        with summary_scope(name, family, "Summary") as (tag, scope):
            text = np.asarray(tag.encode(), object)

            def record() -> Tensor:
                inner = scope if recording is True else None
                with control_dependencies([make(writer._handle, chosen, text, inner)]):
                    return convert_to_tensor(True)

            if recording is True:
                result = record()
            else:
                result = cond(recording, record, lambda: convert_to_tensor(False), name="record")
    get_default_graph().add_to_collection(GraphKeys._SUMMARY_COLLECTION, result)
    return result


def generic(
    name: str, tensor: Any, metadata: Any = None, family: str | None = None, step: Any = None
) -> Any:
    """Write any tensor of any shape, with a SummaryMetadata (also in serialised form).

    Gives what `scalar` gives.

    Raises:
        TypeError: if the value is no tensor, or ``metadata`` neither a message nor bytes.
        InvalidArgumentError: when run, if the metadata are no SummaryMetadata.
    """
    data = metadata.SerializeToString() if hasattr(metadata, "SerializeToString") else metadata
    value = convert_to_tensor(tensor)
    described = convert_to_tensor(b"" if data is None else data, dtypes.string)

    def make(handle: Any, step: Any, tag: Any, name: str | None) -> Operation:
        op: Operation = raw.WriteSummary(handle, step, value, tag, described, name=name)
        return op

    return _write(name, family, step, make)


def scalar(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """Write one number.

    Args:
        name: the tag in TensorBoard, after the scopes that are open.
        tensor: a scalar of a real type.
        family: the first part of the tag.
        step: an int64 scalar; by default the global step, which is made if need be.

    Returns:
        A bool scalar that is true where it is written; an operation that does nothing where no
        writer is the default.

    Raises:
        TypeError: if the value is of no real type.
        InvalidArgumentError: when run, if value or step are no scalars.
    """
    value = convert_to_tensor(tensor)

    def make(handle: Any, step: Any, tag: Any, name: str | None) -> Operation:
        op: Operation = raw.WriteScalarSummary(handle, step, tag, value, name=name)
        return op

    return _write(name, family, step, make)


def histogram(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """Write how the values of a tensor of any shape are spread. Gives what `scalar` gives.

    Raises:
        TypeError: if the values are of no real type.
    """
    value = convert_to_tensor(tensor)

    def make(handle: Any, step: Any, tag: Any, name: str | None) -> Operation:
        op: Operation = raw.WriteHistogramSummary(handle, step, tag, value, name=name)
        return op

    return _write(name, family, step, make)


def image(
    name: str,
    tensor: Any,
    bad_color: Any = None,
    max_images: int = 3,
    family: str | None = None,
    step: Any = None,
) -> Any:
    """Write the first images of a batch ``[batch, height, width, channels]``.

    Args:
        bad_color: uint8 ``[channels]``: the colour of pixels that are not finite; red by default.

    Raises:
        TypeError: if the images are neither floating nor uint8, or a colour is not in 0 to 255.
        ValueError: if ``max_images`` is below 1.
        InvalidArgumentError: when run, if the rank is not 4, there are not 1, 3 or 4 channels, or
            the colour has not as many.
    """
    value = convert_to_tensor(tensor)
    color = convert_to_tensor(
        [255, 0, 0, 255] if bad_color is None else bad_color, dtypes.uint8, name="bad_color"
    )

    def make(handle: Any, step: Any, tag: Any, name: str | None) -> Operation:
        op: Operation = raw.WriteImageSummary(
            handle, step, tag, value, color, max_images=max_images, name=name
        )
        return op

    return _write(name, family, step, make)


def audio(
    name: str,
    tensor: Any,
    sample_rate: Any,
    max_outputs: int,
    family: str | None = None,
    step: Any = None,
) -> Any:
    """Write sound: float32 ``[batch, frames(, channels)]`` in [-1, 1].

    Args:
        sample_rate: a scalar, in Hz.
        max_outputs: how many of the batch to write.

    Raises:
        TypeError: if the rate is no number.
        ValueError: if the sound is not float32, or ``max_outputs`` is below 1.
        InvalidArgumentError: when run, if the rank is neither 2 nor 3, or the rate is no scalar
            above 0.
    """
    value = convert_to_tensor(tensor, dtypes.float32)
    rate = convert_to_tensor(sample_rate, dtypes.float32, name="sample_rate")

    def make(handle: Any, step: Any, tag: Any, name: str | None) -> Operation:
        op: Operation = raw.WriteAudioSummary(
            handle, step, tag, value, rate, max_outputs=max_outputs, name=name
        )
        return op

    return _write(name, family, step, make)


def graph(param: Any, step: Any = None, name: str | None = None) -> Operation:
    """Write a graph, whether or not summaries are recorded.

    Args:
        param: a string tensor, a scalar: a serialised GraphDef.

    Raises:
        TypeError: if it is no tensor, or not of strings.
        InvalidArgumentError: when run, if it is no GraphDef.
    """
    if not isinstance(param, Tensor):
        raise TypeError(
            f"graph() needs a tf.Tensor (e.g. tf.placeholder) in graph mode, but was: {type(param)}"
        )
    if _defaults.writer is None:
        return no_op()
    handle = _defaults.writer._handle
    op: Operation = raw.WriteGraphSummary(handle, _step(step), param, name=name)
    return op


def import_event(tensor: Any, name: str | None = None) -> Operation:
    """Write an Event that is there in serialised form, a scalar string.

    Raises:
        RuntimeError: if no writer is the default.
        TypeError: if it is no string.
        InvalidArgumentError: when run, if it is no Event.
    """
    if _defaults.writer is None:
        raise RuntimeError("No default tf.contrib.summary.SummaryWriter found")
    op: Operation = raw.ImportEvent(_defaults.writer._handle, tensor, name=name)
    return op


# -- writers ------------------------------------------------------------------------------------


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> Operation:
    """An operation that writes out what a writer, by default the default, has buffered.

    Raises:
        TypeError: if ``writer`` is none.
    """
    writer = _defaults.writer if writer is None else writer
    if writer is not None and not isinstance(writer, SummaryWriter):
        raise TypeError(f"writer must be what create_file_writer gives, got {writer!r:.100}.")
    if writer is None or writer._handle is None:
        return no_op()
    op: Operation = raw.FlushSummaryWriter(writer._handle, name=name)
    return op


def all_summary_ops() -> list[Any]:
    """What the functions of this module have made in the default graph, to run."""
    return get_default_graph().get_collection(GraphKeys._SUMMARY_COLLECTION)


def summary_writer_initializer_op() -> list[Operation]:
    """The operations that open all writers of the default graph."""
    return get_default_graph().get_collection(_INITIALIZERS)


def initialize(graph: Any = None, session: Any = None) -> None:
    """Open all writers, and write a graph.

    Args:
        graph: a Graph or GraphDef.
        session: by default the default session.

    Raises:
        RuntimeError: if no writer is the default.
        TypeError: if ``graph`` is neither.
        ValueError: if there is no session.
    """
    if _defaults.writer is None:
        raise RuntimeError("No default tf.contrib.summary.SummaryWriter found")
    session = session or get_default_session()
    if session is None:
        raise ValueError("session must be passed if no default session exists")
    if not (graph is None or isinstance(graph, Graph) or hasattr(graph, "SerializeToString")):
        raise TypeError(f"graph must be a tf.Graph or a GraphDef, got {graph!r:.100}.")
    session.run(summary_writer_initializer_op())
    if graph is not None:
        message = graph.as_graph_def(add_shapes=True) if isinstance(graph, Graph) else graph
        data = placeholder(dtypes.string, [])
        op = raw.WriteGraphSummary(_defaults.writer._handle, np.int64(0), data)
        session.run(op, {data: message.SerializeToString()})


def eval_dir(model_dir: str, name: str | None = None) -> str:
    """The folder below ``model_dir`` for the summaries of an evaluation.

    Raises:
        TypeError: if ``model_dir`` is no path.
    """
    return os.path.join(model_dir, "eval" if not name else f"eval_{name}")

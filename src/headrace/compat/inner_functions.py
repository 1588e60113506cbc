"""More functions of TensorFlow's inner modules: what layer libraries and papers' code take there.

The writer of event files below `FileWriter`, and helpers of layers, losses and gradients.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from headrace.autodiff.gradients import gradients
from headrace.files.records import RecordWriter
from headrace.graph import dtypes
from headrace.graph.proto import Event
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.layers import arguments
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.io.event_file import FILE_VERSION
from headrace.ops.nn.weights import remove_squeezable_dimensions

__all__ = [
    "EventsWriter",
    "convert_data_format",
    "normalize_data_format",
    "normalize_padding",
    "normalize_tuple",
    "register_dense_tensor_like_type",
    "register_proto_function",
    "shape_internal",
]


class EventsWriter:
    """Writes Event messages to ``<prefix>.out.tfevents.<time>.<host>``.

    Args:
        file_prefix: folder and beginning of the file's name, as text or bytes.
    """

    def __init__(self, file_prefix: str | bytes) -> None:
        self._prefix = os.fsdecode(file_prefix)
        self._suffix = ""
        self._path = ""
        self._file: Any = None

    def InitWithSuffix(self, suffix: str | bytes) -> bool:
        """Open the file, with ``suffix`` at the end of its name."""
        if self._file is None:
            self._suffix = os.fsdecode(suffix)
            host = socket.gethostname()
            self._path = f"{self._prefix}.out.tfevents.{int(time.time()):010d}.{host}{self._suffix}"
            self._file = RecordWriter(self._path)
            self.WriteEvent(Event(wall_time=time.time(), file_version=FILE_VERSION))
        return True

    def Init(self) -> bool:
        """Open the file."""
        return self.InitWithSuffix(self._suffix)

    def FileName(self) -> bytes:
        """The path of the file."""
        self.Init()
        return os.fsencode(self._path)

    def WriteEvent(self, event: Any) -> None:
        """Write an Event."""
        self._WriteSerializedEvent(event.SerializeToString())

    def _WriteSerializedEvent(self, event: bytes) -> None:
        self.Init()
        self._file.write(event)

    def Flush(self) -> bool:
        """Hand what is buffered to the file system."""
        if self._file is not None:
            self._file.flush()
        return True

    def Close(self) -> bool:
        """Close the file; the next event begins another."""
        if self._file is not None:
            self._file.close()
            self._file = None
        return True


# -- layers/utils -------------------------------------------------------------------------------

normalize_tuple = arguments.sizes
normalize_padding = arguments.padding


def normalize_data_format(value: str) -> str:
    """``channels_first`` or ``channels_last``. Raises ValueError for anything else."""
    return "channels_first" if arguments.channels_first(value) else "channels_last"


def convert_data_format(data_format: str, ndim: int) -> str:
    """What operations on ``ndim`` dimensions (3 to 5) call ``channels_first`` or ``_last``.

    Raises:
        ValueError: if it is neither, or for another number of dimensions.
    """
    if ndim not in (3, 4, 5):
        raise ValueError(f"Input rank not supported: {ndim}")
    spatial = {3: "W", 4: "HW", 5: "DHW"}[ndim]
    first = arguments.channels_first(data_format)
    return f"NC{spatial}" if first else f"N{spatial}C"


# -- framework/ops, ops/array_ops, ops/init_ops, ops/gradients_impl, ops/variable_scope ---------


def register_dense_tensor_like_type(tensor_type: type) -> None:
    """Does nothing: classes with a conversion function convert."""


def register_proto_function(
    collection_name: str, proto_type: Any = None, to_proto: Any = None, from_proto: Any = None
) -> None:
    """Does nothing: collections of a program's own messages are not written to MetaGraphs."""


def shape_internal(
    input: Any, name: str | None = None, optimize: bool = True, out_type: Any = dtypes.int32
) -> Tensor:
    """The shape of ``input``, a constant where it is known."""
    tensor = convert_to_tensor(input)
    if optimize and tensor.dims is not None and None not in tensor.dims:
        wanted = dtypes.as_dtype(out_type)
        return convert_to_tensor(list(tensor.dims), wanted, name)
    return raw.Shape(tensor, out_type=out_type, name=name)


def _compute_fans(shape: Any) -> tuple[float, float]:
    from headrace.ops.state.initializers import _fans

    return _fans([d or 0 for d in TensorShape(shape).as_list()])


def _assert_float_dtype(dtype: Any) -> Any:
    found = dtypes.as_dtype(dtype)
    if not found.is_floating:
        raise ValueError(f"Expected floating point type, got {found}.")
    return found


def _remove_squeezable_dimensions(
    predictions: Any, labels: Any = None, weights: Any = None
) -> tuple[Any, Any, Any]:
    if labels is not None:
        labels, predictions = remove_squeezable_dimensions(labels, predictions)
    if weights is not None:
        weights = convert_to_tensor(weights)
        rank, wanted = weights.get_shape().ndims, predictions.get_shape().ndims
        if rank is not None and wanted is not None and rank - wanted == 1:
            weights = raw.Squeeze(weights, squeeze_dims=[-1])
    return predictions, labels, weights


def _hessian_vector_product(ys: Any, xs: Sequence[Any], v: Sequence[Any]) -> list[Any]:
    if len(v) != len(xs):
        raise ValueError("xs and v must have the same length.")
    products = [
        raw.Mul(grad, raw.StopGradient(convert_to_tensor(element)))
        for grad, element in zip(gradients(ys, xs), v, strict=True)
        if grad is not None
    ]
    return gradients(products, xs)


@contextmanager
def _pure_variable_scope(name_or_scope: Any, reuse: Any = None, **options: Any) -> Iterator[Any]:
    from headrace.ops.state.variable_scope import variable_scope

    options.pop("old_name_scope", None)
    with variable_scope(name_or_scope, reuse=reuse, auxiliary_name_scope=False, **options) as scope:
        yield scope

"""The table of public functions that the fuzzer calls, and how a call of one is built and run."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzzing.draws import Call, Draw, Dtype, Sparse, T

#: The modules that fill the table.
MODULES = (
    "elementwise",
    "reductions",
    "arrays",
    "layout",
    "linear",
    "nets",
    "images",
    "others",
    "programs",
)

#: The numbers of further calls that are stored, by function: what runs with other numbers found.
FOUND: dict[str, tuple[int, ...]] = {
    "boolean_mask": (100016,),
    "diag_part": (100002,),
    "image.flip_up_down": (100008, 100016),
    "image.image_gradients": (100002,),
    "image.per_image_standardization": (100002, 100006),
    "image.resize_image_with_crop_or_pad": (100007,),
    "image.sobel_edges": (100001,),
    "image.transpose_image": (100002, 100017),
    "nn.atrous_conv2d": (100005,),
    "nn.avg_pool3d": (100013,),
    "nn.weighted_moments": (100009,),
    "quantization.fake_quant_with_min_max_vars": (100010,),
    "signal.irfft2d": (100004,),
    "signal.irfft3d": (100001,),
    "signal.rfft2d": (100000,),
    "split": (100018,),
    "unsorted_segment_min": (100018,),
}

#: From this number on, nothing is known of the shapes of tensors in a call.
UNKNOWN = 200_000


@dataclass(frozen=True)
class Entry:
    """One public function.

    Attributes:
        name: its path below ``tf``; what is called when ``function`` is None.
        draw: makes the arguments of one call.
        function: ``function(tf, *args, **kwargs)`` where more than one call is needed.
        calls: how many calls are stored, counted from 0.
        scale: how many times wider the tolerances are.
    """

    name: str
    draw: Callable[[Draw], Call]
    function: Callable[..., Any] | None = None
    calls: int = 30
    scale: float = 1.0


@dataclass
class Table:
    entries: dict[str, Entry] = field(default_factory=dict)

    def add(self, name: str, draw: Callable[[Draw], Call], **more: Any) -> None:
        assert name not in self.entries, f"{name} is in the table twice"
        self.entries[name] = Entry(name, draw, **more)


TABLE = Table()
add = TABLE.add


def entries() -> dict[str, Entry]:
    """All functions by name."""
    for module in MODULES:
        importlib.import_module(f"fuzzing.{module}")
    return TABLE.entries


def make_call(entry: Entry, draw: int) -> Call:
    """The arguments of call number ``draw`` of a function."""
    call = entry.draw(Draw(entry.name, draw))
    if draw >= UNKNOWN:
        call.known = "nothing"
    return call


@dataclass
class Built:
    """A call in the default graph: what to fetch, and what to feed."""

    fetches: list[Any]
    feeds: dict[Any, Any]


def build(entry: Entry, call: Call, tf: Any) -> Built:
    """Build a call in the default graph. Whatever the function raises comes out."""
    feeds: dict[Any, Any] = {}

    def tensor(value: np.ndarray[Any, Any]) -> Any:
        if call.known == "constant":
            return tf.constant(value)
        shape = {"full": value.shape, "rank": [None] * value.ndim, "nothing": None}[call.known]
        dtype = tf.string if value.dtype.kind in "SUO" else tf.as_dtype(value.dtype)
        placeholder = tf.placeholder(dtype, shape)
        feeds[placeholder] = value
        return placeholder

    def argument(value: Any) -> Any:
        if isinstance(value, T):
            return tensor(value.value)
        if isinstance(value, Sparse):
            return tf.SparseTensor(*map(tensor, (value.indices, value.values, value.shape)))
        if isinstance(value, Dtype):
            return tf.as_dtype(value.name)
        if isinstance(value, (list, tuple)):
            return type(value)([argument(v) for v in value])
        return value

    args = [argument(a) for a in call.args]
    kwargs = {k: argument(v) for k, v in call.kwargs.items()}
    if entry.function is not None:
        result = entry.function(tf, *args, **kwargs)
    else:
        function = tf
        for part in entry.name.split("."):
            function = getattr(function, part)
        result = function(*args, **kwargs)
    return Built(flat(result, tf), feeds)


def flat(result: Any, tf: Any) -> list[Any]:
    """The tensors of a result: of lists and tuples, sparse tensors and operations too."""
    if result is None:
        return []
    if isinstance(result, (tf.SparseTensor, tf.SparseTensorValue)):
        return [result.indices, result.values, result.dense_shape]
    if isinstance(result, (list, tuple)):
        return [t for item in result for t in flat(item, tf)]
    if isinstance(result, dict):
        return [t for key in sorted(result) for t in flat(result[key], tf)]
    if isinstance(result, tf.TensorShape):
        return [tf.constant(result.as_list(), tf.int64)]
    return [tf.convert_to_tensor(result)]

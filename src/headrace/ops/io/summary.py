"""Summary ops: values of a step as a serialised Summary message, for event files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph.shapes import compatible_static, shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.io import summary_values

_NO_GRADIENT = NotDifferentiable("it writes its input down")

_NO_IMAGES = "Tensor must be 4-D with last dim 1, 3, or 4 (a batch of images), not {}"
_NO_AUDIO = "Tensor must be 3-D or 2-D ([batch, frames(, channels)]), got: {}"

_WHITE_RED = np.array([255, 0, 0, 255], np.uint8)


def _text(item: Any) -> str:
    value = np.asarray(item)[()]
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _scalar_shape(op: Operation) -> list[Dims]:
    return [()]


def _scalars_shape(op: Operation) -> list[Dims]:
    tags, values = (tensor.dims for tensor in op.inputs)
    if not compatible_static(tags, values):
        raise ValueError(
            f"tags and values are not the same shape: {shape_text(tags)} != {shape_text(values)}"
        )
    return [()]


def _images_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[1].dims
    if dims is not None and (len(dims) != 4 or dims[3] not in (1, 3, 4, None)):
        raise ValueError(_NO_IMAGES.format(shape_text(dims)))
    return [()]


def _audio_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[1].dims
    if dims is not None and len(dims) not in (2, 3):
        raise ValueError(_NO_AUDIO.format(shape_text(dims)))
    return [()]


def _summary() -> Any:
    from headrace.graph.proto import Summary

    return Summary()


def _dims_text(shape: Sequence[int]) -> str:
    return shape_text(tuple(shape))


def _packed(message: Any) -> Any:
    return np.asarray(message.SerializeToString(), object)


# -- scalars ------------------------------------------------------------------------------------


def pack_scalars(context: Any, tags: Any, values: Any) -> Any:
    """A serialised Summary of the number of each tag."""
    tags, values = np.asarray(tags, object), np.asarray(values)
    if tags.shape != values.shape:
        single = f" (tag '{_text(tags.reshape(-1)[0])}')" if tags.size == 1 else ""
        raise InvalidArgumentError(
            None,
            context.node.op,
            "tags and values are not the same shape: "
            f"{_dims_text(tags.shape)} != {_dims_text(values.shape)}{single}",
        )
    message = _summary()
    for tag, value in zip(tags.reshape(-1).tolist(), values.reshape(-1), strict=True):
        message.value.add(tag=_text(tag), simple_value=float(value))
    return _packed(message)


define_op(
    "ScalarSummary(tags: string, values: T) -> summary: string",
    attrs="T: real",
    shape=_scalars_shape,
    host=pack_scalars,
    gradient=_NO_GRADIENT,
)

# -- histograms ---------------------------------------------------------------------------------


def pack_histogram(context: Any, tag: Any, values: Any) -> Any:
    """A serialised Summary of how ``values`` are spread."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        wide = array.astype(np.float64)
        if not np.isfinite(wide).all():
            wrong = "Nan in summary histogram" if np.isnan(wide).any() else "Infinity in Histogram"
            raise InvalidArgumentError(
                None,
                context.node.op,
                f"{wrong} for: {context.node.name}: {(~np.isfinite(wide)).sum()} of {wide.size} "
                "values are not finite.",
            )
    message = _summary()
    message.value.add(tag=_text(tag)).histo.CopyFrom(summary_values.histogram(array))
    return _packed(message)


define_op(
    "HistogramSummary(tag: string, values: T) -> summary: string",
    attrs="T: real = float32",
    shape=_scalar_shape,
    host=pack_histogram,
    gradient=_NO_GRADIENT,
)

# -- images -------------------------------------------------------------------------------------


def pack_images(
    context: Any, tag: Any, tensor: Any, *, max_images: int, bad_color: Any, T: Any
) -> Any:
    """A serialised Summary of the first images of a batch, as PNG."""
    pixels = np.asarray(tensor)
    if pixels.ndim != 4 or pixels.shape[-1] not in (1, 3, 4):
        raise InvalidArgumentError(
            None,
            context.node.op,
            _NO_IMAGES.format(_dims_text(pixels.shape)),
        )
    color = _WHITE_RED if bad_color is None else np.asarray(bad_color)
    if color.dtype != np.uint8 or color.ndim != 1 or color.size < pixels.shape[-1]:
        raise InvalidArgumentError(
            None,
            context.node.op,
            f"bad_color must be a uint8 vector of {pixels.shape[-1]} channels, not "
            f"{color.dtype} {_dims_text(color.shape)}",
        )
    message = _summary()
    for i, picture in enumerate(pixels[:max_images]):
        if picture.dtype != np.uint8:
            picture = summary_values.to_bytes_image(picture, color)
        name = f"{_text(tag)}/image/{i}" if max_images > 1 else f"{_text(tag)}/image"
        image = message.value.add(tag=name).image
        image.height, image.width, image.colorspace = picture.shape
        image.encoded_image_string = summary_values.png(picture)
    return _packed(message)


define_op(
    "ImageSummary(tag: string, tensor: T) -> summary: string",
    attrs="max_images: int >= 1 = 3, T: {uint8, float32, float16, float64} = float32,"
    " bad_color: tensor = None",
    shape=_images_shape,
    host=pack_images,
    gradient=_NO_GRADIENT,
)

# -- sound --------------------------------------------------------------------------------------


def pack_audio(context: Any, tag: Any, tensor: Any, sample_rate: Any, *, max_outputs: int) -> Any:
    """A serialised Summary of the first sounds of a batch, as WAV."""
    sound = np.asarray(tensor)
    if sound.ndim not in (2, 3):
        raise InvalidArgumentError(
            None,
            context.node.op,
            _NO_AUDIO.format(_dims_text(sound.shape)),
        )
    rate = float(sample_rate)
    if not rate > 0:
        raise InvalidArgumentError(
            None, context.node.op, f"sample_rate must be above 0, got: {rate}"
        )
    if sound.ndim == 2:
        sound = sound[..., np.newaxis]
    message = _summary()
    for i, samples in enumerate(sound[:max_outputs]):
        name = f"{_text(tag)}/audio/{i}" if max_outputs > 1 else f"{_text(tag)}/audio"
        audio = message.value.add(tag=name).audio
        audio.sample_rate = rate
        audio.length_frames, audio.num_channels = samples.shape
        audio.encoded_audio_string = summary_values.wav(samples, rate)
        audio.content_type = "audio/wav"
    return _packed(message)


define_op(
    "AudioSummaryV2(tag: string, tensor: float32, sample_rate: float32) -> summary: string",
    attrs="max_outputs: int >= 1 = 3",
    shape=_audio_shape,
    host=pack_audio,
    gradient=_NO_GRADIENT,
)


def _audio_of_old(
    context: Any, tag: Any, tensor: Any, *, sample_rate: float, max_outputs: int
) -> Any:
    return pack_audio(context, tag, tensor, sample_rate, max_outputs=max_outputs)


define_op(
    "AudioSummary(tag: string, tensor: float32) -> summary: string",
    attrs="sample_rate: float, max_outputs: int >= 1 = 3",
    shape=_audio_shape,
    host=_audio_of_old,
    gradient=_NO_GRADIENT,
)

# -- any tensor ---------------------------------------------------------------------------------


def pack_tensor(context: Any, tag: Any, tensor: Any, serialized_summary_metadata: Any) -> Any:
    """A serialised Summary of a tensor, with its metadata."""
    from google.protobuf.message import DecodeError

    from headrace.graph.tensor_proto import make_tensor_proto

    message = _summary()
    value = message.value.add(tag=_text(tag))
    try:
        value.metadata.ParseFromString(np.asarray(serialized_summary_metadata)[()])
    except DecodeError as error:
        raise InvalidArgumentError(
            None, context.node.op, f"Failed to parse the SummaryMetadata of a summary: {error}"
        ) from None
    dtype = context.node.attrs["T"]
    value.tensor.CopyFrom(make_tensor_proto(np.asarray(tensor), dtype))
    return _packed(message)


define_op(
    "TensorSummaryV2(tag: string, tensor: T, serialized_summary_metadata: string)"
    " -> summary: string",
    attrs="T: type",
    shape=_scalar_shape,
    host=pack_tensor,
    gradient=_NO_GRADIENT,
)


def _tensor_of_old(
    context: Any, tensor: Any, *, description: str, labels: list[Any], display_name: str
) -> Any:
    from headrace.graph.tensor_proto import make_tensor_proto

    message = _summary()
    value = message.value.add(node_name=context.node.name)
    value.tensor.CopyFrom(make_tensor_proto(np.asarray(tensor), context.node.attrs["T"]))
    return _packed(message)


define_op(
    "TensorSummary(tensor: T) -> summary: string",
    attrs="T: type, description: string = '', labels: list(string) = [], display_name: string = ''",
    shape=_scalar_shape,
    host=_tensor_of_old,
    gradient=_NO_GRADIENT,
)

# -- many at once -------------------------------------------------------------------------------


def _merge(context: Any, inputs: Sequence[Any]) -> Any:
    from google.protobuf.message import DecodeError

    message = _summary()
    for item in inputs:
        for data in np.asarray(item, object).reshape(-1).tolist():
            try:
                message.MergeFromString(data)
            except DecodeError as error:
                raise InvalidArgumentError(
                    None,
                    context.node.op,
                    f"Could not parse one of the summary inputs: {error}",
                ) from None
    seen = set()
    for value in message.value:
        if value.tag in seen:
            raise InvalidArgumentError(
                None, context.node.op, f"Duplicate tag {value.tag} found in summary inputs"
            )
        seen.add(value.tag)
    return _packed(message)


define_op(
    "MergeSummary(inputs: N * string) -> summary: string",
    attrs="N: int >= 1",
    shape=_scalar_shape,
    host=_merge,
    gradient=_NO_GRADIENT,
)

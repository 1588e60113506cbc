"""Discrete Fourier transforms over the last one, two or three dimensions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from jax import numpy as jnp

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core.array_util import shape_argument, static_ints, unknown
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import define_op

_COMPLEX = "{complex64, complex128}"
_REAL = "{float32, float64}"


def _at_least(rank: int, dims: Dims) -> Dims:
    if dims is not None and len(dims) < rank:
        raise ValueError(
            f"Shape must be at least rank {rank} but is rank {len(dims)}: {shape_text(dims)}"
        )
    return dims


def _same_shape(rank: int, op: Operation) -> list[Dims]:
    return [_at_least(rank, op.inputs[0].dims)]


def _transform(xp: Any, name: str, rank: int, value: Any) -> Any:
    _at_least(rank, value.shape)
    axes = tuple(range(-rank, 0))
    if value.size == 0:
        return value
    return getattr(xp.fft, name)(value, axes=axes).astype(value.dtype)


_COMPLEX_OF = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}


def _real_shape(rank: int, forward: bool) -> Callable[[Operation], list[Dims]]:
    def rule(op: Operation) -> list[Dims]:
        if _COMPLEX_OF[op.attrs["Treal"]] != op.attrs["Tcomplex"]:
            raise ValueError(
                f"Wrong types for {'forward' if forward else 'backward'} real FFT: "
                f"{op.attrs['Treal'].name} goes with {_COMPLEX_OF[op.attrs['Treal']].name}, not "
                f"with {op.attrs['Tcomplex'].name}."
            )
        dims = _at_least(rank, op.inputs[0].dims)
        lengths = static_ints(op.inputs[1])
        if lengths is not None and len(lengths) != rank:
            raise ValueError(f"fft_length must have shape [{rank}], not [{len(lengths)}]")
        if dims is None:
            return [None]
        if lengths is None:
            return [(*dims[:-rank], *(unknown(rank) or ()))]
        last = lengths[-1] // 2 + 1 if forward and lengths[-1] else lengths[-1]
        return [(*dims[:-rank], *lengths[:-1], last)]

    return rule


def _from_real(xp: Any, rank: int, value: Any, lengths: Any, *, Tcomplex: DType) -> Any:
    """Dimensions are cut, or padded with zeros, to ``lengths``."""
    _at_least(rank, value.shape)
    sizes = tuple(int(n) for n in lengths)
    axes = tuple(range(-rank, 0))
    if 0 in sizes or value.size == 0:
        shape = (*value.shape[:-rank], *sizes[:-1], sizes[-1] // 2 + 1 if sizes[-1] else 0)
        return xp.zeros(shape, Tcomplex.np_dtype)
    return xp.fft.rfftn(value, s=sizes, axes=axes).astype(Tcomplex.np_dtype)


def _to_real(xp: Any, rank: int, value: Any, lengths: Any, *, Treal: DType) -> Any:
    _at_least(rank, value.shape)
    sizes = tuple(int(n) for n in lengths)
    axes = tuple(range(-rank, 0))
    if 0 in sizes or value.size == 0:
        return xp.zeros((*value.shape[:-rank], *sizes), Treal.np_dtype)
    return xp.fft.irfftn(value, s=sizes, axes=axes).astype(Treal.np_dtype)


_TYPES = f"Treal: newer {_REAL} = float32, Tcomplex: newer {_COMPLEX} = complex64"

for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    for _name, _function in (("FFT", "fftn"), ("IFFT", "ifftn")):
        define_op(
            f"{_name}{_suffix}(input: Tcomplex) -> output: Tcomplex",
            attrs=f"Tcomplex: {_COMPLEX} = complex64",
            shape=partial(_same_shape, _rank),
            kernel=partial(_transform, jnp, _function, _rank),
            interpret=partial(_transform, np, _function, _rank),
        )
    define_op(
        f"RFFT{_suffix}(input: Treal, fft_length: int32) -> output: Tcomplex",
        attrs=_TYPES,
        shape=_real_shape(_rank, forward=True),
        kernel=partial(_from_real, jnp, _rank),
        interpret=partial(_from_real, np, _rank),
        static=(1,),
    )
    define_op(
        f"IRFFT{_suffix}(input: Tcomplex, fft_length: int32) -> output: Treal",
        attrs=_TYPES,
        shape=_real_shape(_rank, forward=False),
        kernel=partial(_to_real, jnp, _rank),
        interpret=partial(_to_real, np, _rank),
        static=(1,),
    )


# -- public functions ---------------------------------------------------------------------------


def _complex_transform(op_type: str, dimensions: int, inverse: bool) -> Callable[..., Tensor]:
    def function(input: Any, name: str | None = None) -> Tensor:
        tensor = convert_to_tensor(input, preferred_dtype=dtypes.complex64, name="input")
        result: Tensor = getattr(raw, op_type)(tensor, name=name)
        return result

    kind = "Inverse discrete" if inverse else "Discrete"
    where = "dimension" if dimensions == 1 else f"{dimensions} dimensions"
    function.__doc__ = f"""{kind} Fourier transform over the last {where}; same shape and type.

    Args:
        input: complex64 or complex128, of rank {dimensions} or more.

    Raises:
        TypeError: if the input is of another type (cast real numbers first).
        ValueError: if the rank is less than {dimensions}.
        InvalidArgumentError: when run, if it is where the rank is known only then.
    """
    function.__name__ = function.__qualname__ = op_type.lower()
    return function


fft = public("fft", "signal.fft", "spectral.fft")(_complex_transform("FFT", 1, inverse=False))
fft2d = public("fft2d", "signal.fft2d", "spectral.fft2d")(
    _complex_transform("FFT2D", 2, inverse=False)
)
fft3d = public("fft3d", "signal.fft3d", "spectral.fft3d")(
    _complex_transform("FFT3D", 3, inverse=False)
)
ifft = public("ifft", "signal.ifft", "spectral.ifft")(_complex_transform("IFFT", 1, inverse=True))
ifft2d = public("ifft2d", "signal.ifft2d", "spectral.ifft2d")(
    _complex_transform("IFFT2D", 2, inverse=True)
)
ifft3d = public("ifft3d", "signal.ifft3d", "spectral.ifft3d")(
    _complex_transform("IFFT3D", 3, inverse=True)
)


def _lengths(tensor: Tensor, fft_length: Any, rank: int, inverse: bool) -> Tensor:
    """The sizes of the real tensor: as given, else from the input's shape."""
    if fft_length is not None:
        return shape_argument(fft_length, "fft_length")
    dims = _at_least(rank, tensor.dims)
    if dims is not None and None not in dims[-rank:]:
        sizes = [int(d or 0) for d in dims[-rank:]]
        if inverse:
            sizes[-1] = max(0, 2 * (sizes[-1] - 1))
        return convert_to_tensor(sizes, dtypes.int32, "fft_length")
    sizes_tensor = raw.StridedSlice(raw.Shape(tensor), [-rank], [0], [1], end_mask=1)
    if not inverse:
        return sizes_tensor
    scale, shift = [1] * (rank - 1) + [2], [0] * (rank - 1) + [-2]
    return raw.Maximum(raw.AddV2(raw.Mul(sizes_tensor, scale), shift), 0)


def _real_transform(op_type: str, rank: int, inverse: bool) -> Callable[..., Tensor]:
    def function(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
        with get_default_graph().name_scope(name or op_type.lower()) as scope:
            preferred = dtypes.complex64 if inverse else dtypes.float32
            tensor = convert_to_tensor(input_tensor, preferred_dtype=preferred, name="input")
            double = tensor.dtype in (dtypes.float64, dtypes.complex128)
            other = (
                (dtypes.float64 if double else dtypes.float32)
                if inverse
                else (dtypes.complex128 if double else dtypes.complex64)
            )
            lengths = _lengths(tensor, fft_length, rank, inverse)
            types = {"Treal" if inverse else "Tcomplex": other}
            result: Tensor = getattr(raw, op_type)(tensor, lengths, name=scope, **types)
            return result

    what = "Real tensor of a half spectrum" if inverse else "Half spectrum of a real tensor"
    types_taken = "complex64 or complex128" if inverse else "float32 or float64"
    where = "dimension" if rank == 1 else f"{rank} dimensions"
    function.__doc__ = f"""{what}, over the last {where}.

    The last dimension of a half spectrum has ``fft_length[-1] // 2 + 1`` elements.

    Args:
        input_tensor: {types_taken}, of rank {rank} or more.
        fft_length: ``[{rank}]`` int32, the sizes of the real tensor; the input is cut or padded
            with zeros to fit. By default they follow from the shape of the input.

    Raises:
        TypeError: if the input is of another type.
        ValueError: if the rank is less than {rank}, or ``fft_length`` has another length.
        InvalidArgumentError: when run, if the rank is less where it is known only then.
    """
    function.__name__ = function.__qualname__ = op_type.lower()
    return function


rfft = public("signal.rfft", "spectral.rfft")(_real_transform("RFFT", 1, inverse=False))
rfft2d = public("signal.rfft2d", "spectral.rfft2d")(_real_transform("RFFT2D", 2, inverse=False))
rfft3d = public("signal.rfft3d", "spectral.rfft3d")(_real_transform("RFFT3D", 3, inverse=False))
irfft = public("signal.irfft", "spectral.irfft")(_real_transform("IRFFT", 1, inverse=True))
irfft2d = public("signal.irfft2d", "spectral.irfft2d")(_real_transform("IRFFT2D", 2, inverse=True))
irfft3d = public("signal.irfft3d", "spectral.irfft3d")(_real_transform("IRFFT3D", 3, inverse=True))

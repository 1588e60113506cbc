# Written by tools/make_stubs.py from spectral.py; do not edit.
__all__ = ['dct', 'fft', 'fft2d', 'fft3d', 'idct', 'ifft', 'ifft2d', 'ifft3d', 'irfft', 'irfft2d', 'irfft3d', 'rfft', 'rfft2d', 'rfft3d']
from headrace.ops.math.dct import dct as dct
from headrace.ops.math.dct import idct as idct
from headrace.ops.math.fft import fft as fft
from headrace.ops.math.fft import fft2d as fft2d
from headrace.ops.math.fft import fft3d as fft3d
from headrace.ops.math.fft import ifft as ifft
from headrace.ops.math.fft import ifft2d as ifft2d
from headrace.ops.math.fft import ifft3d as ifft3d
from headrace.ops.math.fft import irfft as irfft
from headrace.ops.math.fft import irfft2d as irfft2d
from headrace.ops.math.fft import irfft3d as irfft3d
from headrace.ops.math.fft import rfft as rfft
from headrace.ops.math.fft import rfft2d as rfft2d
from headrace.ops.math.fft import rfft3d as rfft3d

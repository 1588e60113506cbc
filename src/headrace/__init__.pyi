# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace import bitwise as bitwise
from headrace import debugging as debugging
from headrace import errors as errors
from headrace import graph_util as graph_util
from headrace import initializers as initializers
from headrace import io as io
from headrace import linalg as linalg
from headrace import math as math
from headrace import nn as nn
from headrace import queue as queue
from headrace import random as random
from headrace import signal as signal
from headrace import spectral as spectral
from headrace import train as train
from headrace.autodiff.custom import custom_gradient as custom_gradient
from headrace.autodiff.gradients import AggregationMethod as AggregationMethod
from headrace.autodiff.gradients import UnconnectedGradients as UnconnectedGradients
from headrace.autodiff.gradients import gradients as gradients
from headrace.autodiff.hessians import hessians as hessians
from headrace.autodiff.registry import RegisterGradient as RegisterGradient
from headrace.autodiff.registry import not_differentiable as _NoGradient
NoGradient = _NoGradient
from headrace.autodiff.registry import not_differentiable as _NotDifferentiable
NotDifferentiable = _NotDifferentiable
from headrace.autodiff.registry import not_differentiable as _no_gradient
no_gradient = _no_gradient
from headrace.errors import OpError as OpError
from headrace.graph.devices import DeviceSpec as DeviceSpec
from headrace.graph.dtypes import *
from headrace.graph.graph import Graph as Graph
from headrace.graph.graph import get_default_graph as get_default_graph
from headrace.graph.graph import reset_default_graph as reset_default_graph
from headrace.graph.keys import GraphKeys as GraphKeys
from headrace.graph.shapes import Dimension as Dimension
from headrace.graph.shapes import TensorShape as TensorShape
from headrace.graph.tensor import Operation as Operation
from headrace.graph.tensor import Tensor as Tensor
from headrace.graph.tensor_proto import MakeNdarray as _make_ndarray
make_ndarray = _make_ndarray
from headrace.graph.tensor_proto import make_tensor_proto as make_tensor_proto
from headrace.graph.wire_precision import wire_precision as wire_precision
from headrace.graph_files.import_graph import import_graph_def as import_graph_def
from headrace.ops.array.api import newaxis as newaxis
from headrace.ops.core.build import raw as _raw_ops
raw_ops = _raw_ops
from headrace.ops.state.variable_kinds import AUTO_REUSE as AUTO_REUSE
from headrace.session.session import InteractiveSession as InteractiveSession
from headrace.session.session import Session as Session
from headrace.session.session import get_default_session as get_default_session
__version__ = '0.1.0'
from headrace.ops.array.api import ensure_shape as ensure_shape
from headrace.ops.array.api import expand_dims as expand_dims
from headrace.ops.array.api import eye as eye
from headrace.ops.array.api import fill as fill
from headrace.ops.array.api import guarantee_const as guarantee_const
from headrace.ops.array.api import identity as identity
from headrace.ops.array.api import identity_n as identity_n
from headrace.ops.array.api import matrix_transpose as matrix_transpose
from headrace.ops.array.api import ones as ones
from headrace.ops.array.api import ones_like as ones_like
from headrace.ops.array.api import placeholder_with_default as placeholder_with_default
from headrace.ops.array.api import rank as rank
from headrace.ops.array.api import reshape as reshape
from headrace.ops.array.api import shape as shape
from headrace.ops.array.api import shape_n as shape_n
from headrace.ops.array.api import size as size
from headrace.ops.array.api import squeeze as squeeze
from headrace.ops.array.api import stop_gradient as stop_gradient
from headrace.ops.array.api import transpose as transpose
from headrace.ops.array.api import zeros as zeros
from headrace.ops.array.api import zeros_like as zeros_like
from headrace.ops.array.arranging_api import bitcast as bitcast
from headrace.ops.array.arranging_api import broadcast_dynamic_shape as broadcast_dynamic_shape
from headrace.ops.array.arranging_api import broadcast_static_shape as broadcast_static_shape
from headrace.ops.array.arranging_api import broadcast_to as broadcast_to
from headrace.ops.array.arranging_api import invert_permutation as invert_permutation
from headrace.ops.array.arranging_api import meshgrid as meshgrid
from headrace.ops.array.arranging_api import reverse as reverse
from headrace.ops.array.arranging_api import reverse_sequence as reverse_sequence
from typing import Any as _Any
from builtins import str as _str
from headrace.graph.tensor import Tensor as _Tensor
def reverse_v2(
    tensor: _Any,
    axis: _Any = None,
    name: _str | None = None,
    dims: _Any = None,
) -> _Tensor: ...
from headrace.ops.array.arranging_api import roll as roll
from headrace.ops.array.arranging_api import tile as tile
from headrace.ops.array.arranging_api import unravel_index as unravel_index
from headrace.ops.array.dynamic_api import bincount as bincount
from headrace.ops.array.dynamic_api import boolean_mask as boolean_mask
from headrace.ops.array.dynamic_api import dynamic_partition as dynamic_partition
from headrace.ops.array.dynamic_api import dynamic_stitch as dynamic_stitch
from headrace.ops.array.dynamic_api import parallel_dynamic_stitch as parallel_dynamic_stitch
from headrace.ops.array.dynamic_api import setdiff1d as setdiff1d
from headrace.ops.array.dynamic_api import unique as unique
from headrace.ops.array.dynamic_api import unique_with_counts as unique_with_counts
from headrace.ops.array.dynamic_api import where as where
from headrace.ops.array.dynamic_api import where_v2 as where_v2
from headrace.ops.array.gather_api import batch_gather as batch_gather
from headrace.ops.array.gather_api import gather as gather
from headrace.ops.array.gather_api import gather_nd as gather_nd
from headrace.ops.array.gather_api import scatter_nd as scatter_nd
from headrace.ops.array.gather_api import searchsorted as searchsorted
def tensor_scatter_add(
    tensor: _Any,
    indices: _Any,
    updates: _Any,
    name: _str | None = None,
) -> _Tensor: ...
from headrace.ops.array.gather_api import tensor_scatter_nd_add as tensor_scatter_nd_add
from headrace.ops.array.gather_api import tensor_scatter_nd_sub as tensor_scatter_nd_sub
from headrace.ops.array.gather_api import tensor_scatter_nd_update as tensor_scatter_nd_update
def tensor_scatter_sub(
    tensor: _Any,
    indices: _Any,
    updates: _Any,
    name: _str | None = None,
) -> _Tensor: ...
def tensor_scatter_update(
    tensor: _Any,
    indices: _Any,
    updates: _Any,
    name: _str | None = None,
) -> _Tensor: ...
from headrace.ops.array.indexed_slices import IndexedSlices as IndexedSlices
from headrace.ops.array.indexed_slices import IndexedSlicesValue as IndexedSlicesValue
from headrace.ops.array.indexed_slices import convert_to_tensor_or_indexed_slices as convert_to_tensor_or_indexed_slices
from headrace.ops.array.joining_api import concat as concat
from headrace.ops.array.joining_api import parallel_stack as parallel_stack
from headrace.ops.array.joining_api import split as split
from headrace.ops.array.joining_api import stack as stack
from headrace.ops.array.joining_api import unstack as unstack
from headrace.ops.array.layout_api import batch_to_space as batch_to_space
from headrace.ops.array.layout_api import batch_to_space_nd as batch_to_space_nd
from headrace.ops.array.layout_api import depth_to_space as depth_to_space
from headrace.ops.array.layout_api import diag as diag
from headrace.ops.array.layout_api import diag_part as diag_part
from headrace.ops.array.layout_api import matrix_band_part as matrix_band_part
from headrace.ops.array.layout_api import matrix_diag as matrix_diag
from headrace.ops.array.layout_api import matrix_diag_part as matrix_diag_part
from headrace.ops.array.layout_api import matrix_set_diag as matrix_set_diag
from headrace.ops.array.layout_api import one_hot as one_hot
from headrace.ops.array.layout_api import pad as pad
from headrace.ops.array.layout_api import required_space_to_batch_paddings as required_space_to_batch_paddings
from headrace.ops.array.layout_api import sequence_mask as sequence_mask
from headrace.ops.array.layout_api import space_to_batch as space_to_batch
from headrace.ops.array.layout_api import space_to_batch_nd as space_to_batch_nd
from headrace.ops.array.layout_api import space_to_depth as space_to_depth
from headrace.ops.array.slicing_api import slice as slice
from headrace.ops.array.slicing_api import strided_slice as strided_slice
from headrace.ops.array.sort import argsort as argsort
from headrace.ops.array.sort import sort as sort
from headrace.ops.control.basic import group as group
from headrace.ops.control.basic import init_scope as init_scope
from headrace.ops.control.basic import no_op as no_op
from headrace.ops.control.basic import tuple as tuple
from headrace.ops.control.cases_api import case as case
from headrace.ops.control.cases_api import switch_case as switch_case
from headrace.ops.control.checking_api import Assert as Assert
from headrace.ops.control.checking_api import Print as Print
from headrace.ops.control.checking_api import add_check_numerics_ops as add_check_numerics_ops
from collections.abc import Sequence as _Sequence
from builtins import int as _int
from headrace.graph.tensor import Operation as _Operation
def assert_equal(
    x: _Any,
    y: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
def assert_greater(
    x: _Any,
    y: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
def assert_greater_equal(
    x: _Any,
    y: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
def assert_less(
    x: _Any,
    y: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
def assert_less_equal(
    x: _Any,
    y: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
from headrace.ops.control.checking_api import assert_near as assert_near
def assert_negative(
    x: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
def assert_non_negative(
    x: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
def assert_non_positive(
    x: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
def assert_none_equal(
    x: _Any,
    y: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
def assert_positive(
    x: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
from headrace.ops.control.checking_api import check_numerics as check_numerics
from headrace.ops.control.checking_api import is_non_decreasing as is_non_decreasing
from headrace.ops.control.checking_api import is_strictly_increasing as is_strictly_increasing
from headrace.ops.control.checking_api import verify_tensor_all_finite as verify_tensor_all_finite
from headrace.ops.control.checking_print import print_v2 as _print
print = _print
from headrace.ops.control.checking_types import assert_integer as assert_integer
from headrace.ops.control.checking_types import assert_proper_iterable as assert_proper_iterable
from headrace.ops.control.checking_types import assert_rank as assert_rank
from headrace.ops.control.checking_types import assert_rank_at_least as assert_rank_at_least
from headrace.ops.control.checking_types import assert_rank_in as assert_rank_in
from headrace.ops.control.checking_types import assert_same_float_dtype as assert_same_float_dtype
from headrace.ops.control.checking_types import assert_scalar as assert_scalar
from headrace.ops.control.checking_types import assert_type as assert_type
from headrace.ops.control.checking_types import is_numeric_tensor as is_numeric_tensor
from headrace.ops.control.flow_api import cond as cond
from headrace.ops.control.flow_api import while_loop as while_loop
from headrace.ops.control.functional import foldl as foldl
from headrace.ops.control.functional import foldr as foldr
from headrace.ops.control.functional import map_fn as map_fn
from headrace.ops.control.functional import scan as scan
from headrace.ops.control.functional import vectorized_map as vectorized_map
from headrace.ops.control.jax_call_api import from_jax as from_jax
from headrace.ops.control.script import py_func as py_func
from headrace.ops.control.tensor_array import TensorArray as TensorArray
from headrace.ops.core.build import constant as constant
from headrace.ops.core.build import convert_to_tensor as convert_to_tensor
from headrace.ops.core.build import placeholder as placeholder
from headrace.ops.core.build import register_tensor_conversion_function as register_tensor_conversion_function
from headrace.ops.core.static import static_value as _get_static_value
get_static_value = _get_static_value
from headrace.ops.embeddings.partitioned_tables import PartitionedEmbeddingTable as PartitionedEmbeddingTable
from headrace.ops.embeddings.tables_api import EmbeddingTable as EmbeddingTable
from headrace.ops.image.patches import extract_image_patches as extract_image_patches
from headrace.ops.io.accumulators_api import ConditionalAccumulator as ConditionalAccumulator
from headrace.ops.io.accumulators_api import ConditionalAccumulatorBase as ConditionalAccumulatorBase
from headrace.ops.io.accumulators_api import SparseConditionalAccumulator as SparseConditionalAccumulator
from headrace.ops.io.queues_api import FIFOQueue as FIFOQueue
from headrace.ops.io.queues_api import PaddingFIFOQueue as PaddingFIFOQueue
from headrace.ops.io.queues_api import PriorityQueue as PriorityQueue
from headrace.ops.io.queues_api import QueueBase as QueueBase
from headrace.ops.io.queues_api import RandomShuffleQueue as RandomShuffleQueue
from headrace.ops.io.readers_api import FixedLengthRecordReader as FixedLengthRecordReader
from headrace.ops.io.readers_api import IdentityReader as IdentityReader
from headrace.ops.io.readers_api import LMDBReader as LMDBReader
from headrace.ops.io.readers_api import ReaderBase as ReaderBase
from headrace.ops.io.readers_api import TFRecordReader as TFRecordReader
from headrace.ops.io.readers_api import TextLineReader as TextLineReader
from headrace.ops.io.readers_api import WholeFileReader as WholeFileReader
from headrace.ops.io.tables import tables_initializer as tables_initializer
def add(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def atan2(y: _Any, x: _Any, name: _str | None = None) -> _Tensor: ...
def div_no_nan(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def floor_div(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def floormod(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def igamma(a: _Any, x: _Any, name: _str | None = None) -> _Tensor: ...
def igammac(a: _Any, x: _Any, name: _str | None = None) -> _Tensor: ...
def maximum(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def minimum(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def mod(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def multiply(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def polygamma(a: _Any, x: _Any, name: _str | None = None) -> _Tensor: ...
def realdiv(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def squared_difference(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def subtract(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def truncatediv(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def truncatemod(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def zeta(x: _Any, q: _Any, name: _str | None = None) -> _Tensor: ...
from headrace.ops.math.cast import abs as abs
from headrace.ops.math.cast import angle as angle
from headrace.ops.math.cast import cast as cast
from headrace.ops.math.cast import complex as complex
from headrace.ops.math.cast import conj as conj
from headrace.ops.math.cast import imag as imag
from headrace.ops.math.cast import real as real
from headrace.ops.math.cast import saturate_cast as saturate_cast
def to_bfloat16(x: _Any, name: _str | None = 'ToBFloat16') -> _Tensor: ...
def to_complex128(x: _Any, name: _str | None = 'ToComplex128') -> _Tensor: ...
def to_complex64(x: _Any, name: _str | None = 'ToComplex64') -> _Tensor: ...
def to_double(x: _Any, name: _str | None = 'ToDouble') -> _Tensor: ...
def to_float(x: _Any, name: _str | None = 'ToFloat') -> _Tensor: ...
def to_int32(x: _Any, name: _str | None = 'ToInt32') -> _Tensor: ...
def to_int64(x: _Any, name: _str | None = 'ToInt64') -> _Tensor: ...
from headrace.ops.math.clip import clip_by_average_norm as clip_by_average_norm
from headrace.ops.math.clip import clip_by_global_norm as clip_by_global_norm
from headrace.ops.math.clip import clip_by_norm as clip_by_norm
from headrace.ops.math.clip import global_norm as global_norm
def equal(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def greater(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def greater_equal(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def less(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def less_equal(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def logical_and(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
def logical_or(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
from headrace.ops.math.comparison import logical_xor as logical_xor
def not_equal(x: _Any, y: _Any, name: _str | None = None) -> _Tensor: ...
from headrace.ops.math.counting import confusion_matrix as confusion_matrix
from headrace.ops.math.counting import histogram_fixed_width as histogram_fixed_width
from headrace.ops.math.counting import histogram_fixed_width_bins as histogram_fixed_width_bins
from builtins import bool as _bool
def cumprod(
    x: _Any,
    axis: _Any = 0,
    exclusive: _bool = False,
    reverse: _bool = False,
    name: _Any = None,
) -> _Tensor: ...
def cumsum(
    x: _Any,
    axis: _Any = 0,
    exclusive: _bool = False,
    reverse: _bool = False,
    name: _Any = None,
) -> _Tensor: ...
def lin_space(start: _Any, stop: _Any, num: _Any, name: _str | None = None) -> _Tensor: ...
from headrace.ops.math.cumulative import linspace as linspace
from headrace.ops.math.cumulative import range as range
from headrace.ops.math.einsum import einsum as einsum
from headrace.ops.math.einsum import tensordot as tensordot
def acos(x: _Any, name: _str | None = None) -> _Tensor: ...
def acosh(x: _Any, name: _str | None = None) -> _Tensor: ...
def asin(x: _Any, name: _str | None = None) -> _Tensor: ...
def asinh(x: _Any, name: _str | None = None) -> _Tensor: ...
def atan(x: _Any, name: _str | None = None) -> _Tensor: ...
def atanh(x: _Any, name: _str | None = None) -> _Tensor: ...
def ceil(x: _Any, name: _str | None = None) -> _Tensor: ...
def cos(x: _Any, name: _str | None = None) -> _Tensor: ...
def cosh(x: _Any, name: _str | None = None) -> _Tensor: ...
def digamma(x: _Any, name: _str | None = None) -> _Tensor: ...
def erf(x: _Any, name: _str | None = None) -> _Tensor: ...
def erfc(x: _Any, name: _str | None = None) -> _Tensor: ...
def exp(x: _Any, name: _str | None = None) -> _Tensor: ...
def expm1(x: _Any, name: _str | None = None) -> _Tensor: ...
def floor(x: _Any, name: _str | None = None) -> _Tensor: ...
def is_finite(x: _Any, name: _str | None = None) -> _Tensor: ...
def is_inf(x: _Any, name: _str | None = None) -> _Tensor: ...
def is_nan(x: _Any, name: _str | None = None) -> _Tensor: ...
def lgamma(x: _Any, name: _str | None = None) -> _Tensor: ...
def log(x: _Any, name: _str | None = None) -> _Tensor: ...
def log1p(x: _Any, name: _str | None = None) -> _Tensor: ...
from headrace.ops.math.elementwise import log_sigmoid as log_sigmoid
from headrace.ops.math.elementwise import logical_not as logical_not
def negative(x: _Any, name: _str | None = None) -> _Tensor: ...
def reciprocal(x: _Any, name: _str | None = None) -> _Tensor: ...
def rint(x: _Any, name: _str | None = None) -> _Tensor: ...
def round(x: _Any, name: _str | None = None) -> _Tensor: ...
def rsqrt(x: _Any, name: _str | None = None) -> _Tensor: ...
def sigmoid(x: _Any, name: _str | None = None) -> _Tensor: ...
def sign(x: _Any, name: _str | None = None) -> _Tensor: ...
def sin(x: _Any, name: _str | None = None) -> _Tensor: ...
def sinh(x: _Any, name: _str | None = None) -> _Tensor: ...
def sqrt(x: _Any, name: _str | None = None) -> _Tensor: ...
def square(x: _Any, name: _str | None = None) -> _Tensor: ...
def tan(x: _Any, name: _str | None = None) -> _Tensor: ...
def tanh(x: _Any, name: _str | None = None) -> _Tensor: ...
def fft(input: _Any, name: _str | None = None) -> _Tensor: ...
def fft2d(input: _Any, name: _str | None = None) -> _Tensor: ...
def fft3d(input: _Any, name: _str | None = None) -> _Tensor: ...
def ifft(input: _Any, name: _str | None = None) -> _Tensor: ...
def ifft2d(input: _Any, name: _str | None = None) -> _Tensor: ...
def ifft3d(input: _Any, name: _str | None = None) -> _Tensor: ...
from headrace.ops.math.linalg_api import cholesky as cholesky
from headrace.ops.math.linalg_api import cholesky_solve as cholesky_solve
from headrace.ops.math.linalg_api import log_matrix_determinant as log_matrix_determinant
from headrace.ops.math.linalg_api import matrix_determinant as matrix_determinant
from headrace.ops.math.linalg_api import matrix_inverse as matrix_inverse
from headrace.ops.math.linalg_api import matrix_solve as matrix_solve
from headrace.ops.math.linalg_api import matrix_solve_ls as matrix_solve_ls
from headrace.ops.math.linalg_api import matrix_triangular_solve as matrix_triangular_solve
from headrace.ops.math.linalg_api import qr as qr
from headrace.ops.math.linalg_api import self_adjoint_eig as self_adjoint_eig
from headrace.ops.math.linalg_api import self_adjoint_eigvals as self_adjoint_eigvals
from headrace.ops.math.linalg_api import svd as svd
from headrace.ops.math.matmul import matmul as matmul
from headrace.ops.math.matmul import sparse_matmul as sparse_matmul
from headrace.ops.math.nary import accumulate_n as accumulate_n
from headrace.ops.math.nary import add_n as add_n
from headrace.ops.math.nary import betainc as betainc
from headrace.ops.math.nary import clip_by_value as clip_by_value
from headrace.ops.math.nary import cross as cross
from headrace.ops.math.norms import lbeta as lbeta
from headrace.ops.math.norms import norm as norm
from headrace.ops.math.norms import trace as trace
from headrace.ops.math.operators import div as div
from headrace.ops.math.operators import divide as divide
from headrace.ops.math.operators import floordiv as floordiv
from headrace.ops.math.operators import pow as pow
from headrace.ops.math.operators import scalar_mul as scalar_mul
from headrace.ops.math.operators import truediv as truediv
from headrace.ops.math.quantization import fake_quant_with_min_max_args as fake_quant_with_min_max_args
from headrace.ops.math.quantization import fake_quant_with_min_max_args_gradient as fake_quant_with_min_max_args_gradient
from headrace.ops.math.quantization import fake_quant_with_min_max_vars as fake_quant_with_min_max_vars
from headrace.ops.math.quantization import fake_quant_with_min_max_vars_gradient as fake_quant_with_min_max_vars_gradient
from headrace.ops.math.quantization import fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel
from headrace.ops.math.quantization import fake_quant_with_min_max_vars_per_channel_gradient as fake_quant_with_min_max_vars_per_channel_gradient
from headrace.ops.math.quantized import dequantize as dequantize
from headrace.ops.math.quantized import quantize as quantize
from headrace.ops.math.quantized import quantize_v2 as quantize_v2
from headrace.ops.math.quantized import quantized_concat as quantized_concat
from headrace.ops.math.reduction_api import arg_max as arg_max
from headrace.ops.math.reduction_api import arg_min as arg_min
from headrace.ops.math.reduction_api import argmax as argmax
from headrace.ops.math.reduction_api import argmin as argmin
from headrace.ops.math.reduction_api import count_nonzero as count_nonzero
def reduce_all(
    input_tensor: _Any,
    axis: _Any = None,
    keepdims: _bool | None = None,
    name: _str | None = None,
    reduction_indices: _Any = None,
    keep_dims: _bool | None = None,
) -> _Tensor: ...
def reduce_any(
    input_tensor: _Any,
    axis: _Any = None,
    keepdims: _bool | None = None,
    name: _str | None = None,
    reduction_indices: _Any = None,
    keep_dims: _bool | None = None,
) -> _Tensor: ...
from headrace.ops.math.reduction_api import reduce_euclidean_norm as reduce_euclidean_norm
from headrace.ops.math.reduction_api import reduce_logsumexp as reduce_logsumexp
def reduce_max(
    input_tensor: _Any,
    axis: _Any = None,
    keepdims: _bool | None = None,
    name: _str | None = None,
    reduction_indices: _Any = None,
    keep_dims: _bool | None = None,
) -> _Tensor: ...
def reduce_mean(
    input_tensor: _Any,
    axis: _Any = None,
    keepdims: _bool | None = None,
    name: _str | None = None,
    reduction_indices: _Any = None,
    keep_dims: _bool | None = None,
) -> _Tensor: ...
def reduce_min(
    input_tensor: _Any,
    axis: _Any = None,
    keepdims: _bool | None = None,
    name: _str | None = None,
    reduction_indices: _Any = None,
    keep_dims: _bool | None = None,
) -> _Tensor: ...
def reduce_prod(
    input_tensor: _Any,
    axis: _Any = None,
    keepdims: _bool | None = None,
    name: _str | None = None,
    reduction_indices: _Any = None,
    keep_dims: _bool | None = None,
) -> _Tensor: ...
def reduce_sum(
    input_tensor: _Any,
    axis: _Any = None,
    keepdims: _bool | None = None,
    name: _str | None = None,
    reduction_indices: _Any = None,
    keep_dims: _bool | None = None,
) -> _Tensor: ...
def segment_max(data: _Any, segment_ids: _Any, name: _str | None = None) -> _Tensor: ...
def segment_mean(data: _Any, segment_ids: _Any, name: _str | None = None) -> _Tensor: ...
def segment_min(data: _Any, segment_ids: _Any, name: _str | None = None) -> _Tensor: ...
def segment_prod(data: _Any, segment_ids: _Any, name: _str | None = None) -> _Tensor: ...
def segment_sum(data: _Any, segment_ids: _Any, name: _str | None = None) -> _Tensor: ...
def sparse_segment_mean(
    data: _Any,
    indices: _Any,
    segment_ids: _Any,
    name: _str | None = None,
    num_segments: _Any = None,
) -> _Tensor: ...
def sparse_segment_mean_grad(
    grad: _Any,
    indices: _Any,
    segment_ids: _Any,
    output_dim0: _Any,
    name: _str | None = None,
) -> _Tensor: ...
def sparse_segment_sqrt_n(
    data: _Any,
    indices: _Any,
    segment_ids: _Any,
    name: _str | None = None,
    num_segments: _Any = None,
) -> _Tensor: ...
def sparse_segment_sqrt_n_grad(
    grad: _Any,
    indices: _Any,
    segment_ids: _Any,
    output_dim0: _Any,
    name: _str | None = None,
) -> _Tensor: ...
def sparse_segment_sum(
    data: _Any,
    indices: _Any,
    segment_ids: _Any,
    name: _str | None = None,
    num_segments: _Any = None,
) -> _Tensor: ...
def sparse_segment_sum_grad(
    grad: _Any,
    indices: _Any,
    segment_ids: _Any,
    output_dim0: _Any,
    name: _str | None = None,
) -> _Tensor: ...
def unsorted_segment_max(
    data: _Any,
    segment_ids: _Any,
    num_segments: _Any,
    name: _str | None = None,
) -> _Tensor: ...
from headrace.ops.math.segment_api import unsorted_segment_mean as unsorted_segment_mean
def unsorted_segment_min(
    data: _Any,
    segment_ids: _Any,
    num_segments: _Any,
    name: _str | None = None,
) -> _Tensor: ...
def unsorted_segment_prod(
    data: _Any,
    segment_ids: _Any,
    num_segments: _Any,
    name: _str | None = None,
) -> _Tensor: ...
from headrace.ops.math.segment_api import unsorted_segment_sqrt_n as unsorted_segment_sqrt_n
def unsorted_segment_sum(
    data: _Any,
    segment_ids: _Any,
    num_segments: _Any,
    name: _str | None = None,
) -> _Tensor: ...
from headrace.ops.parsing.api import parse_example as parse_example
from headrace.ops.parsing.api import parse_single_example as parse_single_example
from headrace.ops.parsing.api import parse_single_sequence_example as parse_single_sequence_example
from headrace.ops.parsing.decoding_api import decode_compressed as decode_compressed
from headrace.ops.parsing.decoding_api import decode_csv as decode_csv
from headrace.ops.parsing.decoding_api import decode_json_example as decode_json_example
from headrace.ops.parsing.decoding_api import decode_raw as decode_raw
from headrace.ops.parsing.decoding_api import matching_files as matching_files
from headrace.ops.parsing.decoding_api import parse_tensor as parse_tensor
from headrace.ops.parsing.decoding_api import read_file as read_file
from headrace.ops.parsing.decoding_api import serialize_tensor as serialize_tensor
from headrace.ops.parsing.decoding_api import write_file as write_file
from headrace.ops.parsing.features import FixedLenFeature as FixedLenFeature
from headrace.ops.parsing.features import FixedLenSequenceFeature as FixedLenSequenceFeature
from headrace.ops.parsing.features import SparseFeature as SparseFeature
from headrace.ops.parsing.features import VarLenFeature as VarLenFeature
from headrace.ops.ragged.ragged_tensor import RaggedTensor as RaggedTensor
from headrace.ops.random.api import multinomial as multinomial
from headrace.ops.random.api import random_crop as random_crop
from headrace.ops.random.api import random_gamma as random_gamma
from headrace.ops.random.api import random_normal as random_normal
from headrace.ops.random.api import random_poisson as random_poisson
from headrace.ops.random.api import random_shuffle as random_shuffle
from headrace.ops.random.api import random_uniform as random_uniform
from headrace.ops.random.api import truncated_normal as truncated_normal
from headrace.ops.sparse.api import sparse_concat as sparse_concat
from headrace.ops.sparse.api import sparse_fill_empty_rows as sparse_fill_empty_rows
from headrace.ops.sparse.api import sparse_merge as sparse_merge
from headrace.ops.sparse.api import sparse_reorder as sparse_reorder
from headrace.ops.sparse.api import sparse_reset_shape as sparse_reset_shape
from headrace.ops.sparse.api import sparse_reshape as sparse_reshape
from headrace.ops.sparse.api import sparse_retain as sparse_retain
from headrace.ops.sparse.api import sparse_slice as sparse_slice
from headrace.ops.sparse.api import sparse_split as sparse_split
from headrace.ops.sparse.api import sparse_tensor_to_dense as sparse_tensor_to_dense
from headrace.ops.sparse.api import sparse_to_dense as sparse_to_dense
from headrace.ops.sparse.api import sparse_to_indicator as sparse_to_indicator
from headrace.ops.sparse.api import sparse_transpose as sparse_transpose
from headrace.ops.sparse.math import sparse_add as sparse_add
from headrace.ops.sparse.math import sparse_mask as sparse_mask
from headrace.ops.sparse.sparse_tensor import SparseTensor as _SparseTensor
def sparse_maximum(sp_a: _Any, sp_b: _Any, name: _str | None = None) -> _SparseTensor: ...
def sparse_minimum(sp_a: _Any, sp_b: _Any, name: _str | None = None) -> _SparseTensor: ...
def sparse_reduce_max(
    sp_input: _Any,
    axis: _Any = None,
    keepdims: _bool | None = None,
    reduction_axes: _Any = None,
    keep_dims: _bool | None = None,
    output_is_sparse: _bool = False,
    name: _str | None = None,
) -> _Any: ...
def sparse_reduce_max_sparse(
    sp_input: _Any,
    axis: _Any = None,
    keepdims: _bool | None = None,
    reduction_axes: _Any = None,
    keep_dims: _bool | None = None,
    output_is_sparse: _bool = False,
    name: _str | None = None,
) -> _Any: ...
def sparse_reduce_sum(
    sp_input: _Any,
    axis: _Any = None,
    keepdims: _bool | None = None,
    reduction_axes: _Any = None,
    keep_dims: _bool | None = None,
    output_is_sparse: _bool = False,
    name: _str | None = None,
) -> _Any: ...
def sparse_reduce_sum_sparse(
    sp_input: _Any,
    axis: _Any = None,
    keepdims: _bool | None = None,
    reduction_axes: _Any = None,
    keep_dims: _bool | None = None,
    output_is_sparse: _bool = False,
    name: _str | None = None,
) -> _Any: ...
from headrace.ops.sparse.math import sparse_softmax as sparse_softmax
from headrace.ops.sparse.math import sparse_tensor_dense_matmul as sparse_tensor_dense_matmul
from headrace.ops.sparse.serial import deserialize_many_sparse as deserialize_many_sparse
def serialize_many_sparse(
    sp_input: _Any,
    name: _str | None = None,
    out_type: _Any = ...,
) -> _Tensor: ...
def serialize_sparse(sp_input: _Any, name: _str | None = None, out_type: _Any = ...) -> _Tensor: ...
from headrace.ops.sparse.sparse_tensor import SparseTensor as SparseTensor
from headrace.ops.sparse.sparse_tensor import SparseTensorValue as SparseTensorValue
from headrace.ops.sparse.sparse_tensor import convert_to_tensor_or_sparse_tensor as convert_to_tensor_or_sparse_tensor
from headrace.ops.sparse.sparse_tensor import sparse_placeholder as sparse_placeholder
from headrace.ops.state.initializers import constant_initializer as constant_initializer
from headrace.ops.state.initializers import glorot_normal_initializer as glorot_normal_initializer
from headrace.ops.state.initializers import glorot_uniform_initializer as glorot_uniform_initializer
from headrace.ops.state.initializers import ones_initializer as ones_initializer
from headrace.ops.state.initializers import orthogonal_initializer as orthogonal_initializer
from headrace.ops.state.initializers import random_normal_initializer as random_normal_initializer
from headrace.ops.state.initializers import random_uniform_initializer as random_uniform_initializer
from headrace.ops.state.initializers import truncated_normal_initializer as truncated_normal_initializer
from headrace.ops.state.initializers import uniform_unit_scaling_initializer as uniform_unit_scaling_initializer
from headrace.ops.state.initializers import variance_scaling_initializer as variance_scaling_initializer
from headrace.ops.state.initializers import zeros_initializer as zeros_initializer
from headrace.ops.state.partitioned import fixed_size_partitioner as fixed_size_partitioner
from headrace.ops.state.partitioned import min_max_variable_partitioner as min_max_variable_partitioner
from headrace.ops.state.partitioned import variable_axis_size_partitioner as variable_axis_size_partitioner
from headrace.ops.state.replica_scope import variable_creator_scope as variable_creator_scope
from headrace.ops.state.scopes_api import add_to_collection as add_to_collection
from headrace.ops.state.scopes_api import add_to_collections as add_to_collections
from headrace.ops.state.scopes_api import colocate_with as colocate_with
from headrace.ops.state.scopes_api import container as container
from headrace.ops.state.scopes_api import control_dependencies as control_dependencies
from headrace.ops.state.scopes_api import device as device
from headrace.ops.state.scopes_api import get_collection as get_collection
from headrace.ops.state.scopes_api import get_collection_ref as get_collection_ref
from headrace.ops.state.scopes_api import get_seed as get_seed
from headrace.ops.state.scopes_api import name_scope as name_scope
from headrace.ops.state.scopes_api import set_random_seed as set_random_seed
from headrace.ops.state.session_tensors import delete_session_tensor as delete_session_tensor
from headrace.ops.state.session_tensors import get_session_handle as get_session_handle
from headrace.ops.state.session_tensors import get_session_tensor as get_session_tensor
from headrace.ops.state.template import make_template as make_template
from headrace.ops.state.variable_getters import get_local_variable as get_local_variable
from headrace.ops.state.variable_kinds import VariableAggregation as VariableAggregation
from headrace.ops.state.variable_kinds import VariableSynchronization as VariableSynchronization
from headrace.ops.state.variable_scope import VariableScope as VariableScope
from headrace.ops.state.variable_scope import get_variable as get_variable
from headrace.ops.state.variable_scope import get_variable_scope as get_variable_scope
from headrace.ops.state.variable_scope import no_regularizer as no_regularizer
from headrace.ops.state.variable_scope import variable_op_scope as variable_op_scope
from headrace.ops.state.variable_scope import variable_scope as variable_scope
from headrace.ops.state.variable_updates import assign as assign
from headrace.ops.state.variable_updates import assign_add as assign_add
from headrace.ops.state.variable_updates import assign_sub as assign_sub
from headrace.ops.state.variable_updates import batch_scatter_update as batch_scatter_update
from headrace.ops.state.variable_updates import count_up_to as count_up_to
from headrace.ops.state.variable_updates import scatter_add as scatter_add
from headrace.ops.state.variable_updates import scatter_div as scatter_div
from headrace.ops.state.variable_updates import scatter_max as scatter_max
from headrace.ops.state.variable_updates import scatter_min as scatter_min
from headrace.ops.state.variable_updates import scatter_mul as scatter_mul
from headrace.ops.state.variable_updates import scatter_nd_add as scatter_nd_add
from headrace.ops.state.variable_updates import scatter_nd_sub as scatter_nd_sub
from headrace.ops.state.variable_updates import scatter_nd_update as scatter_nd_update
from headrace.ops.state.variable_updates import scatter_sub as scatter_sub
from headrace.ops.state.variable_updates import scatter_update as scatter_update
from headrace.ops.state.variables import Variable as Variable
from headrace.ops.state.variables_api import all_variables as all_variables
from headrace.ops.state.variables_api import assert_variables_initialized as assert_variables_initialized
from headrace.ops.state.variables_api import create_partitioned_variables as create_partitioned_variables
from headrace.ops.state.variables_api import disable_resource_variables as disable_resource_variables
from headrace.ops.state.variables_api import enable_resource_variables as enable_resource_variables
from headrace.ops.state.variables_api import global_variables as global_variables
from headrace.ops.state.variables_api import global_variables_initializer as global_variables_initializer
from headrace.ops.state.variables_api import initialize_all_variables as initialize_all_variables
from headrace.ops.state.variables_api import initialize_local_variables as initialize_local_variables
from headrace.ops.state.variables_api import initialize_variables as initialize_variables
from headrace.ops.state.variables_api import is_variable_initialized as is_variable_initialized
from headrace.ops.state.variables_api import local_variables as local_variables
from headrace.ops.state.variables_api import local_variables_initializer as local_variables_initializer
from headrace.ops.state.variables_api import model_variables as model_variables
from headrace.ops.state.variables_api import moving_average_variables as moving_average_variables
from headrace.ops.state.variables_api import report_uninitialized_variables as report_uninitialized_variables
from headrace.ops.state.variables_api import resource_variables_enabled as resource_variables_enabled
from headrace.ops.state.variables_api import trainable_variables as trainable_variables
from headrace.ops.state.variables_api import variables_initializer as variables_initializer
from headrace.ops.strings.api import as_string as as_string
from headrace.ops.strings.api import decode_base64 as decode_base64
from headrace.ops.strings.api import edit_distance as edit_distance
from headrace.ops.strings.api import encode_base64 as encode_base64
from headrace.ops.strings.api import reduce_join as reduce_join
from headrace.ops.strings.api import regex_replace as regex_replace
from headrace.ops.strings.api import string_join as string_join
from headrace.ops.strings.api import string_split as string_split
from headrace.ops.strings.api import string_strip as string_strip
from headrace.ops.strings.api import string_to_hash_bucket as string_to_hash_bucket
from headrace.ops.strings.api import string_to_hash_bucket_fast as string_to_hash_bucket_fast
from headrace.ops.strings.api import string_to_hash_bucket_strong as string_to_hash_bucket_strong
from headrace.ops.strings.api import string_to_number as string_to_number
from headrace.ops.strings.api import substr as substr
from headrace import app as app
from headrace import bayes as bayes
from headrace.behavior import control_flow_v2_enabled as control_flow_v2_enabled
from headrace.behavior import disable_control_flow_v2 as disable_control_flow_v2
from headrace.behavior import disable_eager_execution as disable_eager_execution
from headrace.behavior import disable_tensor_equality as disable_tensor_equality
from headrace.behavior import disable_v2_behavior as disable_v2_behavior
from headrace.behavior import disable_v2_tensorshape as disable_v2_tensorshape
from headrace.behavior import enable_control_flow_v2 as enable_control_flow_v2
from headrace.behavior import enable_eager_execution as enable_eager_execution
from headrace.behavior import enable_tensor_equality as enable_tensor_equality
from headrace.behavior import enable_v2_behavior as enable_v2_behavior
from headrace.behavior import enable_v2_tensorshape as enable_v2_tensorshape
from headrace.behavior import executing_eagerly as executing_eagerly
from headrace.behavior import is_tensor as is_tensor
from headrace.behavior import load_file_system_library as load_file_system_library
from headrace.behavior import load_library as load_library
from headrace.behavior import load_op_library as load_op_library
from headrace import collective as collective
from headrace import compat as compat
from headrace import config as config
from headrace import contrib as contrib
from headrace import data as data
from headrace.data.specs import OptionalSpec as OptionalSpec
from headrace.data.specs import RaggedTensorSpec as RaggedTensorSpec
from headrace.data.specs import SparseTensorSpec as SparseTensorSpec
from headrace.data.specs import TensorSpec as TensorSpec
from headrace.data.specs import TypeSpec as TypeSpec
from headrace import distribute as distribute
from headrace import distributions as distributions
from headrace import dtypes as dtypes
from headrace import estimator as estimator
from headrace import examples as examples
from headrace import feature_column as feature_column
from headrace import flags as flags
from headrace import gfile as gfile
from headrace.graph.proto import AttrValue as AttrValue
from headrace.graph.proto import ConfigProto as ConfigProto
from headrace.graph.proto import Event as Event
from headrace.graph.proto import GPUOptions as GPUOptions
from headrace.graph.proto import GraphDef as GraphDef
from headrace.graph.proto import GraphOptions as GraphOptions
from headrace.graph.proto import HistogramProto as HistogramProto
from headrace.graph.proto import LogMessage as LogMessage
from headrace.graph.proto import MetaGraphDef as MetaGraphDef
from headrace.graph.proto import NameAttrList as NameAttrList
from headrace.graph.proto import NodeDef as NodeDef
from headrace.graph.proto import OptimizerOptions as OptimizerOptions
from headrace.graph.proto import RunMetadata as RunMetadata
from headrace.graph.proto import RunOptions as RunOptions
from headrace.graph.proto import SessionLog as SessionLog
from headrace.graph.proto import Summary as Summary
from headrace.graph.proto import SummaryMetadata as SummaryMetadata
from headrace.graph.proto import TensorInfo as TensorInfo
from headrace import image as image
from headrace import keras as keras
from headrace import layers as layers
from headrace import logging as logging
from headrace.logging import get_logger as get_logger
from headrace import lookup as lookup
from headrace import losses as losses
from headrace import manip as manip
from headrace import metrics as metrics
from headrace import models as models
from headrace import nest as nest
from headrace import parallel as parallel
from headrace import profiler as profiler
from headrace import python_io as python_io
from headrace import quantization as quantization
from headrace import ragged as ragged
from headrace import resource_loader as resource_loader
from headrace import saved_model as saved_model
from headrace import sets as sets
from headrace import sparse as sparse
from headrace import strings as strings
from headrace import summary as summary
from headrace import sysconfig as sysconfig
from headrace import test as test
from headrace import user_ops as user_ops
from headrace import version as version
from headrace.version import COMPILER_VERSION as COMPILER_VERSION
from headrace.version import GIT_VERSION as GIT_VERSION
from headrace.version import GRAPH_DEF_VERSION as GRAPH_DEF_VERSION
from headrace.version import GRAPH_DEF_VERSION_MIN_CONSUMER as GRAPH_DEF_VERSION_MIN_CONSUMER
from headrace.version import GRAPH_DEF_VERSION_MIN_PRODUCER as GRAPH_DEF_VERSION_MIN_PRODUCER
from headrace.version import VERSION as VERSION

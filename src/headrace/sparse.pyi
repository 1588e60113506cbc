# Written by tools/make_stubs.py from sparse.py; do not edit.
__all__ = ['SparseTensor', 'add', 'concat', 'cross', 'cross_hashed', 'expand_dims', 'eye', 'fill_empty_rows', 'from_dense', 'mask', 'matmul', 'maximum', 'merge', 'minimum', 'placeholder', 'reduce_max', 'reduce_max_sparse', 'reduce_sum', 'reduce_sum_sparse', 'reorder', 'reset_shape', 'reshape', 'retain', 'segment_mean', 'segment_sqrt_n', 'segment_sum', 'slice', 'softmax', 'sparse_dense_matmul', 'split', 'to_dense', 'to_indicator', 'transpose']
from typing import Any as _Any
from builtins import str as _str
from headrace.graph.tensor import Tensor as _Tensor
def segment_mean(
    data: _Any,
    indices: _Any,
    segment_ids: _Any,
    name: _str | None = None,
    num_segments: _Any = None,
) -> _Tensor: ...
def segment_sqrt_n(
    data: _Any,
    indices: _Any,
    segment_ids: _Any,
    name: _str | None = None,
    num_segments: _Any = None,
) -> _Tensor: ...
def segment_sum(
    data: _Any,
    indices: _Any,
    segment_ids: _Any,
    name: _str | None = None,
    num_segments: _Any = None,
) -> _Tensor: ...
from headrace.ops.sparse.api import sparse_concat as _concat
concat = _concat
from headrace.ops.sparse.api import sparse_expand_dims as _expand_dims
expand_dims = _expand_dims
from headrace.ops.sparse.api import sparse_fill_empty_rows as _fill_empty_rows
fill_empty_rows = _fill_empty_rows
from headrace.ops.sparse.api import from_dense as from_dense
from headrace.ops.sparse.api import sparse_merge as _merge
merge = _merge
from headrace.ops.sparse.api import sparse_reorder as _reorder
reorder = _reorder
from headrace.ops.sparse.api import sparse_reset_shape as _reset_shape
reset_shape = _reset_shape
from headrace.ops.sparse.api import sparse_reshape as _reshape
reshape = _reshape
from headrace.ops.sparse.api import sparse_retain as _retain
retain = _retain
from headrace.ops.sparse.api import sparse_slice as _slice
slice = _slice
from headrace.ops.sparse.api import sparse_split as _split
split = _split
from headrace.ops.sparse.api import sparse_tensor_to_dense as _to_dense
to_dense = _to_dense
from headrace.ops.sparse.api import sparse_to_indicator as _to_indicator
to_indicator = _to_indicator
from headrace.ops.sparse.api import sparse_transpose as _transpose
transpose = _transpose
from headrace.ops.sparse.cross import sparse_cross as _cross
cross = _cross
from headrace.ops.sparse.cross import sparse_cross_hashed as _cross_hashed
cross_hashed = _cross_hashed
from headrace.ops.sparse.math import sparse_add as _add
add = _add
from headrace.ops.sparse.math import sparse_eye as _eye
eye = _eye
from headrace.ops.sparse.math import sparse_mask as _mask
mask = _mask
from headrace.ops.sparse.math import sparse_tensor_dense_matmul as _matmul
matmul = _matmul
from headrace.ops.sparse.sparse_tensor import SparseTensor as _SparseTensor
def maximum(sp_a: _Any, sp_b: _Any, name: _str | None = None) -> _SparseTensor: ...
def minimum(sp_a: _Any, sp_b: _Any, name: _str | None = None) -> _SparseTensor: ...
from builtins import bool as _bool
def reduce_max(
    sp_input: _Any,
    axis: _Any = None,
    keepdims: _bool | None = None,
    reduction_axes: _Any = None,
    keep_dims: _bool | None = None,
    output_is_sparse: _bool = False,
    name: _str | None = None,
) -> _Any: ...
def reduce_max_sparse(
    sp_input: _Any,
    axis: _Any = None,
    keepdims: _bool | None = None,
    reduction_axes: _Any = None,
    keep_dims: _bool | None = None,
    output_is_sparse: _bool = False,
    name: _str | None = None,
) -> _Any: ...
def reduce_sum(
    sp_input: _Any,
    axis: _Any = None,
    keepdims: _bool | None = None,
    reduction_axes: _Any = None,
    keep_dims: _bool | None = None,
    output_is_sparse: _bool = False,
    name: _str | None = None,
) -> _Any: ...
def reduce_sum_sparse(
    sp_input: _Any,
    axis: _Any = None,
    keepdims: _bool | None = None,
    reduction_axes: _Any = None,
    keep_dims: _bool | None = None,
    output_is_sparse: _bool = False,
    name: _str | None = None,
) -> _Any: ...
from headrace.ops.sparse.math import sparse_softmax as _softmax
softmax = _softmax
from headrace.ops.sparse.math import sparse_tensor_dense_matmul as _sparse_dense_matmul
sparse_dense_matmul = _sparse_dense_matmul
from headrace.ops.sparse.sparse_tensor import SparseTensor as SparseTensor
from headrace.ops.sparse.sparse_tensor import sparse_placeholder as _placeholder
placeholder = _placeholder

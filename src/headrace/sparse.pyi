# Written by tools/make_stubs.py from sparse.py; do not edit.
__all__ = ['SparseTensor', 'add', 'concat', 'cross', 'cross_hashed', 'expand_dims', 'eye', 'fill_empty_rows', 'from_dense', 'mask', 'matmul', 'maximum', 'merge', 'minimum', 'placeholder', 'reduce_max', 'reduce_max_sparse', 'reduce_sum', 'reduce_sum_sparse', 'reorder', 'reset_shape', 'reshape', 'retain', 'segment_mean', 'segment_sqrt_n', 'segment_sum', 'slice', 'softmax', 'sparse_dense_matmul', 'split', 'to_dense', 'to_indicator', 'transpose']
from headrace.ops.math.segment_api import sparse_segment_mean as _segment_mean
segment_mean = _segment_mean
from headrace.ops.math.segment_api import sparse_segment_sqrt_n as _segment_sqrt_n
segment_sqrt_n = _segment_sqrt_n
from headrace.ops.math.segment_api import sparse_segment_sum as _segment_sum
segment_sum = _segment_sum
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
from headrace.ops.sparse.math import sparse_maximum as _maximum
maximum = _maximum
from headrace.ops.sparse.math import sparse_minimum as _minimum
minimum = _minimum
from headrace.ops.sparse.math import sparse_reduce_max as _reduce_max
reduce_max = _reduce_max
from headrace.ops.sparse.math import sparse_reduce_max_sparse as _reduce_max_sparse
reduce_max_sparse = _reduce_max_sparse
from headrace.ops.sparse.math import sparse_reduce_sum as _reduce_sum
reduce_sum = _reduce_sum
from headrace.ops.sparse.math import sparse_reduce_sum_sparse as _reduce_sum_sparse
reduce_sum_sparse = _reduce_sum_sparse
from headrace.ops.sparse.math import sparse_softmax as _softmax
softmax = _softmax
from headrace.ops.sparse.math import sparse_tensor_dense_matmul as _sparse_dense_matmul
sparse_dense_matmul = _sparse_dense_matmul
from headrace.ops.sparse.sparse_tensor import SparseTensor as SparseTensor
from headrace.ops.sparse.sparse_tensor import sparse_placeholder as _placeholder
placeholder = _placeholder

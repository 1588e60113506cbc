"""``tf.sparse``: tensors given by their elements that are not zero."""

from headrace.ops.math.segment_api import sparse_segment_mean as segment_mean
from headrace.ops.math.segment_api import sparse_segment_sqrt_n as segment_sqrt_n
from headrace.ops.math.segment_api import sparse_segment_sum as segment_sum
from headrace.ops.sparse.api import from_dense
from headrace.ops.sparse.api import sparse_concat as concat
from headrace.ops.sparse.api import sparse_expand_dims as expand_dims
from headrace.ops.sparse.api import sparse_fill_empty_rows as fill_empty_rows
from headrace.ops.sparse.api import sparse_merge as merge
from headrace.ops.sparse.api import sparse_reorder as reorder
from headrace.ops.sparse.api import sparse_reset_shape as reset_shape
from headrace.ops.sparse.api import sparse_reshape as reshape
from headrace.ops.sparse.api import sparse_retain as retain
from headrace.ops.sparse.api import sparse_slice as slice
from headrace.ops.sparse.api import sparse_split as split
from headrace.ops.sparse.api import sparse_tensor_to_dense as to_dense
from headrace.ops.sparse.api import sparse_to_indicator as to_indicator
from headrace.ops.sparse.api import sparse_transpose as transpose
from headrace.ops.sparse.cross import sparse_cross as cross
from headrace.ops.sparse.cross import sparse_cross_hashed as cross_hashed
from headrace.ops.sparse.math import sparse_add as add
from headrace.ops.sparse.math import sparse_eye as eye
from headrace.ops.sparse.math import sparse_mask as mask
from headrace.ops.sparse.math import sparse_maximum as maximum
from headrace.ops.sparse.math import sparse_minimum as minimum
from headrace.ops.sparse.math import sparse_reduce_max as reduce_max
from headrace.ops.sparse.math import sparse_reduce_max_sparse as reduce_max_sparse
from headrace.ops.sparse.math import sparse_reduce_sum as reduce_sum
from headrace.ops.sparse.math import sparse_reduce_sum_sparse as reduce_sum_sparse
from headrace.ops.sparse.math import sparse_softmax as softmax
from headrace.ops.sparse.math import sparse_tensor_dense_matmul as matmul
from headrace.ops.sparse.math import sparse_tensor_dense_matmul as sparse_dense_matmul
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.sparse.sparse_tensor import sparse_placeholder as placeholder

__all__ = [
    "SparseTensor",
    "add",
    "concat",
    "cross",
    "cross_hashed",
    "expand_dims",
    "eye",
    "fill_empty_rows",
    "from_dense",
    "mask",
    "matmul",
    "maximum",
    "merge",
    "minimum",
    "placeholder",
    "reduce_max",
    "reduce_max_sparse",
    "reduce_sum",
    "reduce_sum_sparse",
    "reorder",
    "reset_shape",
    "reshape",
    "retain",
    "segment_mean",
    "segment_sqrt_n",
    "segment_sum",
    "slice",
    "softmax",
    "sparse_dense_matmul",
    "split",
    "to_dense",
    "to_indicator",
    "transpose",
]

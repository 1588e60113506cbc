"""Array family: shapes, slices, gathers, scatters, padding, rearranging, empty tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden


def _iota(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


@golden
def strided_slice(tf: Any) -> dict[str, Any]:
    x = tf.constant(_iota(5, 6, 7))
    n = tf.constant(2)
    return {
        "reverse": x[::-1],
        "negative_stride": x[-1:-5:-2, ::3, 6:0:-2],
        "ellipsis_end": x[..., 1:3],
        "ellipsis_middle": x[1:3, ..., ::-3],
        "ellipsis_alone": x[...],
        "new_axis": x[:, tf.newaxis, 2],
        "new_axis_after_ellipsis": x[..., tf.newaxis],
        "shrink": x[1],
        "shrink_negative": x[-1, :, -2],
        "scalar": x[4, 5, 6],
        "mixed": x[1, ..., tf.newaxis, 2:5:2],
        "empty": x[3:1],
        "out_of_range": x[2:100, -100:3],
        "reverse_past_start": x[3:-100:-1],
        "tensor_bounds": x[n:, :n, n],
        "tensor_stride": x[::n],
    }


@golden
def strided_slice_masks(tf: Any) -> dict[str, Any]:
    x = tf.constant(_iota(4, 5, 6))
    return {
        "plain": tf.strided_slice(x, [1, 0, 2], [3, 5, 6], [1, 2, 3]),
        "default_strides": tf.strided_slice(x, [1, 1], [3, 2]),
        "begin_end": tf.strided_slice(x, [2, 2], [3, 3], [1, 1], begin_mask=1, end_mask=2),
        "shrink": tf.strided_slice(x, [1, 2], [2, 3], [1, 1], shrink_axis_mask=3),
        "new_axis": tf.strided_slice(x, [0, 1], [0, 2], [1, 1], new_axis_mask=1),
        "ellipsis": tf.strided_slice(x, [0, 1], [0, 4], [1, 1], ellipsis_mask=1),
        "begin_mask_reversed": tf.strided_slice(x, [1], [0], [-1], begin_mask=1, end_mask=1),
        "slice": tf.slice(x, [1, 0, 2], [2, -1, 3]),
        "slice_empty": tf.slice(x, [1, 0, 2], [0, -1, 3]),
    }


@golden
def gather(tf: Any) -> dict[str, Any]:
    x = tf.constant(_iota(4, 3, 5))
    ids = tf.constant([[3, 0], [3, 1]])
    return {
        "axis0": tf.gather(x, ids),
        "axis1": tf.gather(x, [2, 2, 0], axis=1),
        "axis_last": tf.gather(x, ids, axis=-1),
        "scalar_index": tf.gather(x, 2, axis=1),
        "int64_ids": tf.gather(x, tf.constant([1], tf.int64)),
        "empty_ids": tf.gather(x, tf.zeros([0], tf.int32), axis=1),
        "empty_ids_2d": tf.gather(x, tf.zeros([2, 0], tf.int32)),
        "batch_dims": tf.gather(x, [[0, 2], [1, 1], [2, 0], [0, 0]], axis=1, batch_dims=1),
        "batch_gather": tf.batch_gather(tf.constant(_iota(2, 4)), [[0, 3], [1, 1]]),
    }


@golden
def gather_nd(tf: Any) -> dict[str, Any]:
    x = tf.constant(_iota(4, 3, 2))
    return {
        "elements": tf.gather_nd(x, [[0, 0, 1], [3, 2, 0], [0, 0, 1]]),
        "slices": tf.gather_nd(x, [[[1], [2]], [[1], [0]]]),
        "rows": tf.gather_nd(x, [[1, 2], [0, 0]]),
        "empty_index_depth": tf.gather_nd(x, tf.zeros([2, 0], tf.int32)),
        "no_indices": tf.gather_nd(x, tf.zeros([0, 2], tf.int32)),
        "batch_dims": tf.gather_nd(x, [[2], [1], [0], [2]], batch_dims=1),
    }


@golden
def scatter_nd(tf: Any) -> dict[str, Any]:
    ids = [[1], [3], [1]]
    rows = tf.constant(_iota(3, 3))
    return {
        "duplicates_add_up": tf.scatter_nd(ids, rows, [4, 3]),
        "elements": tf.scatter_nd([[0, 1], [2, 2], [0, 1]], [1, 2, 3], [3, 3]),
        "empty": tf.scatter_nd(tf.zeros([0, 1], tf.int32), tf.zeros([0, 3]), [4, 3]),
    }


@golden
def tensor_scatter_nd(tf: Any) -> dict[str, Any]:
    x = tf.zeros([4, 3])
    ids = [[1], [3], [1]]
    rows = tf.constant(_iota(3, 3))
    return {
        "tensor_add": tf.tensor_scatter_nd_add(x + 1, ids, rows),
        "tensor_sub": tf.tensor_scatter_nd_sub(x + 1, ids, rows),
        "tensor_update": tf.tensor_scatter_nd_update(x + 1, [[1], [3]], rows[:2]),
    }


@golden
def one_hot(tf: Any) -> dict[str, Any]:
    ids = [[0, 2], [-1, 5]]
    return {
        "default": tf.one_hot(ids, 3),
        "axis0": tf.one_hot(ids, 3, axis=0),
        "axis1": tf.one_hot(ids, 3, axis=1),
        "on_off": tf.one_hot(ids, 3, on_value=5.0, off_value=-1.0, axis=-1),
        "bool": tf.one_hot(ids, 3, on_value=True, off_value=False, dtype=tf.bool),
        "int_dtype": tf.one_hot(ids, 3, dtype=tf.int32),
        "scalar": tf.one_hot(1, 4),
        "depth_zero": tf.one_hot(ids, 0),
    }


@golden
def sequence_mask(tf: Any) -> dict[str, Any]:
    return {
        "maxlen": tf.sequence_mask([1, 3, 0, 9], 5),
        "no_maxlen": tf.sequence_mask([1, 3, 2]),
        "matrix_float": tf.sequence_mask([[1, 3], [2, 0]], dtype=tf.float32),
    }


@golden
def pad(tf: Any) -> dict[str, Any]:
    x = tf.constant(_iota(3, 4))
    p = [[2, 1], [1, 3]]
    return {
        "constant": tf.pad(x, p),
        "constant_value": tf.pad(x, p, constant_values=-7.0),
        "reflect": tf.pad(x, p, "REFLECT"),
        "symmetric": tf.pad(x, p, mode="SYMMETRIC"),
        "symmetric_full": tf.pad(x, [[3, 3], [4, 4]], "symmetric"),
        "none": tf.pad(x, [[0, 0], [0, 0]], "REFLECT"),
        "ints": tf.pad([1, 2, 3], [[2, 2]], "REFLECT"),
        "empty": tf.pad(tf.zeros([0, 2]), [[1, 1], [0, 0]]),
        "reflect_gradient": tf.gradients(tf.pad(x, p, "REFLECT") ** 2, x)[0],
        "symmetric_gradient": tf.gradients(tf.pad(x, p, "SYMMETRIC") ** 2, x)[0],
    }


@golden
def tile_reverse_roll(tf: Any) -> dict[str, Any]:
    x = tf.constant(_iota(2, 3))
    y = tf.constant(_iota(2, 4, 3))
    return {
        "tile": tf.tile(x, [2, 3]),
        "tile_zero": tf.tile(x, [0, 2]),
        "reverse": tf.reverse(y, [0, -1]),
        "reverse_none": tf.reverse(y, tf.zeros([0], tf.int32)),
        "reverse_sequence": tf.reverse_sequence(y, [3, 0], seq_axis=1, batch_axis=0),
        "reverse_sequence_swapped": tf.reverse_sequence(y, [2, 1, 0, 2], seq_axis=2, batch_axis=1),
        "roll": tf.roll(x, shift=[1, -2], axis=[0, 1]),
        "roll_same_axis_twice": tf.roll(x, shift=[1, 1], axis=[1, 1]),
    }


@golden
def space_depth_batch(tf: Any) -> dict[str, Any]:
    x = tf.constant(_iota(2, 4, 6, 3))
    d = tf.constant(_iota(1, 2, 3, 8))
    b = tf.constant(_iota(4, 2, 3, 1))
    return {
        "space_to_depth": tf.space_to_depth(x, 2),
        "depth_to_space": tf.depth_to_space(d, 2),
        "space_to_batch": tf.space_to_batch(x, paddings=[[1, 1], [0, 2]], block_size=2),
        "space_to_batch_nd": tf.space_to_batch_nd(x, [2, 3], [[0, 0], [2, 1]]),
        "space_to_batch_nd_1d": tf.space_to_batch_nd(x, [3], [[1, 1]]),
        "batch_to_space": tf.batch_to_space(b, crops=[[1, 0], [0, 2]], block_size=2),
        "batch_to_space_nd": tf.batch_to_space_nd(b, [2, 2], [[0, 1], [1, 0]]),
    }


@golden
def joining(tf: Any) -> dict[str, Any]:
    x = tf.constant(_iota(2, 3))
    empty = tf.zeros([2, 0])
    first, second, third = tf.split(tf.constant(_iota(6, 2)), [1, 3, -1])
    return {
        "concat": tf.concat([x, x * 2], axis=-1),
        "concat_empty": tf.concat([empty, x, empty], 1),
        "concat_all_empty": tf.concat([empty, empty], 1),
        "concat_one": tf.concat([x], 0),
        "stack": tf.stack([x, x + 1], axis=-1),
        "stack_scalars": tf.stack([1, 2, 3]),
        "unstack_last": tf.unstack(x, axis=-1)[1],
        "split_even": tf.split(x, 3, axis=1)[2],
        "split_sizes_0": first,
        "split_sizes_1": second,
        "split_sizes_2": third,
        "parallel_stack": tf.parallel_stack([x, x]),
    }


@golden
def shapes(tf: Any) -> dict[str, Any]:
    x = tf.constant(_iota(2, 1, 3, 1))
    unknown = tf.placeholder(tf.float32)
    feed = {unknown: _iota(2, 3, 4)}
    return {
        "reshape_infer": tf.reshape(x, [3, -1]),
        "reshape_scalar": tf.reshape(tf.constant([7.0]), []),
        "reshape_empty_infer": tf.reshape(tf.zeros([0, 4]), [2, -1, 2]),
        "squeeze_all": tf.squeeze(x),
        "squeeze_some": tf.squeeze(x, [-1]),
        "expand_dims": tf.expand_dims(x, -2),
        "transpose": tf.transpose(x),
        "transpose_perm": tf.transpose(x, [2, 0, 3, 1]),
        "shape": tf.shape(x),
        "shape_int64": tf.shape(x, out_type=tf.int64),
        "size": tf.size(x),
        "rank": tf.rank(x),
        "broadcast_to": tf.broadcast_to(x, [5, 2, 4, 3, 2]),
        "unknown_shape": (tf.shape(unknown)[1:], feed),
        "unknown_flat": (tf.reshape(unknown, [-1]), feed),
        "unknown_squeezed": (tf.squeeze(unknown[:1]), feed),
    }


@golden
def ranges(tf: Any) -> dict[str, Any]:
    return {
        "int": tf.range(3, 18, 4),
        "negative": tf.range(10, 0, -3),
        "float": tf.range(0.0, 1.0, 0.3),
        "empty": tf.range(3, 3),
        "int64": tf.range(tf.constant(4, tf.int64)),
        "linspace": tf.linspace(10.0, 12.0, 5),
        "linspace_one": tf.linspace(10.0, 12.0, 1),
        "fill": tf.fill([2, 3], 9),
        "fill_empty": tf.fill([0, 3], 9.0),
        "meshgrid_xy": tf.stack(tf.meshgrid([1, 2, 3], [4, 5])),
        "meshgrid_ij": tf.stack(tf.meshgrid([1, 2, 3], [4, 5], indexing="ij")),
        "eye": tf.eye(2, 3, batch_shape=[2]),
    }


@golden
def where_and_mask(tf: Any) -> dict[str, Any]:
    x = tf.constant(_iota(3, 2))
    c = tf.constant([[True, False], [False, False], [True, True]])
    return {
        "indices": tf.where(c),
        "indices_of_numbers": tf.where(tf.constant([0.0, np.nan, -0.0, 2.0])),
        "indices_none": tf.where(tf.zeros([2, 2], tf.bool)),
        "select": tf.where(c, x, -x),
        "select_rows": tf.where([True, False, True], x, -x),
        "select_scalar": tf.where(True, x, -x),
        "mask": tf.boolean_mask(x, c),
        "mask_rows": tf.boolean_mask(x, [True, False, True]),
        "mask_axis": tf.boolean_mask(x, [False, True], axis=1),
        "mask_nothing": tf.boolean_mask(x, [False, False, False]),
    }


@golden
def unique(tf: Any) -> dict[str, Any]:
    x = tf.constant([7, 3, 7, 7, 1, 3])
    y, idx = tf.unique(x)
    z, idx64, count = tf.unique_with_counts(["b", "a", "b"], out_idx=tf.int64)
    out, where = tf.setdiff1d([5, 1, 5, 2, 3], [1, 3])
    empty, _ = tf.unique(tf.zeros([0]))
    return {
        "values": y,
        "index": idx,
        "strings": z,
        "string_index": idx64,
        "string_count": count,
        "setdiff": out,
        "setdiff_index": where,
        "empty": empty,
        "invert_permutation": tf.invert_permutation([2, 0, 3, 1]),
        "unravel_index": tf.unravel_index([22, 5], [4, 6]),
    }


@golden
def diagonals(tf: Any) -> dict[str, Any]:
    x = tf.constant(_iota(2, 3, 4))
    return {
        "diag": tf.diag([1, 2, 3]),
        "diag_rank4": tf.diag(tf.constant(_iota(2, 2))),
        "diag_part": tf.diag_part(tf.constant(_iota(2, 3, 2, 3))),
        "matrix_diag": tf.matrix_diag(tf.constant(_iota(2, 3))),
        "matrix_diag_part": tf.matrix_diag_part(x),
        "matrix_set_diag": tf.matrix_set_diag(x, -tf.ones([2, 3])),
        "band_lower": tf.matrix_band_part(x, -1, 0),
        "band_upper": tf.matrix_band_part(x, 0, -1),
        "band": tf.matrix_band_part(x, 1, 1),
        "trace": tf.trace(x),
    }


@golden
def partition_and_stitch(tf: Any) -> dict[str, Any]:
    x = tf.constant(_iota(5, 2))
    parts = tf.dynamic_partition(x, [2, 0, 2, 0, 2], 4)
    return {
        "part_0": parts[0],
        "part_1_empty": parts[1],
        "part_2": parts[2],
        "part_3_empty": parts[3],
        "stitch": tf.dynamic_stitch([[0, 2], [3, 1]], [x[:2], x[2:4]]),
        "stitch_last_wins": tf.dynamic_stitch([[0, 1], [1, 2]], [x[:2], x[2:4]]),
        "stitch_shapes": tf.dynamic_stitch([1, [0, 2]], [x[0], x[1:3]]),
    }


@golden
def search_and_sort(tf: Any) -> dict[str, Any]:
    table = tf.constant([[1.0, 3.0, 3.0, 9.0], [0.0, 1.0, 2.0, 3.0]])
    values = tf.constant([[3.0, 0.0, 10.0], [-1.0, 1.0, 2.5]])
    x = tf.constant([[3, 1, 3, 2], [9, 9, 0, 1]])
    return {
        "left": tf.searchsorted(table, values),
        "right": tf.searchsorted(table, values, side="right"),
        "sort": tf.sort(x),
        "sort_descending": tf.sort(x, direction="DESCENDING"),
    }


@golden
def argsort(tf: Any) -> dict[str, Any]:
    x = tf.constant([[3, 1, 3, 2], [9, 9, 0, 1]])
    return {
        "argsort": tf.argsort(x, stable=True),
        "argsort_axis0": tf.argsort(x, axis=0),
    }


@golden
def bits(tf: Any) -> dict[str, Any]:
    return {
        "bitcast": tf.bitcast(tf.constant([1.0, -0.0]), tf.int32),
        "bitcast_split": tf.bitcast(tf.constant([1.0, -2.5]), tf.uint8),
        "bitcast_join": tf.bitcast(tf.constant([[0, 0, 128, 63]], tf.uint8), tf.float32),
    }


@golden(needs=("extract_image_patches",))
def patches(tf: Any) -> dict[str, Any]:
    x = tf.constant(_iota(1, 5, 5, 2))
    sizes, strides, rates = [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1]
    return {
        "patches_same": tf.extract_image_patches(x, sizes, strides, rates, "SAME"),
        "patches_valid": tf.extract_image_patches(x, sizes, strides, rates, "VALID"),
        "patches_rates": tf.extract_image_patches(
            x, [1, 2, 2, 1], [1, 1, 1, 1], [1, 2, 2, 1], "SAME"
        ),
    }


@golden
def diagonal_bands(tf: Any) -> dict[str, Any]:
    x = tf.constant(_iota(2, 4, 5))
    results = {}
    for align in ("LEFT_LEFT", "RIGHT_LEFT", "LEFT_RIGHT"):
        for name, band in (("one", 2), ("below", (-3, -1)), ("around", (-2, 1))):
            part = tf.matrix_diag_part(x, k=band, padding_value=-1.0, align=align)
            results[f"{name}_{align}"] = part
            whole = tf.matrix_diag(part, k=band, num_rows=4, num_cols=5, align=align)
            results[f"{name}_{align}_whole"] = whole
            results[f"{name}_{align}_set"] = tf.matrix_set_diag(-x, part, k=band, align=align)
    results["square"] = tf.matrix_diag([1, 2, 3], k=-1, padding_value=7)
    return results


@golden
def empty_tensors(tf: Any) -> dict[str, Any]:
    x = tf.zeros([0, 3])
    return {
        "sum": tf.reduce_sum(x, 0),
        "prod": tf.reduce_prod(x, 0),
        "max": tf.reduce_max(x, 0),
        "min": tf.reduce_min(x, 0),
        "mean": tf.reduce_mean(x, 0),
        "all": tf.reduce_all(tf.zeros([0], tf.bool)),
        "any": tf.reduce_any(tf.zeros([0], tf.bool)),
        "max_int": tf.reduce_max(tf.zeros([0, 2], tf.int32), 0),
        "logsumexp": tf.reduce_logsumexp(x, 0),
        "sum_other_axis": tf.reduce_sum(x, 1),
        "matmul_inner": tf.matmul(tf.zeros([2, 0]), tf.zeros([0, 3])),
        "matmul_outer": tf.matmul(x, tf.zeros([3, 2])),
        "cumsum": tf.cumsum(x),
        "argmax_other_axis": tf.argmax(x, 1),
        "softmax": tf.nn.softmax(x),
        "transpose": tf.transpose(x),
        "segment_sum": tf.segment_sum(x, tf.zeros([0], tf.int32)),
        "unsorted_segment_sum": tf.unsorted_segment_sum(x, tf.zeros([0], tf.int32), 2),
        "add_broadcast": x + tf.ones([1, 3]),
        "top_k_zero": tf.nn.top_k([1.0, 2.0], 0).values,
    }


@golden
def string_arrays(tf: Any) -> dict[str, Any]:
    return {
        "equal": tf.equal(["a", "b"], ["a", "c"]),
        "gather": tf.gather(["x", "y", "z"], [2, 0]),
        "reshape": tf.reshape(["x", "y", "z", "w"], [2, 2]),
    }


@golden(needs=("string_join", "as_string", "string_to_number"))
def strings(tf: Any) -> dict[str, Any]:
    return {
        "join": tf.string_join(["a", ["b", "c"]], separator="-"),
        "as_string": tf.as_string([1, -20]),
        "as_string_float": tf.as_string([1.5, -0.25]),
        "to_number": tf.string_to_number(["1.5", "-2e3"]),
    }

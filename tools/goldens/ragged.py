"""Ragged family: construction, rows, slices, arithmetic, reductions, rearranging, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden

NEEDS = ("RaggedTensor",)


def _x(tf: Any) -> Any:
    return tf.ragged.constant([[3.0, 1.0], [], [4.0, 1.0, 5.0], [9.0]])


def _y(tf: Any) -> Any:
    return tf.ragged.constant([[10.0, 20.0], [], [30.0, 40.0, 50.0], [60.0]])


def _z(tf: Any) -> Any:
    return tf.ragged.constant([[[1, 2], [3]], [], [[4], [], [5, 6, 7]]])


def _u(tf: Any) -> Any:
    return tf.ragged.constant([[[1, 2], [3, 4]], [], [[5, 6]]], ragged_rank=1)


def _flat(outputs: dict[str, Any]) -> dict[str, Any]:
    """Ragged and sparse outputs as their parts."""
    found: dict[str, Any] = {}
    for name, value in outputs.items():
        if hasattr(value, "nested_row_splits"):
            found[f"{name}_values"] = value.flat_values
            for i, splits in enumerate(value.nested_row_splits):
                found[f"{name}_splits{i}"] = splits
        elif hasattr(value, "dense_shape"):
            found[f"{name}_indices"] = value.indices
            found[f"{name}_values"] = value.values
            found[f"{name}_shape"] = value.dense_shape
        else:
            found[name] = value
    return found


@golden(needs=NEEDS)
def construction(tf: Any) -> dict[str, Any]:
    ragged = tf.RaggedTensor
    dense = np.arange(12, dtype=np.int32).reshape(2, 3, 2)
    return _flat(
        {
            "empty": tf.ragged.constant([]),
            "empty_rows": tf.ragged.constant([[], []]),
            "deep_empty": tf.ragged.constant([[[]], []]),
            "typed": tf.ragged.constant([[1, 2], [3]], dtype=tf.float64),
            "inner_shape": tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], inner_shape=(2,)),
            "words": tf.ragged.constant([["a"], [], ["b", "c"]]),
            "splits": ragged.from_row_splits([1, 2, 3], [0, 1, 1, 3]),
            "lengths": ragged.from_row_lengths([1, 2, 3], [1, 0, 2]),
            "starts": ragged.from_row_starts([1, 2, 3], [0, 0, 2]),
            "limits": ragged.from_row_limits([1, 2, 3], [1, 1, 3]),
            "rowids": ragged.from_value_rowids([1, 2, 3], [0, 0, 2]),
            "rowids_nrows": ragged.from_value_rowids([1, 2, 3], [0, 0, 2], 5),
            "nested_rowids": ragged.from_nested_value_rowids([1, 2, 3], [[0, 0, 2], [0, 1, 2]]),
            "nested_lengths": ragged.from_nested_row_lengths([1, 2, 3], [[2, 1], [1, 1, 1]]),
            "tensor": ragged.from_tensor([[1, 2], [3, 4]]),
            "tensor_padding": ragged.from_tensor([[1, 2, 0], [3, 0, 0], [0, 5, 0]], padding=0),
            "tensor_lengths": ragged.from_tensor([[1, 2, 0], [3, 0, 0]], lengths=[2, 9]),
            "tensor_rank": ragged.from_tensor(dense),
            "tensor_rank2": ragged.from_tensor(dense, ragged_rank=2),
            "tensor_inner_padding": ragged.from_tensor([[[1, 0], [2, 0], [0, 0]]], padding=[0, 0]),
            "tensor_rank2_padding": ragged.from_tensor(
                [[[1, 0], [2, 3], [0, 0]]], padding=0, ragged_rank=2
            ),
            "range": tf.ragged.range([3, 0, 2]),
            "range_full": tf.ragged.range([1, 5], [4, 3], [1, -1]),
            "range_floats": tf.ragged.range([0.0, 1.0], [1.0, 2.0], 0.5),
            "segment_ids": tf.ragged.row_splits_to_segment_ids([0, 2, 2, 3]),
            "row_splits": tf.ragged.segment_ids_to_row_splits([0, 0, 2]),
            "row_splits_more": tf.ragged.segment_ids_to_row_splits([0, 0, 2], 5),
        }
    )


@golden(needs=NEEDS)
def rows(tf: Any) -> dict[str, Any]:
    x, z, u = _x(tf), _z(tf), _u(tf)
    outputs = {
        "value_rowids": x.value_rowids(),
        "nrows": x.nrows(),
        "row_starts": x.row_starts(),
        "row_limits": x.row_limits(),
        "row_lengths": x.row_lengths(),
        "row_lengths_2": z.row_lengths(axis=2),
        "row_lengths_last": z.row_lengths(axis=-1),
        "row_lengths_inner": u.row_lengths(axis=2),
        "bounding_shape": z.bounding_shape(),
        "bounding_shape_inner": u.bounding_shape(),
        "bounding_shape_axis": z.bounding_shape(axis=1),
        "bounding_shape_axes": z.bounding_shape(axis=[0, 2]),
        "size": tf.size(z),
        "rank": tf.rank(u),
        "dense": x.to_tensor(),
        "dense_default": x.to_tensor(-1.0),
        "dense_deep": z.to_tensor(),
        "dense_inner": u.to_tensor([7, 8]),
        "sparse": x.to_sparse(),
        "sparse_deep": z.to_sparse(),
        "sparse_inner": u.to_sparse(),
        "from_sparse": tf.RaggedTensor.from_sparse(x.to_sparse()),
        "with_values": x.with_values(x.values * 2.0),
        "with_flat_values": z.with_flat_values(z.flat_values + 1),
    }
    for i, ids in enumerate(z.nested_value_rowids()):
        outputs[f"nested_value_rowids_{i}"] = ids
    return _flat(outputs)


@golden(needs=NEEDS)
def slices(tf: Any) -> dict[str, Any]:
    x, z, u = _x(tf), _z(tf), _u(tf)
    one = tf.constant(1)
    return _flat(
        {
            "row": x[2],
            "last_row": x[-1],
            "from": x[1:],
            "to": x[:-1],
            "step": x[::2],
            "reversed": x[::-1],
            "columns_from": x[:, 1:],
            "columns_to": x[:, :1],
            "columns_last": x[:, -2:],
            "columns_before": x[:, :-1],
            "element": x[2, 1],
            "row_part": x[2, 1:],
            "deep_row": z[0, 1],
            "deep_first": z[:, :, :1],
            "deep_last": z[:, :, -1:],
            "deep_part": z[2, :, 1:],
            "deep_ellipsis": z[..., :1],
            "deep_both": z[:, 1:, :1],
            "new_row": x[tf.newaxis],
            "new_column": x[:, tf.newaxis],
            "new_last": x[..., tf.newaxis],
            "inner": u[:, :, 1],
            "inner_from": u[:, :, 1:],
            "inner_element": u[0, 1, 1],
            "inner_ellipsis": u[..., 0],
            "tensor_row": x[one],
            "tensor_from": x[one:],
            "tensor_columns": x[:, one:],
            "beyond": x[10:],
            "none": x[0:0],
        }
    )


@golden(needs=NEEDS)
def elementwise(tf: Any) -> dict[str, Any]:
    x, y, z, u = _x(tf), _y(tf), _z(tf), _u(tf)
    words = tf.ragged.constant([["a"], [], ["b", "c"]])
    return _flat(
        {
            "add": x + y,
            "radd": 2 + x,
            "rsub": 2.0 - x,
            "mul": x * 3,
            "div": x / y,
            "floordiv": z // 2,
            "mod": z % 2,
            "pow": x**2.0,
            "neg": -x,
            "abs": abs(x - 3.0),
            "greater": x > 2.0,
            "logical": (x > 1.0) & (x < 5.0),
            "not": tf.logical_not(x > 2.0),
            "column": x + np.float32([[1.0], [2.0], [3.0], [4.0]]),
            "cell": x + tf.constant([[1.0]]),
            "vector": u + np.int32([10, 20]),
            "tensor_left": tf.constant([[1.0], [2.0], [3.0], [4.0]]) - x,
            "exp": tf.exp(x),
            "maximum": tf.maximum(x, y),
            "cast": tf.cast(x, tf.int32),
            "equal": tf.equal(x, 3.0),
            "clip": tf.clip_by_value(x, 2.0, 4.0),
            "add_n": tf.add_n([x, y, x]),
            "ones_like": tf.ones_like(x),
            "zeros_like": tf.zeros_like(z),
            "squared_difference": tf.squared_difference(x, y),
            "round": tf.round(x / 2.0),
            "map_flat_values": tf.ragged.map_flat_values(tf.add, x, y),
            "map_flat_values_deep": tf.ragged.map_flat_values(lambda v: v * v, z),
            "join": tf.string_join([words, words], separator="-"),
        }
    )


@golden(needs=NEEDS)
def reductions(tf: Any) -> dict[str, Any]:
    outputs: dict[str, Any] = {
        "any": tf.reduce_any(_x(tf) > 3.0, 1),
        "all": tf.reduce_all(_x(tf) > 0.5, 1),
        "all_columns": tf.reduce_all(_x(tf) > 3.0, 0),
        "segment_sum": tf.unsorted_segment_sum(_x(tf), [0, 1, 0, 1], 2),
        "segment_mean": tf.unsorted_segment_mean(_x(tf), [0, 1, 0, 1], 2),
        "segment_deep": tf.unsorted_segment_sum(_z(tf), [0, 1, 0], 2),
    }
    for kind in ("sum", "mean", "max", "min", "prod"):
        reduce = getattr(tf, f"reduce_{kind}")
        for name, value in (("x", _x(tf)), ("z", _z(tf)), ("u", _u(tf))):
            for axis in (None, 0, 1, 2, -1, [0, 1], [1, 2]):
                if name == "x" and axis in (2, [1, 2]):
                    continue
                outputs[f"{kind}_{name}_{axis}"] = reduce(value, axis=axis)
    return _flat(outputs)


@golden(needs=NEEDS)
def rearranged(tf: Any) -> dict[str, Any]:
    x, y, z, u = _x(tf), _y(tf), _z(tf), _u(tf)
    constant = tf.ragged.constant
    mask = constant([[True, False], [], [False, True, True]])
    return _flat(
        {
            "concat0": tf.concat([x, y], 0),
            "concat1": tf.concat([x, y], 1),
            "concat2": tf.concat([z, z + 10], 2),
            "concat_deep1": tf.concat([z, z + 10], 1),
            "concat_dense": tf.concat([x, tf.ones([4, 2])], 1),
            "stack0": tf.stack([x, y], 0),
            "stack1": tf.stack([x, y], 1),
            "stack2": tf.stack([x, y], 2),
            "stack_last": tf.stack([z, z], -1),
            "stack_lists": tf.ragged.stack([[1, 2, 3], [4]]),
            "stack_matrices": tf.ragged.stack([[[1, 2], [3, 4]], [[5, 6]]]),
            "tile0": tf.tile(x, [2, 1]),
            "tile1": tf.tile(x, [1, 2]),
            "tile_deep": tf.tile(z, [2, 2, 3]),
            "tile_inner": tf.tile(u, [1, 2, 2]),
            "expand0": tf.expand_dims(x, 0),
            "expand1": tf.expand_dims(x, 1),
            "expand2": tf.expand_dims(x, 2),
            "expand_last": tf.expand_dims(z, -1),
            "squeeze0": tf.squeeze(tf.expand_dims(x, 0), 0),
            "squeeze1": tf.squeeze(tf.expand_dims(x, 1), 1),
            "gather": tf.gather(x, [2, 0, 2]),
            "gather_matrix": tf.gather(x, [[2, 0], [1, 3]]),
            "gather_ragged": tf.gather(z, constant([[2], [0, 2]])),
            "gather_dense": tf.gather(tf.constant([10, 20, 30]), constant([[2], [0, 2]])),
            "gather_nd": tf.gather_nd(z, [[0, 1], [2, 2]]),
            "gather_nd_elements": tf.gather_nd(z, [[0, 1, 0], [2, 2, 2]]),
            "gather_nd_rows": tf.gather_nd(z, [[0], [2]]),
            "batch_gather": tf.batch_gather(x, constant([[1], [], [0, 0], [0]])),
            "batch_gather_deep": tf.batch_gather(z, constant([[0], [], [2, 0]])),
            "mask": tf.ragged.boolean_mask(x, x > 2.0),
            "mask_rows": tf.ragged.boolean_mask(x, [True, False, True, True]),
            "mask_dense": tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]]),
            "mask_deep": tf.ragged.boolean_mask(z, mask),
            "mask_elements": tf.ragged.boolean_mask(z, z > 2),
            "where": tf.where(x > 2.0, x, y),
            "where_rows": tf.where([True, False, True, False], x, y),
            "places": tf.where(x > 2.0),
            "one_hot": tf.one_hot(constant([[1, 0], [2]]), 3),
            "partitions": tf.ragged.stack_dynamic_partitions(["a", "b", "c", "d"], [3, 1, 1, 0], 4),
            "partitions_ragged": tf.ragged.stack_dynamic_partitions(x, [2, 1, 2, 0], 3),
            "embedding": tf.nn.embedding_lookup(
                np.arange(12.0).reshape(6, 2), constant([[1, 0], [], [5]])
            ),
        }
    )


@golden(needs=NEEDS)
def gradients(tf: Any) -> dict[str, Any]:
    values = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0], tf.float64)
    x = tf.RaggedTensor.from_row_splits(values, [0, 2, 2, 5])
    table = tf.constant(np.arange(12.0).reshape(6, 2))
    ids = tf.ragged.constant([[1, 0], [], [5, 1, 1]])
    bags = tf.reduce_sum(tf.nn.embedding_lookup(table, ids), 1)

    def of(y: Any, wrt: Any = values) -> Any:
        return tf.convert_to_tensor(tf.gradients(tf.reduce_sum(y), wrt)[0])

    return {
        "embedding": of(tf.square(bags), table),
        "mean": of(tf.square(tf.reduce_mean(x, 1)[::2])),
        "max": of(tf.reduce_max(x * x, 0)),
        "dense": of(x.to_tensor()[2, 1] * 3.0),
        "sparse": of(x.to_sparse().values * x.flat_values),
        "column": of((x * [[1.0], [2.0], [3.0]]).flat_values),
        "concat": of(tf.concat([x, x * 2.0], 1).flat_values * np.arange(10.0)),
        "gather": of(tf.gather(x, [2, 0, 2]).flat_values * np.arange(8.0)),
        "slice": of(x[:, 1:].flat_values * [5.0, 6.0, 7.0]),
        "tile": of(tf.tile(x, [2, 2]).flat_values * np.arange(20.0)),
        "where": of(tf.where(x > 2.0, x, x * 3.0).flat_values),
        "mask": of(tf.ragged.boolean_mask(x, x > 1.5).flat_values),
        "stack": of(tf.stack([x, x], 0).flat_values * np.arange(10.0)),
        "map": of(tf.map_fn(lambda row: tf.reduce_sum(row * row), x, dtype=tf.float64)),
    }


@golden(needs=NEEDS)
def whole_ops(tf: Any) -> dict[str, Any]:
    """Ops that files made by TensorFlow hold; the functions above are made of others."""
    z, u = _z(tf), _u(tf)
    values = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0])
    default = tf.constant(9.0)
    outputs: dict[str, Any] = {}
    for name, indices in (("vector", [2, 0]), ("matrix", [[2, 0], [1, 2]])):
        *splits, found = tf.nest.flatten(
            tf.raw_ops.RaggedGather(
                params_nested_splits=list(z.nested_row_splits),
                params_dense_values=z.flat_values,
                indices=indices,
                OUTPUT_RAGGED_RANK=1 + len(np.shape(indices)),
            )
        )
        outputs[f"gather_{name}_values"] = found
        outputs |= {f"gather_{name}_splits{i}": s for i, s in enumerate(splits)}

    def dense(rt_values: Any, shape: Any, filler: Any, tensors: Any, types: Any) -> Any:
        return tf.raw_ops.RaggedTensorToTensor(
            shape=shape,
            values=rt_values,
            default_value=filler,
            row_partition_tensors=[tf.constant(t, tf.int64) for t in tensors],
            row_partition_types=types,
        )

    by_splits = dense(values, [-1, -1], default, [[0, 2, 2, 5]], ["ROW_SPLITS"])
    cut = dense(values, [2, 1], default, [[0, 2, 2, 5]], ["ROW_SPLITS"])
    by_ids = dense(
        values, [-1, 4], default, [3, [0, 0, 2, 2, 2]], ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]
    )
    gradients = tf.gradients(tf.reduce_sum(by_ids * by_ids), [values, default])
    return {
        **outputs,
        "by_splits": by_splits,
        "cut": cut,
        "by_ids": by_ids,
        "inner": dense(u.flat_values, [-1, -1, 2], [7, 8], [[0, 2, 2, 3]], ["ROW_SPLITS"]),
        "gradient_values": tf.convert_to_tensor(gradients[0]),
        "gradient_default": tf.convert_to_tensor(gradients[1]),
    }

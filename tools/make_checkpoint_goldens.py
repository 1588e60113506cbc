"""Write the checkpoints of tests/golden/checkpoints. Run with the Python of the peer (TensorFlow).

    .peer-venv/bin/python tools/make_checkpoint_goldens.py

Each checkpoint is a TensorFlow V2 bundle (some are V1 files); the values that it holds follow
from the functions below, which the tests call too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

TARGET = Path(__file__).resolve().parents[1] / "tests" / "golden" / "checkpoints"

TYPES = (
    *("bool", "bfloat16", "float16", "float32", "float64", "complex64", "complex128"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)
MANY = 300


def numbers(dtype: Any) -> np.ndarray:
    """A [3, 5] array with values of both signs where the type has them."""
    base = np.arange(15).reshape(3, 5) * 3 % 11
    kind = np.dtype(dtype).kind
    if kind == "b":
        return base % 2 == 0
    if kind == "u":
        return base.astype(dtype)
    if kind == "c":
        return ((base - 5) + 1j * base.T.reshape(3, 5)).astype(dtype)
    return (base - 5).astype(dtype)


def strings() -> np.ndarray:
    """A [2, 2] array of byte strings: empty, with zero bytes, and long."""
    return np.array([[b"", b"a\x00b"], ["größe".encode(), b"x" * 300]], object)


def table(rows: int = 40, columns: int = 70) -> np.ndarray:
    """The tensor that is saved in parts."""
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)


def small(i: int) -> np.ndarray:
    """One of many small tensors."""
    return np.array([i, -i], np.int32)


def _save(tf: Any, name: str, make: Any, **options: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variables = make()
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver(variables, **options)
        saver.save(session, str(TARGET / name), write_meta_graph=False, write_state=False)


def _types(tf: Any) -> dict[str, Any]:
    made = {
        name: tf.Variable(numbers(getattr(tf, name).as_numpy_dtype), name=name) for name in TYPES
    }
    made["string"] = tf.Variable(strings(), name="string")
    made["string_scalar"] = tf.Variable(b"hello", name="string_scalar")
    made["scalar"] = tf.Variable(2.5, name="scalar")
    made["empty"] = tf.Variable(np.zeros((0, 4), np.float32), name="empty")
    return made


#: The types that V1 files hold.
V1_TYPES = (
    *("bool", "float32", "float64", "complex64", "complex128"),
    *("int8", "int16", "int32", "int64", "uint8"),
)


def _v1_types(tf: Any) -> dict[str, Any]:
    made = {
        name: tf.Variable(numbers(getattr(tf, name).as_numpy_dtype), name=name) for name in V1_TYPES
    }
    made["string"] = tf.Variable(strings(), name="string")
    made["scalar"] = tf.Variable(2.5, name="scalar")
    return made


def _partitioned(tf: Any) -> list[Any]:
    rows = tf.get_variable(
        "rows",
        initializer=tf.constant(table()),
        partitioner=tf.fixed_size_partitioner(3),
        use_resource=True,
    )
    columns = tf.get_variable(
        "columns",
        initializer=tf.constant(table()),
        partitioner=tf.fixed_size_partitioner(2, axis=1),
        use_resource=True,
    )
    words = tf.get_variable(
        "words",
        initializer=tf.constant([b"a", b"bc", b"", b"def"]),
        partitioner=tf.fixed_size_partitioner(2),
        use_resource=True,
    )
    return [rows, columns, words]


def main() -> None:
    """Write all files."""
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    TARGET.mkdir(parents=True, exist_ok=True)
    _save(tf, "types", lambda: _types(tf))
    _save(tf, "partitioned", lambda: _partitioned(tf))
    _save(
        tf,
        "many",
        lambda: [tf.Variable(small(i), name=f"layer_{i // 10}/w{i:03d}") for i in range(MANY)],
    )
    _save(
        tf,
        "sharded",
        lambda: [_on(tf, "/cpu:0", "first", 1.0), _on(tf, "/cpu:0", "second", 2.0)],
        sharded=True,
    )
    with tf.Graph().as_default():
        _model(tf)
    old = {"write_version": tf.train.SaverDef.V1}
    _save(tf, "v1", lambda: [tf.Variable(1.0, name="v")], **old)
    _save(tf, "v1_types", lambda: _v1_types(tf), **old)
    _save(tf, "v1_partitioned", lambda: _partitioned(tf)[:2], **old)
    _save(
        tf,
        "v1_sharded",
        lambda: [_on(tf, "/cpu:0", "first", 1.0), _on(tf, "/cpu:0", "second", 2.0)],
        sharded=True,
        **old,
    )


def _model(tf: Any) -> None:
    """A trained graph with its meta graph: old and resource variables, a partition, two shards."""
    tf.set_random_seed(1)
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    old = tf.get_variable("old", initializer=np.full((4, 3), 0.5, np.float32), use_resource=False)
    parts = tf.get_variable(
        "parts",
        initializer=tf.constant(np.arange(6, dtype=np.float32).reshape(3, 2)),
        partitioner=tf.fixed_size_partitioner(2),
        use_resource=True,
    )
    y = tf.identity(tf.matmul(tf.matmul(x, old), parts), name="y")
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(y * y), step, name="train")
    saver = tf.train.Saver(sharded=True, max_to_keep=3)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {x: np.ones((2, 4), np.float32)})
        saver.save(session, str(TARGET / "model"), write_state=False)
        for name in ("before", "after"):
            np.save(TARGET / f"model_{name}.npy", session.run(y, {x: np.eye(4, dtype=np.float32)}))
            session.run(train, {x: np.ones((2, 4), np.float32)})


def _on(tf: Any, device: str, name: str, value: float) -> Any:
    with tf.device(device):
        return tf.Variable([value, -value], name=name)


if __name__ == "__main__":
    sys.exit(main())

"""Write ``tests/golden/graphs/``: inference graphs of real TensorFlow with inputs and results.

    PEER_PYTHON tools/make_graph_goldens.py            write the goldens
    PEER_PYTHON tools/make_graph_goldens.py --run DIR  run each NAME.pb of DIR on NAME.in.npz

Runs under an interpreter that has TensorFlow 2.21. Each golden is NAME.pb (a GraphDef) and
NAME.npz: ``in/<tensor>`` are the feeds, ``out/<tensor>`` the results. The second form runs graphs
that Headrace wrote, and stores what TensorFlow computes in NAME.out.npz. The signatures of
TensorFlow's ops go to ``tests/golden/op_definitions.pb.gz``.
"""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as peer

OUT = Path(__file__).resolve().parent.parent / "tests" / "golden" / "graphs"
tf = peer.compat.v1
Feeds = dict[str, np.ndarray]
PROGRAMS: dict[str, Callable[[], tuple[Feeds, list[str]]]] = {}


def program(function: Callable[[], tuple[Feeds, list[str]]]) -> Callable[[], Any]:
    PROGRAMS[function.__name__] = function
    return function


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@program
def mlp():
    x = tf.placeholder(tf.float32, [None, 8], "x")
    hidden = tf.nn.relu(tf.matmul(x, values(8, 6, seed=1)) + values(6, seed=2))
    logits = tf.nn.xw_plus_b(hidden, values(6, 3, seed=3), values(3, seed=4))
    tf.nn.softmax(logits, name="y")
    tf.argmax(logits, 1, name="label")
    return {"x:0": values(5, 8)}, ["y:0", "label:0"]


@program
def convnet():
    x = tf.placeholder(tf.float32, [None, 12, 10, 2], "x")
    y = tf.nn.conv2d(x, values(3, 3, 2, 4, seed=1), strides=[1, 2, 1, 1], padding="SAME")
    y = tf.nn.max_pool(tf.nn.relu(tf.nn.bias_add(y, values(4, seed=2))), 2, 2, "VALID")
    y = tf.nn.depthwise_conv2d(y, values(2, 2, 4, 2, seed=3), [1, 1, 1, 1], "SAME")
    y = tf.nn.avg_pool(y, 2, 1, "SAME")
    y = tf.reshape(y, [-1, 3 * 5 * 8])
    tf.tanh(tf.matmul(y, values(120, 3, seed=4)), name="y")
    return {"x:0": values(2, 12, 10, 2)}, ["y:0"]


@program
def frozen_batch_norm():
    """Variables and batch normalisation, frozen by TensorFlow's own tool."""
    x = tf.placeholder(tf.float32, [None, 6, 6, 3], "x")
    w = tf.get_variable("w", initializer=values(3, 3, 3, 4, seed=1), use_resource=True)
    y = tf.nn.conv2d(x, w, padding="VALID")
    scale = tf.get_variable("scale", initializer=values(4, seed=2), use_resource=True)
    y, _, _ = tf.nn.fused_batch_norm(
        y, scale, values(4, seed=3), values(4, seed=4), np.abs(values(4, seed=5)), is_training=False
    )
    y = tf.nn.batch_normalization(
        y, values(4, seed=6), np.abs(values(4, seed=7)), values(4, seed=8), None, 1e-3
    )
    tf.reduce_mean(y, [1, 2], name="y")
    return {"x:0": values(2, 6, 6, 3)}, ["y:0"]


@program
def lstm_unrolled():
    x = tf.placeholder(tf.float32, [2, 4, 3], "x")
    kernel, bias = tf.constant(values(8, 20, seed=1)), tf.constant(values(20, seed=2))
    c = h = tf.zeros([2, 5])
    for step in tf.unstack(x, axis=1):
        gates = tf.nn.bias_add(tf.matmul(tf.concat([step, h], 1), kernel), bias)
        i, j, f, o = tf.split(gates, 4, axis=1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
    tf.stack([c, h], axis=1, name="y")
    return {"x:0": values(2, 4, 3)}, ["y:0"]


@program
def constants():
    """Constants of many types, short and long, with and without repeated elements."""
    outs = []
    for dtype in ("float16", "float64", "int8", "uint8", "int16", "int64", "bool", "complex64"):
        array = (np.arange(6) % 5).reshape(2, 3).astype(dtype)
        outs.append(tf.identity(tf.constant(array), name=f"of_{dtype}").name)
    outs.append(
        tf.identity(
            tf.constant(np.array([b"a", b"\xff\x00", b"\xc3\xa9"], object)), name="of_string"
        ).name
    )
    outs.append(tf.identity(tf.zeros([3, 0]), name="of_nothing").name)
    outs.append(tf.identity(tf.constant(2.5, shape=[4, 4]), name="of_fill").name)
    outs.append(tf.identity(tf.constant([np.nan, np.inf, -0.0]), name="of_odd").name)
    bf = tf.cast(tf.constant([1.5, 2.25], tf.bfloat16), tf.float32, name="of_bfloat16")
    return {}, [*outs, bf.name]


@program
def slicing():
    x = tf.placeholder(tf.float32, [None, 5, 4], "x")
    outs = [x[:, 1:-1, ::2], x[..., tf.newaxis, -1], tf.transpose(x, [2, 0, 1])]
    outs += [tf.pad(x, [[0, 0], [1, 2], [0, 1]], constant_values=3.0), tf.reverse(x, [1])]
    outs += [tf.gather(x, [3, 0], axis=1), tf.tile(x[0], [2, 1]), tf.one_hot([1, 3], 4)]
    return {"x:0": values(3, 5, 4)}, [t.name for t in outs]


@program
def reductions():
    x = tf.placeholder(tf.float32, [None, None], "x")
    outs = [tf.reduce_sum(x, 0), tf.reduce_max(x, 1, keepdims=True), tf.reduce_prod(x)]
    outs += [tf.reduce_any(x > 1, 1), tf.reduce_logsumexp(x, 0), tf.argmin(x, 0), tf.cumsum(x, 1)]
    outs += [tf.where(x > 0, x, -x), tf.clip_by_value(x, -0.5, 0.5), tf.size(x), tf.norm(x)]
    return {"x:0": values(4, 3)}, [t.name for t in outs]


@program
def embedding():
    ids = tf.placeholder(tf.int64, [None, None], "ids")
    table = tf.get_variable("table", initializer=values(10, 4, seed=1), use_resource=True)
    found = tf.nn.embedding_lookup(table, ids)
    mask = tf.cast(tf.not_equal(ids, 0), tf.float32)[:, :, None]
    tf.divide(tf.reduce_sum(found * mask, 1), tf.reduce_sum(mask, 1), name="y")
    return {"ids:0": np.array([[1, 9, 0], [3, 3, 2]])}, ["y:0"]


@program
def attention():
    x = tf.placeholder(tf.float32, [2, 5, 8], "x")
    q, k, v = (tf.einsum("btd,dk->btk", x, values(8, 4, seed=s)) for s in (1, 2, 3))
    weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 2.0)
    mean, var = tf.nn.moments(tf.matmul(weights, v), [-1], keepdims=True)
    tf.multiply(tf.matmul(weights, v) - mean, tf.rsqrt(var + 1e-6), name="y")
    return {"x:0": values(2, 5, 8)}, ["y:0"]


@program
def conditional():
    """If over functions that capture tensors, both branches taken in turn by the batch."""
    x = tf.placeholder(tf.float32, [3], "x")
    scale = tf.constant(values(3, seed=1), name="scale")
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: x * scale, lambda: (x - scale) * 2.0, name="choice")
    tf.identity(y, name="y")
    return {"x:0": values(3)}, ["y:0"]


@program
def loop():
    """While with a captured matrix and a nested If."""
    x = tf.placeholder(tf.float32, [2, 2], "x")
    n = tf.placeholder(tf.int32, [], "n")
    w = tf.constant(values(2, 2, seed=1), name="w")

    def body(i, state):
        turned = tf.cond(tf.equal(i % 2, 0), lambda: tf.matmul(state, w), lambda: tf.tanh(state))
        return i + 1, turned

    _, y = tf.while_loop(lambda i, _: i < n, body, [0, x], name="steps")
    tf.identity(y, name="y")
    return {"x:0": values(2, 2), "n:0": np.int32(5)}, ["y:0"]


@program
def function_calls():
    """tf.function: a call of a function that calls another."""

    @peer.function
    def inner(a, b):
        return a * b + 1.0, a - b

    @peer.function
    def outer(a):
        total, difference = inner(a, a + 2.0)
        return {"total": total, "difference": tf.square(difference)}

    x = tf.placeholder(tf.float32, [None], "x")
    found = outer(x)
    tf.identity(found["total"], name="total")
    tf.identity(found["difference"], name="difference")
    return {"x:0": values(4)}, ["total:0", "difference:0"]


@program
def reference_variables():
    """A graph of old: reference variables, assignments, a training step."""
    x = tf.placeholder(tf.float32, [None, 2], "x")
    w = tf.get_variable("w", initializer=values(2, 1, seed=1), use_resource=False)
    count = tf.get_variable("count", initializer=np.int32(0), use_resource=False)
    y = tf.matmul(x, w, name="y")
    loss = tf.reduce_mean(tf.square(y - 1.0), name="loss")
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="step")
    with tf.control_dependencies([step]):
        tf.identity(tf.assign_add(count, 1), name="counted")
    tf.global_variables_initializer()
    return {"x:0": values(3, 2)}, ["init", "y:0", "counted:0", "counted:0", "y:0", "count:0"]


def write() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    tf.enable_control_flow_v2()
    for name, build in PROGRAMS.items():
        with tf.Graph().as_default() as graph:
            feeds, fetches = build()
            definition = graph.as_graph_def()
            results = {}
            with tf.Session() as session:
                if name != "reference_variables":
                    session.run(tf.global_variables_initializer())
                for i, fetch in enumerate(fetches):
                    value = session.run(fetch, feeds if i or ":" in fetch else None)
                    if value is not None:
                        results[f"out/{i}/{fetch}"] = _stored(value)
                    else:
                        results[f"run/{i}/{fetch}"] = np.zeros(0)
                if name in ("frozen_batch_norm", "embedding"):
                    names = [f.partition(":")[0] for f in fetches]
                    definition = tf.graph_util.convert_variables_to_constants(
                        session, definition, names
                    )
        _unlower(definition)
        (OUT / f"{name}.pb").write_bytes(definition.SerializeToString(deterministic=True))
        given = {f"in/{k}": v for k, v in feeds.items()}
        np.savez(OUT / f"{name}.npz", **given, **results)
        print(f"{name}: {len(definition.node)} nodes, {len(definition.library.function)} functions")


def write_training_checkpoint() -> None:
    """A meta graph with reference variables and a saver, and a checkpoint of a few steps."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 3], "x")
        w = tf.get_variable("w", initializer=values(3, 2, seed=1), use_resource=False)
        b = tf.get_variable("b", initializer=np.zeros(2, np.float32), use_resource=False)
        y = tf.add(tf.matmul(x, w), b, name="y")
        loss = tf.reduce_mean(tf.square(y - 1.0))
        step = tf.train.get_or_create_global_step()
        train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, global_step=step)
        for element in (y, train):
            tf.add_to_collection("ends", element)
        saver = tf.train.Saver()
        batch = values(4, 3, seed=5)
        results = {"in/x:0": batch}
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(train, {x: batch})
            saver.save(session, str(OUT / "training" / "model"), global_step=3)
            results["saved"] = session.run(y, {x: batch})
            for _ in range(2):
                session.run(train, {x: batch})
            results["two_steps_later"] = session.run(y, {x: batch})
        np.savez(OUT / "training" / "results.npz", **results)
        (OUT / "training" / "checkpoint").unlink()


def write_op_definitions() -> None:
    """The signatures of all ops of TensorFlow, without their descriptions."""
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session

    buffer = pywrap_tf_session.TF_GetAllOpList()
    ops = op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(buffer))
    for op in ops.op:
        op.ClearField("summary")
        op.ClearField("description")
        for part in (*op.input_arg, *op.output_arg, *op.attr):
            part.ClearField("description")
    data = gzip.compress(ops.SerializeToString(deterministic=True), 9, mtime=0)
    (OUT.parent / "op_definitions.pb.gz").write_bytes(data)


def _stored(value: Any) -> np.ndarray:
    """Strings as rows of numbers: an npz without pickle holds no objects."""
    array = np.asarray(value)
    if array.dtype != object:
        return array
    return np.array([list(v) + [-1] * (8 - len(v)) for v in array.ravel()], np.int16)


def _unlower(definition: Any) -> None:
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    for node in nodes:
        if "_lower_using_switch_merge" in node.attr:
            node.attr["_lower_using_switch_merge"].b = False


def run(folder: Path) -> None:
    for path in sorted(folder.glob("*.pb")):
        definition = tf.GraphDef.FromString(path.read_bytes())
        given = np.load(folder / f"{path.stem}.in.npz")
        feeds = {k[3:]: given[k] for k in given.files if k.startswith("in/")}
        fetches = [k[4:] for k in given.files if k.startswith("out/")]
        with tf.Graph().as_default():
            try:
                tf.import_graph_def(definition, name="")
                with tf.Session() as session:
                    found = session.run(fetches, feeds)
            except Exception as error:
                (folder / f"{path.stem}.error").write_text(str(error))
                continue
        results = {f"out/{k}": _stored(v) for k, v in zip(fetches, found, strict=True)}
        np.savez(folder / f"{path.stem}.out.npz", **results)


if __name__ == "__main__":
    tf.disable_eager_execution()
    if sys.argv[1:2] == ["--run"]:
        run(Path(sys.argv[2]))
    else:
        write()
        write_training_checkpoint()
        write_op_definitions()

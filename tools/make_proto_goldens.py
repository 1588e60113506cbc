"""Write ``tests/golden/proto/*.pb`` with real TensorFlow.

    PEER_PYTHON tools/make_proto_goldens.py

Runs under an interpreter that has TensorFlow 2.21. ``tensors.pb`` is a GraphDef with one Const per
case of tests/graph/tensor_proto_cases.py; the other files are one message each, named by its type.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as peer

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "tests" / "golden" / "proto"
tf = peer.compat.v1


def write(name: str, message: Any) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{name}.pb").write_bytes(message.SerializeToString(deterministic=True))


def tensors() -> Any:
    sys.path.insert(0, str(ROOT / "tests" / "graph"))
    from tensor_proto_cases import CASES

    graph = tf.GraphDef()
    for case in CASES:
        dtype = None if case.dtype is None else tf.as_dtype(case.dtype)
        proto = tf.make_tensor_proto(case.values, dtype, case.shape)
        node = graph.node.add(name=case.name, op="Const")
        node.attr["dtype"].type = proto.dtype
        node.attr["value"].tensor.CopyFrom(proto)
    return graph


def training_graph() -> tuple[Any, Any]:
    """A graph and a meta graph with variables, collections, functions and control edges."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 3], "x")
        w = tf.get_variable("w", initializer=np.ones([3, 2], np.float32), use_resource=False)
        with tf.device("/job:ps/task:1"):
            y = tf.matmul(x, w, name="y")
        total = tf.cond(tf.reduce_sum(y) > 0, lambda: y * 2, lambda: y, name="choice")
        with tf.control_dependencies([total]):
            tf.split(tf.identity(total), [1, 1], axis=1, name="parts")
        train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.square(y)))
        tf.add_to_collection("updates", train)
        tf.add_to_collection("sizes", 7)
        tf.add_to_collection("rates", 0.5)
        saver = tf.train.Saver()
        signature = tf.saved_model.build_signature_def(
            {"x": tf.saved_model.build_tensor_info(x)}, {"y": tf.saved_model.build_tensor_info(y)}
        )
        meta = tf.train.export_meta_graph(saver_def=saver.as_saver_def())
        meta.signature_def["serve"].CopyFrom(signature)
        return graph.as_graph_def(), meta


def options() -> Any:
    return tf.ConfigProto(
        allow_soft_placement=True,
        log_device_placement=True,
        device_count={"CPU": 2, "GPU": 0},
        inter_op_parallelism_threads=3,
        gpu_options=tf.GPUOptions(allow_growth=True, per_process_gpu_memory_fraction=0.3),
        graph_options=tf.GraphOptions(
            optimizer_options=tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0)
        ),
        cluster_def=peer.train.ClusterSpec({"ps": ["a:1"], "worker": {2: "b:2"}}).as_cluster_def(),
    )


def trace() -> Any:
    metadata = tf.RunMetadata()
    with tf.Graph().as_default(), tf.Session() as session:
        product = tf.matmul(tf.ones([2, 2]), tf.random_normal([2, 2], seed=1), name="product")
        full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(product, options=full, run_metadata=metadata)
    del metadata.partition_graphs[:]
    return metadata


def event() -> Any:
    from tensorflow.core.util import event_pb2

    with tf.Graph().as_default(), tf.Session() as session:
        values = tf.constant([1.0, 2.0, 2.5])
        parts = [tf.summary.scalar("loss", 0.5), tf.summary.histogram("values", values)]
        summary = tf.Summary.FromString(session.run(tf.summary.merge(parts)))
    return event_pb2.Event(wall_time=12.5, step=3, summary=summary)


def example() -> Any:
    feature = {
        "ints": tf.train.Feature(int64_list=tf.train.Int64List(value=[1, -2])),
        "floats": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5])),
        "bytes": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"a\0"])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature))


def main() -> None:
    graph, meta = training_graph()
    write("tensors", tensors())
    write("GraphDef", graph)
    write("MetaGraphDef", meta)
    write("ConfigProto", options())
    write("RunMetadata", trace())
    write("Event", event())
    write("Example", example())


if __name__ == "__main__":
    main()

"""Which operations mixed precision narrows: random graphs, rewritten by TensorFlow's grappler.

    .peer-venv/bin/python tools/mixed_types.py

writes `tests/golden/mixed_types.json`. `tests/passes/test_mixed_precision.py` builds the same
graphs here and compares the type of each operation.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parent.parent / "tests" / "golden" / "mixed_types.json"
#: The rewrite that TensorFlow makes on CPUs.
OPTION = "auto_mixed_precision_onednn_bfloat16"
GRAPHS, OPERATIONS = 40, 30
#: Of the allow, infer, deny and clear lists, and of none: name of a function, number of tensors.
FUNCTIONS = (
    *(("matmul", 2), ("matmul", 2), ("einsum", 2), ("add", 2), ("multiply", 2), ("subtract", 2)),
    *(("add_n", 2), ("tanh", 1), ("sigmoid", 1), ("softmax", 1), ("log_softmax", 1), ("elu", 1)),
    *(("bias_add", 1), ("exp", 1), ("pow", 2), ("sum", 1), ("mean", 1), ("square", 1), ("relu", 1)),
    *(
        ("identity", 1),
        ("transpose", 1),
        ("abs", 1),
        ("negative", 1),
        ("maximum", 2),
        ("select", 2),
    ),
    *(("pack", 2), ("concat", 2), ("reshape", 1), ("stop_gradient", 1), ("sin", 1), ("cast", 1)),
)


def build(tf: Any, seed: int) -> tuple[Any, Any, list[str]]:
    """A graph, what is fetched of it, and the names of its operations.

    Tensors are 4 x 4.
    """
    chosen = random.Random(seed)
    graph = tf.Graph()
    names = []
    with graph.as_default():
        known = [tf.placeholder(tf.float32, [4, 4], name=f"x{i}") for i in range(2)]
        bias = tf.constant([1.0, 2.0, 3.0, 4.0], name="bias")
        used = set()
        for i in range(OPERATIONS):
            function, count = chosen.choice(FUNCTIONS)
            # Mostly what came last: chains are longer than graphs are wide.
            args = [chosen.choice(known[-3:]) for _ in range(count)]
            used.update(a.op.name for a in args)
            names.append(f"n{i}_{function}")
            known.append(_apply(tf, function, args, bias, names[-1]))
        fetch = tf.identity(tf.add_n([k for k in known if k.op.name not in used]), name="fetch")
    return graph, fetch, names


def _apply(tf: Any, function: str, args: list[Any], bias: Any, name: str) -> Any:
    x = args[0]
    special = {
        "einsum": lambda: tf.einsum("ij,jk->ik", *args, name=name),
        "add_n": lambda: tf.add_n(args, name=name),
        "softmax": lambda: tf.nn.softmax(x, name=name),
        "log_softmax": lambda: tf.nn.log_softmax(x, name=name),
        "elu": lambda: tf.nn.elu(x, name=name),
        "relu": lambda: tf.nn.relu(x, name=name),
        "bias_add": lambda: tf.nn.bias_add(x, bias, name=name),
        "sum": lambda: tf.tile(tf.reduce_sum(x, 0, keepdims=True, name=name), [4, 1]),
        "mean": lambda: tf.tile(tf.reduce_mean(x, 0, keepdims=True, name=name), [4, 1]),
        "select": lambda: tf.where_v2(tf.greater(x, args[-1]), x, args[-1], name=name),
        "pack": lambda: tf.stack(args, name=name)[0],
        "concat": lambda: tf.concat(args, 0, name=name)[:4],
        "reshape": lambda: tf.reshape(x, [4, 4], name=name),
        "cast": lambda: tf.cast(tf.cast(x, tf.int32), tf.float32, name=name),
    }
    return special[function]() if function in special else getattr(tf, function)(*args, name=name)


def _rewritten(tf: Any, graph: Any, fetch: Any) -> Any:
    from tensorflow.core.protobuf import (  # type: ignore[import-not-found,unused-ignore]
        config_pb2,
        meta_graph_pb2,
    )
    from tensorflow.python.grappler import (  # type: ignore[import-not-found,unused-ignore]
        tf_optimizer,
    )

    config = config_pb2.ConfigProto()
    options = config.graph_options.rewrite_options
    options.min_graph_nodes = -1
    for name in ("constant_folding", "arithmetic_optimization", "shape_optimization", "remapping"):
        setattr(options, name, options.OFF)
    for name in ("layout_optimizer", "dependency_optimization", "common_subgraph_elimination"):
        setattr(options, name, options.OFF)
    options.disable_model_pruning = True
    setattr(options, OPTION, options.ON)
    meta = tf.train.export_meta_graph(graph=graph, graph_def=graph.as_graph_def())
    assert isinstance(meta, meta_graph_pb2.MetaGraphDef)
    meta.collection_def["train_op"].node_list.value.append(fetch.op.name)
    return tf_optimizer.OptimizeGraph(config, meta)


def main() -> None:
    """Write the names of the operations that are narrow."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,unused-ignore]

    tf.disable_v2_behavior()
    narrow = []
    for seed in range(GRAPHS):
        graph, fetch, names = build(tf, seed)
        nodes = {n.name: n for n in _rewritten(tf, graph, fetch).node}
        kinds = {n: {a.type for a in nodes[n].attr.values()} for n in names if n in nodes}
        narrow.append([n for n, types in kinds.items() if tf.bfloat16.as_datatype_enum in types])
    OUT.write_text(json.dumps(narrow, separators=(",", ":")) + "\n")
    print(sum(map(len, narrow)))


if __name__ == "__main__":
    main()

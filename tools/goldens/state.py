"""State family: variables, assignment, scatter updates, order by control edges, initialisers."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden


def _matrix(tf: Any, name: str) -> Any:
    initial = np.arange(8, dtype=np.float32).reshape(4, 2)
    return tf.get_variable(name, initializer=initial)


@golden(with_session=True)
def assign(tf: Any, session: Any) -> dict[str, Any]:
    v = tf.Variable([1.0, 2.0])
    ready = tf.is_variable_initialized(v)
    add, sub = tf.assign_add(v, [10.0, 20.0]), tf.assign_sub(v, [0.5, 0.5])
    results = {"ready_before": session.run(ready)}
    session.run(tf.global_variables_initializer())
    results["ready_after"] = session.run(ready)
    results["initial"] = session.run(v)
    results["assign_add_value"] = session.run(add)
    results["after_add"] = session.run(v)
    results["assign_sub_value"] = session.run(sub)
    results["assign_value"] = session.run(tf.assign(v, [7.0, 8.0]))
    results["method"] = session.run(v.assign_add([1.0, 1.0]))
    results["final"] = session.run(v)
    return results


@golden(with_session=True)
def scatter(tf: Any, session: Any) -> dict[str, Any]:
    rows = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    ids = [2, 0, 2]
    results = {}
    for name in ["add", "sub", "mul", "div", "min", "max"]:
        v = _matrix(tf, name)
        session.run(v.initializer)
        session.run(getattr(tf, f"scatter_{name}")(v, ids, rows))
        results[name] = session.run(v)
    v = _matrix(tf, "update")
    session.run(v.initializer)
    session.run(tf.scatter_update(v, [3, 1], rows[:2]))
    results["update"] = session.run(v)
    session.run(tf.scatter_add(v, 0, [100.0, 200.0]))
    results["scalar_index"] = session.run(v)
    session.run(tf.scatter_update(v, [0, 2], 9.0))
    results["scalar_update"] = session.run(v)
    return results


@golden(with_session=True)
def scatter_nd(tf: Any, session: Any) -> dict[str, Any]:
    v = _matrix(tf, "v")
    session.run(v.initializer)
    results = {}
    session.run(tf.scatter_nd_add(v, [[0, 1], [3, 0], [0, 1]], [1.0, 2.0, 3.0]))
    results["add_duplicates"] = session.run(v)
    session.run(tf.scatter_nd_sub(v, [[1]], [[5.0, 6.0]]))
    results["sub_row"] = session.run(v)
    session.run(tf.scatter_nd_update(v, [[2, 0], [2, 1]], [-1.0, -2.0]))
    results["update"] = session.run(v)
    return results


@golden(with_session=True)
def order(tf: Any, session: Any) -> dict[str, Any]:
    v = tf.Variable(1.0)
    before = v.read_value()
    with tf.control_dependencies([before]):
        double = tf.assign(v, v.read_value() * 2)
    with tf.control_dependencies([double]):
        after = tf.identity(v.read_value())
    with tf.control_dependencies([after]):
        plus = tf.assign_add(v, 3.0)
    with tf.control_dependencies([plus]):
        last = v.read_value()
    session.run(tf.global_variables_initializer())
    first = session.run([before, after, last])
    second = session.run([before, after, last])
    grouped = tf.group(tf.assign_add(v, 1.0), tf.assign_add(v, 10.0))
    session.run(grouped)
    both = tf.tuple([v + 1, v + 2])
    return {
        "first": first,
        "second": second,
        "after_group": session.run(v),
        "tuple": session.run(both),
    }


@golden(with_session=True)
def count_up_to(tf: Any, session: Any) -> dict[str, Any]:
    v = tf.Variable(0)
    step = tf.count_up_to(v, 3)
    session.run(v.initializer)
    values = [session.run(step) for _ in range(3)]
    try:
        session.run(step)
        ended = False
    except tf.errors.OutOfRangeError:
        ended = True
    return {"values": values, "ended": ended, "left_at": session.run(v)}


@golden(with_session=True)
def sharing(tf: Any, session: Any) -> dict[str, Any]:
    with tf.variable_scope("a"):
        first = tf.get_variable("w", [2], initializer=tf.constant_initializer([1.0, 2.0]))
    with tf.variable_scope("a", reuse=True):
        second = tf.get_variable("w", [2])
    with tf.variable_scope("b", reuse=tf.AUTO_REUSE, initializer=tf.ones_initializer()):
        third = tf.get_variable("w", [3])
        fourth = tf.get_variable("w", [3])
    derived = tf.Variable(first.initial_value * 3, name="derived")
    session.run(tf.global_variables_initializer())
    session.run(first.assign([5.0, 6.0]))
    session.run(third.assign_add([1.0, 2.0, 3.0]))
    return {
        "reused": session.run(second),
        "auto_reused": session.run(fourth),
        "derived": session.run(derived),
        "names": [v.name for v in tf.global_variables()],
    }


@golden(with_session=True)
def initializers(tf: Any, session: Any) -> dict[str, Any]:
    made = {
        "zeros": tf.get_variable("zeros", [2, 3], initializer=tf.zeros_initializer()),
        "ones_int": tf.get_variable("ones", [2], tf.int32, initializer=tf.ones_initializer()),
        "constant": tf.get_variable("constant", [2, 2], initializer=tf.constant_initializer(0.5)),
        "constant_list": tf.get_variable(
            "list", [2, 2], initializer=tf.constant_initializer([1.0, 2.0, 3.0, 4.0])
        ),
        "from_array": tf.get_variable("array", initializer=np.float64([1.5, 2.5])),
        "identity": tf.get_variable("eye", [3, 3], initializer=tf.initializers.identity(2.0)),
        "default_int": tf.get_variable("default", [2], tf.int32),
    }
    session.run(tf.global_variables_initializer())
    return dict(session.run(made))


@golden(with_session=True)
def partitioned(tf: Any, session: Any) -> dict[str, Any]:
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(3)):
        table = tf.get_variable("t", [7, 2], initializer=tf.zeros_initializer())
    parts = list(table)
    for part, values in zip(parts, np.split(np.arange(14.0).reshape(7, 2), [3, 5]), strict=True):
        session.run(part.assign(values))
    return {
        "rows": [part.shape.as_list()[0] for part in parts],
        "whole": session.run(tf.convert_to_tensor(table)),
        "lookup": session.run(tf.nn.embedding_lookup(table, [0, 6, 3], partition_strategy="div")),
    }

"""Control-flow family: cond, case, while_loop, functional loops, TensorArray; their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden


@golden
def cond(tf: Any) -> dict[str, Any]:
    p = tf.placeholder(tf.bool, [])
    x = tf.constant([2.0, 3.0])
    y = tf.cond(p, lambda: x * x, lambda: -x)
    both = tf.cond(p, lambda: [x, x + 1], lambda: [x * 2, x * 3])
    nested = tf.cond(p, lambda: tf.cond(x[0] > 5, lambda: x * 10, lambda: x * 20), lambda: x)
    (gradient,) = tf.gradients(y, x)
    yes, no = {p: True}, {p: False}
    return {
        "true": (y, yes),
        "false": (y, no),
        "gradient_true": (gradient, yes),
        "gradient_false": (gradient, no),
        "list_true": (both[1], yes),
        "list_false": (both[1], no),
        "nested_true": (nested, yes),
        "nested_gradient": (tf.gradients(nested, x)[0], yes),
    }


@golden
def case(tf: Any) -> dict[str, Any]:
    n = tf.placeholder(tf.int32, [])
    x = tf.constant(3.0)
    y = tf.case([(n < 2, lambda: x * 2), (n < 5, lambda: x * x)], default=lambda: tf.negative(x))
    gradient = tf.gradients(y, x)[0]
    results: dict[str, Any] = {}
    for value in (1, 3, 9):
        feed = {n: value}
        results |= {f"value_{value}": (y, feed), f"gradient_{value}": (gradient, feed)}
    return results


@golden
def while_loop(tf: Any) -> dict[str, Any]:
    n = tf.placeholder(tf.int32, [])
    x = tf.constant([1.5, 0.5])
    _, y = tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y * x), [0, tf.ones([2])])
    grown = tf.while_loop(
        lambda i, _: i < 3,
        lambda i, rows: (i + 1, tf.concat([rows, rows[:1] + tf.cast(i, tf.float32)], 0)),
        [0, tf.zeros([1, 2])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])],
    )[1]
    outer = tf.while_loop(
        lambda i, _: i < 3,
        lambda i, s: (
            i + 1,
            s + tf.while_loop(lambda j, _: j < i, lambda j, t: (j + 1, t + x[0]), [0, 0.0])[1],
        ),
        [0, 0.0],
    )[1]
    limited = tf.while_loop(lambda i: i < 100, lambda i: i + 1, [0], maximum_iterations=7)
    gradient = tf.gradients(y, x)[0]
    second = tf.gradients(gradient, x)[0]
    return {
        "power_5": (y, {n: 5}),
        "gradient_5": (gradient, {n: 5}),
        "second_gradient_5": (second, {n: 5}),
        "power_0": (y, {n: 0}),
        "gradient_0": (gradient, {n: 0}),
        "grown": grown,
        "nested": outer,
        "nested_gradient": tf.gradients(outer, x)[0],
        "maximum_iterations": limited,
    }


@golden
def while_with_cond(tf: Any) -> dict[str, Any]:
    x = tf.constant(7.0)

    def body(i: Any, s: Any) -> Any:
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: s * x, lambda: s + x)

    y = tf.while_loop(lambda i, _: i < 5, body, [0, tf.constant(1.0)])[1]
    return {"value": y, "gradient": tf.gradients(y, x)[0]}


@golden
def functional(tf: Any) -> dict[str, Any]:
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    m = tf.constant(np.arange(6, dtype=np.float32).reshape(3, 2))
    w = tf.constant(0.5)
    scanned = tf.scan(lambda a, e: a * w + e, x)
    mapped = tf.map_fn(lambda e: e * e * w, x)
    folded = tf.foldl(lambda a, e: a * w + e, x)
    pair = tf.map_fn(lambda t: (t[0] + t[1], t[0] * t[1]), (x, x * 2))
    return {
        "scan": scanned,
        "scan_initializer": tf.scan(lambda a, e: a + e, m, initializer=tf.constant([10.0, 20.0])),
        "scan_reverse": tf.scan(lambda a, e: a * w + e, x, reverse=True),
        "scan_structure": tf.scan(lambda a, e: (a[1], a[0] + a[1]), x, (0.0, 1.0))[1],
        "scan_gradient": tf.gradients(scanned, x)[0],
        "scan_captured_gradient": tf.gradients(scanned, w)[0],
        "map": mapped,
        "map_gradient": tf.gradients(mapped, [x, w])[1],
        "map_dtype": tf.map_fn(lambda e: tf.cast(e, tf.int32) + 1, x, dtype=tf.int32),
        "map_pair": pair[1],
        "map_rows": tf.map_fn(tf.reduce_sum, m),
        "foldl": folded,
        "foldl_gradient": tf.gradients(folded, x)[0],
        "foldr": tf.foldr(lambda a, e: a * w + e, x),
        "foldr_initializer": tf.foldr(lambda a, e: a - e, x, 100.0),
    }


@golden
def tensor_array(tf: Any) -> dict[str, Any]:
    x = tf.constant([1.0, 2.0, 3.0])
    ta = tf.TensorArray(tf.float32, size=3)
    for i in range(3):
        ta = ta.write(i, x * float(i + 1))
    stacked = ta.stack()
    rows = tf.TensorArray(tf.float32, size=4, clear_after_read=False)
    rows = rows.unstack(tf.reshape(tf.range(12.0), [4, 3]))  # read here, and in the loop
    pieces = tf.TensorArray(tf.float32, size=2, infer_shape=False)
    pieces = pieces.split(tf.range(5.0), [2, 3])

    def body(i: Any, out: Any) -> Any:
        return i + 1, out.write(i, rows.read(i) * x)

    looped = tf.while_loop(lambda i, _: i < 4, body, [0, tf.TensorArray(tf.float32, size=4)])[
        1
    ].stack()
    growing = tf.TensorArray(tf.float32, size=0, dynamic_size=True, clear_after_read=False)
    growing = growing.write(2, x).write(0, x + 1).write(1, x + 2)
    return {
        "stack": stacked,
        "stack_gradient": tf.gradients(stacked, x)[0],
        "read": rows.read(2),
        "gather": tf.TensorArray(tf.float32, size=4, clear_after_read=False)
        .unstack(tf.reshape(tf.range(12.0), [4, 3]))
        .gather([3, 1]),
        "concat": tf.TensorArray(tf.float32, size=2).unstack(tf.ones([2, 3, 2])).concat(),
        "split": pieces.read(1),
        "loop": looped,
        "loop_gradient": tf.gradients(looped, x)[0],
        "dynamic": growing.stack(),
        "dynamic_size": growing.size(),
    }


@golden(with_session=True)
def effects_in_branches(tf: Any, session: Any) -> dict[str, Any]:
    v = tf.Variable(1.0)
    p = tf.placeholder(tf.bool, [])
    step = tf.cond(p, lambda: tf.assign_add(v, 10.0), lambda: tf.assign_sub(v, 1.0))
    loop = tf.while_loop(
        lambda i: i < 4, lambda i: i + tf.cast(tf.assign_add(v, 0.5), tf.int32) * 0 + 1, [0]
    )
    session.run(tf.global_variables_initializer())
    return {
        "true": session.run(step, {p: True}),
        "false": session.run(step, {p: False}),
        "loop": session.run(loop),
        "final": session.run(v),
    }


@golden
def control(tf: Any) -> dict[str, Any]:
    x = tf.constant([1.0, -2.0])
    with tf.control_dependencies([tf.assert_less(x, 5.0), tf.no_op()]):
        checked = tf.identity(x)
    printed = tf.py_func(lambda a: np.float32(a * 2), [x], tf.float32)
    return {
        "checked": checked,
        "py_func": printed,
        "identity_n": tf.identity_n([x, x + 1])[1],
        "check_numerics": tf.check_numerics(x, "finite"),
        "group_then": tf.tuple([x, x * 2], control_inputs=[tf.no_op()])[1],
    }

"""Small programs of several operations: graphs with their gradients, branches, loops, variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fuzzing.draws import Call, Draw, T
from fuzzing.table import add


def _means(tf: Any, x: Any, y: Any, n: int) -> Any:
    return x - tf.reduce_mean(y, n % 2, keepdims=True)


def _joined(tf: Any, x: Any, y: Any, n: int) -> Any:
    """Two joined and cut apart again, elsewhere."""
    both = tf.concat([x, y], n % 2)
    parts = tf.split(both, 2, n % 2)
    return parts[1] + tf.tanh(parts[0])


def _gathered(tf: Any, x: Any, y: Any, n: int) -> Any:
    rows = tf.shape(x)[0]
    return tf.gather(x, tf.mod(tf.range(rows) * (n + 1), tf.maximum(rows, 1))) + y


def _segments(tf: Any, x: Any, y: Any, n: int) -> Any:
    ids = tf.mod(tf.range(tf.shape(x)[0]), n + 1)
    return tf.gather(tf.unsorted_segment_sum(x, ids, n + 1), ids) - y


def _stitched(tf: Any, x: Any, y: Any, n: int) -> Any:
    places = tf.range(tf.shape(x)[0])
    parts = tf.mod(places, 2)
    return tf.dynamic_stitch(
        tf.dynamic_partition(places, parts, 2), tf.dynamic_partition(tf.sin(x), parts, 2)
    )


def _product(tf: Any, x: Any, y: Any, n: int) -> Any:
    return tf.tanh(tf.matmul(x, tf.matmul(y, x, transpose_a=True)) * 0.1)


def _padded(tf: Any, x: Any, y: Any, n: int) -> Any:
    wide = tf.pad(x, [[1, n], [n, 1]], mode="CONSTANT")
    return wide[:-1] if n == 0 else tf.slice(wide, [1, n], tf.shape(x))


def _stacked(tf: Any, x: Any, y: Any, n: int) -> Any:
    return tf.reduce_max(tf.stack([x, y, -x], axis=n), axis=n)


def _scanned(tf: Any, x: Any, y: Any, n: int) -> Any:
    return tf.cumsum(tf.tanh(x), n % 2, exclusive=n > 1, reverse=n == 1) + y


def _masked(tf: Any, x: Any, y: Any, n: int) -> Any:
    places = tf.where(x > 0.25 * n)
    return tf.scatter_nd(places, tf.gather_nd(y, places), tf.shape(x, out_type=tf.int64))


#: What a step may do with two matrices of one shape and a number of 0 to 2; that shape comes out.
STEPS: dict[str, Callable[[Any, Any, Any, int], Any]] = {
    "tanh": lambda tf, x, y, n: tf.tanh(x),
    "sigmoid": lambda tf, x, y, n: tf.sigmoid(x) * y,
    "softplus": lambda tf, x, y, n: tf.nn.softplus(x) - y,
    "relu": lambda tf, x, y, n: tf.nn.relu(x) + tf.nn.elu(y),
    "leaky_relu": lambda tf, x, y, n: tf.nn.leaky_relu(x, 0.25 * n),
    "exp": lambda tf, x, y, n: tf.exp(tf.tanh(x)),
    "log": lambda tf, x, y, n: tf.log1p(tf.abs(x)),
    "root": lambda tf, x, y, n: tf.sqrt(1.0 + tf.square(tf.sin(x))),
    "power": lambda tf, x, y, n: tf.pow(tf.sigmoid(x), n),
    "product": lambda tf, x, y, n: tf.tanh(0.25 * x * y),
    "quotient": lambda tf, x, y, n: x / (1.0 + tf.abs(y)),
    "modulus": lambda tf, x, y, n: tf.floormod(x, 1.5 + n),
    "greater": lambda tf, x, y, n: tf.maximum(x, y) - tf.minimum(x, 0.5 * y),
    "distance": lambda tf, x, y, n: tf.tanh(tf.squared_difference(x, y)),
    "where": lambda tf, x, y, n: tf.where(x > y, tf.cos(x), y),
    "clip": lambda tf, x, y, n: tf.clip_by_value(x, -1.0, 0.5 + n),
    "softmax": lambda tf, x, y, n: tf.nn.softmax(x, axis=n % 2 - 1) + y,
    "log_softmax": lambda tf, x, y, n: tf.nn.log_softmax(x),
    "logsumexp": lambda tf, x, y, n: y - tf.reduce_logsumexp(x, n % 2, keepdims=True),
    "l2": lambda tf, x, y, n: tf.nn.l2_normalize(x + 0.1, n % 2),
    "means": _means,
    "sum": lambda tf, x, y, n: y + tf.tanh(tf.reduce_sum(x)),
    "joined": _joined,
    "gathered": _gathered,
    "segments": _segments,
    "stitched": _stitched,
    "matmul": _product,
    "padded": _padded,
    "stacked": _stacked,
    "scanned": _scanned,
    "masked": _masked,
    "reverse": lambda tf, x, y, n: tf.reverse(x, [n % 2]) * 0.5 + y,
    "transposed": lambda tf, x, y, n: tf.transpose(tf.tile(tf.transpose(x), [1, 1])),
    "flat": lambda tf, x, y, n: tf.reshape(tf.reshape(x, [-1]), tf.shape(y)),
    "double": lambda tf, x, y, n: tf.cast(tf.cast(x, tf.float64) * 0.5, tf.float32),
    "stopped": lambda tf, x, y, n: tf.stop_gradient(x) * tf.tanh(y),
    "einsum": lambda tf, x, y, n: tf.tanh(tf.einsum("ij,kj->ik", x, y))[:, :1] + x,
    "largest": lambda tf, x, y, n: x - tf.nn.top_k(y, 1).values,
}


def apply(tf: Any, plan: Sequence[Sequence[Any]], given: Sequence[Any]) -> list[Any]:
    """The tensors of a plan, those that are given first.

    Each step is the name of what is done, the places of the two tensors it takes, and a number.
    """
    found = list(given)
    for name, first, second, number in plan:
        result = STEPS[name](tf, found[first], found[second], number)
        result.set_shape(found[first].shape)
        found.append(result)
    return found


def _plan(d: Draw, given: int, low: int, high: int) -> list[Sequence[Any]]:
    names = tuple(STEPS)
    count = d.between(low, high)
    return [
        (d.one(*names), d.below(given + i), d.below(given + i), d.below(3)) for i in range(count)
    ]


def _with_gradients(tf: Any, outputs: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    """The outputs, and the gradients of all of them with respect to what was given."""
    loss = [tf.reduce_sum(tf.sin(y)) for y in outputs]
    gradients = tf.gradients(tf.add_n(loss), list(given))
    shown = [tf.zeros_like(given[i]) if g is None else g for i, g in enumerate(gradients)]
    return [*outputs, *shown]


def _call(d: Draw, *arguments: Any, count: int = 2) -> Call:
    """A call with matrices of one shape."""
    shape = (d.size(), d.size())
    given = [d.tensor("float32", shape, "plain") for _ in range(count)]
    call = d.call(given, *arguments)
    call.known = d.one("full", "full", "rank", "constant")
    return call


def _graph(tf: Any, given: Sequence[Any], plan: Sequence[Sequence[Any]]) -> list[Any]:
    return _with_gradients(tf, apply(tf, plan, given)[-2:], given)


def _branches(tf: Any, given: Sequence[Any], plans: Sequence[Any], at: float) -> list[Any]:
    before, taken, other, after = plans
    values = apply(tf, before, given)[-2:]
    outputs = tf.cond(
        tf.reduce_sum(values[0]) > at,
        lambda: apply(tf, taken, values)[-2:],
        lambda: apply(tf, other, [*values, given[0]])[-2:],
    )
    return _with_gradients(tf, apply(tf, after, outputs)[-2:], given)


def _loop(tf: Any, given: Sequence[Any], plans: Sequence[Any], turns: int) -> list[Any]:
    before, body, after = plans

    def step(i: Any, x: Any, y: Any) -> Any:
        return [i + 1, *apply(tf, body, [x, y, given[1]])[-2:]]

    first = [tf.constant(0), *apply(tf, before, given)[-2:]]
    invariants = [tf.TensorShape([]), given[0].shape, given[0].shape]
    outputs = tf.while_loop(lambda i, x, y: i < turns, step, first, invariants)[1:]
    return _with_gradients(tf, apply(tf, after, outputs)[-2:], given)


def _branches_in_loop(tf: Any, given: Sequence[Any], plans: Sequence[Any], turns: int) -> list[Any]:
    taken, other = plans

    def step(i: Any, x: Any, y: Any) -> Any:
        chosen = tf.cond(
            tf.equal(i % 2, 0),
            lambda: apply(tf, taken, [x, y])[-2:],
            lambda: apply(tf, other, [y, x])[-2:],
        )
        for value in chosen:
            value.set_shape(given[0].shape)
        return [i + 1, *chosen]

    invariants = [tf.TensorShape([]), given[0].shape, given[0].shape]
    first = [tf.constant(0), *given]
    outputs = tf.while_loop(lambda i, x, y: i < turns, step, first, invariants)[1:]
    return _with_gradients(tf, outputs, given)


add(
    "a graph",
    lambda d: _call(d, _plan(d, 2, 3, 10)),
    function=_graph,
    calls=100,
    scale=30,
)
add(
    "a graph with branches",
    lambda d: _call(
        d, [_plan(d, 2, 0, 2), _plan(d, 2, 1, 4), _plan(d, 3, 1, 4), _plan(d, 2, 0, 2)], d.random()
    ),
    function=_branches,
    calls=60,
    scale=30,
)
add(
    "a graph with a loop",
    lambda d: _call(d, [_plan(d, 2, 0, 2), _plan(d, 3, 1, 4), _plan(d, 2, 0, 2)], d.below(5)),
    function=_loop,
    calls=60,
    scale=100,
)
add(
    "a graph with branches in a loop",
    lambda d: _call(d, [_plan(d, 2, 1, 3), _plan(d, 2, 1, 3)], d.below(5)),
    function=_branches_in_loop,
    calls=40,
    scale=100,
)


# -- variables ------------------------------------------------------------------------------------

_SCATTERS = ("add", "sub", "mul", "div", "min", "max", "update")


def _state(
    tf: Any, start: np.ndarray[Any, Any], ways: Sequence[str], given: Sequence[Any]
) -> list[Any]:
    """What each of several updates gives back, and what the variable holds in the end."""
    variable = tf.Variable(start, use_resource=True)
    found = []
    with tf.control_dependencies([variable.initializer]):
        found.append(variable.read_value())
    for i, way in enumerate(ways):
        with tf.control_dependencies([found[-1]]):
            found.append(_update(tf, variable, way, given[i]))
    with tf.control_dependencies([found[-1]]):
        return [*found, variable.read_value()]


def _update(tf: Any, variable: Any, way: str, value: Any) -> Any:
    if way in ("assign", "assign_add", "assign_sub"):
        return tf.identity(getattr(tf, way)(variable, value))
    indices, updates = value
    return tf.identity(getattr(tf, way)(variable, indices, updates))


def _updates(d: Draw) -> Call:
    dtype = d.one("float32", "float32", "float64", "int32", "int64")
    rows, width = d.between(1, 4), d.shape(0, 2, 3)
    start = d.array(dtype, (rows, *width), "positive")
    ways, given = [], []
    for _ in range(d.between(1, 4)):
        if d.chance(30):
            ways.append(d.one("assign", "assign_add", "assign_sub"))
            given.append(d.tensor(dtype, start.shape))
            continue
        ways.append("scatter_" + d.one(*_SCATTERS))
        shape = d.shape(0, 2, 3)
        indices = d.array("int32", shape, "positive") % rows
        if ways[-1] == "scatter_update":  # which of several rows stays is not said
            count = d.between(0, rows)
            shape, indices = (count,), np.int32(d.permutation(rows)[:count])
        if d.invalid() and indices.size:
            indices = indices + np.int32(rows)
        updates = d.array(dtype, (*shape, *width), "positive")
        given.append([T(indices.astype("int32")), T(updates)])
    return d.call(start, ways, given)


add("updates of a variable", _updates, function=_state, calls=150)

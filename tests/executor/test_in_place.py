"""Large variables are changed in place however their indices are made, and failures undo nothing.

Each way of changing a part of a variable meets each way of making the indices. In place means: the
variable keeps its memory, and no program takes as much as a table beside it.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import headrace as tf
from headrace.config import flags
from headrace.executor.in_place import LARGE_STATE, PartedRegion

ROWS, WIDTH = 2100, 128
BYTES = 4 * ROWS * WIDTH
assert BYTES >= LARGE_STATE
GOOD = np.array([[3, 1, 4], [1, 5, 9], [2, 6, 5]], np.int32)
BAD = np.array([[3, 1, 4], [1, 5, 9], [2, ROWS, 5]], np.int32)


# -- ways to make indices of what is fed, one value a row of the table -----------------------------


def _fed(shape):
    def make(feeds):
        p = tf.placeholder(tf.int32, shape)
        feeds[p] = None
        return p

    return make


def _of(function, shape=(None, None)):
    def make(feeds):
        return function(_fed(shape)(feeds))

    return make


def _drawn(feeds):
    limit = tf.placeholder(tf.int32, [])
    feeds[limit] = lambda ids: ids.max()
    low = tf.maximum(limit - 1, 0)
    return tf.random_uniform([7], low, limit + 1, tf.int32, seed=3)


def _in_a_loop(p):
    """Built up over iterations."""
    return tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + p[i]), [0, p[0] * 0])[1]


def _floats(p):
    return tf.cast(tf.to_float(p) + 0.25, tf.int32)


INDICES = {
    "fed [3,3]": _fed([3, 3]),
    "fed [None]": lambda feeds: tf.reshape(_fed([None, None])(feeds), [9]),
    "fed [None,None]": _fed([None, None]),
    "column": _of(lambda p: p[:, 1]),
    "row": _of(lambda p: p[2]),
    "flat": _of(lambda p: tf.reshape(p, [-1])),
    "cast": _of(lambda p: tf.cast(p, tf.int64)),
    "transposed": _of(tf.transpose),
    "joined": _of(lambda p: tf.concat([p[0], p[2]], 0)),
    "arithmetic": _of(lambda p: (p * 2 + 2) // 2 - 1),
    "computed": _of(_floats),
    "gathered": _of(lambda p: tf.gather(tf.reshape(p, [-1]), [1, 7, 7, 8])),
    "drawn": _drawn,
    "distinct": _of(lambda p: tf.unique(tf.reshape(p, [-1]))[0]),
    "found": _of(lambda p: tf.boolean_mask(p, p > 2)),
    "chosen": _of(lambda p: tf.cond(tf.size(p) > 3, lambda: p + 0, lambda: p - 1)),
    "from a loop": _of(_in_a_loop),
    "best": _of(lambda p: tf.nn.top_k(tf.reshape(p, [-1]), 4)[0]),
}


# -- ways to change parts of a variable ------------------------------------------------------------


def _trained(optimizer, **arguments):
    def change(v, ids):
        rows = tf.nn.embedding_lookup(v, ids)
        loss = tf.reduce_sum(tf.square(rows - 2.0))
        made = getattr(tf.train, optimizer + "Optimizer")(0.1, **arguments)
        return [made.minimize(loss), loss]

    return change


def _linear(v, ids):
    """The gradient does not depend on the rows, so that nothing orders reading and changing."""
    loss = tf.reduce_sum(tf.nn.embedding_lookup(v, ids))
    return [tf.train.AdagradOptimizer(0.1).minimize(loss), loss]


def _with_step(v, ids):
    """A global step, clipping, a decaying rate and momentum."""
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.1, step, 10, 0.5)
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(v, ids) - 2.0))
    made = tf.train.MomentumOptimizer(rate, 0.9)
    gradients, variables = zip(*made.compute_gradients(loss), strict=True)
    gradients, norm = tf.clip_by_global_norm(gradients, 5.0)
    return [made.apply_gradients(zip(gradients, variables, strict=True), step), norm]


def _scatter(name):
    def change(v, ids):
        updates = tf.fill(tf.concat([tf.shape(ids), [WIDTH]], 0), 2.0)
        return [getattr(tf, name)(v, ids, updates).op]

    return change


def _scatter_nd(name):
    def change(v, ids):
        updates = tf.fill(tf.concat([tf.shape(ids), [WIDTH]], 0), 2.0)
        return [getattr(tf, name)(v, tf.expand_dims(ids, -1), updates).op]

    return change


def _one_row(v, ids):
    return [v[tf.reduce_max(ids)].assign(tf.fill([WIDTH], 2.0)).op]


def _in_a_branch(v, ids):
    flag = tf.placeholder_with_default(True, [])
    return [tf.cond(flag, lambda: tf.group(*_scatter("scatter_add")(v, ids)), tf.no_op)]


def _in_iterations(v, ids):
    def body(i):
        change = tf.scatter_add(v, ids, tf.ones(tf.concat([tf.shape(ids), [WIDTH]], 0)))
        with tf.control_dependencies([change]):
            return i + 1

    return [tf.while_loop(lambda i: i < 3, body, [0])]


def _read_and_changed(v, ids):
    """Rows are read before, and what was changed is read after."""
    before = tf.gather(v, ids)
    with tf.control_dependencies([before]):
        change = tf.scatter_sub(v, ids, tf.ones_like(before)).op
    with tf.control_dependencies([change]):
        after = tf.nn.embedding_lookup(v, ids + 0)
    return [change, tf.reduce_sum(before), tf.reduce_sum(after)]


def _watched(v, ids):
    """A summary of the loss, which is made on the host, and an assertion."""
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(v, ids) - 2.0))
    with tf.control_dependencies([tf.Assert(loss < 1e9, [loss])]):
        train = tf.train.AdagradOptimizer(0.1).minimize(tf.identity(loss))
    return [train, tf.summary.scalar("loss", loss), tf.check_numerics(loss, "loss")]


CHANGES = {
    "sgd": _trained("GradientDescent"),
    "momentum": _trained("Momentum", momentum=0.9),
    "nesterov": _trained("Momentum", momentum=0.9, use_nesterov=True),
    "adagrad": _trained("Adagrad"),
    "adadelta": _trained("Adadelta"),
    "adam": _trained("Adam"),
    "rms_prop": _trained("RMSProp"),
    "centered": _trained("RMSProp", centered=True),
    "ftrl": _trained("Ftrl"),
    "proximal": _trained("ProximalGradientDescent", l1_regularization_strength=0.01),
    "proximal_adagrad": _trained("ProximalAdagrad"),
    "linear": _linear,
    "with_step": _with_step,
    **{
        n: _scatter(n)
        for n in (
            "scatter_update",
            "scatter_add",
            "scatter_sub",
            "scatter_mul",
            "scatter_div",
            "scatter_min",
            "scatter_max",
        )
    },
    **{n: _scatter_nd(n) for n in ("scatter_nd_update", "scatter_nd_add", "scatter_nd_sub")},
    "one_row": _one_row,
    "in_a_branch": _in_a_branch,
    "in_iterations": _in_iterations,
    "read_and_changed": _read_and_changed,
    "watched": _watched,
}

#: Runs quickly enough for each test run; the others are slow.
QUICK = {("scatter_add", n) for n in INDICES} | {("sgd", "fed [None]"), ("sgd", "computed")}


def _regions(session, fetches, feeds):
    """The regions that change state, the parts of parted ones."""
    plan = session._compile(fetches, list(feeds)).plan
    found = [u.region for u in plan.units if u.region is not None]
    parts = [r for f in found for r in ((f.first, f.rest) if isinstance(f, PartedRegion) else (f,))]
    return [r for r in parts if r.donated]


def _state(session):
    """The arrays of all variables."""
    store = session._engine.store
    return {k.name: v for k, v in store.items() if getattr(k, "kind", "") == "variable"}


def _memory(session):
    return {
        name: value.unsafe_buffer_pointer()
        for name, value in _state(session).items()
        if value.nbytes >= BYTES
    }


def _step(change, make):
    tf.set_random_seed(5)
    v = tf.get_variable("v", initializer=np.full([ROWS, WIDTH], 4.0, np.float32))
    feeds = {}
    fetches = CHANGES[change](v, INDICES[make](feeds))
    return fetches, feeds


def _fill(feeds, ids):
    return {p: ids if how is None else how(ids) for p, how in feeds.items()}


def _cases():
    for change, make in itertools.product(CHANGES, INDICES):
        marks = () if (change, make) in QUICK else (pytest.mark.slow,)
        yield pytest.param(change, make, marks=marks, id=f"{change}, {make}")


@pytest.mark.parametrize(("change", "make"), list(_cases()))
def test_changes_happen_in_place_and_a_bad_index_changes_nothing(change, make, monkeypatch):
    fetches, feeds = _step(change, make)
    good, bad = _fill(feeds, GOOD), _fill(feeds, BAD)
    initial = tf.global_variables_initializer()
    monkeypatch.setattr(flags, "interpret", "always")
    with tf.Session() as plain:
        plain.run(initial)
        for _ in range(3):
            expected = plain.run(fetches, good)
        after = {n: np.array(a) for n, a in _state(plain).items()}
    monkeypatch.setattr(flags, "interpret", "never")
    with tf.Session() as session:
        session.run(initial)
        session.run(fetches, good)
        places = _memory(session)
        for _ in range(2):
            results = session.run(fetches, good)
        assert _memory(session) == places
        for region in _regions(session, fetches, feeds):
            for program in region._programs.values():
                assert (program.needed or 0) < BYTES
        for mine, other in zip(results, expected, strict=True):
            if not isinstance(mine, (bytes, type(None))):
                np.testing.assert_allclose(mine, other, rtol=1e-5)
        before = {n: np.array(a) for n, a in _state(session).items()}
        for name, value in before.items():
            np.testing.assert_allclose(value, after[name], rtol=1e-5, atol=1e-6, err_msg=name)
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                session.run(fetches, bad)
            assert caught.value.op is not None
            assert str(ROWS) in caught.value.message
        for name, value in _state(session).items():
            np.testing.assert_array_equal(value, before[name], err_msg=name)
        session.run(fetches, good)

"""Large variables are changed in place however their indices are made, and failures undo nothing.

Each way of changing a part of a variable meets each way of making the indices. In place means: the
variable keeps its memory, and no program takes as much as a table beside it.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import headrace as tf
from headrace.executor.in_place import LARGE_STATE, PartedRegion
from headrace.executor.policy import runs_to_pay
from headrace.executor.program import Program
from headrace.executor.region import Region
from headrace.settings import flags

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


def _two_lookups(v, ids):
    """One table is looked up twice; its gradient has the rows of both."""
    left, right = tf.nn.embedding_lookup(v, ids), tf.nn.embedding_lookup(v, ids + 1)
    loss = tf.reduce_sum(tf.square(left * right - 3.0))
    return [tf.train.AdagradOptimizer(0.1).minimize(loss), loss]


def _decayed(v, ids):
    """The whole table is decayed beside: a dense gradient."""
    loss = tf.reduce_sum(tf.nn.embedding_lookup(v, ids)) + tf.nn.l2_loss(v)
    return [tf.train.GradientDescentOptimizer(0.1).minimize(loss), loss]


def _classes(loss_of):
    """A loss over sampled classes, whose weights are a second table; ids are labels too."""

    def change(v, ids):
        weights = tf.get_variable("weights", initializer=np.full([ROWS, WIDTH], 0.1, np.float32))
        biases = tf.get_variable("biases", initializer=np.zeros([ROWS], np.float32))
        ids = tf.reshape(ids, [-1])
        rows = tf.nn.embedding_lookup(v, ids)
        sampled = tf.nn.log_uniform_candidate_sampler(
            tf.to_int64(tf.reshape(ids % ROWS, [-1, 1])), 1, 6, True, ROWS, seed=7
        )
        labels = tf.reshape(ids, [-1, 1])
        loss = tf.reduce_mean(
            loss_of(weights, biases, labels, rows, 6, ROWS, sampled_values=sampled)
        )
        return [tf.train.AdagradOptimizer(0.1).minimize(loss), loss]

    return change


def _bags(lookup):
    """Sets of ids, weighted: sparse tensors made of what is fed."""

    def change(v, ids):
        ids = tf.reshape(ids, [-1])
        count = tf.size(ids, out_type=tf.int64)
        places = tf.stack([tf.range(count) // 2, tf.range(count) % 2], 1)
        bags = tf.SparseTensor(places, tf.to_int64(ids), tf.stack([(count + 1) // 2, 2]))
        loss = tf.reduce_sum(tf.square(lookup(v, bags, None, combiner="mean") - 1.0))
        return [tf.train.AdagradOptimizer(0.1).minimize(loss), loss]

    return change


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
    "two_lookups": _two_lookups,
    "decayed": _decayed,
    "nce": _classes(tf.nn.nce_loss),
    "sampled_softmax": _classes(tf.nn.sampled_softmax_loss),
    "bags": _bags(tf.nn.embedding_lookup_sparse),
    "safe_bags": _bags(tf.contrib.layers.safe_embedding_lookup_sparse),
}

#: These make a dense gradient, as large as the table.
DENSE = {"decayed"}
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
                assert (program.needed or 0) < BYTES or change in DENSE
        for mine, other in zip(results, expected, strict=True):
            if not isinstance(mine, (bytes, type(None))):
                np.testing.assert_allclose(mine, other, rtol=1e-4)
        before = {n: np.array(a) for n, a in _state(session).items()}
        for name, value in before.items():
            np.testing.assert_allclose(value, after[name], rtol=5e-4, atol=1e-5, err_msg=name)
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                session.run(fetches, bad)
            assert caught.value.op is not None
            assert str(ROWS) in caught.value.message
        for name, value in _state(session).items():
            np.testing.assert_array_equal(value, before[name], err_msg=name)
        session.run(fetches, good)


def test_checks_inside_a_loop_that_writes_take_no_memory_of_their_own(monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    fetches, feeds = _step("in_iterations", "fed [3,3]")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(fetches, _fill(feeds, GOOD))
        (region,) = _regions(session, fetches, feeds)
        (program,) = region._programs.values()
        assert program.checks_first
        args = [*_state(session).values(), GOOD]
        with region.options.scope():
            memory = program.checker.lower(*args).compile().memory_analysis()
        assert memory.temp_size_in_bytes + memory.output_size_in_bytes < BYTES


@pytest.mark.parametrize("strategy", ["mod", "div"])
@pytest.mark.parametrize("make", ["fed [None,None]", "computed"])
@pytest.mark.slow
def test_parts_of_a_partitioned_variable_change_in_place(strategy, make, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    feeds = {}
    ids = INDICES[make](feeds)
    v = tf.get_variable(
        "v",
        [3 * ROWS, WIDTH],
        initializer=tf.constant_initializer(4.0),
        partitioner=tf.fixed_size_partitioner(3),
    )
    rows = tf.nn.embedding_lookup(v, ids, partition_strategy=strategy)
    loss = tf.reduce_sum(tf.square(rows - 2.0))
    fetches = [tf.train.AdagradOptimizer(0.1).minimize(loss), loss]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run(fetches, _fill(feeds, GOOD))[1]]
        places = _memory(session)
        assert len(places) == 6
        losses += [session.run(fetches, _fill(feeds, GOOD))[1] for _ in range(2)]
        assert losses == sorted(losses, reverse=True)
        assert _memory(session) == places
        before = {n: np.array(a) for n, a in _state(session).items()}
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(fetches, _fill(feeds, GOOD * 0 + 3 * ROWS))
        for name, value in _state(session).items():
            np.testing.assert_array_equal(value, before[name], err_msg=name)


def test_the_first_step_copies_no_large_table_either():
    """Interpreting it, or keeping the old value until the program is proven, would."""
    v = tf.get_variable("v", [2_000_000, WIDTH])
    ids = tf.placeholder(tf.int32, [None])
    change = tf.scatter_add(v, ids, tf.ones([tf.size(ids), WIDTH])).op
    with tf.Session() as session:
        (region,) = _regions(session, change, {ids: None})
        assert region.waiting.first == 0
        assert runs_to_pay(region.nodes, region.outputs) == 0


def test_a_new_program_copies_no_state_that_it_leaves_alone(monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    v = tf.get_variable("v", initializer=np.zeros([ROWS, WIDTH], np.float32))
    ids = tf.placeholder(tf.int32, [None])
    change = tf.scatter_add(v, ids, tf.ones([tf.size(ids), WIDTH])).op
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(change, {ids: [1, 2]})
        places = _memory(session)
        save, saved = Program.save, []
        monkeypatch.setattr(Program, "save", lambda *a: saved.append(save(*a)) or saved[-1])
        for size in (1, 5):
            session.run(change, {ids: range(size)})
        assert saved == [[], []]
        assert _memory(session) == places


def test_small_variables_written_before_a_failure_come_back(monkeypatch):
    """A counter decides where to write: it belongs to the part that runs first."""
    monkeypatch.setattr(flags, "interpret", "never")
    count = tf.get_variable("count", initializer=0)
    v = tf.get_variable("v", initializer=np.zeros([ROWS, WIDTH], np.float32))
    x = tf.placeholder(tf.int32, [])
    change = tf.scatter_update(v, [count.assign_add(x)], tf.ones([1, WIDTH])).op
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(change, {x: 5})
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"= {ROWS + 15} is not in"):
            session.run(change, {x: ROWS})
        assert session.run(count) == 15
        assert np.flatnonzero(session.run(v)[:, 0]).tolist() == [5, 10, 15]
        places = _memory(session)
        session.run(change, {x: 1})
        assert _memory(session) == places


def test_what_scatter_div_refuses_is_found_where_indices_are_fed(interpret):
    v = tf.get_variable("v", initializer=np.full([4, 2], -7, np.int32))
    ids, by = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.int32, [2, 2])
    change = tf.scatter_div(v, ids, by).op
    with tf.Session() as session:
        session.run(v.initializer)
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
                session.run(change, {ids: [1, 1], by: [[1, 2], [3, 0]]})
            with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
                session.run(change, {ids: [1, 4], by: [[1, 2], [3, 1]]})
        session.run(change, {ids: [1, 1], by: [[1, 2], [2, -2]]})
        assert session.run(v).tolist() == [[-7, -7], [-3, 1], [-7, -7], [-7, -7]]


def test_indices_that_cannot_be_wrong_are_not_looked_at(monkeypatch):
    """Drawn among the rows, or taken modulo their number: one program, and no test."""
    monkeypatch.setattr(flags, "interpret", "never")
    v = tf.get_variable("v", initializer=np.zeros([ROWS, WIDTH], np.float32))
    drawn = tf.random_uniform([3, 2], 0, ROWS, tf.int32)
    hashed = tf.cast(tf.placeholder_with_default([7.0, 1e6], [2]), tf.int32) % ROWS
    ids = tf.concat([tf.reshape(drawn, [-1]), hashed], 0)
    change = _trained("Adagrad")(v, ids)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(change)
        (unit,) = session._compile(change, []).plan.units
        assert isinstance(unit.region, Region)
        (program,) = unit.region._programs.values()
        assert not program.checks_first
        fewer = tf.assign(v, np.zeros([9, WIDTH], np.float32), validate_shape=False)
        session.run(fewer.op)
        with pytest.raises(tf.errors.InvalidArgumentError, match="there are only 9 rows now"):
            session.run(change)


def test_a_host_op_that_may_fail_comes_before_the_change(monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    v = tf.get_variable("v", initializer=np.full([ROWS, WIDTH], 4.0, np.float32))
    p = tf.placeholder(tf.int32, [None])
    train, loss = _trained("Adagrad")(v, p)
    fails = tf.placeholder(tf.bool, [])
    told = tf.py_func(lambda x, f: np.float32(1 / (0 if f else 1)), [loss, fails], tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([train, told], {p: [1, 2], fails: False})
        places, before = _memory(session), np.array(session.run(v))
        with pytest.raises(tf.errors.OpError):
            session.run([train, told], {p: [1, 2], fails: True})
        np.testing.assert_array_equal(session.run(v), before)
        session.run([train, told], {p: [1, 2], fails: False})
        assert _memory(session) == places

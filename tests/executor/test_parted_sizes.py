"""Steps in which some sizes change each time compile what does not depend on them once."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.executor import region
from headrace.executor.spare_rows import SpareRows, _Rows, rounded_up
from headrace.harness.cluster import with_cluster
from headrace.settings import flags


@pytest.fixture
def programs(monkeypatch):
    """The types of the nodes of each program that is called for the first time."""
    found = []
    call = region.Program.call

    def counted(self, args, *token):
        if not self.proven:
            found.append([n.type for n in self.region.nodes])
        return call(self, args, *token)

    monkeypatch.setattr(region.Program, "call", counted)
    return found


def sampled_softmax_step():
    """Labels that happen to be among the drawn classes are taken out: another number each time."""
    x = tf.placeholder(tf.float32, [16, 24])
    labels = tf.placeholder(tf.int64, [16, 1])
    h = x
    for i in range(4):
        weights = tf.get_variable(f"w{i}", initializer=np.eye(24, dtype=np.float32) + 0.01 * i)
        h = tf.tanh(tf.matmul(h, weights))
    classes = tf.get_variable("classes", initializer=np.full([40, 24], 0.1, np.float32))
    loss = tf.reduce_mean(
        tf.nn.sampled_softmax_loss(classes, tf.zeros([40]), labels, h, 30, 40, seed=3)
    )
    return x, labels, loss, tf.train.AdagradOptimizer(0.1).minimize(loss)


def run_sampled(steps):
    rng = np.random.RandomState(0)
    with tf.Graph().as_default():
        x, labels, loss, train = sampled_softmax_step()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(steps):
                feeds = {x: rng.randn(16, 24), labels: rng.randint(0, 40, [16, 1])}
                yield session.run([loss, train], feeds)[0]


def test_hits_by_accident_compile_nothing_again(programs, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "always")
    expected = list(run_sampled(12))
    monkeypatch.setattr(flags, "interpret", "auto")
    monkeypatch.setattr(flags, "interpret_limit", 1.0)
    found = []
    for i, loss in enumerate(run_sampled(12)):
        found.append(loss)
        if i == 4:
            programs.clear()
    np.testing.assert_allclose(found, expected, 1e-4)
    assert not programs


def rows_step(optimizer, shape=(50, 4)):
    """The gradient of as many rows as are fed."""
    table = tf.get_variable("table", initializer=np.ones(shape, np.float32))
    ids, rows = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None, shape[1]])
    gradient = tf.IndexedSlices(rows, ids, tf.constant(shape, tf.int64))
    return table, ids, rows, optimizer.apply_gradients([(gradient, table)])


OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1),
    "centered": lambda: tf.train.RMSPropOptimizer(0.1, centered=True),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.1),
    "proximal": lambda: tf.train.ProximalAdagradOptimizer(0.1),
}


@pytest.mark.parametrize(
    "name",
    [
        n if n in ("adagrad", "adam") else pytest.param(n, marks=pytest.mark.slow)
        for n in OPTIMIZERS
    ],
)
def test_lists_of_rows_of_any_length(name, programs, monkeypatch):
    rng = np.random.RandomState(0)
    lengths = [7, 0, 1, 12, 13, 11, 30, 29, 32, 0, 2]
    steps = [(rng.randint(0, 50, n), rng.randn(n, 4)) for n in lengths]

    def run():
        with tf.Graph().as_default():
            _, ids, rows, train = rows_step(OPTIMIZERS[name]())
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                for i, r in steps:
                    session.run(train, {ids: i, rows: r})
                return session.run([v.read_value() for v in tf.global_variables()])

    monkeypatch.setattr(flags, "interpret", "always")
    expected = run()
    monkeypatch.setattr(flags, "interpret", "never")
    programs.clear()
    for found, value in zip(run(), expected, strict=True):
        np.testing.assert_allclose(found, value, 2e-4, 1e-5)
    assert len(programs) < 4 + 2 * len({rounded_up(n) for n in lengths})


def test_many_lists_of_rows_have_one_program(programs, monkeypatch):
    """Few lengths of each of six tables are a great many together."""
    rng = np.random.RandomState(0)
    steps = [[rng.randint(0, 50, rng.randint(20, 45)) for _ in range(6)] for _ in range(12)]

    def run():
        with tf.Graph().as_default(), tf.Session() as session:
            tables = [tf.get_variable(f"t{i}", initializer=np.ones([50, 4], "f")) for i in range(6)]
            ids = [tf.placeholder(tf.int64, [None]) for _ in tables]
            rows = [tf.placeholder(tf.float32, [None, 4]) for _ in tables]
            slices = [tf.IndexedSlices(r, i) for r, i in zip(rows, ids, strict=True)]
            optimizer = tf.train.AdagradOptimizer(0.1)
            train = optimizer.apply_gradients(zip(slices, tables, strict=True))
            session.run(tf.global_variables_initializer())
            for step in steps:
                given = [(i[:, None] + np.arange(4.0)) / 50 for i in step]
                session.run(train, dict(zip([*ids, *rows], [*step, *given], strict=True)))
            return session.run(tables)

    monkeypatch.setattr(flags, "interpret", "always")
    expected = run()
    monkeypatch.setattr(flags, "interpret", "never")
    programs.clear()
    np.testing.assert_allclose(run(), expected, 1e-5)
    updating = [types for types in programs if types.count("ResourceSparseApplyAdagrad") == 6]
    assert 1 <= len(updating) <= 4, programs


def test_rooms_are_neither_too_many_nor_too_large():
    rooms = SpareRows([_Rows(0, (1,), 99), _Rows(2, (3,), 99)])

    def room(one, other):
        shapes = ((one,), (one, 4), (other,), (other, 4))
        indices, rows, *_, last = rooms.room_for(shapes)
        assert (rows[0], last[1]) == (indices[0], 4)
        return indices[0], last[0]

    large = room(100, 200)
    assert large >= (100, 200)
    assert room(110, 150) == room(60, 220) == large
    assert sum(room(3, 9)) <= 40
    assert room(100, 200) == large
    grown = room(100, 400)
    assert grown[0] == large[0]
    assert room(105, 390) == room(80, 220) == grown


@pytest.mark.parametrize("kind", ["update", "add", "sub", "mul", "min", "max", "div"])
def test_scatters_of_any_length(kind, interpret):
    v = tf.get_variable("v", initializer=np.arange(1.0, 21.0, dtype=np.float32).reshape(10, 2))
    ids, rows = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None, 2])
    step = getattr(tf, f"scatter_{kind}")(v, ids, rows)
    expected = np.arange(1.0, 21.0).reshape(10, 2)
    do = {
        "update": lambda a, b: b,
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "min": np.minimum,
        "max": np.maximum,
        "div": np.divide,
    }[kind]
    rng = np.random.RandomState(0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for n in (3, 9, 0, 1, 10, 4):
            i, r = rng.permutation(10)[:n], rng.uniform(0.5, 2, [n, 2])
            expected[i] = do(expected[i], r)
            np.testing.assert_allclose(session.run(step, {ids: i, rows: r}), expected, 1e-4)


@pytest.mark.parametrize("bad", [50, 51, -1])
def test_an_index_out_of_range_fails_whatever_the_length(bad, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    table, ids, rows, train = rows_step(tf.train.AdagradOptimizer(0.1))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for n in (3, 9, 10):
            session.run(train, {ids: np.zeros(n), rows: np.ones([n, 4])})
            before = session.run(table)
            with pytest.raises(tf.errors.InvalidArgumentError, match=str(bad)):
                session.run(train, {ids: [0] * (n - 1) + [bad], rows: np.ones([n, 4])})
            np.testing.assert_array_equal(session.run(table), before)


def test_lists_of_different_lengths_are_refused(monkeypatch):
    monkeypatch.setattr(flags, "interpret", "never")
    _, ids, rows, train = rows_step(tf.train.AdagradOptimizer(0.1))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {ids: np.zeros(3), rows: np.ones([3, 4])})
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(train, {ids: np.zeros(4), rows: np.ones([5, 4])})


def partitioned_step(parts):
    ids = tf.placeholder(tf.int64, [32, 5])
    with tf.device(tf.train.replica_device_setter(ps_tasks=parts) if parts else None):
        table = tf.get_variable(
            "table",
            initializer=np.linspace(-1, 1, 4000, dtype=np.float32).reshape(1000, 4),
            partitioner=tf.fixed_size_partitioner(parts) if parts else None,
        )
        weights = [
            tf.get_variable(f"w{i}", initializer=np.eye(4, dtype=np.float32)) for i in range(4)
        ]
        h = tf.reduce_sum(tf.nn.embedding_lookup(table, ids, partition_strategy="div"), 1)
        for w in weights:
            h = tf.tanh(tf.matmul(h, w))
        loss = tf.reduce_mean(h**2)
        return ids, loss, tf.train.AdagradOptimizer(0.1).minimize(loss)


def train_partitioned(session, step, count):
    ids, loss, train = step
    rng = np.random.RandomState(0)
    session.run(tf.global_variables_initializer())
    for _ in range(count):
        yield session.run([loss, train], {ids: rng.randint(0, 1000, [32, 5])})[0]


def test_ids_over_servers_compile_nothing_again(programs, monkeypatch):
    """Each server has another number of the ids at each step."""
    monkeypatch.setattr(flags, "interpret", "never")
    with tf.Graph().as_default(), tf.Session() as session:
        expected = list(train_partitioned(session, partitioned_step(0), 9))
    with with_cluster(ps=2, worker=1) as cluster:
        step = partitioned_step(2)
        with tf.Session(cluster.target("worker", 0)) as session:
            found = []
            for i, loss in enumerate(train_partitioned(session, step, 9)):
                found.append(loss)
                if i == 4:
                    programs.clear()
    np.testing.assert_allclose(found, expected, 1e-4)
    # A server compiles its update for one of four lengths between powers of two.
    assert [types for types in programs if len(types) > 6] == []
    assert sum("ResourceSparseApplyAdagrad" in types for types in programs) <= 6


def test_lengths_have_four_steps_between_powers_of_two():
    for count in range(3000):
        room = rounded_up(count)
        assert room >= max(count, 8)
        assert room <= max(8, count * 1.25 + 1)
        assert rounded_up(room) == room
    assert len({rounded_up(n) for n in range(8, 4097)}) == 4 * 9 + 1


def test_other_numbers_of_distinct_ids_compile_nothing_again(programs, monkeypatch):
    """Most of the region depends on a number that never comes again; a program is made once."""
    monkeypatch.setattr(flags, "interpret_limit", 1.0)
    rng = np.random.RandomState(0)
    batches = [rng.randint(0, n, 600) for n in range(300, 900, 50)]

    def losses():
        with tf.Graph().as_default():
            ids = tf.placeholder(tf.int64, [600])
            table = tf.get_variable("table", initializer=np.ones([900, 32], np.float32))
            distinct, place = tf.unique(ids)
            rows = tf.gather(table, distinct)
            for _ in range(8):
                rows = tf.reshape(tf.tanh(rows), [-1, 32])
            rows = tf.gather(rows, place)
            dense = tf.get_variable("dense", initializer=np.ones([32, 8], np.float32))
            loss = tf.reduce_mean(tf.matmul(rows, dense) ** 2)
            train = tf.train.AdagradOptimizer(0.1).minimize(loss)
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                for batch in batches:
                    yield session.run([loss, train], {ids: batch})[0]

    found = list(losses())
    dense = [nodes for nodes in programs if "MatMul" in nodes]
    assert len(dense) == 2
    assert "Tanh" not in dense[1]
    monkeypatch.setattr(flags, "interpret", "always")
    np.testing.assert_allclose(found, list(losses()), 1e-4)

"""Tables that grow: lookups, gradients, updates by every optimiser."""

import threading

import numpy as np
import pytest

import headrace as tf

LIMITS = np.iinfo(np.int64)
KEYS = [7, LIMITS.max, -3, 7, LIMITS.min, 0]

OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.5),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "centered": lambda: tf.train.RMSPropOptimizer(0.1, centered=True),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "shrunk ftrl": lambda: tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1),
    "proximal": lambda: tf.train.ProximalGradientDescentOptimizer(
        0.1, l1_regularization_strength=0.01
    ),
    "proximal adagrad": lambda: tf.train.ProximalAdagradOptimizer(
        0.1, l2_regularization_strength=0.1
    ),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "adagrad da": lambda: tf.train.AdagradDAOptimizer(
        0.1, tf.train.get_or_create_global_step(), l1_regularization_strength=0.01
    ),
}


def trained(params, ids, optimizer, weights, steps=3):
    """The rows of ``ids`` after some steps."""
    rows = tf.nn.embedding_lookup(params, ids)
    loss = tf.reduce_sum(rows**2 * weights)
    train = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(steps):
            sess.run(train)
        return sess.run(rows)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_updates_rows_as_those_of_a_variable(name):
    weights = np.arange(1.0, 7.0, dtype=np.float32)[:, None]
    table = tf.EmbeddingTable(3, initializer=tf.constant_initializer([0.5, -1.0, 2.0]))
    found = trained(table, KEYS, OPTIMIZERS[name](), weights)
    with tf.Graph().as_default():
        # The same keys as rows of a variable, all of which have gradients: so Adam is the same.
        variable = tf.Variable(np.tile(np.float32([0.5, -1.0, 2.0]), (5, 1)))
        wanted = trained(variable, [0, 1, 2, 0, 3, 4], OPTIMIZERS[name](), weights)
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_rows_without_gradient_stay_as_they_are(name):
    table = tf.EmbeddingTable(2, seed=3)
    rows = tf.nn.embedding_lookup(table, [1, 2])
    key = tf.placeholder(tf.int64, [None])
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, key))
    train = OPTIMIZERS[name]().minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        before = sess.run(rows)
        sess.run(train, {key: [2]})
        between = sess.run(rows)
        sess.run(train, {key: []})
        after = sess.run(rows)
    assert before[0].tolist() == between[0].tolist()
    assert (before[1] != between[1]).all()
    assert between.tolist() == after.tolist()


def test_a_row_starts_the_same_in_any_batch_order_and_session():
    table = tf.EmbeddingTable(5, seed=11)
    keys = tf.placeholder(tf.int64, [None])
    rows = table.lookup(keys)
    some = np.random.default_rng(0).integers(LIMITS.min, LIMITS.max, 300)
    with tf.Session() as sess:
        together = sess.run(rows, {keys: some})
        again = sess.run(rows, {keys: some})
    with tf.Session() as sess:
        without = sess.run(table.lookup(some, grows=False))
        assert sess.run(table.size()) == 0
        alone = np.concatenate([sess.run(rows, {keys: [k]}) for k in some[::-1]])[::-1]
    assert together.tolist() == again.tolist() == without.tolist() == alone.tolist()
    assert abs(together.mean()) < 0.05
    assert len(np.unique(together)) > 1000


def test_seed_name_and_key_tell_rows_apart():
    with tf.Session() as sess:
        tables = [tf.EmbeddingTable(4, seed=s, name=n) for s, n in ((1, "a"), (2, "b"), (1, "c"))]
        rows = sess.run([t.lookup([1, 2]) for t in tables])
    assert len({tuple(r) for r in np.concatenate(rows).tolist()}) == 6


@pytest.mark.parametrize(
    ("initializer", "low", "high", "stddev"),
    [
        (None, -1.0, 1.0, 0.44),
        (tf.random_uniform_initializer(-2.0, 1.0), -2.0, 1.0, 0.866),
        (tf.random_normal_initializer(1.0, 0.5), -1.5, 3.5, 0.5),
        (tf.truncated_normal_initializer(0.0, 2.0), -4.0, 4.0, 1.76),
        (tf.variance_scaling_initializer(4.0, "fan_out", "uniform"), -1.733, 1.733, 1.0),
        (tf.variance_scaling_initializer(4.0, "fan_out"), -2.28, 2.28, 1.0),
        (tf.zeros_initializer, 0.0, 0.0, 0.0),
        (tf.ones_initializer(), 1.0, 1.0, 0.0),
        (tf.constant_initializer([1.0, 2.0, 3.0, 4.0]), 1.0, 4.0, 1.118),
    ],
)
def test_rows_are_of_the_initializers_distribution(initializer, low, high, stddev):
    table = tf.EmbeddingTable(4, initializer)
    with tf.Session() as sess:
        rows = sess.run(table.lookup(np.arange(5000)))
    assert low - 1e-6 <= rows.min()
    assert rows.max() <= high + 1e-6
    assert rows.std() == pytest.approx(stddev, rel=0.03)


def test_initializers_that_need_the_number_of_rows_are_refused():
    with pytest.raises(ValueError, match="depend on the number of rows"):
        tf.EmbeddingTable(4, tf.glorot_uniform_initializer())
    with pytest.raises(TypeError, match=r"takes the initialisers zeros, ones.*not <function"):
        tf.EmbeddingTable(4, lambda shape, **_: tf.zeros(shape))
    with pytest.raises(ValueError, match="A row has 4 elements; the initialiser has 3"):
        tf.EmbeddingTable(4, tf.constant_initializer([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_types_of_rows(dtype):
    table = tf.EmbeddingTable(2, tf.constant_initializer(0.5), dtype=dtype)
    rows = tf.nn.embedding_lookup(table, [4, 9, 4])
    train = tf.train.MomentumOptimizer(0.25, 0.5).minimize(tf.reduce_sum(rows))
    with tf.Session() as sess:
        sess.run(train)
        sess.run(train)
        found = sess.run(rows)
    assert found.dtype.name == dtype
    assert found.tolist() == [[-0.75, -0.75], [-0.125, -0.125], [-0.75, -0.75]]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3)])
def test_keys_of_any_shape(shape, interpret):
    table = tf.EmbeddingTable(3, seed=2)
    keys = tf.placeholder(tf.int64)
    rows = table.lookup(keys)
    fixed = table.lookup(np.zeros(shape, np.int32))
    assert fixed.shape.as_list() == [*shape, 3]
    [gradient] = tf.gradients(tf.reduce_sum(fixed), [table])
    with tf.Session() as sess:
        for _ in range(10):
            assert sess.run(rows, {keys: np.zeros(shape, np.int64)}).shape == (*shape, 3)
        found = sess.run(gradient)
    count = int(np.prod(shape))
    assert found.indices.tolist() == [0] * count
    assert found.values.tolist() == [[1.0] * 3] * count


def test_nan_stays_in_its_row():
    table = tf.EmbeddingTable(1, tf.ones_initializer())
    weights = tf.placeholder(tf.float32, [3, 1])
    rows = tf.nn.embedding_lookup(table, [1, 2, 3])
    train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(rows * weights))
    with tf.Session() as sess:
        sess.run(train, {weights: [[1.0], [np.nan], [np.inf]]})
        found = sess.run(rows)
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1:]).all()


def test_a_key_without_row_is_left_out_of_an_update():
    table = tf.EmbeddingTable(1, tf.ones_initializer())
    rows = table.lookup([1, 2], grows=False)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(rows))
    with tf.Session() as sess:
        sess.run(table.lookup([2]))
        sess.run(train)
        assert sess.run(rows).tolist() == [[1.0], [0.5]]
        assert sess.run(table.size()) == 1


def test_lookups_of_several_features_share_one_update():
    table = tf.EmbeddingTable(1, tf.zeros_initializer())
    loss = tf.reduce_sum(table.lookup([1, 2])) + 2 * tf.reduce_sum(table.lookup([[2], [3]]))
    optimizer = tf.train.AdagradOptimizer(1.0, initial_accumulator_value=1.0)
    train = optimizer.minimize(loss)
    with tf.Session() as sess:
        sess.run(train)
        keys, sums = sess.run(optimizer.get_slot(table, "accumulator").export())
    assert keys.tolist() == [1, 2, 3]
    assert sums.tolist() == [[2.0], [10.0], [5.0]]  # 1 + gradient squared


def test_assigned_rows_and_export():
    table = tf.EmbeddingTable(2, tf.zeros_initializer())
    with tf.Session() as sess:
        sess.run(table.assign([5, -1, 5], [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]))
        keys, rows = sess.run(table.export())
        assert keys.tolist() == [-1, 5]
        assert rows.tolist() == [[2.0, 2.0], [3.0, 3.0]]
        wrong = table.assign([1], tf.placeholder_with_default(np.zeros((2, 2), np.float32), None))
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"of keys of shape \[1\] have"):
            sess.run(wrong)
        assert sess.run(table.size()) == 2


def test_bad_input_is_told():
    table = tf.EmbeddingTable(2)
    with pytest.raises(TypeError, match=r"Keys of a table are integers; .* is float32"):
        table.lookup(tf.constant([1.0]))
    with pytest.raises(ValueError, match=r"dim must be positive; it is 0"):
        tf.EmbeddingTable(0)
    with pytest.raises(TypeError, match="floating-point numbers, not int32"):
        tf.EmbeddingTable(2, dtype=tf.int32)

    class Own(tf.train.Optimizer):
        def __init__(self):
            super().__init__(False, "Own")

    loss = tf.reduce_sum(table.lookup([1]))
    with pytest.raises(NotImplementedError, match="Own has no rule for tables of embeddings"):
        Own().minimize(loss)
    with pytest.raises(TypeError, match="must be IndexedSlices, rows by key"):
        tf.train.AdamOptimizer().apply_gradients([(tf.zeros([1, 2]), table)])
    tf.train.AdagradOptimizer(0.1, initial_accumulator_value=0.5).minimize(loss)
    with pytest.raises(ValueError, match=r"Slot Adagrad/accumulator .* starts with 0.5, not 0.1"):
        tf.train.AdagradOptimizer(0.1).minimize(loss)
    with pytest.raises(ValueError, match=r"Say which rows go: unseen_for"):
        table.evict()
    with pytest.raises(ValueError, match=r"admit_after counts lookups from 1 on; it is 0"):
        tf.EmbeddingTable(2, admit_after=0)
    with pytest.raises(ValueError, match=r"give admit_after, too"):
        tf.EmbeddingTable(2, admit_counters=8)
    with pytest.raises(ValueError, match=r"num_parts must be positive; it is 0"):
        tf.PartitionedEmbeddingTable(2, 0)


def test_one_name_is_one_table_for_all_who_share_it():
    server = tf.train.Server.create_local_server()
    try:
        with tf.Graph().as_default():
            table = tf.EmbeddingTable(2, tf.zeros_initializer(), name="t")
            with tf.Session(server.target) as sess:
                sess.run(table.assign([1], [[1.0, 2.0]]))
        with tf.Graph().as_default():
            twin = tf.EmbeddingTable(2, tf.zeros_initializer(), name="t")
            with tf.Session(server.target) as sess:
                assert sess.run(twin.lookup([1])).tolist() == [[1.0, 2.0]]
        with tf.Graph().as_default():
            other = tf.EmbeddingTable(3, tf.zeros_initializer(), name="t")
            message = r"is of width 2, float32.* there and of width 3"
            with (
                tf.Session(server.target) as sess,
                pytest.raises(tf.errors.InvalidArgumentError, match=message),
            ):
                sess.run(other.lookup([1]))
    finally:
        server.stop()


def test_threads_lose_no_update():
    table = tf.EmbeddingTable(1, tf.zeros_initializer())
    keys = tf.placeholder(tf.int64, [None])
    train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(-table.lookup(keys)))
    failures = []
    with tf.Session() as sess:

        def work(offset):
            try:
                for step in range(20):
                    sess.run(train, {keys: [step % 7, offset + step, 1000]})
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = dict(zip(*(a.tolist() for a in sess.run(table.export())), strict=True))
    assert not failures
    assert found[1000] == [80.0]
    assert sum(found[k][0] for k in range(7)) == 80.0
    assert len(found) == 88


def test_many_keys_at_once_and_growth():
    table = tf.EmbeddingTable(3, seed=1)
    keys = tf.placeholder(tf.int64, [None])
    rows = table.lookup(keys)
    train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(rows))
    rng = np.random.default_rng(0)
    some = rng.integers(0, 1 << 60, 40_000)
    with tf.Session() as sess:
        first = sess.run(table.lookup(some, grows=False))
        for begin in range(0, 40_000, 10_000):
            sess.run(train, {keys: some[begin : begin + 10_000]})
        assert sess.run(table.size()) == len(np.unique(some))
        step = np.float32(0.1) / np.sqrt(np.float32(1.1))
        np.testing.assert_allclose(sess.run(rows, {keys: some}), first - step, rtol=1e-5, atol=1e-6)

"""Tables in checkpoints of tf.train.Saver, in parts, and in a small cluster."""

import numpy as np
import pytest

import headrace as tf


def model(optimizer, parts=0, dim=2, name="t"):
    """A table, a variable, ops that look up and train, and the keys to feed."""
    make = tf.PartitionedEmbeddingTable if parts else tf.EmbeddingTable
    more = {"num_parts": parts} if parts else {}
    table = make(dim, initializer=tf.ones_initializer(), name=name, **more)
    bias = tf.Variable(1.0, name="bias")
    keys = tf.placeholder(tf.int64, [None])
    rows = tf.nn.embedding_lookup(table, keys)
    train = optimizer.minimize(tf.reduce_sum(rows) * bias)
    return table, keys, rows, train


def adagrad():
    return tf.train.AdagradOptimizer(0.5)


@pytest.mark.parametrize(("before", "after"), [(0, 0), (0, 2), (3, 0), (2, 3), (2, 2)])
def test_a_saver_saves_tables_beside_the_checkpoint(before, after, tmp_path):
    some = np.array([5, -1, 2**62, 8, 9])
    with tf.Graph().as_default():
        table, keys, rows, train = model(adagrad(), before)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(train, {keys: some})
            saver = tf.train.Saver()
            path = saver.save(sess, str(tmp_path / "model"))
            assert tf.train.load_variable(path, "t/rows") == 5
            # All goes on from here as if nothing had been saved.
            sess.run(train, {keys: some[:2]})
            wanted = sess.run(rows, {keys: some})
    with tf.Graph().as_default():
        table, keys, rows, train = model(adagrad(), after)
        saver = tf.train.Saver()
        with tf.Session() as sess:
            saver.restore(sess, path)
            assert sess.run(table.size()) == 5
            sess.run(train, {keys: some[:2]})
            np.testing.assert_array_equal(sess.run(rows, {keys: some}), wanted)


def test_old_files_of_tables_go_with_their_checkpoints(tmp_path):
    table, *_ = model(adagrad())
    saver = tf.train.Saver(max_to_keep=1)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(3):
            path = saver.save(sess, str(tmp_path / "model"), global_step=step)
            sess.run(table.assign([step], [[1.0, 2.0]]))
            sess.run(table.save_changes(path))
    names = sorted(p.name for p in tmp_path.iterdir() if "table" in p.name)
    start = "model-2.table-t-00000-of-00001"
    assert names == [start, f"{start}.changes-00001"]


def saved_by(make_optimizer, tmp_path, **options):
    with tf.Graph().as_default():
        _, keys, _, train = model(make_optimizer(), **options)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(train, {keys: [1, 2]})
            return tf.train.Saver().save(sess, str(tmp_path / "model"))


@pytest.mark.parametrize(
    ("make", "options", "error", "message"),
    [
        (
            adagrad,
            {"dim": 3},
            tf.errors.InvalidArgumentError,
            r"Table t has rows of 3 float32, and those in .*table-t-00000-of-00001 are of 2 float",
        ),
        (
            lambda: tf.train.AdagradOptimizer(0.5, initial_accumulator_value=2.0),
            {},
            tf.errors.InvalidArgumentError,
            r"slots \['Adagrad/accumulator \(from 2.0\)'\]; in .* it has \['Adagrad/accu.*from 0.1",
        ),
        (adagrad, {"name": "u"}, tf.errors.NotFoundError, r"Key u/rows not found in checkpoint"),
    ],
)
def test_a_table_that_does_not_fit_is_told_and_nothing_is_assigned(
    make, options, error, message, tmp_path
):
    path = saved_by(adagrad, tmp_path)
    with tf.Graph().as_default():
        table, keys, rows, _ = model(make(), **options)
        saver = tf.train.Saver()
        bias = tf.global_variables()[0]
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(bias.assign(5.0))
            sess.run(rows, {keys: [77]})
            with pytest.raises(error, match=message):
                saver.restore(sess, path)
            assert sess.run(bias) == 5.0
            assert sess.run(table.export()[0]).tolist() == [77]


def test_another_optimizer_is_told_and_may_begin_anew(tmp_path):
    path = saved_by(adagrad, tmp_path)
    with tf.Graph().as_default():
        table, keys, rows, train = model(tf.train.MomentumOptimizer(0.5, 0.9))
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            message = r"trained by another optimiser.*table.restore\(path, slots=False\)"
            with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                sess.run(table.restore(path))
            assert sess.run(table.restore(path, slots=False)) == 2
            before = sess.run(rows, {keys: [1, 2]})
            assert (before < 1).all()
            sess.run(train, {keys: [1]})
            np.testing.assert_allclose(sess.run(rows, {keys: [1]}), before[:1] - 0.5)


def test_a_graph_without_optimizer_reads_the_rows_of_a_training(tmp_path):
    path = saved_by(adagrad, tmp_path)
    with tf.Graph().as_default():
        table = tf.EmbeddingTable(2, initializer=tf.ones_initializer(), name="t")
        with tf.Session() as sess:
            tf.train.Saver([table]).restore(sess, path)
            assert sess.run(table.size()) == 2
            assert (sess.run(table.lookup([1, 3], grows=False))[:, 0] < [1, 1.1]).all()


def test_parts_are_on_the_parameter_servers_in_turn():
    setter = tf.train.replica_device_setter(ps_tasks=2)
    with tf.device(setter):
        table = tf.PartitionedEmbeddingTable(2, num_parts=3)
        tf.train.AdamOptimizer().minimize(tf.reduce_sum(table.lookup([1, 2])))
    assert [p.device for p in table] == [f"/job:ps/task:{i}" for i in (0, 1, 0)]
    applied = [
        op.device for op in tf.get_default_graph().get_operations() if "TableApply" in op.type
    ]
    assert sorted(applied) == sorted(p.device for p in table)

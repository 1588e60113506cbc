"""Columns of keys of 64 bits, and tables with sparse ids."""

import numpy as np
import pytest

import headrace as tf

fc = tf.feature_column


def sparse(indices, values, shape):
    return tf.SparseTensor(
        np.reshape(indices, (-1, 2)).astype(np.int64), np.array(values, np.int64), shape
    )


@pytest.mark.parametrize("parts", [0, 2])
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_lookups_of_a_table_are_as_of_a_variable(combiner, weighted, parts, interpret):
    places = [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2)]
    weights = [1.0, 2.0, 0.5, 1.0, 3.0]
    rows = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    keys = np.array([-5, 0, 2**60, 7])
    ids = [1, 3, 1, 1, 0]
    options = {"num_parts": parts} if parts else {}
    table = (tf.PartitionedEmbeddingTable if parts else tf.EmbeddingTable)(3, **options)
    given = tf.SparseTensor(places, weights, [4, 3]) if weighted else None
    found = tf.nn.safe_embedding_lookup_sparse(
        table, sparse(places, keys[ids], [4, 3]), given, combiner
    )
    wanted = tf.nn.safe_embedding_lookup_sparse(
        tf.constant(rows), sparse(places, ids, [4, 3]), given, combiner
    )
    [gradient] = tf.gradients(tf.reduce_sum(found**2), [next(iter(table)) if parts else table])
    with tf.Session() as sess:
        sess.run(table.assign(keys, rows))
        for _ in range(3):
            got, right = sess.run([found, wanted])
            np.testing.assert_allclose(got, right, rtol=1e-6)
        assert got.shape == (4, 3)
        assert not got[[1, 3]].any()
        assert set(sess.run(gradient).indices.tolist()) <= set(keys[ids].tolist())
        assert sess.run(table.size()) == 4  # no row was made for examples without ids


def test_a_default_id_is_looked_up_for_empty_rows():
    table = tf.EmbeddingTable(1)
    found = tf.nn.safe_embedding_lookup_sparse(
        table, sparse([(1, 0)], [5], [3, 1]), combiner="sum", default_id=9
    )
    with tf.Session() as sess:
        sess.run(table.assign([5, 9], [[5.0], [9.0]]))
        assert sess.run(found).tolist() == [[9.0], [5.0], [9.0]]


def test_no_ids_at_all():
    table = tf.EmbeddingTable(2)
    found = tf.nn.safe_embedding_lookup_sparse(table, sparse([], [], [3, 2]))
    with tf.Session() as sess:
        assert sess.run(found).tolist() == [[0.0, 0.0]] * 3
        assert sess.run(table.size()) == 0


def test_features_of_one_table_have_rows_of_their_own_or_share_them():
    def rows(apart):
        with tf.Graph().as_default():
            columns = [
                fc.growing_embedding_column(
                    fc.categorical_column_with_keys(key, apart=apart), 2, table_name="all"
                )
                for key in ("item", "user")
            ]
            layer = fc.input_layer({"user": [[3], [4]], "item": [[3], [4]]}, columns)
            [table] = tf.get_collection(tf.GraphKeys.EMBEDDING_TABLES)
            with tf.Session() as sess:
                return sess.run(layer), int(sess.run(table.size()))

    (together, few), (apart, many) = rows(False), rows(True)
    assert (few, many) == (2, 4)
    assert together[:, :2].tolist() == together[:, 2:].tolist()
    assert (apart[:, :2] != apart[:, 2:]).all()


def test_a_layer_of_words_trains_and_is_saved(tmp_path):
    def build():
        word = fc.categorical_column_with_keys("word", tf.string)
        column = fc.growing_embedding_column(
            word, 4, "sum", tf.ones_initializer(), num_parts=2, admit_after=2
        )
        layer = fc.input_layer({"word": [["a", "b"], ["", ""], ["a", ""]]}, [column])
        return layer, tf.train.AdagradOptimizer(0.5).minimize(tf.reduce_sum(layer))

    with tf.Graph().as_default():
        layer, train = build()
        with tf.Session() as sess:
            sess.run(train)
            assert sess.run(layer)[:, 0].tolist() == [2.0, 0.0, 1.0]  # not yet admitted
            for _ in range(3):
                sess.run(train)
            wanted = sess.run(layer)
            path = tf.train.Saver().save(sess, str(tmp_path / "model"))
    assert (wanted[[0, 2]] < [[2.0], [1.0]]).all()
    with tf.Graph().as_default():
        layer, _ = build()
        with tf.Session() as sess:
            tf.train.Saver().restore(sess, path)
            np.testing.assert_array_equal(sess.run(layer), wanted)


def test_bad_columns_are_told():
    keys = fc.categorical_column_with_keys("user")
    with pytest.raises(ValueError, match=r"keys of column user have 64 bits.*growing_embedding"):
        fc.input_layer({"user": [[1]]}, [fc.embedding_column(keys, 2)])
    columns = [fc.growing_embedding_column(keys, d, table_name="t") for d in (2, 3)]
    fc.input_layer({"user": [[1]]}, columns[:1])
    with pytest.raises(ValueError, match=r"has dimension 3; the table t, which it shares, has 2"):
        fc.input_layer({"user": [[1]]}, columns[1:])


@pytest.mark.parametrize("parts", [1, 2])
def test_an_estimator_grows_tables_only_while_it_trains(parts, tmp_path):
    """Users seen in evaluation only have no row; they get what rows start with."""

    def model_fn(features, labels, mode):
        column = fc.growing_embedding_column(
            fc.categorical_column_with_keys("user"),
            1,
            initializer=tf.ones_initializer(),
            table_name="users",
            num_parts=parts,
            admit_after=2,
        )
        found = tf.reduce_sum(fc.input_layer(features, [column]), 1)
        [table] = tf.get_collection(tf.GraphKeys.EMBEDDING_TABLES)
        with tf.control_dependencies([found]):
            size = tf.cast(table.size(), tf.float32)
        predictions = {"size": tf.ones_like(found) * size, "value": found}
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions)
        loss = tf.reduce_mean((found - labels) ** 2)
        return tf.estimator.EstimatorSpec(
            mode,
            loss=loss,
            train_op=tf.train.AdagradOptimizer(0.1).minimize(
                loss, global_step=tf.train.get_global_step()
            ),
            eval_metric_ops={"size": tf.metrics.mean(size)},
        )

    def users(*ids):
        return lambda: tf.data.Dataset.from_tensors(
            ({"user": np.array(ids)[:, None]}, np.zeros(len(ids), np.float32))
        ).repeat(3)

    estimator = tf.estimator.Estimator(model_fn, tmp_path)
    estimator.train(users(1, 2))
    assert estimator.evaluate(users(1, 2, 3, 4))["size"] == 2
    for found in list(estimator.predict(users(1, 5)))[1::2]:
        assert found == {"size": 2, "value": 1}
    estimator.train(users(1, 2, 6))
    assert estimator.evaluate(users(7))["size"] == 3


def test_read_only_holds_for_its_graph_and_its_block():
    table = tf.EmbeddingTable(1)

    def grows(rows):
        return [op.get_attr("grows") for op in rows.graph.get_operations() if "Find" in op.type][-1]

    with tf.EmbeddingTable.read_only():
        with tf.PartitionedEmbeddingTable.read_only():
            assert not grows(table.lookup([1]))
        assert not grows(tf.gather(table, [1]))
        assert grows(table.lookup([1], grows=True))
        with tf.Graph().as_default():
            assert grows(tf.EmbeddingTable(1).lookup([1]))
        with pytest.raises(ZeroDivisionError), tf.EmbeddingTable.read_only():
            _ = 1 / 0
        assert not grows(table.lookup([1]))
    assert grows(table.lookup([1]))

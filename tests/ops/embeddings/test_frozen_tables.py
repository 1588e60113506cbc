"""Tables that are exported: graphs without their machinery, which give the same rows."""

import subprocess
import sys

import numpy as np
import pytest

import headrace as tf

KEYS = [2**62, -5, 0, -(2**63), 7]


@pytest.fixture(scope="module")
def exported():
    """What a trained table of two parts gives."""
    with tf.Graph().as_default():
        table = tf.PartitionedEmbeddingTable(3, 2, seed=1)
        rows = tf.nn.embedding_lookup(table, KEYS)
        train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(rows**2))
        with tf.Session() as sess:
            sess.run(train)
            return sess.run(rows), sess.run(table.export())


def served(exported, constant):
    """A graph that is served, its input and output, and a session that has loaded it."""
    table = tf.lookup.FrozenEmbeddingTable(
        *exported, default_row=[9.0, 8.0, 7.0], constant=constant
    )
    keys = tf.placeholder(tf.int64, [None, 2], "keys")
    rows = tf.identity(tf.nn.embedding_lookup(table, keys), "rows")
    session = tf.Session()
    table.load(session)
    return keys, rows, session


@pytest.mark.parametrize("constant", [True, False])
def test_a_frozen_table_has_the_rows_and_a_default(exported, constant):
    expected, given = exported
    keys, rows, session = served(given, constant)
    with session:
        found = session.run(rows, {keys: [[KEYS[3], 1], [KEYS[0], KEYS[1]]]})
    default = [9.0, 8.0, 7.0]
    np.testing.assert_array_equal(found, [[expected[3], default], [expected[0], expected[1]]])
    assert rows.shape.as_list() == [None, 2, 3]


def test_it_looks_up_sparse_ids_of_any_sign(exported):
    expected, given = exported
    table = tf.lookup.FrozenEmbeddingTable(*given)
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant(KEYS[1:4], tf.int64), [3, 2])
    rows = tf.nn.safe_embedding_lookup_sparse(table, ids, combiner="sum")
    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        found = sess.run(rows)
    wanted = [expected[1] + expected[2], np.zeros(3), expected[3]]
    np.testing.assert_allclose(found, wanted, 1e-6)


def test_a_table_without_keys_has_its_default_only():
    table = tf.lookup.FrozenEmbeddingTable(np.zeros(0, np.int64), np.zeros((0, 2), np.float32), 3)
    with tf.Session() as sess:
        sess.run(table.initializer)
        assert sess.run(table.lookup([4, -4])).tolist() == [[3, 3], [3, 3]]


LOAD = """
import sys
import numpy as np
import headrace as tf
folder, keys = sys.argv[1], [[int(k)] * 2 for k in sys.argv[2:]]
graph = tf.GraphDef()
with open(f"{folder}/frozen.pb", "rb") as file:
    graph.ParseFromString(file.read())
rows, start = tf.import_graph_def(graph, return_elements=["rows:0", "start"], name="")
with tf.Session() as sess:
    sess.run(start)
    frozen = sess.run(rows, {"keys:0": keys})
with tf.Graph().as_default(), tf.Session() as sess:
    loaded = tf.saved_model.loader.load(sess, ["serve"], f"{folder}/model")
    signature = loaded.signature_def["serving_default"]
    names = [signature.outputs["rows"].name, signature.inputs["keys"].name]
    saved = sess.run(names[0], {names[1]: keys})
np.savez(f"{folder}/found.npz", frozen=frozen, saved=saved)
"""


@pytest.mark.process
@pytest.mark.parametrize("constant", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_another_process_loads_the_frozen_graph_and_the_saved_model(exported, constant, tmp_path):
    """No operation of tables that grow is in either."""
    expected, given = exported
    keys, rows, session = served(given, constant)
    start = tf.tables_initializer(name="start")
    with session:
        frozen = tf.graph_util.convert_variables_to_constants(
            session, tf.get_default_graph().as_graph_def(), ["rows", "start"]
        )
        model = str(tmp_path / "model")
        tf.saved_model.simple_save(
            session, model, {"keys": keys}, {"rows": rows}, legacy_init_op=start
        )
    assert not [node.op for node in frozen.node if "EmbeddingTable" in node.op]
    (tmp_path / "frozen.pb").write_bytes(frozen.SerializeToString())
    command = [sys.executable, "-c", LOAD, str(tmp_path), *map(str, KEYS), "1"]
    subprocess.run(command, check=True, timeout=100)
    wanted = np.stack([[row, row] for row in [*expected, [9.0, 8.0, 7.0]]])
    with np.load(tmp_path / "found.npz") as found:
        np.testing.assert_array_equal(found["frozen"], wanted)
        np.testing.assert_array_equal(found["saved"], wanted)


@pytest.mark.parametrize(
    ("keys", "rows", "default", "error", "text"),
    [
        ([1, 2], [[1.0]], None, ValueError, r"they have the shapes \[2\] and \[1, 1\]"),
        ([1, 1], [[1.0], [2.0]], None, ValueError, "Key 1 comes more than once"),
        ([1.5], [[1.0]], None, TypeError, "Keys of a table are integers, not float64"),
        ([1], [[1]], None, TypeError, "floating-point numbers, not int64"),
        ([1], [[1.0, 2.0]], [1.0], ValueError, r"A row has shape \[2\]; the default row has \[1\]"),
    ],
)
def test_what_is_no_table_is_told(keys, rows, default, error, text):
    with pytest.raises(error, match=text):
        tf.lookup.FrozenEmbeddingTable(keys, rows, default)

"""Lookup tables: state, sharing, order, checkpoints, files and bad input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import headrace as tf
from headrace import errors
from headrace.contrib import lookup
from headrace.ops.core.build import raw


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def _ids(*values: int) -> Any:
    return np.array(values, np.int64)


def _static(keys: Any = ("a", "b"), values: Any = (1, 2)) -> Any:
    return lookup.HashTable(lookup.KeyValueTensorInitializer(list(keys), list(values)), -1)


def test_embedding_of_words() -> None:
    """What text programs do: words to ids, ids to vectors, and training the vectors."""
    words = tf.placeholder(tf.string, [None])
    table = lookup.index_table_from_tensor(["good", "bad"], num_oov_buckets=1)
    vectors = tf.get_variable("vectors", [3, 1], initializer=tf.zeros_initializer())
    score = tf.nn.embedding_lookup(vectors, table.lookup(words))[:, 0]
    loss = tf.reduce_sum(tf.square(score - [1.0, -1.0, 0.0]))
    train = tf.train.GradientDescentOptimizer(0.25).minimize(loss)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        for _ in range(20):
            session.run(train, {words: ["good", "bad", "other"]})
        found = session.run(score, {words: ["bad", "good", "unknown"]})
    np.testing.assert_allclose(found, [-1.0, 1.0, 0.0], atol=1e-5)


# -- static tables ------------------------------------------------------------------------------


def test_table_must_be_initialized() -> None:
    table = _static()
    for fetch in (table.lookup(tf.constant("a")), table.size(), table.export()):
        with (
            tf.Session() as session,
            pytest.raises(errors.FailedPreconditionError, match="Table not initialized"),
        ):
            session.run(fetch)


def test_initializing_twice() -> None:
    table = _static()
    with tf.Session() as session:
        session.run(table.init)
        session.run(table.initializer)
        assert session.run(table.size()) == 2
        other = raw.InitializeTableV2(table.resource_handle, ["a"], [5])
        with pytest.raises(errors.FailedPreconditionError, match="different data"):
            session.run(other)
        assert session.run(table.lookup(tf.constant(["a"]))).tolist() == [1]


def test_each_session_has_its_own() -> None:
    table = _static()
    with tf.Session() as session:
        session.run(tf.tables_initializer())
    with tf.Session() as session, pytest.raises(errors.FailedPreconditionError):
        session.run(table.size())


def test_one_key_with_two_values() -> None:
    table = _static(["a", "a"], [1, 2])
    message = "Key a has 1 and trying to add value 2"
    with tf.Session() as session, pytest.raises(errors.FailedPreconditionError, match=message):
        session.run(table.init)


def test_static_tables_do_not_change() -> None:
    table = _static()
    with tf.Session() as session:
        session.run(table.init)
        for change in (
            raw.LookupTableInsertV2(table.resource_handle, ["c"], [3]),
            raw.LookupTableRemoveV2(table.resource_handle, ["a"]),
        ):
            with pytest.raises(errors.InvalidArgumentError, match="cannot change"):
                session.run(change)


def test_types_must_fit() -> None:
    table = _static()
    with pytest.raises(TypeError, match=r"Keys must be dtype .*string.*, got .*int32"):
        table.lookup(tf.constant([1]))
    with pytest.raises(ValueError, match=r"compatible|rank"):
        lookup.HashTable(lookup.KeyValueTensorInitializer(["a"], [1]), [1, 2])
    wrong = raw.LookupTableFindV2(table.resource_handle, ["a"], 1.5)
    with tf.Session() as session:
        session.run(table.init)
        with pytest.raises(errors.InvalidArgumentError, match="Conflicting key/value dtypes"):
            session.run(wrong)


def test_lookup_shapes() -> None:
    table = _static()
    keys = tf.placeholder(tf.string, [None, 3])
    assert table.lookup(keys).shape.as_list() == [None, 3]
    vectors = lookup.MutableHashTable(tf.string, tf.float32, [0.0, 0.0])
    assert vectors.lookup(keys).shape.as_list() == [None, 3, 2]
    assert [t.shape.as_list() for t in vectors.export()] == [[None], [None, 2]]


def test_no_initializers() -> None:
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        session.run(tf.initialize_all_tables(name="other"))


def test_inside_control_flow() -> None:
    table = lookup.HashTable(
        lookup.KeyValueTensorInitializer(["a", "b", "c"], ["b", "c", "end"]), "none"
    )
    last, steps = tf.while_loop(
        lambda word, n: tf.not_equal(word, "end"),
        lambda word, n: (table.lookup(word), n + 1),
        (tf.constant("a"), tf.constant(0)),
    )
    with tf.Session() as session:
        session.run(table.init)
        assert session.run([last, steps]) == [b"end", 3]


# -- files --------------------------------------------------------------------------------------


def _from_file(path: Path, text: str, **options: Any) -> Any:
    path.write_text(text)
    return lookup.index_table_from_file(str(path), **options)


def _initialize(table: Any) -> None:
    with tf.Session() as session:
        session.run(table.initializer)


def test_absent_file(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="nothing here"):
        _initialize(lookup.index_table_from_file(str(tmp_path / "nothing here")))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a\nb\n", {"vocab_size": 3}, "expected 3 but got 2"),
        ("a\n\nb\n", {}, "line 1 is empty"),
        (
            "a\t1\nb\n",
            {"key_column_index": 0, "value_column_index": 1},
            r"line 1 \(b\) : expected 2",
        ),
        ("a\tx\n", {"key_column_index": 0, "value_column_index": 1}, "Field x in line 0"),
        ("a\tb\n", {"delimiter": ", "}, "delimiter must be only 1 char"),
    ],
)
def test_malformed_files(tmp_path: Path, text: str, options: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        _initialize(_from_file(tmp_path / "words", text, **options))


def test_large_files_are_read_in_parts(tmp_path: Path) -> None:
    words = [f"word{i}" for i in range(150_000)]
    table = _from_file(tmp_path / "words", "\n".join(words))
    with tf.Session() as session:
        session.run(table.init)
        assert session.run(table.size()) == len(words)
        found = session.run(table.lookup(tf.constant([words[77_777], words[-1]])))
    assert found.tolist() == [77_777, len(words) - 1]


def test_file_name_may_be_fed(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("a\nb\n")
    name = tf.placeholder(tf.string, [])
    table = lookup.index_table_from_file(name)
    with tf.Session() as session:
        session.run(tf.tables_initializer(), {name: str(tmp_path / "words")})
        assert session.run(table.size()) == 2
    assert not tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="vocabulary_file must be specified"):
        lookup.index_table_from_file("")
    with pytest.raises(ValueError, match="vocab_size must be greater than 0, got 0"):
        lookup.index_table_from_file("words", vocab_size=0)
    with pytest.raises(ValueError, match="num_oov_buckets must be greater"):
        lookup.index_table_from_tensor(["a"], num_oov_buckets=-1)
    with pytest.raises(ValueError, match="mapping must be specified"):
        lookup.index_table_from_tensor(None)
    with pytest.raises(TypeError, match="Only integer and string keys"):
        lookup.index_table_from_tensor(["a"], dtype=tf.float32)
    with pytest.raises(ValueError, match="Expected integer, got"):
        lookup.index_table_from_tensor(["a"], dtype=tf.int64)
    with pytest.raises(ValueError, match="oov_buckets must be > 0"):
        lookup.IdTableWithHashBuckets(None, 0)
    with pytest.raises(ValueError, match="key must have size 2"):
        lookup.StrongHashSpec([1])
    with pytest.raises(TypeError, match="HasherSpec"):
        lookup.IdTableWithHashBuckets(None, 3, hasher_spec="fast")
    with pytest.raises(ValueError, match=r"Values must be dtype .*int64"):
        lookup.TextFileInitializer("words", tf.string, 0, tf.int32, -1)
    with pytest.raises(ValueError, match="Keys must be integer or string"):
        lookup.TextFileInitializer("words", tf.float32, -2, tf.int64, -1)
    with pytest.raises(ValueError, match="Invalid key index -3"):
        lookup.TextFileInitializer("words", tf.string, -3, tf.int64, -1)


# -- tables that change -------------------------------------------------------------------------


def test_order_by_control_dependencies() -> None:
    table = lookup.MutableHashTable(tf.string, tf.int64, -1)
    insert = table.insert(["a"], _ids(5))
    with tf.control_dependencies([insert]):
        found = table.lookup(["a", "b"])
    with tf.control_dependencies([found]):
        removed = table.remove(tf.constant(["a"]))
    with tf.control_dependencies([removed]):
        size = table.size()
    with tf.Session() as session:
        values, count = session.run([found, size])
    assert values.tolist() == [5, -1]
    assert count == 0


def test_values_of_other_shapes() -> None:
    table = lookup.MutableHashTable(tf.string, tf.float32, [0.0, 0.0])
    with tf.Session() as session:
        with pytest.raises(errors.InvalidArgumentError, match=r"Expected shape \[1, 2\] for value"):
            session.run(table.insert(["a"], [1.0]))
        with pytest.raises(errors.InvalidArgumentError, match="for default value"):
            session.run(raw.LookupTableFindV2(table.resource_handle, ["a"], [0.0] * 3))


def test_inserted_values_are_copies() -> None:
    table = lookup.MutableHashTable(tf.string, tf.float32, [0.0, 0.0])
    values = tf.placeholder(tf.float32, [1, 2])
    fed = np.ones((1, 2), np.float32)
    with tf.Session() as session:
        session.run(table.insert(["a"], values), {values: fed})
        fed[:] = 7
        found = session.run(table.lookup(["a"]))
        found[:] = 9
        assert session.run(table.lookup(["a"])).tolist() == [[1.0, 1.0]]


def test_a_default_for_each_key() -> None:
    table = lookup.MutableHashTable(tf.string, tf.int64, -1)
    found = raw.LookupTableFindV2(table.resource_handle, ["a", "b", "c"], _ids(7, 8, 9))
    with tf.Session() as session:
        session.run(table.insert(["b"], _ids(0)))
        assert session.run(found).tolist() == [7, 0, 9]


def test_reserved_keys() -> None:
    table = lookup.MutableDenseHashTable(tf.int64, tf.int64, -1, empty_key=0, deleted_key=-1)
    with tf.Session() as session:
        with pytest.raises(errors.InvalidArgumentError, match="Using the empty_key"):
            session.run(table.insert(_ids(0), _ids(1)))
        with pytest.raises(errors.InvalidArgumentError, match="Using the deleted_key"):
            session.run(table.lookup(_ids(-1)))
    same = lookup.MutableDenseHashTable(tf.int64, tf.int64, -1, empty_key=3, deleted_key=3)
    with (
        tf.Session() as session,
        pytest.raises(errors.InvalidArgumentError, match="cannot be equal"),
    ):
        session.run(same.size())


@pytest.mark.parametrize(
    ("dtype", "empty", "key"),
    [(tf.int64, 0, 5), (tf.string, "", "a"), (tf.float32, 0.0, 1.5), (tf.int64, [0, 0], [1, 2])],
)
def test_deleted_key_may_be_left_out(dtype: Any, empty: Any, key: Any) -> None:
    table = lookup.MutableDenseHashTable(dtype, tf.int64, -1, empty)
    with tf.Session() as session:
        session.run(table.insert([key], _ids(3)))
        assert session.run(table.lookup([key])).tolist() == [3]


def test_keys_of_another_shape() -> None:
    table = lookup.MutableDenseHashTable(
        tf.int64, tf.int64, -1, empty_key=[0, 0], deleted_key=[-1, -1]
    )
    with tf.Session() as session, pytest.raises(errors.InvalidArgumentError, match="key shape"):
        session.run(table.lookup(_ids(1, 2, 3)))


def test_shared_tables() -> None:
    first = lookup.MutableHashTable(tf.string, tf.int64, -1, shared_name="t", checkpoint=False)
    second = lookup.MutableHashTable(tf.string, tf.int64, -2, shared_name="t", checkpoint=False)
    third = lookup.MutableHashTable(tf.string, tf.float32, 0.0, shared_name="t", checkpoint=False)
    with tf.Session() as session:
        session.run(first.insert(["a"], _ids(4)))
        assert session.run(second.lookup(["a", "b"])).tolist() == [4, -2]
        with pytest.raises(errors.InvalidArgumentError, match=r"shared, but is .*int64.*float32"):
            session.run(third.size())


def test_checkpoints(tmp_path: Path) -> None:
    words = lookup.MutableHashTable(tf.string, tf.int64, -1, name="words")
    vectors = lookup.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0])
    more = lookup.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0])
    saver = tf.train.Saver()
    path = str(tmp_path / "model")
    with tf.Session() as session:
        session.run(words.insert(["a", "é"], _ids(1, 2)))
        session.run(vectors.insert(_ids(5), [[1.0, 2.0]]))
        session.run(more.insert(_ids(6), [[3.0, 4.0]]))
        saver.save(session, path)
        session.run(words.insert(["c"], _ids(9)))
        saver.restore(session, path)
        assert session.run(words.size()) == 2
    names = [name for name, _ in tf.train.list_variables(path)]
    assert names[:2] == ["MutableHashTable-keys", "MutableHashTable-values"]
    with tf.Session() as session:
        saver.restore(session, path)
        assert session.run(words.lookup(["é", "c"])).tolist() == [2, -1]
        assert session.run(vectors.lookup(_ids(5))).tolist() == [[1.0, 2.0]]
        assert session.run(more.lookup(_ids(5, 6))).tolist() == [[0.0, 0.0], [3.0, 4.0]]


def test_graph_files() -> None:
    table = lookup.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0], name="table")
    dense = lookup.MutableDenseHashTable(tf.int64, tf.int64, -1, empty_key=0, deleted_key=-1)
    tf.group(table.insert(_ids(1), [[1.0, 2.0]]), dense.insert(_ids(1), _ids(8)), name="insert")
    tf.identity(table.lookup(_ids(1)), name="found")
    tf.identity(dense.lookup(_ids(1)), name="dense_found")
    graph_def = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        session.run("insert")
        assert session.run("found:0").tolist() == [[1.0, 2.0]]
        assert session.run("dense_found:0").tolist() == [8]


def test_graph_files_of_old() -> None:
    """Handles of tables were references to strings once."""
    text = """
    node { name: "table" op: "HashTable"
      attr { key: "key_dtype" value { type: DT_STRING } }
      attr { key: "value_dtype" value { type: DT_INT64 } } }
    node { name: "keys" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
      attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { dim { size: 2 } }
        string_val: "a" string_val: "b" } } } }
    node { name: "values" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
      attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape { dim { size: 2 } }
        int64_val: 5 int64_val: 6 } } } }
    node { name: "default" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
      attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape {} int64_val: -1 } } } }
    node { name: "init" op: "InitializeTable" input: "table" input: "keys" input: "values"
      attr { key: "Tkey" value { type: DT_STRING } }
      attr { key: "Tval" value { type: DT_INT64 } } }
    node { name: "found" op: "LookupTableFind" input: "table" input: "keys" input: "default"
      attr { key: "Tin" value { type: DT_STRING } }
      attr { key: "Tout" value { type: DT_INT64 } } }
    node { name: "size" op: "LookupTableSize" input: "table" }
    """
    tf.import_graph_def(text_format.Parse(text, tf.GraphDef()), name="")
    with tf.Session() as session:
        session.run("init")
        assert session.run("found:0").tolist() == [5, 6]
        assert session.run("size:0") == 2


def test_a_table_in_a_branch():
    initializer = tf.contrib.lookup.KeyValueTensorInitializer([1, 2], [3, 4])
    table = tf.contrib.lookup.HashTable(initializer, -1)
    pred = tf.placeholder(tf.bool, [])
    found = tf.cond(pred, lambda: table.lookup(tf.constant([2, 5])), lambda: tf.constant([0, 0]))
    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        results = [sess.run(found, {pred: value}).tolist() for value in (True, False, True)]
    assert results == [[4, -1], [0, 0], [4, -1]]

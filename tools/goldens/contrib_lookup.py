"""Lookup tables of `tf.contrib.lookup` and `tf.lookup`. Python 3.7: TensorFlow 1.15 runs this."""

import os
import tempfile

import numpy as np

from . import golden


def _file(text):
    handle, path = tempfile.mkstemp()
    os.write(handle, text.encode())
    os.close(handle)
    return path


def _sorted(pair):
    """Exported keys and values in an order that does not depend on hashes."""
    order = np.argsort(pair[0], kind="stable")
    return pair[0][order], pair[1][order]


@golden(with_session=True)
def vocabularies(tf, session):
    lookup = tf.contrib.lookup
    words = tf.constant([["emerson", "lake", "and"], ["palmer", "king", "crimson"]])
    known = ["emerson", "lake", "palmer"]
    sparse = tf.SparseTensor([[0, 1], [1, 0]], ["lake", "crimson"], [2, 3])
    path = _file("emerson\nlake\r\npalmer\nand\nlast one")
    tables = {
        "plain": lookup.index_table_from_tensor(known),
        "buckets": lookup.index_table_from_tensor(known, num_oov_buckets=5, name="named"),
        "strong": lookup.index_table_from_tensor(
            tf.constant(known), 7, hasher_spec=lookup.StrongHashSpec([11, 22])
        ),
        "legacy": lookup.index_table_from_tensor(
            known, 7, hasher_spec=lookup.HasherSpec("legacy", None)
        ),
        "old": lookup.string_to_index_table_from_tensor(known, default_value=42),
        "file": lookup.index_table_from_file(path),
        "file_buckets": lookup.index_table_from_file(path, 3, vocab_size=2),
        "only_buckets": lookup.IdTableWithHashBuckets(None, 10),
    }
    numbers = lookup.index_table_from_tensor([10, 30, 20], 4, dtype=tf.int64)
    back = lookup.index_to_string_table_from_tensor(known, "none")
    lines = lookup.index_to_string_table_from_file(path, vocab_size=4)
    ids = tf.constant([0, 2, 4, -1], tf.int64)
    session.run(tf.tables_initializer())
    session.run(tf.tables_initializer())
    results = {}
    for name, table in tables.items():
        results[name + "_ids"] = session.run(table.lookup(words))
        results[name + "_size"] = session.run(table.size())
        results[name + "_name"] = table.name
    found = session.run(tables["buckets"].lookup(sparse))
    results["sparse"] = found.values
    results["sparse_places"] = found.indices
    results["numbers"] = session.run(numbers.lookup(tf.constant([20, 40, 10], tf.int64)))
    results["back"] = session.run(back.lookup(ids))
    results["lines"] = session.run(lines.lookup(ids))
    results["direct"] = session.run(back.lookup(tables["plain"].lookup(words)))
    results["collected"] = len(tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS))
    results["assets"] = len(tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS))
    return results


@golden(with_session=True)
def static_tables(tf, session):
    lookup = tf.contrib.lookup
    path = _file("brain\t300\t0.5\nsalad\t20\t1.5\nsurgery\t1\t2.5\n")
    columns = lookup.HashTable(
        lookup.TextFileInitializer(path, tf.string, 0, tf.int64, 1), default_value=-1
    )
    floats = lookup.HashTable(
        lookup.TextFileInitializer(path, tf.int64, lookup.TextFileIndex.LINE_NUMBER, tf.float32, 2),
        default_value=-1.0,
    )
    pairs = lookup.HashTable(
        lookup.KeyValueTensorInitializer([3, 1, 2], [0.5, 1.5, 2.5], tf.int64, tf.float32),
        default_value=-0.5,
    )
    repeated = lookup.HashTable(lookup.KeyValueTensorInitializer(["a", "b", "a"], [1, 2, 1]), 0)
    session.run([t.init for t in (columns, floats, pairs, repeated)])
    keys, values = _sorted(session.run(pairs.export()))
    return {
        "columns": session.run(columns.lookup(tf.constant(["salad", "surgery", "x"]))),
        "floats": session.run(floats.lookup(tf.constant([[2, 0], [3, 1]], tf.int64))),
        "pairs": session.run(pairs.lookup(tf.constant([1, 2, 3, 4], tf.int64))),
        "keys": keys,
        "values": values,
        "repeated": session.run(repeated.size()),
        "names": [t.name for t in (columns, floats, pairs, repeated)],
    }


@golden(with_session=True)
def mutable_tables(tf, session):
    lookup = tf.contrib.lookup
    table = lookup.MutableHashTable(tf.string, tf.int64, -1)
    vectors = lookup.MutableHashTable(tf.int64, tf.float32, [0.0, -1.0], name="vectors")
    dense = lookup.MutableDenseHashTable(
        tf.int64, tf.int64, default_value=-1, empty_key=0, deleted_key=-9
    )
    rows = lookup.MutableDenseHashTable(
        tf.int64, tf.float32, [0.5, 0.25], empty_key=[0, 0], deleted_key=[-1, -1]
    )
    keys = tf.constant(["a", "b", "a"])
    session.run(table.insert(keys, tf.constant([1, 2, 3], tf.int64)))
    results = {"found": session.run(table.lookup(tf.constant([["a"], ["z"]])))}
    session.run(table.insert(["b", "c"], tf.constant([7, 8], tf.int64)))
    exported = _sorted(session.run(table.export()))
    results["keys"], results["values"] = exported
    if hasattr(table, "remove"):
        session.run(table.remove(tf.constant(["a", "none"])))
    results["size"] = session.run(table.size())
    numbers = tf.constant([5, 6], tf.int64)
    session.run(vectors.insert(numbers, [[1.0, 2.0], [3.0, 4.0]]))
    results["vectors"] = session.run(vectors.lookup(tf.constant([[6], [7]], tf.int64)))
    session.run(dense.insert(numbers, tf.constant([50, 60], tf.int64)))
    session.run(dense.remove(tf.constant([5], tf.int64)))
    results["dense"] = session.run(dense.lookup(tf.constant([5, 6, 7], tf.int64)))
    pairs = tf.constant([[1, 2], [2, 1]], tf.int64)
    session.run(rows.insert(pairs, [[1.0, 2.0], [3.0, 4.0]]))
    results["rows"] = session.run(rows.lookup(tf.constant([[2, 1], [7, 7]], tf.int64)))
    results["names"] = [t.name for t in (table, vectors, dense, rows)]
    return results


@golden(with_session=True)
def lookup_namespace(tf, session):
    lookup = tf.lookup
    init = lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64))
    static = lookup.StaticHashTable(init, -1)
    vocabulary = lookup.StaticVocabularyTable(init, 4)
    session.run(tf.initializers.tables_initializer())
    keys = tf.constant(["b", "x", "yy"])
    return {
        "static": session.run(static.lookup(keys)),
        "vocabulary": session.run(vocabulary.lookup(keys)),
        "size": session.run(vocabulary.size()),
    }

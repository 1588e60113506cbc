"""tf.train.warm_start: variables that start with values of an earlier model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf

OLD = np.arange(10, dtype=np.float32).reshape(5, 2)  # of the words a b c d e


@pytest.fixture
def earlier(tmp_path: Path) -> str:
    """The checkpoint of an earlier model, and vocabularies beside it."""
    (tmp_path / "old.txt").write_text("a\nb\nc\nd\ne\n")
    (tmp_path / "new.txt").write_text("d\nx\na\n")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("in/table", initializer=OLD)
        tf.get_variable("out/kernel", initializer=OLD.T)
        tf.get_variable("bias", initializer=np.arange(5, dtype=np.float32))
        tf.get_variable("old_name", initializer=7.0)
        tf.get_variable("count", initializer=3.0, trainable=False)
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / "m"))
    return str(tmp_path)


def vocabulary(folder: str, **options: Any) -> tf.train.VocabInfo:
    return tf.train.VocabInfo(f"{folder}/new.txt", 3, 1, f"{folder}/old.txt", **options)


def values(*fetches: Any) -> list[Any]:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(fetches))


def test_variables_of_the_same_and_of_other_names(earlier: str) -> None:
    new = tf.get_variable("new_name", shape=[])
    table = tf.get_variable("in/table", shape=[5, 2], partitioner=tf.fixed_size_partitioner(2))
    count = tf.get_variable("count", initializer=0.0, trainable=False)
    tf.train.warm_start(earlier, var_name_to_prev_var_name={"new_name": "old_name"})
    found = values(new, table.as_tensor(), count)
    assert found[0] == 7
    np.testing.assert_array_equal(found[1], OLD)
    assert found[2] == 0  # not trainable


@pytest.mark.parametrize("chosen", [["count"], "variables"])
def test_lists_choose_among_all_variables(earlier: str, chosen: Any) -> None:
    count = tf.get_variable("count", initializer=0.0, trainable=False)
    other = tf.get_variable("bias", initializer=np.zeros(5, np.float32))
    tf.train.warm_start(earlier, [count] if chosen == "variables" else chosen)
    found = values(count, other)
    assert found[0] == 3
    assert not found[1].any()


@pytest.mark.parametrize("parts", [None, 2])
def test_rows_follow_their_words(earlier: str, parts: int | None) -> None:
    partitioner = parts and tf.fixed_size_partitioner(parts)
    table = tf.get_variable("in/table", shape=[4, 2], partitioner=partitioner)
    bias = tf.get_variable("bias", shape=[4])
    backup = tf.constant_initializer(-1.0)
    tf.train.warm_start(
        earlier,
        None,
        {
            "in/table": vocabulary(earlier, backup_initializer=backup),
            "bias": vocabulary(earlier, old_vocab_size=3),
        },
    )
    found = values(tf.convert_to_tensor(table), bias)
    np.testing.assert_array_equal(found[0], [OLD[3], [-1, -1], OLD[0], [-1, -1]])
    np.testing.assert_array_equal(found[1], [0, 0, 0, 0])  # d was beyond the old size


def test_columns_follow_their_words(earlier: str) -> None:
    kernel = tf.get_variable("out/kernel", shape=[2, 4], partitioner=tf.fixed_size_partitioner(2))
    tf.train.warm_start(earlier, "out", {"out/kernel": vocabulary(earlier, axis=1)})
    zero = [0, 0]
    [found] = values(kernel.as_tensor())
    np.testing.assert_array_equal(found, np.transpose([OLD[3], zero, OLD[0], zero]))


def test_what_does_not_fit(earlier: str) -> None:
    table = tf.get_variable("in/table", shape=[5, 2])
    tf.get_variable("unknown", shape=[])
    with pytest.raises(ValueError, match=r"not used: \['tabel'\].*\['in/table', 'unknown'\]"):
        tf.train.warm_start(earlier, var_name_to_prev_var_name={"tabel": "old_name"})
    with pytest.raises(ValueError, match=r"var_name_to_vocab_info that were not used: \['x'\]"):
        tf.train.warm_start(earlier, var_name_to_vocab_info={"x": vocabulary(earlier)})
    with pytest.raises(ValueError, match=r"the variable needs 4 entries \(3 words and 1 more\)"):
        tf.train.warm_start(earlier, "in", {"in/table": vocabulary(earlier)})
    with pytest.raises(ValueError, match="Tensor unknown is not found"):
        tf.train.warm_start(earlier, "unknown")
    with pytest.raises(ValueError, match="must be a `list` or `str`"):
        tf.train.warm_start(earlier, 3)
    with pytest.raises(ValueError, match="all `Variable` or all `str`"):
        tf.train.warm_start(earlier, [table, 3])
    with pytest.raises(ValueError, match="axis argument are 0 and 1"):
        tf.train.VocabInfo("a", 1, 0, "b", axis=2)
    short = tf.train.VocabInfo(f"{earlier}/new.txt", 4, 1, f"{earlier}/old.txt")
    with pytest.raises(ValueError, match="has 3 words; new_vocab_size is 4"):
        tf.train.warm_start(earlier, "in", {"in/table": short})

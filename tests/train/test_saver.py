"""tf.train.Saver and the functions about checkpoints."""

from __future__ import annotations

import os
import re
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace import errors
from headrace.ops.core.build import raw

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import make_checkpoint_goldens as made  # noqa: E402

GOLDEN = ROOT / "tests" / "golden" / "checkpoints"


def variables() -> dict[str, Any]:
    return {
        "f": tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="f"),
        "i": tf.Variable(7, name="i"),
        "c": tf.Variable(np.complex64(1 + 2j), name="c"),
        "h": tf.Variable(np.arange(3), name="h", dtype=tf.bfloat16),
        "s": tf.Variable([b"a", b"bc\x00"], name="s"),
        "b": tf.Variable([True, False], name="b"),
    }


def same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()


def saved(tmp_path: Path, **values: Any) -> str:
    """A checkpoint of variables with these values."""
    with tf.Graph().as_default(), tf.Session() as session:
        made_here = [tf.Variable(v, name=k) for k, v in values.items()]
        session.run(tf.global_variables_initializer())
        return tf.train.Saver(made_here).save(session, str(tmp_path / "m"))


# -- round trips ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("interpret")
def test_restores_what_was_saved(tmp_path: Path) -> None:
    made_here = variables()
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "m"), global_step=3)
        before = session.run(made_here)
    assert path == str(tmp_path / "m-3")
    with tf.Session() as session:
        saver.restore(session, path)
        after = session.run(made_here)
    assert all(same(before[k], after[k]) for k in before)


def test_restoring_copies_nothing(tmp_path: Path) -> None:
    size = 1 << 20
    v = tf.get_variable("v", initializer=np.ones(size, np.float32))
    saver = tf.train.Saver()
    more = v.assign_add(tf.ones([size]))
    with tf.Session() as session:
        session.run(v.initializer)
        path = saver.save(session, str(tmp_path / "m"))
        for _ in range(3):
            tracemalloc.start()
            saver.restore(session, path)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 1.5 * 4 * size
            # What was read and fetched stays as it was when the variable changes.
            read = tf.get_default_graph().get_operation_by_name("save/RestoreV2").outputs[0]
            restored, _ = session.run(
                [read, saver.saver_def.restore_op_name],
                {saver.saver_def.filename_tensor_name: path},
            )
            session.run(more.op)
            session.run(more.op)
            assert session.run(v)[0] == 3
            assert restored.max() == 1


def test_the_graph_ops_can_be_run_by_name(tmp_path: Path) -> None:
    v = tf.Variable(1.5, name="v")
    saver = tf.train.Saver()
    names = saver.saver_def
    assert names.filename_tensor_name == "save/Const:0"
    assert names.save_tensor_name == "save/control_dependency:0"
    assert names.restore_op_name == "save/restore_all"
    with tf.Session() as session:
        session.run(v.initializer)
        session.run("save/control_dependency:0", {"save/Const:0": str(tmp_path / "m")})
        session.run(v.assign(9.0))
        session.run("save/restore_all", {"save/Const:0": str(tmp_path / "m")})
        assert session.run(v) == 1.5


@pytest.mark.parametrize("sequentially", [False, True])
def test_partitioned_variables_restore_into_other_partitions(
    tmp_path: Path, sequentially: bool
) -> None:
    whole = np.arange(20, dtype=np.float32).reshape(10, 2)
    options = {"restore_sequentially": sequentially}
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("p", initializer=whole, partitioner=tf.fixed_size_partitioner(3))
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver(**options).save(session, str(tmp_path / "m"))
    assert tf.train.list_variables(path) == [("p", [10, 2])]
    for partitioner in (None, tf.fixed_size_partitioner(4), tf.fixed_size_partitioner(2, axis=1)):
        with tf.Graph().as_default(), tf.Session() as session:
            p = tf.get_variable("p", initializer=whole * 0, partitioner=partitioner)
            tf.train.Saver(**options).restore(session, path)
            np.testing.assert_array_equal(session.run(tf.convert_to_tensor(p)), whole)


def test_names_of_the_checkpoint_come_from_a_dict(tmp_path: Path) -> None:
    path = saved(tmp_path, old_a=1.0, old_b=2.0)
    a, b = tf.Variable(0.0, name="a"), tf.Variable(0.0, name="b")
    with tf.Session() as session:
        tf.train.Saver({"old_a": a, "old_b": b}).restore(session, path)
        assert session.run([a, b]) == [1.0, 2.0]


def test_a_part_of_the_variables(tmp_path: Path) -> None:
    path = saved(tmp_path, a=1.0, b=2.0)
    tf.Variable(0.0, name="other")
    b = tf.Variable(0.0, name="b")
    with tf.Session() as session:
        tf.train.Saver([b]).restore(session, path)
        assert session.run(b) == 2.0
        with pytest.raises(errors.FailedPreconditionError, match="other"):
            session.run("other:0")


def test_reshape(tmp_path: Path) -> None:
    path = saved(tmp_path, v=np.arange(6, dtype=np.float32).reshape(2, 3))
    v = tf.Variable(np.zeros((3, 2), np.float32), name="v")
    with tf.Session() as session:
        tf.train.Saver(reshape=True).restore(session, path)
        np.testing.assert_array_equal(session.run(v), np.arange(6).reshape(3, 2))
        with pytest.raises(errors.InvalidArgumentError, match="Assign requires shapes of both"):
            tf.train.Saver().restore(session, path)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.Variable(np.zeros((4, 2), np.float32), name="v")
        with pytest.raises(errors.InvalidArgumentError, match="6 and 8 elements"):
            tf.train.Saver(reshape=True).restore(session, path)


def test_moving_averages_are_restored_in_place_of_variables(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(1.0, name="v")
        ema = tf.train.ExponentialMovingAverage(0.5)
        move = ema.apply([v])
        session.run(tf.global_variables_initializer())
        session.run(v.assign(3.0))
        session.run(move)
        path = tf.train.Saver().save(session, str(tmp_path / "m"))
    v = tf.Variable(0.0, name="v")
    names = tf.train.ExponentialMovingAverage(0.5).variables_to_restore()
    assert names == {"v/ExponentialMovingAverage": v}
    with tf.Session() as session:
        tf.train.Saver(names).restore(session, path)
        assert session.run(v) == 2.0


class Pair(tf.train.SaveableObject):
    """Two variables under one object's names, swapped when restored."""

    def __init__(self, a: Any, b: Any) -> None:
        specs = [tf.train.SaveSpec(a.value(), "", "x"), tf.train.SaveSpec(b.value(), "", "y")]
        super().__init__("pair", specs, "pair")
        self.a, self.b = a, b

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        x, y = restored_tensors
        return tf.group(self.a.assign(y), self.b.assign(x))


def test_saveable_objects(tmp_path: Path) -> None:
    a, b = tf.Variable(1.0, collections=[]), tf.Variable(2.0, collections=[])
    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, Pair(a, b))
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run([a.initializer, b.initializer])
        path = saver.save(session, str(tmp_path / "m"))
        assert tf.train.list_variables(path) == [("x", []), ("y", [])]
        saver.restore(session, path)
        assert session.run([a, b]) == [2.0, 1.0]


def test_large_tensors_go_into_several_files(tmp_path: Path) -> None:
    v = tf.Variable(np.arange(1000.0), name="v")
    with tf.Session() as session:
        session.run(v.initializer)
        saver = tf.train.Saver(max_file_bytes=2000)
        path = saver.save(session, str(tmp_path / "m"))
        assert len(list(tmp_path.glob("m.data-*"))) == 4
        saver.restore(session, path)


def test_other_file_systems() -> None:
    v = tf.Variable([1.0, 2.0], name="v")
    with tf.Session() as session:
        session.run(v.initializer)
        saver = tf.train.Saver(max_to_keep=1)
        saver.save(session, "memory://saver/m", 1)
        path = saver.save(session, "memory://saver/m", 2)
        assert tf.train.latest_checkpoint("memory://saver") == path
        assert not tf.train.checkpoint_exists("memory://saver/m-1")
        saver.restore(session, path)
        assert tf.train.load_variable("memory://saver", "v").tolist() == [1.0, 2.0]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(f"{path}.meta").restore(session, path)
        assert session.run("v:0").tolist() == [1.0, 2.0]


# -- checkpoints of TensorFlow -------------------------------------------------------------------


def test_restores_checkpoints_of_tensorflow() -> None:
    numbers = {n: tf.Variable(np.zeros((3, 5)), dtype=getattr(tf, n), name=n) for n in made.TYPES}
    text = tf.Variable([[b"", b""], [b"", b""]], name="string")
    with tf.Session() as session:
        tf.train.Saver().restore(session, str(GOLDEN / "types"))
        for name, value in session.run(numbers).items():
            assert same(value, made.numbers(getattr(tf, name).as_numpy_dtype))
        assert same(session.run(text), made.strings())


def test_names_of_shards() -> None:
    name = raw.ShardedFilename("m", 3, 12)
    assert name.shape.as_list() == []
    with tf.Session() as session:
        assert session.run(name) == b"m-00003-of-00012"
        assert session.run(raw.ShardedFilespec("m", 12)) == b"m-?????-of-00012"


def test_partitions_of_tensorflow() -> None:
    rows = tf.get_variable(
        "rows", shape=(40, 70), partitioner=tf.fixed_size_partitioner(7), dtype=tf.float32
    )
    columns = tf.get_variable("columns", shape=(40, 70))
    with tf.Session() as session:
        tf.train.Saver().restore(session, str(GOLDEN / "partitioned"))
        np.testing.assert_array_equal(session.run(rows.as_tensor()), made.table())
        np.testing.assert_array_equal(session.run(columns), made.table())


def test_a_graph_and_checkpoint_of_tensorflow_go_on_here(tmp_path: Path) -> None:
    saver = tf.train.import_meta_graph(str(GOLDEN / "model.meta"))
    x = {"x:0": np.eye(4, dtype=np.float32)}
    with tf.Session() as session:
        saver.restore(session, str(GOLDEN / "model"))
        before = session.run("y:0", x)
        np.testing.assert_allclose(before, np.load(GOLDEN / "model_before.npy"), rtol=1e-6)
        path = saver.save(session, str(tmp_path / "m"))
        for restored in (None, path):
            if restored is not None:
                saver.restore(session, restored)
            session.run("train", {"x:0": np.ones((2, 4), np.float32)})
            after = session.run("y:0", x)
            np.testing.assert_allclose(after, np.load(GOLDEN / "model_after.npy"), rtol=1e-5)
    assert tf.train.list_variables(path) == tf.train.list_variables(str(GOLDEN / "model"))


# -- errors --------------------------------------------------------------------------------------


def fails_and_assigns_nothing(path: str, error: type[Exception], match: str, **values: Any) -> None:
    for options in ({}, {"restore_sequentially": True}):
        with tf.Graph().as_default(), tf.Session() as session:
            made_here = [tf.Variable(v, name=k) for k, v in values.items()]
            session.run(tf.global_variables_initializer())
            before = session.run(made_here)
            with pytest.raises(error, match=match):
                tf.train.Saver(**options).restore(session, path)
            after = session.run(made_here)
            assert all(same(a, b) for a, b in zip(before, after, strict=True))


def test_missing_keys_are_listed_with_what_is_there(tmp_path: Path) -> None:
    path = saved(tmp_path, layer1=1.0, layer2=2.0)
    match = (
        r"(?s)Key layer_1 not found in checkpoint .*m\. Did you mean 'layer1'\?.*"
        r"Key zebra not found.*The checkpoint holds: layer1, layer2\."
    )
    fails_and_assigns_nothing(path, errors.NotFoundError, match, layer2=0.0, layer_1=0.0, zebra=0.0)


def test_shapes_that_differ(tmp_path: Path) -> None:
    path = saved(tmp_path, a=1.0, v=[1.0, 2.0, 3.0])
    match = (
        r"Assign requires shapes of both tensors to match\. lhs shape= \[2\] \(variable v\) "
        r"rhs shape= \[3\]"
    )
    fails_and_assigns_nothing(path, errors.InvalidArgumentError, match, a=0.0, v=[0.0, 0.0])


def test_types_that_differ(tmp_path: Path) -> None:
    path = saved(tmp_path, a=1.0, v=np.float64(2))
    match = r"tensor_name = v; expected dtype float32 does not equal original dtype float64"
    fails_and_assigns_nothing(path, errors.InvalidArgumentError, match, a=0.0, v=0.0)


def test_what_does_not_fit_stands_side_by_side(tmp_path: Path) -> None:
    path = saved(tmp_path, a=1.0, old_name=[1.0], shape=[1.0, 2.0, 3.0], kind=np.float64(2))
    table = (
        "  tensor  graph        checkpoint\n"
        "  kind    float32 []   float64 []\n"
        "  shape   float32 [2]  float32 [3]"
    )
    values = {"a": 0.0, "shape": [0.0, 0.0], "kind": 0.0}
    fails_and_assigns_nothing(path, errors.InvalidArgumentError, re.escape(table) + "$", **values)
    table = (
        "  tensor    graph        checkpoint\n"
        "  kind      float32 []   float64 []\n"
        "  new_name  float32 [1]  -\n"
        "  old_name  -            float32 [1]\n"
        "  shape     float32 [2]  float32 [3]"
    )
    values["new_name"] = [0.0]
    fails_and_assigns_nothing(path, errors.NotFoundError, re.escape(table) + "$", **values)


def test_damaged_data(tmp_path: Path) -> None:
    path = saved(tmp_path, a=1.0, v=2.0)
    file = tmp_path / "m.data-00000-of-00001"
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    fails_and_assigns_nothing(path, errors.DataLossError, "checksum", a=0.0, v=0.0)
    file.write_bytes(data[:-1])
    fails_and_assigns_nothing(path, errors.DataLossError, "cut off", a=0.0, v=0.0)
    file.unlink()
    fails_and_assigns_nothing(path, errors.NotFoundError, "is missing", a=0.0, v=0.0)


def test_no_checkpoint(tmp_path: Path) -> None:
    fails_and_assigns_nothing(
        str(tmp_path / "m"), ValueError, "The passed save_path is not a valid checkpoint", v=0.0
    )
    v = tf.Variable(0.0)
    with tf.Session() as session, pytest.raises(ValueError, match="save_path when it is None"):
        tf.train.Saver([v]).restore(session, None)


def test_foreign_files(tmp_path: Path) -> None:
    (tmp_path / "m.index").write_bytes(b"GIF89a...")
    fails_and_assigns_nothing(
        str(tmp_path / "m"), errors.DataLossError, r"m\.index is no checkpoint index", v=0.0
    )


def test_v1_checkpoints_are_restored() -> None:
    v = tf.Variable(0.0, name="v")
    assert tf.train.checkpoint_exists(str(GOLDEN / "v1"))
    assert tf.train.checkpoint_exists(str(GOLDEN / "v1_sharded"))
    with tf.Session() as session:
        tf.train.Saver([v]).restore(session, str(GOLDEN / "v1"))
        assert session.run(v) == 1.0


def test_uninitialised_variables_are_not_saved(tmp_path: Path) -> None:
    tf.Variable(1.0, name="forgotten")
    saver = tf.train.Saver()
    with tf.Session() as session, pytest.raises(errors.FailedPreconditionError, match="forgotten"):
        saver.save(session, str(tmp_path / "m"))
    assert os.listdir(tmp_path) == []
    assert saver.last_checkpoints == []


def test_what_a_saver_refuses() -> None:
    with pytest.raises(ValueError, match="No variables to save"):
        tf.train.Saver()
    a = tf.Variable(0.0, name="a")
    with pytest.raises(ValueError, match="same saveable will be restored with two names"):
        tf.train.Saver({"x": a, "y": a})
    with pytest.raises(ValueError, match="two variables have the same name: a"):
        tf.train.Saver([a, a])
    with pytest.raises(TypeError, match="not a Variable"):
        tf.train.Saver([tf.constant(1.0)])
    with pytest.raises(TypeError, match="Not a variable"):
        tf.train.Saver({"x": 3})
    with pytest.raises(TypeError, match="Name is not a string"):
        tf.train.Saver({3: a})
    with pytest.raises(ValueError, match="build cannot be deferred"):
        tf.train.Saver([a], defer_build=True)
    with pytest.raises(ValueError, match="must be a SaverDef"):
        tf.train.Saver(saver_def="save")


def test_names_that_collide(tmp_path: Path) -> None:
    v = tf.Variable(0.0)
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(v.initializer)
        with pytest.raises(ValueError, match="collides with 'save_path'"):
            saver.save(session, str(tmp_path / "checkpoint"))
        with pytest.raises(ValueError, match="must not contain path components"):
            saver.save(session, str(tmp_path / "m"), latest_filename="a/b")
    with pytest.raises(TypeError, match="must be a Session"):
        saver.save(None, str(tmp_path / "m"))


def test_empty_and_deferred_savers(tmp_path: Path) -> None:
    empty = tf.train.Saver(allow_empty=True)
    later = tf.train.Saver(defer_build=True)
    v = tf.Variable(2.0)
    with tf.Session() as session:
        session.run(v.initializer)
        assert empty.save(session, str(tmp_path / "e"), write_meta_graph=False) is None
        empty.restore(session, str(tmp_path / "e"))
        with pytest.raises(RuntimeError, match="`build\\(\\)` should be called"):
            later.save(session, str(tmp_path / "m"))
        later.build()
        later.build()
        assert later.save(session, str(tmp_path / "m")) == str(tmp_path / "m")


@pytest.fixture
def session() -> Any:
    v = tf.Variable(1.0, name="v")
    with tf.Session() as opened:
        opened.run(v.initializer)
        yield opened


# -- graphs --------------------------------------------------------------------------------------


def test_meta_graph_brings_back_graph_and_values(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        w = tf.Variable([[1.0], [2.0]], name="w")
        tf.matmul(x, w, name="y")
        session.run(w.initializer)
        path = tf.train.Saver(max_to_keep=7).save(session, str(tmp_path / "m"), 1)
    with tf.Session() as session:
        saver = tf.train.import_meta_graph(f"{path}.meta")
        assert saver.saver_def.max_to_keep == 7
        saver.restore(session, path)
        assert session.run("y:0", {"x:0": [[3.0, 4.0]]}).tolist() == [[11.0]]


def test_meta_graph_in_a_scope(tmp_path: Path) -> None:
    path = saved(tmp_path, v=5.0)
    with tf.Session() as session:
        saver = tf.train.import_meta_graph(f"{path}.meta", import_scope="in")
        assert saver.saver_def.restore_op_name == "in/save/restore_all"
        saver.restore(session, path)
        assert session.run("in/v:0") == 5.0
        assert saver.to_proto("in").restore_op_name == "save/restore_all"
        assert saver.to_proto("elsewhere") is None


def test_a_saver_from_its_message(tmp_path: Path) -> None:
    path = saved(tmp_path, v=5.0)
    v = tf.Variable(0.0, name="v")
    message = tf.train.Saver(name="s").as_saver_def()
    with tf.Session() as session:
        tf.train.Saver.from_proto(message).restore(session, path)
        assert session.run(v) == 5.0
        session.graph.finalize()
        tf.train.Saver.from_proto(message).save(session, str(tmp_path / "n"))


def test_no_graph_is_written_when_not_wanted(session: Any, tmp_path: Path) -> None:
    tf.train.Saver().save(session, str(tmp_path / "m"), write_meta_graph=False, write_state=False)
    assert sorted(os.listdir(tmp_path)) == ["m.data-00000-of-00001", "m.index"]


# -- looking into checkpoints --------------------------------------------------------------------


def test_readers_and_lists(session: Any, tmp_path: Path) -> None:
    path = tf.train.Saver().save(session, str(tmp_path / "m"))
    reader = tf.train.NewCheckpointReader(path)
    assert reader.has_tensor("v")
    assert not reader.has_tensor("w")
    assert reader.get_tensor("v") == 1.0
    assert reader.get_variable_to_dtype_map() == {"v": tf.float32}
    assert tf.train.list_variables(str(tmp_path)) == [("v", [])]
    assert tf.train.load_variable(path, "v:0") == 1.0
    with pytest.raises(ValueError, match="Couldn't find 'checkpoint' file"):
        tf.train.load_checkpoint(str(tmp_path.parent))


def test_checkpoints_iterator(session: Any, tmp_path: Path) -> None:
    saver = tf.train.Saver()
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += max(seconds, 0.1)
        if now[0] < 3:
            saver.save(session, str(tmp_path / "m"), int(now[0] * 10))

    found = list(
        tf.train.checkpoints_iterator(
            str(tmp_path), min_interval_secs=1, timeout=2, clock=lambda: now[0], sleep=sleep
        )
    )
    assert [os.path.basename(p) for p in found] == ["m-10", "m-20"]


def test_init_from_checkpoint(tmp_path: Path) -> None:
    path = saved(tmp_path, a=1.0, b=np.arange(4, dtype=np.float32), c=3.0)
    with tf.variable_scope("new"):
        a = tf.get_variable("a", shape=[])
        b = tf.get_variable("b", shape=[4], partitioner=tf.fixed_size_partitioner(2))
        c = tf.get_variable("c", shape=[])
    tf.train.init_from_checkpoint(path, {"/": "new/"})
    d = tf.Variable(0.0, name="d")
    tf.train.init_from_checkpoint(path, {"c": d, "b": list(b)})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([a, c, d]) == [1.0, 3.0, 3.0]
        np.testing.assert_array_equal(session.run(b.as_tensor()), np.arange(4))
    with pytest.raises(ValueError, match="Tensor zz is not found"):
        tf.train.init_from_checkpoint(path, {"zz": d})
    with pytest.raises(ValueError, match="doesn't match with shape"):
        tf.train.init_from_checkpoint(path, {"b": d})
    with pytest.raises(ValueError, match="Variable 'nope' is not found"):
        tf.train.init_from_checkpoint(path, {"a": "nope"})

"""The classes that build the ops of savers, as programs of the era derive from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.ops.core.build import raw
from headrace.train import saver
from headrace.train.checkpoint import TensorSlice, write
from headrace.train.restore_check import ancestors

BaseSaverBuilder = saver.BaseSaverBuilder


class Halves(BaseSaverBuilder):
    """Saves halves and restores wholes; reads each variable by an op of its own."""

    def save_op(self, filename_tensor: Any, saveables: Any) -> Any:
        specs = [spec for s in saveables for spec in s.specs]
        return raw.SaveV2(
            filename_tensor,
            tf.constant([s.name for s in specs]),
            tf.constant([s.slice_spec for s in specs]),
            [s.tensor / 2 for s in specs],
        )

    def restore_op(self, filename_tensor: Any, saveable: Any, preferred_shard: int) -> Any:
        return [2 * t for t in super().restore_op(filename_tensor, saveable, preferred_shard)]


def test_other_builders(tmp_path: Path) -> None:
    a = tf.Variable([2.0, 4.0], name="a")
    b = tf.Variable(6.0, name="b")
    made = tf.train.Saver(builder=Halves())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = made.save(session, str(tmp_path / "m"))
        assert tf.train.load_variable(path, "a").tolist() == [1, 2]
        session.run([a.assign([0.0, 0.0]), b.assign(0.0)])
        made.restore(session, path)
        assert session.run(a).tolist() == [2, 4]
        assert session.run(b) == 6
    types = [op.type for op in tf.get_default_graph().get_operations()]
    assert types.count("RestoreV2") == 2


class Logarithm(BaseSaverBuilder.ResourceVariableSaveable):
    """A variable that is stored as its logarithm."""

    def __init__(self, var: Any, name: str) -> None:
        super().__init__(var, "", name)
        read = self.specs[0].tensor
        self.specs = [BaseSaverBuilder.SaveSpec(tf.log(read), "", name + "/log")]

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        return super().restore([tf.exp(restored_tensors[0])], restored_shapes)


class Late(BaseSaverBuilder.SaveableObject):
    """An object whose tensor is made when the saver asks for it."""

    def __init__(self, var: Any) -> None:
        spec = BaseSaverBuilder.SaveSpec(var.read_value, "", "late", var.dtype, var.device)
        super().__init__(var, [spec], "late")

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        assert restored_shapes is None
        return [tf.assign(self.op, restored_tensors[0])]


def test_other_saveables(tmp_path: Path) -> None:
    v, w = tf.Variable(np.float32(np.e), name="v"), tf.Variable(3.0, name="w")
    made = tf.train.Saver([Logarithm(v, "v"), Late(w)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = made.save(session, str(tmp_path / "m"))
        assert tf.train.load_variable(path, "v/log") == pytest.approx(1)
        session.run([v.assign(0.0), w.assign(0.0)])
        made.restore(session, path)
        assert session.run([v, w]) == [pytest.approx(np.e), 3]
    with pytest.raises(AssertionError, match="an explicit dtype and device"):
        BaseSaverBuilder.SaveSpec(v.read_value, "", "x")
    with pytest.raises(ValueError, match="Saveable is no variable"):
        BaseSaverBuilder.VariableSaveable(tf.constant(1.0), "", "x")


def test_reshape_with_sizes_that_are_not_known(tmp_path: Path) -> None:
    write(str(tmp_path / "m"), [TensorSlice.whole("v", tf.float32, np.arange(6, dtype=np.float32))])
    start = tf.placeholder_with_default(np.zeros((2, 3), np.float32), [None, 3])
    v = tf.Variable(start, name="v", validate_shape=False)
    made = tf.train.Saver(reshape=True)
    with tf.Session() as session:
        session.run(v.initializer)
        made.restore(session, str(tmp_path / "m"))
        assert session.run(v).tolist() == [[0, 1, 2], [3, 4, 5]]


# -- shards --------------------------------------------------------------------------------------


def test_each_task_saves_its_part() -> None:
    devices = ["/job:ps/task:0/cpu:0", "/job:ps/task:0/gpu:0", "/job:ps/task:1"]
    for i, device in enumerate(devices):
        with tf.device(device):
            tf.get_variable(f"v{i}", shape=[2])
    tf.train.Saver(sharded=True)
    ops = tf.get_default_graph().get_operations()
    saves = {op.device: op for op in ops if op.type == "SaveV2"}
    assert sorted(saves) == ["/job:ps/task:0/device:CPU:0", "/job:ps/task:1/device:CPU:0"]
    assert [len(saves[d].inputs) - 3 for d in sorted(saves)] == [2, 1]
    reads = [op for op in ops if op.type == "RestoreV2"]
    assert sorted(op.device for op in reads) == sorted(saves)
    [merge] = [op for op in ops if op.type == "MergeV2Checkpoints"]
    assert set(saves.values()) <= set(ancestors(merge))
    tf.train.Saver({"v0": tf.global_variables()[0]}, sharded=True)
    ops = tf.get_default_graph().get_operations()
    assert sum(op.type == "MergeV2Checkpoints" for op in ops) == 1


def test_objects_on_two_tasks_are_refused() -> None:
    tensors = []
    for i in range(2):
        with tf.device(f"/job:ps/task:{i}"):
            tensors.append(tf.constant(1.0))
    specs = [tf.train.SaveSpec(t, "", f"x{i}") for i, t in enumerate(tensors)]
    both = tf.train.SaveableObject("both", specs, "both")
    with pytest.raises(ValueError, match="must be on the same device: both has some on /job:ps/"):
        tf.train.Saver([both], sharded=True)


def test_the_parts_of_a_sharded_save_must_be_in_one_file_system(tmp_path: Path) -> None:
    merge = raw.MergeV2Checkpoints([f"{tmp_path}/a", f"{tmp_path}/b"], f"{tmp_path}/m")
    with tf.Session() as session, pytest.raises(tf.errors.NotFoundError, match="must share a file"):
        session.run(merge)


# -- names that come twice -----------------------------------------------------------------------


def test_names_that_come_twice() -> None:
    a = tf.get_variable("a", shape=[])
    other = tf.get_variable("other", shape=[])
    table = tf.get_variable("table", shape=[4], partitioner=tf.fixed_size_partitioner(2))
    spec = tf.train.SaveSpec(other.value(), "", "a")
    thing = tf.train.SaveableObject("thing", [spec], "thing")
    named = tf.train.SaveableObject("named", [spec], "a")
    twice = r"At least two variables have the same name: a\. A checkpoint holds one tensor"
    for chosen in ([a, thing], {"a": a, "x": thing}, [a, named], [named, named], [a, a]):
        with pytest.raises(ValueError, match=twice):
            tf.train.Saver(chosen)
    with pytest.raises(ValueError, match="same saveable will be restored with two names"):
        tf.train.Saver([table, table])
    half, part = (tf.train.SaveSpec(other.value(), s, "table") for s in ("4 0,2", "5 4,1"))
    with pytest.raises(ValueError, match="have the same name: table"):
        tf.train.Saver([table, tf.train.SaveableObject("half", [half], "half")])
    with pytest.raises(ValueError, match=r"variables of different shapes: \[4\] and \[5\]"):
        tf.train.Saver([table, tf.train.SaveableObject("part", [part], "part")])
    assert set(BaseSaverBuilder.OpListToDict([a, table])) == {"a", "table"}


# -- a checkpoint that is saved again while it is restored ---------------------------------------


def test_restore_takes_all_values_from_one_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save(number: float) -> None:
        values = {n: np.array(number, np.float32) for n in ("a", "b")}
        write(str(tmp_path / "m"), [TensorSlice.whole(n, tf.float32, v) for n, v in values.items()])

    a, b = tf.Variable(0.0, name="a"), tf.Variable(0.0, name="b")
    made = tf.train.Saver(restore_sequentially=True)
    save(1)
    with tf.Session() as session:
        run, runs = session.run, []

        def saved_meanwhile(*arguments: Any) -> Any:
            runs.append(arguments)
            result = run(*arguments)
            if len(runs) == 1:
                save(2)
            return result

        monkeypatch.setattr(session, "run", saved_meanwhile)
        made.restore(session, str(tmp_path / "m"))
        assert len(runs) == 2
        assert run([a, b]) == [2, 2]

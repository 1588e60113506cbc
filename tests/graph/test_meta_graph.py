"""Meta graphs: collections, scopes, unbound inputs, and files."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.errors import DataLossError, NotFoundError
from headrace.graph.keys import GraphKeys
from headrace.graph.proto import MetaGraphDef, SaverDef
from headrace.ops.core.build import raw
from headrace.ops.state.resources import register_resource
from headrace.ops.state.variables import Variable
from headrace.train.meta_graph import (
    export_meta_graph,
    export_scoped_meta_graph,
    import_meta_graph,
    import_scoped_meta_graph,
    import_scoped_meta_graph_with_return_elements,
    read_meta_graph_file,
)

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
TRAINING = GOLDEN / "graphs" / "training"


def model():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 1], name="x")
        with graph.name_scope("layer"), graph.device("/cpu:0"):
            w = Variable([[2.0]], name="w")
            Variable(0, name="steps", trainable=False)
            y = raw.MatMul(x, w.value(), name="y")
        graph.add_to_collection("outputs", y)
        graph.add_to_collection("outputs", y.op)
        for value in (1, 2):
            graph.add_to_collection("sizes", value)
        graph.add_to_collection("rates", 0.5)
        graph.add_to_collection("words", "text")
    return graph


def test_collections_come_back():
    message = export_meta_graph(graph=model(), saver_def=SaverDef(max_to_keep=3))
    assert message.saver_def.max_to_keep == 3
    with tf.Graph().as_default() as graph:
        variables = import_scoped_meta_graph(message)
        assert sorted(variables) == ["layer/steps:0", "layer/w:0"]
        (trainable,) = graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
        assert trainable is variables["layer/w:0"]
        assert trainable.trainable
        assert not variables["layer/steps:0"].trainable
        assert graph.get_collection(GraphKeys.GLOBAL_VARIABLES) == [
            variables["layer/w:0"],
            variables["layer/steps:0"],
        ]
        y = graph.get_tensor_by_name("layer/y:0")
        assert graph.get_collection("outputs") == [y, y.op]
        assert graph.get_collection("sizes") == [1, 2]
        assert graph.get_collection("rates") == [0.5]
        assert graph.get_collection("words") == [b"text"]
        with tf.Session() as session:
            session.run(trainable.initializer)
            assert session.run(y, {"x:0": [[3.0]]}).tolist() == [[6.0]]


def test_written_again_it_is_the_same():
    first = export_meta_graph(graph=model())
    with tf.Graph().as_default() as graph:
        import_scoped_meta_graph(first)
        again = export_meta_graph(graph=graph)
    again.collection_def["words"].bytes_list.value[0] = b"text"
    assert again == first


def test_import_scope_and_devices():
    message = export_meta_graph(graph=model())
    with tf.Graph().as_default() as graph:
        variables = import_scoped_meta_graph(message, clear_devices=True, import_scope="copy")
        assert variables["layer/w:0"].name == "copy/layer/w:0"
        assert {op.device for op in graph.get_operations()} == {""}
        assert graph.get_collection("outputs")[0].name == "copy/layer/y:0"


def test_one_scope_and_its_unbound_inputs():
    message, variables = export_scoped_meta_graph(graph=model(), export_scope="layer")
    assert sorted(variables) == ["steps:0", "w:0"]
    assert {n.name for n in message.graph_def.node} >= {"w", "w/Assign", "y"}
    assert list(message.collection_def["unbound_inputs"].bytes_list.value) == [b"x"]
    with tf.Graph().as_default() as graph:
        with pytest.raises(ValueError, match=r"Graph contains unbound inputs: \['x'\]"):
            import_scoped_meta_graph(message, import_scope="other")
        mine = tf.constant([[5.0]])
        found, (y,) = import_scoped_meta_graph_with_return_elements(
            message, import_scope="other", input_map={"x": mine}, return_elements=["y:0"]
        )
        assert y.op.inputs[0] is mine
        with tf.Session() as session:
            session.run(found["w:0"].initializer)
            assert session.run(y).tolist() == [[10.0]]
        assert graph.get_collection("unbound_inputs") == [b"x"]


def test_what_belongs_to_the_running_program_is_left_out_in_silence(tmp_path, caplog):
    """Each checkpoint of each program told that its own bookkeeping is not written."""
    v = tf.get_local_variable("v", [2])

    class Doubled(tf.train.SaveableObject):
        def restore(self, restored_tensors, restored_shapes):
            return v.assign(restored_tensors[0] / 2)

    doubled = Doubled(v, [tf.train.SaveSpec(2 * v, "", "doubled")], "doubled")
    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, doubled)
    for is_shared in (True, False):
        register_resource(tf.constant("trees"), tf.no_op(), tf.constant(True), is_shared)
    tf.train.get_or_create_global_step()
    with (
        caplog.at_level(logging.WARNING),
        tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path)) as sess,
    ):
        sess.run(v)
    assert list(tmp_path.glob("model.ckpt-0.meta"))
    assert not caplog.text


def test_chosen_collections_and_stripped_defaults(caplog):
    graph = model()
    graph.add_to_collection("things", object())
    with caplog.at_level(logging.WARNING):
        message = export_meta_graph(graph=graph, strip_default_attrs=True)
    assert "things" not in message.collection_def
    assert "Collection 'things' is not written" in caplog.text
    product = next(n for n in message.graph_def.node if n.op == "MatMul")
    assert "transpose_a" not in product.attr
    assert message.meta_info_def.stripped_default_attrs
    only = export_meta_graph(graph=graph, collection_list=["sizes"])
    assert list(only.collection_def) == ["sizes"]
    with tf.Graph().as_default() as again:
        import_scoped_meta_graph(message, restore_collections_predicate=lambda key: key == "rates")
        assert again.get_all_collection_keys() == ["rates"]


@pytest.mark.parametrize("as_text", [True, False])
def test_files(tmp_path, as_text):
    path = str(tmp_path / "model.meta")
    message = export_meta_graph(path, graph=model(), as_text=as_text)
    assert read_meta_graph_file(path) == message


def test_files_that_cannot_be_read(tmp_path):
    path = tmp_path / "model.meta"
    with pytest.raises(NotFoundError, match="No such file"):
        read_meta_graph_file(str(path))
    data = export_meta_graph(graph=model()).SerializeToString()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(DataLossError, match="is no MetaGraphDef"):
        read_meta_graph_file(str(path))


def test_failure_leaves_the_graph_as_it_was():
    message = export_meta_graph(graph=model())
    message.collection_def["zz_last"].node_list.value.append("nowhere:0")
    with tf.Graph().as_default() as graph:
        with pytest.raises(KeyError, match="nowhere"):
            import_scoped_meta_graph(message)
        assert graph.get_operations() == []
        assert graph.get_all_collection_keys() == []


def test_unknown_arguments():
    with pytest.raises(ValueError, match="Unknown keyword arguments: colour"):
        export_meta_graph(graph=model(), colour=1)
    with pytest.raises(ValueError, match="save_debug_info is not supported"):
        export_meta_graph(graph=model(), save_debug_info=True)


def test_training_of_tensorflow_goes_on_here():
    """A meta graph with reference variables and its checkpoint, both written by TensorFlow."""
    path = str(TRAINING / "model-3")
    with np.load(TRAINING / "results.npz") as results, tf.Graph().as_default() as graph:
        saver = import_meta_graph(f"{path}.meta")
        y, train = graph.get_collection("ends")
        feeds = {"x:0": results["in/x:0"]}
        with tf.Session() as session:
            saver.restore(session, path)
            np.testing.assert_allclose(session.run(y, feeds), results["saved"], rtol=1e-6)
            for _ in range(2):
                session.run(train, feeds)
            np.testing.assert_allclose(session.run(y, feeds), results["two_steps_later"], rtol=1e-5)
            assert session.run("global_step:0") == 5


def test_our_saver_comes_back_with_the_graph(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        w = Variable([1.0, 2.0], name="w")
        raw.Neg(w.value(), name="y")
        session.run(w.initializer)
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default() as graph:
        saver = import_meta_graph(f"{path}.meta")
        with tf.Session() as session:
            saver.restore(session, path)
            assert session.run("y:0").tolist() == [-1.0, -2.0]
            assert [v.name for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES)] == ["w:0"]


def test_graph_without_variables_has_no_saver():
    with tf.Graph().as_default() as graph:
        tf.constant(1.0)
    with tf.Graph().as_default():
        assert import_meta_graph(export_meta_graph(graph=graph)) is None


def test_another_graph_of_tensorflow_has_its_collections():
    message = MetaGraphDef.FromString((GOLDEN / "proto" / "MetaGraphDef.pb").read_bytes())
    with tf.Graph().as_default() as graph:
        variables = import_scoped_meta_graph(message)
        assert variables["w:0"].shape.as_list() == [3, 2]
        assert graph.get_collection("sizes") == [7]
        assert graph.get_collection("rates") == [0.5]
        assert [op.type for op in graph.get_collection("updates")] == ["NoOp"]
        assert graph.get_tensor_by_name("y:0").device == "/job:ps/task:1"

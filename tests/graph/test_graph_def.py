"""Graphs as GraphDef messages: attributes, names, functions, and files."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.errors import DataLossError, NotFoundError
from headrace.files import system
from headrace.graph import attr_proto, graph_def
from headrace.graph.attrs import NameAttrList
from headrace.graph.graph_def import op_def_to_proto, parse_graph_def
from headrace.graph.proto import AttrValue
from headrace.graph.shapes import TensorShape
from headrace.graph_files import graph_util
from headrace.graph_files.import_graph import import_graph_def
from headrace.ops.array.settled import positive, same_rows, settled
from headrace.ops.control.basic import no_op
from headrace.ops.core.build import raw
from headrace.ops.core.registry import get_op_def
from headrace.ops.state.variables import Variable


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (3, "int"),
        (-1.5, "float"),
        (True, "bool"),
        ("text", "string"),
        (b"\xff\x00", "string"),
        (tf.float32, "type"),
        (TensorShape([2, None]), "shape"),
        (TensorShape(None), "shape"),
        (NameAttrList("f", {"a": 1}), "func"),
        ((1, 2), "list(int)"),
        ((0.5,), "list(float)"),
        (("a", "b"), "list(string)"),
        ((tf.int32, tf.string), "list(type)"),
        ((TensorShape([]), TensorShape([None])), "list(shape)"),
        ((), "list(int)"),
        ((True, False), "list(bool)"),
    ],
)
def test_attributes_come_back_as_they_were(value, kind):
    assert attr_proto.decode(attr_proto.encode(value, kind), kind) == value
    if value != ():
        assert attr_proto.kind_of(value) == kind


def test_attribute_of_another_kind_is_refused_both_ways():
    with pytest.raises(TypeError, match="'x' cannot be written as an attribute of kind int"):
        attr_proto.encode("x", "int")
    with pytest.raises(ValueError, match="had value with type 'int' when 'type' expected"):
        attr_proto.decode(AttrValue(i=1), "type")
    with pytest.raises(ValueError, match="type 'none' when 'int'"):
        attr_proto.decode(AttrValue(), "int")


def test_node_has_inputs_controls_device_colocation_and_defaults():
    with tf.Graph().as_default() as graph:
        a = tf.constant([1.0, 2.0], name="a")
        first = no_op("first")
        x = tf.constant([[1.0]], name="x")
        with (
            graph.control_dependencies([first]),
            graph.device("/cpu:1"),
            graph.colocate_with(a.op),
        ):
            found = raw.MatMul(x, x, name="m").op.node_def
    assert (found.name, found.op) == ("m", "MatMul")
    assert list(found.input) == ["x", "x", "^first"]
    assert list(found.attr["_class"].list.s) == [b"loc:@a"]
    assert found.attr["transpose_a"].WhichOneof("value") == "b"
    assert found.attr["T"].type == tf.float32.as_datatype_enum


def test_later_outputs_are_named_with_their_index():
    with tf.Graph().as_default() as graph:
        parts = raw.Unpack([[1.0], [2.0]], num=2, name="parts")
        raw.AddV2(parts[0], parts[1], name="sum")
    node = graph.as_graph_def().node[-1]
    assert list(node.input) == ["parts", "parts:1"]


def test_only_later_operations_and_shapes_on_request():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        version = graph.version
        raw.Neg(x, name="y")
    found = graph.as_graph_def(from_version=version, add_shapes=True)
    assert [n.name for n in found.node] == ["y"]
    shape = found.node[0].attr["_output_shapes"].list.shape[0]
    assert [d.size for d in shape.dim] == [-1, 2]
    assert "_output_shapes" not in graph.as_graph_def().node[0].attr


def test_private_attributes_are_kept():
    with tf.Graph().as_default() as graph:
        with graph.gradient_override_map({"Neg": "MyNeg"}):
            op = raw.Neg(1.0, name="n").op
        op._set_attr("_note", "hello")
        written = graph.as_graph_def()
    with tf.Graph().as_default() as again:
        import_graph_def(written, name="")
        assert again.as_graph_def() == written
        found = again.get_operation_by_name("n")
        assert found.get_attr("_gradient_op_type") == b"MyNeg"
        assert found.get_attr("_note") == b"hello"


def test_quantised_constants_keep_their_type():
    with tf.Graph().as_default() as graph:
        tf.constant([1, 2], tf.qint8, name="q")
    node = graph.as_graph_def().node[0]
    assert node.attr["value"].tensor.dtype == tf.qint8.as_datatype_enum
    with tf.Graph().as_default():
        (q,) = import_graph_def(graph.as_graph_def(), return_elements=["q:0"])
        assert q.dtype is tf.qint8


def cond_graph():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        scale = tf.constant(3.0, name="scale")
        y = tf.cond(raw.Sum(x, 0) > 0.0, lambda: x * scale, lambda: x - scale)
        raw.Identity(y, name="y")
    return graph


def test_bodies_become_functions_of_the_library():
    found = cond_graph().as_graph_def()
    functions = {f.signature.name: f for f in found.library.function}
    node = next(n for n in found.node if n.op == "StatelessIf")
    assert {node.attr["then_branch"].func.name, node.attr["else_branch"].func.name} == set(
        functions
    )
    for function in functions.values():
        assert len(function.signature.input_arg) == len(node.input) - 1
        known = {a.name for a in function.signature.input_arg}
        for inner in function.node_def:
            assert all(s in known or s.split(":")[0] in known for s in inner.input)
            known.add(inner.name)
        assert set(function.ret) == {a.name for a in function.signature.output_arg}


@pytest.mark.parametrize("values", [[1.0, 2.0], [-1.0, -2.0]])
def test_functions_work_after_a_round_trip(values):
    graph = cond_graph()
    with tf.Session(graph=graph) as session:
        expected = session.run("y:0", {"x:0": values})
    with tf.Graph().as_default() as again:
        import_graph_def(graph.as_graph_def(), name="")
        with tf.Session() as session:
            np.testing.assert_array_equal(session.run("y:0", {"x:0": values}), expected)
        with again.as_default():
            import_graph_def(graph.as_graph_def(), name="twice")
        with tf.Session(graph=again) as session:
            np.testing.assert_array_equal(session.run("twice/y:0", {"twice/x:0": values}), expected)


def test_files_have_no_checks_that_only_we_have() -> None:
    x, lengths = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])

    def body(i):
        with tf.control_dependencies([i]):
            return [settled(i) + same_rows(x, lengths, "Rows.")[0]]

    end = tf.while_loop(lambda i: i < 9, body, [positive(x, "Sizes.")[0]])
    message = tf.get_default_graph().as_graph_def()
    nodes = [*message.node, *(n for f in message.library.function for n in f.node_def)]
    assert not {"Settled", "SameRows", "RequirePositive"} & {n.op for n in nodes}
    written = [n for n in nodes if n.op == "Identity" and set(n.attr) == {"T"}]
    assert len(written) >= 3
    assert {sum(not i.startswith("^") for i in n.input) for n in written} == {1}
    with tf.Graph().as_default() as copy, tf.Session() as session:
        (again,) = tf.import_graph_def(message, return_elements=[end.name], name="")
        fed = {"Placeholder:0": [4], "Placeholder_1:0": [1]}
        assert session.run(again, fed) == 12
        assert copy.as_graph_def() == message


def test_definition_of_an_op_as_a_message():
    found = op_def_to_proto(get_op_def("ConcatV2"))
    assert [a.name for a in found.input_arg] == ["values", "axis"]
    assert found.input_arg[0].number_attr == "N"
    assert {a.name: a.type for a in found.attr}["T"] == "type"


@pytest.mark.parametrize("as_text", [True, False])
def test_written_file_is_read_again(tmp_path, as_text):
    with tf.Graph().as_default() as graph:
        tf.constant([1.0, 2.0], name="c")
    path = graph_util.write_graph(graph, tmp_path / "new", "g.pb", as_text)
    assert parse_graph_def(system.read_bytes(path)) == graph.as_graph_def()
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["g.pb"]


def test_file_at_a_url(tmp_path):
    with tf.Graph().as_default() as graph:
        tf.constant(1.0)
    path = graph_util.write_graph(graph, "memory://headrace-test", "g.pb", False)
    assert parse_graph_def(system.read_bytes(path)) == graph.as_graph_def()
    with pytest.raises(NotFoundError, match="No such file"):
        system.read_bytes(str(tmp_path / "nothing.pb"))


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"PK\x03\x04 a zip file", b"\x89PNG\r\n\x1a\n", b"node { name: 'x' ", b"\xff" * 9],
)
def test_foreign_bytes_are_refused(data):
    with pytest.raises(DataLossError, match="is no GraphDef"):
        parse_graph_def(data, "model.pb")


class TestFreezing:
    def graph(self):
        graph = tf.Graph()
        with graph.as_default():
            x = tf.placeholder(tf.float32, [None, 2], name="x")
            w = Variable([[1.0], [2.0]], name="w")
            unused = Variable(1.0, name="unused")
            raw.MatMul(x, w.value(), name="y")
            raw.Neg(unused.value(), name="other")
        return graph

    def test_variables_become_constants(self):
        graph = self.graph()
        with tf.Session(graph=graph) as session:
            session.run("w/Assign")
            frozen = graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
        assert {n.op for n in frozen.node} == {"Placeholder", "Const", "Identity", "MatMul"}
        assert "other" not in {n.name for n in frozen.node}
        with tf.Graph().as_default():
            (y,) = import_graph_def(frozen, return_elements=["y:0"])
            with tf.Session() as session:
                assert session.run(y, {"import/x:0": [[1.0, 1.0]]}).tolist() == [[3.0]]

    def test_blacklisted_variables_stay(self):
        graph = self.graph()
        with tf.Session(graph=graph) as session:
            found = graph_util.convert_variables_to_constants(
                session, graph.as_graph_def(), ["y"], variable_names_blacklist=["w"]
            )
        assert "VarHandleOp" in {n.op for n in found.node}

    def test_updates_cannot_be_frozen(self):
        graph = self.graph()
        with tf.Session(graph=graph) as session:
            session.run("w/Assign")
            with pytest.raises(ValueError, match=r"'w/Assign' \(AssignVariableOp\) uses it other"):
                graph_util.convert_variables_to_constants(
                    session, graph.as_graph_def(), ["w/Assign"]
                )

    def test_unknown_output(self):
        with pytest.raises(ValueError, match="nope is not in graph"):
            graph_util.extract_sub_graph(self.graph().as_graph_def(), ["nope"])
        with pytest.raises(TypeError, match="must be an iterable of strings"):
            graph_util.extract_sub_graph(self.graph().as_graph_def(), "y")

    def test_identities_are_removed(self):
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [], name="x")
            a = raw.Identity(raw.Identity(x, name="i"), name="j")
            raw.Neg(a, name="y")
        found = graph_util.remove_training_nodes(graph.as_graph_def())
        assert [(n.name, list(n.input)) for n in found.node] == [("x", []), ("y", ["x"])]
        kept = graph_util.remove_training_nodes(graph.as_graph_def(), ["j"])
        assert [n.name for n in kept.node] == ["x", "j", "y"]

    def test_helpers(self):
        graph = self.graph()
        assert graph_util.tensor_shape_from_node_def_name(graph, "y").as_list() == [None, 1]
        with graph.as_default():
            assert graph_util.must_run_on_cpu(tf.constant(["a"]).op)
            assert not graph_util.must_run_on_cpu(tf.constant([1.0]).op)
            assert graph_util.must_run_on_cpu(graph.get_operation_by_name("w").node_def, True)


def test_constants_that_no_file_can_hold_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(graph_def, "MAX_BYTES", 1000)
    tf.constant(np.zeros(200, np.float32), name="large")
    tf.constant(np.zeros(60, np.float32), name="small")
    text = (
        r"constants of the graph have 1,040 bytes, and a GraphDef can hold 1,000 .*'large' "
        r"\(800 bytes\), 'small' \(240 bytes\).*Make them variables"
    )
    graph = tf.get_default_graph()
    with pytest.raises(ValueError, match=text):
        graph.as_graph_def()
    with pytest.raises(ValueError, match=text):
        tf.train.export_meta_graph(str(tmp_path / "m.meta"))
    with pytest.raises(ValueError, match=text):
        tf.train.write_graph(graph, str(tmp_path), "g.pb")
    assert not list(tmp_path.iterdir())

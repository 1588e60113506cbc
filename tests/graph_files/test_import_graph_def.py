"""import_graph_def: names, maps, scopes, and what it says of graphs that are wrong."""

from __future__ import annotations

import random

import numpy as np
import pytest

import headrace as tf
from headrace.errors import DataLossError
from headrace.graph.proto import GraphDef, NodeDef, OpList
from headrace.graph.verify import verify
from headrace.graph_files.import_graph import import_graph_def
from headrace.ops.control.basic import no_op
from headrace.ops.core.build import raw


def base_graph():
    """x -> y (identity) -> z = x + y, which waits for x."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        y = raw.Identity(x, name="y")
        with graph.control_dependencies([x]):
            raw.AddV2(x, y, name="z")
    found = graph.as_graph_def()
    found.node[2].input.append("^y")
    return found


@pytest.fixture
def message():
    return base_graph()


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def names(graph):
    return [op.name for op in graph.get_operations()]


class TestNames:
    def test_default_prefix_is_made_unique(self, message, graph):
        assert import_graph_def(message) is None
        import_graph_def(message)
        assert names(graph) == [f"{p}/{n}" for p in ("import", "import_1") for n in "xyz"]

    def test_no_prefix(self, message, graph):
        import_graph_def(message, name="")
        import_graph_def(message, name="")
        assert names(graph) == ["x", "y", "z", "x_1", "y_1", "z_1"]
        assert graph.get_operation_by_name("z_1").inputs[1].name == "y_1:0"

    def test_prefix_is_inside_the_current_scope(self, message, graph):
        with graph.name_scope("outer"):
            import_graph_def(message, name="inner")
        assert names(graph)[0] == "outer/inner/x"

    def test_later_names_do_not_clash(self, message, graph):
        import_graph_def(message, name="")
        assert no_op("x").name == "x_1"

    def test_names_that_differ_in_case_stay(self, graph):
        message = GraphDef(node=[NodeDef(name="A", op="NoOp"), NodeDef(name="a", op="NoOp")])
        import_graph_def(message, name="")
        assert names(graph) == ["A", "a"]

    def test_malformed_prefix(self, message):
        with pytest.raises(ValueError, match="'a b' is not a valid scope name"):
            import_graph_def(message, name="a b")


class TestInputMap:
    def test_tensor_in_place_of_an_input(self, message, graph):
        mine = tf.constant([5.0, 6.0])
        z, x = import_graph_def(message, {"x": mine}, return_elements=["z:0", "x:0"])
        assert x is mine
        with tf.Session() as session:
            assert session.run(z).tolist() == [10.0, 12.0]
        assert "import/x" in names(graph)

    def test_values_are_converted_inside_the_prefix(self, message, graph):
        import_graph_def(message, {"x:0": [1.0, 2.0]})
        assert names(graph)[0] == "import/_inputs/Const"

    def test_values_need_a_prefix(self, message):
        with pytest.raises(ValueError, match="requires a non-empty `name` if `input_map`"):
            import_graph_def(message, {"x:0": [1.0, 2.0]}, name="")

    def test_control_input(self, message, graph):
        other = no_op("other")
        import_graph_def(message, {"^y": other})
        assert other in graph.get_operation_by_name("import/z").control_inputs

    def test_existing_output_that_nothing_uses(self, message):
        import_graph_def(message, {"z:0": tf.constant([1.0, 2.0])})

    def test_keys_that_are_not_there(self, message, graph):
        with pytest.raises(
            ValueError, match=r"map inputs that were not found in graph_def: \[q:0, x:3\]"
        ):
            import_graph_def(message, {"q:0": tf.constant(1.0), "x:3": tf.constant(1.0)})
        assert names(graph) == ["Const", "Const_1"]

    def test_other_type(self, message, graph):
        mine = tf.constant([1, 2])
        with pytest.raises(
            ValueError,
            match="Input 0 of node import/y was passed int32 from Const:0 incompatible with "
            "expected float32",
        ):
            import_graph_def(message, {"x": mine})
        assert names(graph) == ["Const"]
        assert mine.consumers() == []

    @pytest.mark.parametrize(
        ("bad", "error", "text"),
        [
            ([1], TypeError, "input_map must be a dictionary. Obtained list"),
            ({1: 2}, TypeError, r"must be strings. Obtained keys: \[1\]"),
            ({"x:y": 2.0}, ValueError, "Second component of the name following the `:`"),
        ],
    )
    def test_malformed(self, message, bad, error, text):
        with pytest.raises(error, match=text):
            import_graph_def(message, bad)


class TestReturnElements:
    def test_tensors_and_operations(self, message):
        found = import_graph_def(message, return_elements=["y", "y:0", "z"])
        assert [e.name for e in found] == ["import/y", "import/y:0", "import/z"]
        assert import_graph_def(message, return_elements=[]) == []

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("foo:0", "Requested return tensor 'foo:0' not found in graph def"),
            ("foo", "Requested return node 'foo' not found in graph def"),
            ("x:5", r"Invalid return output 5 of node 'x', which has 1 output\(s\)"),
        ],
    )
    def test_missing(self, message, graph, name, text):
        with pytest.raises(ValueError, match=text):
            import_graph_def(message, return_elements=[name])
        assert names(graph) == []

    def test_malformed(self, message):
        with pytest.raises(TypeError, match="return_elements must be a list of strings"):
            import_graph_def(message, return_elements=[7])


class TestScopes:
    def test_devices_merge_and_control_dependencies_apply(self, message, graph):
        message.node[1].device = "/cpu:0"
        first = no_op("first")
        with graph.device("/job:a/gpu:1"), graph.control_dependencies([first]):
            import_graph_def(message)
        found = {op.name: op for op in graph.get_operations()}
        assert found["import/x"].device == "/job:a/device:GPU:1"
        assert found["import/y"].device == "/job:a/device:CPU:0"
        assert found["import/x"].control_inputs == [first]

    def test_colocation_gets_the_prefix(self, message, graph):
        message.node[1].attr["_class"].list.s.append(b"loc:@z")
        import_graph_def(message)
        found = graph.get_operation_by_name("import/y")
        assert found.colocation_groups() == [b"loc:@import/z"]

    def test_nodes_in_any_order(self, message, graph):
        nodes = list(message.node)
        del message.node[:]
        message.node.extend(reversed(nodes))
        import_graph_def(message, name="")
        verify(graph)
        assert set(names(graph)) == {"x", "y", "z"}

    def test_stated_shapes_are_taken_over(self, graph):
        with tf.Graph().as_default() as other:
            tf.placeholder(tf.float32, name="x").set_shape([None, 7])
        (x,) = import_graph_def(other.as_graph_def(add_shapes=True), return_elements=["x:0"])
        assert x.shape.as_list() == [None, 7]
        assert "_output_shapes" not in x.op.node_def.attr

    def test_inside_a_branch_tensors_of_the_outer_graph_are_captured(self, message, graph):
        mine = tf.constant([1.0, 2.0])

        def imported():
            return import_graph_def(message, {"x": mine}, return_elements=["z:0"])[0]

        y = tf.cond(tf.placeholder_with_default(True, []), imported, lambda: mine)
        verify(graph)
        with tf.Session() as session:
            assert session.run(y).tolist() == [2.0, 4.0]

    def test_finalized_graph(self, message, graph):
        graph.finalize()
        with pytest.raises(RuntimeError, match="finalized"):
            import_graph_def(message)

    def test_defaults_are_filled_in(self, graph):
        message = GraphDef()
        for name in "ab":
            node = message.node.add(name=name, op="Placeholder")
            node.attr["dtype"].type = tf.float32.as_datatype_enum
        product = message.node.add(name="m", op="MatMul", input=["a", "b"])
        product.attr["T"].type = tf.float32.as_datatype_enum
        (op,) = import_graph_def(message, return_elements=["m"])
        assert op.get_attr("transpose_b") is False


def changed(index, **fields):
    def change(message):
        for key, value in fields.items():
            if key == "input":
                del message.node[index].input[:]
                message.node[index].input.extend(value)
            else:
                setattr(message.node[index], key, value)

    return change


def set_attr(index, name, **value):
    def change(message):
        for field, content in value.items():
            setattr(message.node[index].attr[name], field, content)

    return change


def state_wrong_shape(message):
    shape = message.node[1].attr["_output_shapes"].list.shape.add()
    shape.dim.add(size=3)


WRONG = {
    "unknown op": (changed(1, op="Identityy"), r"'Identityy' \(node 'y'\).*mean 'Identity'"),
    "unknown input": (changed(1, input=["q"]), "Node 'y': Unknown input node 'q'"),
    "output index": (changed(1, input=["x:3"]), "Connecting to invalid output 3 of source node x"),
    "index no number": (changed(1, input=["x:z"]), "Cannot convert 'x:z' to a tensor name"),
    "too many": (changed(1, input=["x", "x"]), "expected inputs 'float32' do not match 2 inputs"),
    "too few": (changed(2, input=["x"]), "'float32, float32' do not match 1 inputs"),
    "control first": (changed(2, input=["^x", "x", "y"]), "'z': Control dependencies must come"),
    "unknown control": (changed(2, input=["x", "y", "^q"]), "'z': Unknown input node 'q'"),
    "cycle": (changed(1, input=["z"]), "2 nodes in a cycle or behind one: 'y', 'z'"),
    "name twice": (changed(1, name="x"), "Node 'x' is not unique"),
    "no name": (changed(1, name=""), "Node '': Node name contains invalid characters"),
    "blank in name": (changed(1, name="a b"), "Node 'a b': Node name contains invalid"),
    "device": (changed(1, device="/bad"), "Node 'y': Malformed device name '/bad'"),
    "attr kind": (set_attr(1, "T", i=1), "with type 'int' when 'type' expected"),
    "no such type": (set_attr(1, "T", type=99), "99 is the number of no data type"),
    "attr missing": (lambda m: m.node[1].attr.pop("T"), "NodeDef missing attr 'T' from Op<name=Id"),
    "attr unknown": (set_attr(1, "foo", i=1), "NodeDef mentions attr 'foo' not in Op<name=Ident"),
    "type not allowed": (set_attr(2, "T", type=10), "'T' of AddV2 is bool, which is not in"),
    "type mismatch": (set_attr(1, "T", type=3), "node import/y was passed float32 from import/x:0"),
    "shape": (state_wrong_shape, "_output_shapes attribute inconsistent .* output #0"),
    "too new": (
        lambda m: setattr(m.versions, "min_consumer", 10**6),
        "min consumer version 1000000 above current version",
    ),
    "colocation": (
        lambda m: m.node[1].attr["_class"].list.s.append(b"loc:@nope"),
        "Node 'y' expects to be colocated with unknown node 'nope'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_graph_is_refused_and_nothing_is_added(case, message, graph):
    change, text = WRONG[case]
    change(message)
    before = no_op("before")
    uses = dict(graph._names._uses)
    with graph.control_dependencies([before]), pytest.raises(ValueError, match=text):
        import_graph_def(message)
    assert names(graph) == ["before"]
    assert graph._names._uses == uses
    assert before.control_outputs == []
    verify(graph)


def test_shapes_that_do_not_fit_name_the_node(graph):
    with tf.Graph().as_default() as other:
        a = tf.placeholder(tf.float32, [2, 3], name="a")
        b = tf.placeholder(tf.float32, [3, 4], name="b")
        raw.MatMul(a, b, name="m")
    message = other.as_graph_def()
    message.node[1].attr["shape"].shape.dim[0].size = 5
    with pytest.raises(ValueError, match=r"Node 'import/m' \(op MatMul\) does not fit: .*3.*5"):
        import_graph_def(message)
    assert names(graph) == []


def test_arguments_of_the_wrong_kind():
    with pytest.raises(TypeError, match="graph_def must be a GraphDef proto"):
        import_graph_def([1])
    with pytest.raises(DataLossError, match="is no GraphDef"):
        import_graph_def(b"not a graph")


def test_defaults_of_the_producer_are_left_out(message, graph):
    message.node[1].attr["new_option"].i = 4
    producer = OpList()
    attr = producer.op.add(name="Identity").attr.add(name="new_option", type="int")
    attr.default_value.i = 4
    import_graph_def(message, producer_op_list=producer)
    attr.default_value.i = 5
    with pytest.raises(ValueError, match="mentions attr 'new_option'"):
        import_graph_def(message, producer_op_list=producer)


def test_function_that_is_not_there_or_calls_itself(graph):
    with tf.Graph().as_default() as other:
        x = tf.placeholder(tf.float32, [], name="x")
        tf.cond(x > 0.0, lambda: x + 1.0, lambda: x * 2.0)
    message = other.as_graph_def()
    broken = GraphDef.FromString(message.SerializeToString())
    del broken.library.function[:]
    with pytest.raises(ValueError, match=r"Function '.*' is not in the library"):
        import_graph_def(broken)
    branch = next(n for n in message.node if n.op == "StatelessIf")
    function = message.library.function[0]
    call = function.node_def.add(name="again", op="PartitionedCall")
    call.input.extend(a.name for a in function.signature.input_arg)
    call.attr["f"].func.name = function.signature.name
    call.attr["Tin"].CopyFrom(branch.attr["Tin"])
    call.attr["Tout"].CopyFrom(branch.attr["Tout"])
    with pytest.raises(ValueError, match="calls itself: recursion is not supported"):
        import_graph_def(message)
    assert names(graph) == []
    assert graph._functions == {}


class TestReferenceVariables:
    def nodes(self):
        """v, its initialiser, v + 1 after an update, and a step that counts."""
        message = GraphDef()
        float_type = tf.float32.as_datatype_enum
        value = message.node.add(name="value", op="Const")
        value.attr["dtype"].type = float_type
        value.attr["value"].tensor.dtype = float_type
        value.attr["value"].tensor.tensor_shape.SetInParent()
        value.attr["value"].tensor.float_val.append(2.0)
        v = message.node.add(name="v", op="VariableV2")
        v.attr["dtype"].type = float_type
        v.attr["shape"].shape.SetInParent()
        for name, op, inputs in (
            ("v/Assign", "Assign", ["v", "value"]),
            ("v/read", "Identity", ["v"]),
            ("add", "AssignAdd", ["v", "value"]),
            ("after", "AddV2", ["add", "value"]),
            ("late", "AddV2", ["v", "v/read", "^add"]),
            ("ready", "IsVariableInitialized", ["v"]),
        ):
            node = message.node.add(name=name, op=op, input=inputs)
            node.attr["dtype" if op == "IsVariableInitialized" else "T"].type = float_type
        return message

    def test_they_become_resources_and_names_stay(self, graph):
        import_graph_def(self.nodes(), name="")
        verify(graph)
        assert graph.get_operation_by_name("v").type == "VarHandleOp"
        with tf.Session() as session:
            assert not session.run("ready:0")
            session.run("v/Assign")
            assert session.run(["v:0", "v/read:0", "ready:0"]) == [2.0, 2.0, True]
            assert session.run("after:0") == 6.0
            assert session.run("v:0") == 4.0
            assert session.run("late:0") in (6.0 + 4.0, 6.0 + 6.0)

    def test_elements_are_values(self, graph):
        v, added = import_graph_def(self.nodes(), return_elements=["v:0", "add:0"])
        with tf.Session() as session:
            session.run("import/v/Assign")
            assert session.run(v) == 2.0
            assert session.run(added) == 4.0


def damaged(data, seed):
    """``data`` cut off, or with some bits flipped."""
    rng = random.Random(seed)
    if rng.random() < 0.4:
        return data[: rng.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


@pytest.mark.parametrize("block", range(8))
def test_damaged_files_give_clear_errors(block, graph):
    with tf.Graph().as_default() as other:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        y = raw.MatMul(x, np.ones([3, 2], np.float32), name="y")
        parts = raw.Unpack(raw.Transpose(y, [1, 0]), num=2)
        raw.ConcatV2([*parts, tf.constant([1.5, 2.5])], 0, name="z")
        tf.cond(raw.Size(x) > 2, lambda: raw.Neg(x), lambda: x * 2.0)
    data = other.as_graph_def(add_shapes=True).SerializeToString()
    failed = 0
    for seed in range(block * 30, block * 30 + 30):
        count = len(graph.get_operations())
        try:
            import_graph_def(damaged(data, seed))
        except (ValueError, DataLossError):
            failed += 1
            assert len(graph.get_operations()) == count
    assert failed > 5
    verify(graph)

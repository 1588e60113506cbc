"""tf.Variable: construction, names, reads, protocols, and functions on sets of variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.graph.func_graph import trace
from headrace.graph_files.import_graph import import_graph_def
from headrace.ops.core.build import function_placeholder


def _names() -> list[str]:
    return [op.name for op in tf.get_default_graph().get_operations()]


def test_ops_have_the_names_that_programs_know() -> None:
    v = tf.Variable([1.0, 2.0], name="v")
    assert _names() == ["v/initial_value", "v", "v/Assign", "v/read"]
    assert v.name == "v:0"
    assert v.op.name == "v"
    assert v.initializer.name == "v/Assign"
    assert v.initial_value.name == "v/initial_value:0"
    assert repr(v) == "<tf.Variable 'v:0' shape=(2,) dtype=float32>"
    assert tf.Variable(1, name="v").name == "v_1:0"
    with tf.name_scope("a"):
        assert tf.Variable(1).name == "a/Variable:0"


def test_an_initialiser_function_has_a_scope_of_its_own() -> None:
    v = tf.Variable(lambda: tf.zeros([2]), name="q")
    assert _names() == ["q/Initializer/zeros", "q", "q/Assign", "q/read"]
    assert v.shape == [2]


def test_properties() -> None:
    with tf.device("/cpu:1"):
        v = tf.Variable(np.int64([[1], [2]]), trainable=False, constraint=abs)
    assert v.dtype == tf.int64
    assert v.get_shape().as_list() == [2, 1]
    assert v.device == "/device:CPU:1"
    assert v.initializer.device == "/device:CPU:1"
    assert v.value().device == "/device:CPU:1"
    assert not v.trainable
    assert v.constraint is abs
    assert v.graph is tf.get_default_graph()
    assert v.synchronization is tf.VariableSynchronization.AUTO
    assert v.aggregation is tf.VariableAggregation.NONE
    assert tf.Variable(1, dtype=tf.float64).dtype == tf.float64


def test_collections() -> None:
    a, b = tf.Variable(1.0), tf.Variable(2.0, trainable=False)
    c = tf.Variable(3.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    assert tf.global_variables() == [a, b]
    assert tf.trainable_variables() == [a, c]
    assert tf.local_variables() == [c]
    assert tf.global_variables("Variable_1") == [b]
    assert tf.all_variables() == [a, b]
    assert tf.model_variables() == tf.moving_average_variables() == []
    with pytest.raises(ValueError, match=r"must be a list, tuple, or set\. Got variables of type"):
        tf.Variable(1.0, collections="variables")


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"initial_value must be specified\."):
        tf.Variable()
    with pytest.raises(ValueError, match="The `constraint` argument must be a callable"):
        tf.Variable(1.0, constraint=3)
    with pytest.raises(ValueError, match="initial_value must have a shape specified: Tensor"):
        tf.Variable(tf.placeholder(tf.float32))
    with pytest.raises(ValueError, match="mutually exclusive"):
        tf.Variable(1.0, variable_def=tf.Variable(1.0).to_proto())


def test_uses_share_one_read_unless_control_dependencies_order_them() -> None:
    v = tf.Variable(1.0, name="v")
    assert tf.convert_to_tensor(v) is v.value()
    assert v.value().name == "v/read:0"
    assert v.read_value() is not v.read_value()
    update = v.assign_add(1.0)
    with tf.control_dependencies([update]):
        fresh = v.value()
        with tf.control_dependencies(None):
            assert v.value().name == "v/read:0"
    assert fresh.op.control_inputs == [update.op]
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([v.value(), fresh]) == [1.0, 2.0]


def test_the_name_of_a_variable_fetches_feeds_and_assigns_its_value() -> None:
    graph = tf.get_default_graph()
    v = tf.Variable([1.0, 2.0], name="v")
    value = graph.get_tensor_by_name("v:0")
    y = v * 10.0
    with tf.Session() as session:
        session.run("v/Assign")
        assert session.run("v:0").tolist() == [1.0, 2.0]
        assert session.run(v).tolist() == [1.0, 2.0]
        assert session.run(y, {"v:0": [3.0, 4.0]}).tolist() == [30.0, 40.0]
        assert session.run(y, {v: [5.0, 6.0]}).tolist() == [50.0, 60.0]
        assert session.run(tf.assign(value, [7.0, 8.0])).tolist() == [7.0, 8.0]
    assert graph.get_operation_by_name("v").outputs[0] is v.handle
    with pytest.raises(TypeError, match=r"Expected a tf\.Variable, but .* is no variable's value"):
        tf.assign(y, [1.0, 1.0])


def test_load_and_eval() -> None:
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(ValueError, match="No default session"):
        v.load([3.0, 4.0])
    with tf.Session() as session:
        count = len(_names())
        v.load([3.0, 4.0])
        assert v.eval().tolist() == [3.0, 4.0]
        assert v.eval(session).tolist() == [3.0, 4.0]
        assert len(_names()) == count
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            v.load([1.0])


def test_operators_work_on_the_value() -> None:
    v = tf.Variable([1.0, -2.0, 3.0])
    array = np.float32([1.0, 2.0, 4.0])
    with tf.Session() as session:
        session.run(v.initializer)
        pairs = [
            (v + 1.0, [2.0, -1.0, 4.0]),
            (2.0 - v, [1.0, 4.0, -1.0]),
            (array * v, [1.0, -4.0, 12.0]),
            (v / array, [1.0, -1.0, 0.75]),
            (v**2.0, [1.0, 4.0, 9.0]),
            (-v, [-1.0, 2.0, -3.0]),
            (abs(v), [1.0, 2.0, 3.0]),
            (v > 0.0, [True, False, True]),
            (v[1:], [-2.0, 3.0]),
        ]
        for got, want in pairs:
            assert session.run(got).tolist() == want


def test_python_protocols() -> None:
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    assert v != w
    assert len({v: 1, w: 2}) == 2
    assert v.experimental_ref() == v.ref()
    assert v.ref() != w.ref()
    assert {v.ref(): 1}[v.ref()] == 1
    assert v.ref().deref() is v
    with pytest.raises(TypeError, match="'Variable' object is not iterable"):
        iter(v)
    assert tf.Variable(0.0)  # it is there, whatever its value: `if bias:`


def test_conversion_to_another_type_is_refused() -> None:
    v = tf.Variable(1.0, name="v")
    with pytest.raises(
        ValueError, match="requested to type 'int32' for variable of type 'float32'"
    ):
        tf.convert_to_tensor(v, tf.int32)
    assert tf.convert_to_tensor(v, tf.resource) is v.handle


def test_set_shape() -> None:
    v = tf.Variable([1.0, 2.0], validate_shape=False)
    v.set_shape([None])
    assert v.shape.as_list() == [None]
    v.set_shape([2])
    assert v.value().shape.as_list() == [2]
    with pytest.raises(ValueError, match="not compatible"):
        v.set_shape([3])


def test_caching_device_keeps_one_copy() -> None:
    v = tf.Variable(1.0, name="v", caching_device="/cpu:1")
    assert v.value().device == "/device:CPU:1"
    with tf.control_dependencies([v.assign(2.0)]):
        assert v.value() is v.value()
        assert v.read_value() is not v.value()


def test_proto_round_trip() -> None:
    v = tf.Variable([1.0, 2.0], name="a/v", trainable=False)
    v._set_save_slice_info(tf.Variable.SaveSliceInfo("a/whole", [4], [2], [2]))
    message = v.to_proto()
    assert (message.variable_name, message.snapshot_name) == ("a/v:0", "a/v/read:0")
    again = tf.Variable.from_proto(message)
    assert again.handle is v.handle
    assert again.value() is v.value()
    assert again.initializer is v.initializer
    assert again.initial_value is v.initial_value
    assert (again.dtype, again.shape, again.trainable) == (v.dtype, v.shape, False)
    assert again._get_save_slice_info().spec == "4 2,2"
    assert v.to_proto("a").variable_name == "v:0"
    assert v.to_proto("b") is None
    assert tf.Variable.from_proto(v.to_proto("a"), import_scope="a").name == "a/v:0"


def test_a_variable_made_in_a_function_body_is_lifted_out() -> None:
    graph = tf.get_default_graph()
    made = []

    def body(x: Any) -> Any:
        with tf.control_dependencies([x]):
            made.append(tf.Variable(lambda: tf.zeros([2]), name="inner"))
        with pytest.raises(
            ValueError, match="from inside a control-flow construct, such as a loop"
        ):
            tf.Variable(x, name="bad")
        return made[0] + x

    function, _ = trace("f", body, [(tf.float32, (2,))], function_placeholder)
    (v,) = made
    assert v.graph is graph
    assert v.initializer.control_inputs == []
    assert tf.global_variables() == [v]
    assert v.handle in function.captures
    assert [op.type for op in function.get_operations()].count("ReadVariableOp") == 1
    assert next(o for o in function._ops if o.type == "ReadVariableOp").outputs[0].dims == (2,)


def test_init_scope_lifts_control_dependencies() -> None:
    a = tf.constant(1.0)
    with tf.name_scope("s"), tf.control_dependencies([a]), tf.init_scope():
        b = tf.constant(2.0, name="b")
    assert b.op.control_inputs == []
    assert b.name == "s/b:0"


def test_initialisers_of_sets_of_variables() -> None:
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")
    local = tf.Variable(3.0, collections=[tf.GraphKeys.LOCAL_VARIABLES], name="local")
    report = tf.report_uninitialized_variables()
    check = tf.assert_variables_initialized()
    with tf.Session() as session:
        assert session.run(report).tolist() == [b"a", b"b", b"local"]
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value"):
            session.run(check)
        session.run(tf.variables_initializer([a]))
        assert session.run(report).tolist() == [b"b", b"local"]
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        assert session.run(report).tolist() == []
        session.run(check)
        assert session.run([a, b, local]) == [1.0, 2.0, 3.0]
    assert tf.initialize_all_variables().type == "NoOp"
    assert tf.initialize_variables([]).type == "NoOp"


def test_no_variables_at_all() -> None:
    assert tf.assert_variables_initialized() is None
    report = tf.report_uninitialized_variables([])
    assert tf.global_variables_initializer().name == "init"
    with tf.Session() as session:
        assert session.run(report).tolist() == []


def test_an_initial_value_may_depend_on_other_variables(interpret: str) -> None:
    a = tf.Variable(tf.random_normal([3]), name="a")
    b = tf.Variable(a * 2.0 + 1.0, name="b")
    c = tf.Variable(b.initialized_value() + a, name="c")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        x, y, z = session.run([a, b, c])
        np.testing.assert_allclose(y, x * 2 + 1, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(z, x * 3 + 1, rtol=1e-6, atol=1e-6)  # sums near zero
        a.load([1.0, 2.0, 3.0])
        session.run(b.initializer)
        assert session.run(b).tolist() == [3.0, 5.0, 7.0]


def test_resource_semantics_are_always_on() -> None:
    tf.enable_resource_variables()
    tf.disable_resource_variables()
    assert tf.resource_variables_enabled()


def test_name_scope() -> None:
    with tf.name_scope("a") as scope:
        assert scope == "a/"
        with tf.name_scope(None, "b", [tf.constant(1.0)]) as inner:
            assert inner == "a/b/"
    with tf.name_scope("a") as again, tf.name_scope("a/") as entered:
        assert (again, entered) == ("a_1/", "a/")
    with tf.name_scope(None) as root:
        assert root == ""
    with pytest.raises(TypeError, match=r"`default_name` type .* is not a string type"):
        tf.name_scope("a", [tf.constant(1.0)])
    with pytest.raises(ValueError, match="At least one of name"):
        tf.name_scope(None, None, [tf.constant(1.0)])


def test_name_scope_enters_the_graph_of_its_values() -> None:
    other = tf.Graph()
    with other.as_default():
        x = tf.constant(1.0)
    with tf.name_scope("a", values=[x]):
        assert tf.get_default_graph() is other
    assert tf.get_default_graph() is not other
    with (
        pytest.raises(ValueError, match="must be from the same graph as"),
        tf.name_scope("a", values=[x, tf.constant(1.0)]),
    ):
        pass


def test_functions_on_the_default_graph() -> None:
    tf.add_to_collection("c", 1)
    tf.add_to_collections(["c", "d"], 2)
    assert tf.get_collection("c") == [1, 2]
    tf.get_collection_ref("d").append(3)
    assert tf.get_collection("d") == [2, 3]
    tf.set_random_seed(5)
    assert tf.get_seed(7) == (5, 7)
    a = tf.constant(1.0)
    with tf.control_dependencies([a]), tf.device("/cpu:1"), tf.container("box"):
        v = tf.Variable(1.0)
        b = tf.constant(2.0)
    assert b.op.control_inputs == [a.op]
    assert v.op.get_attr("container") == b"box"
    with tf.colocate_with(b):
        assert tf.constant(3.0).device == "/device:CPU:1"


def test_the_name_works_in_graphs_without_variable_objects() -> None:
    v = tf.Variable([1.0, 2.0], name="v")
    graph_def = tf.get_default_graph().as_graph_def()
    del v
    with tf.Graph().as_default() as graph, tf.Session() as session:
        import_graph_def(graph_def, name="")
        session.run("v/Assign")
        assert session.run("v:0").tolist() == [1.0, 2.0]
        update = tf.assign_add(graph.get_tensor_by_name("v:0"), [1.0, 1.0])
        assert session.run(update).tolist() == [2.0, 3.0]


def test_sizes_that_are_variables() -> None:
    v = tf.Variable(3)
    tensors = {
        "zeros": (tf.zeros([2, v]), [2, 3]),
        "ones": (tf.ones((v, 1)), [3, 1]),
        "fill": (tf.fill([v, v], 2.0), [3, 3]),
        "reshape": (tf.reshape(tf.range(6), [2, v]), [2, 3]),
        "normal": (tf.random_normal([2, v]), [2, 3]),
        "uniform": (tf.random_uniform([v, 2]), [3, 2]),
        "truncated": (tf.truncated_normal([v]), [3]),
        "gamma": (tf.random_gamma([v], 1.0), [3]),
        "broadcast": (tf.broadcast_to([1, 2, 3], [2, v]), [2, 3]),
        "initializer": (tf.random_normal_initializer()([2, v]), [2, 3]),
        "zeros_initializer": (tf.zeros_initializer()([2, v]), [2, 3]),
    }
    with tf.Session() as session:
        session.run(v.initializer)
        sizes = session.run({name: tf.shape(t) for name, (t, _) in tensors.items()})
    assert {n: s.tolist() for n, s in sizes.items()} == {n: d for n, (_, d) in tensors.items()}
    assert tensors["zeros"][0].shape.as_list() == [2, None]

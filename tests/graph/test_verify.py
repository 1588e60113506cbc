"""The verifier: graphs that programs make are right, and each kind of damage is found."""

from __future__ import annotations

import pytest

import headrace as tf
from headrace.graph.tensor import Tensor
from headrace.graph.verify import RULES, InvalidGraphError, verify
from headrace.ops.control.basic import no_op
from headrace.ops.core.build import raw


@pytest.fixture
def graph():
    """x -> y = -x -> z = y + y, which waits for `first`; and a branch."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        first = no_op("first")
        with graph.control_dependencies([first]):
            y = raw.Neg(x, name="y")
            raw.AddV2(y, y, name="z")
        tf.cond(raw.Sum(x, 0) > 0.0, lambda: raw.Exp(x, name="inner"), lambda: x)
        yield graph


def test_a_graph_of_a_program_is_right(graph):
    verify(graph)


def same_name(graph):
    graph._ops[1].name = "x"


def unknown_input(graph):
    with tf.Graph().as_default():
        foreign = tf.constant([1.0, 2.0], name="foreign")
    graph._by_name["y"].inputs = (foreign,)


def unknown_control(graph):
    with tf.Graph().as_default():
        graph._by_name["y"].control_inputs = [no_op("foreign")]


def forgotten_consumer(graph):
    graph._by_name["x"].outputs[0]._consumers.clear()


def forgotten_waiter(graph):
    graph._by_name["first"].control_outputs.clear()


def cycle(graph):
    graph._by_name["first"]._add_control_input(graph._by_name["z"])


def input_type(graph):
    graph._by_name["x"].outputs[0].dtype = tf.int32


def missing_attribute(graph):
    del graph._by_name["y"].attrs["T"]


def forbidden_attribute(graph):
    graph._by_name["y"].attrs["T"] = tf.string


def output_count(graph):
    op = graph._by_name["y"]
    op.outputs = (*op.outputs, Tensor(op, 1, tf.float32, (2,)))


def output_place(graph):
    graph._by_name["y"].outputs[0].value_index = 1


def shape(graph):
    graph._by_name["y"].outputs[0].dims = (3,)


def inputs_that_do_not_fit(graph):
    graph._by_name["z"].inputs[0].dims = (3,)
    z = graph._by_name["z"]
    x = graph._by_name["x"].outputs[0]
    z.inputs = (z.inputs[0], x)
    x._consumers.append(z)


def device(graph):
    graph._by_name["y"].device = "/nonsense"


def colocation(graph):
    graph._by_name["y"].colocation = ("gone",)


def body(graph):
    function = next(f for f in graph._functions.values() if "inner" in str(f._by_name))
    function.outputs = [graph._by_name["x"].outputs[0]]


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        (same_name, "two operations are called 'x'"),
        (unknown_input, "input 'foreign:0' of 'y' is not in the graph"),
        (unknown_control, "control input 'foreign' of 'y' is not in the graph"),
        (forgotten_consumer, "'x:0' does not know its consumer 'y'"),
        (forgotten_waiter, "'first' does not know that 'y' waits for it"),
        (cycle, "3 operations are in a cycle or behind one: first, y, z"),
        (input_type, r"input 0 of 'y' \(Neg\) is int32, not float32"),
        (missing_attribute, r"'y' \(Neg\) lacks attributes \['T'\]"),
        (forbidden_attribute, "attribute T of 'y' may not be"),
        (output_count, r"'y' \(Neg\) has 2 outputs, not 1"),
        (output_place, "output 0 of 'y' says that it is 'y:1'"),
        (shape, r"'y:0' has shape \(3,\); its inputs give \(2,\)"),
        (inputs_that_do_not_fit, r"the inputs of 'z' \(AddV2\) do not fit"),
        (device, "device of 'y': Malformed device name '/nonsense'"),
        (colocation, "'y' is colocated with 'gone', which does not exist"),
        (body, "in function '.*': output 'x:0' is not in the body"),
    ],
)
def test_damage_is_found(graph, damage, finding):
    damage(graph)
    with pytest.raises(InvalidGraphError, match=finding):
        verify(graph)


def test_all_findings_are_told(graph):
    device(graph)
    colocation(graph)
    with pytest.raises(InvalidGraphError) as caught:
        verify(graph)
    assert len(caught.value.findings) == 2


def test_every_rule_says_what_it_is():
    assert all(rule.__doc__ for rule in RULES)

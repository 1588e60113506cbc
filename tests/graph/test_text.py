"""The text form of graphs: what it looks like, and that it reads back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.graph.text import parse, to_text
from headrace.graph_files.import_graph import from_text, import_graph_def
from headrace.ops.control.basic import no_op
from headrace.ops.core.build import raw
from headrace.passes.ir import build_step

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "graphs"

EXPECTED = """\
%x = Placeholder[dtype=float32, shape=<?,2>]() : float32[?,2]
%first = NoOp()
%w = Const[dtype=float32, value=float32<2,1>{0.5, -inf}]() @/device:CPU:1 : float32[2,1]
%y = MatMul[T=float32, _class=["loc:@w"], grad_a=false, grad_b=false, transpose_a=false, \
transpose_b=false](%x, %w) ^first \
@/device:CPU:1 : float32[?,1]
%parts = Unpack[T=float32, axis=1, num=1](%y) : float32[?]
"""


def example():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        first = no_op("first")
        with graph.device("/cpu:1"):
            w = tf.constant([[0.5], [-np.inf]], name="w")
        with graph.control_dependencies([first]), graph.colocate_with(w.op):
            y = raw.MatMul(x, w, name="y")
        raw.Unpack(y, num=1, axis=1, name="parts")
    return graph


def test_one_line_per_operation():
    assert to_text(example()) == EXPECTED


def test_it_reads_back():
    graph = example()
    again = from_text(EXPECTED)
    assert again.as_graph_def(add_shapes=True) == graph.as_graph_def(add_shapes=True)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.pb")), ids=lambda p: p.stem)
def test_graphs_of_tensorflow_read_back(path):
    with tf.Graph().as_default() as graph:
        import_graph_def(path.read_bytes(), name="")
    text = to_text(graph)
    assert to_text(from_text(text)) == text


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.5, np.nan, -0.0, 1e-30]),
        np.array([1 + 2j, -1j], np.complex64),
        np.array([True, False]),
        np.array([b'a"b', b"\xff\n", b""], object),
        np.arange(100, dtype=np.int16).reshape(4, 25),
        np.float32(3.25),
        np.zeros((0, 3), np.uint8),
    ],
    ids=lambda v: f"{v.dtype}{v.shape}",
)
def test_constants_read_back(values):
    with tf.Graph().as_default() as graph:
        tf.constant(values, name="c")
    found = from_text(to_text(graph)).get_operation_by_name("c").attrs["value"]
    assert found.dtype == values.dtype
    assert found.shape == values.shape
    assert found.tobytes() == values.tobytes() or found.tolist() == values.tolist()


def test_functions_follow_the_operations():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        tf.cond(raw.Sum(x, 0) > 0.0, lambda: x * 2.0, lambda: raw.Neg(x))
    text = to_text(graph)
    assert text.count("\nfunction ") == 2
    assert "then_branch=@" in text
    assert to_text(from_text(text)) == text


def test_step_graphs_have_a_text_too():
    graph = example()
    step = build_step([graph.get_tensor_by_name("y:0")], [], [])
    lines = to_text(step).splitlines()
    assert [line.split(" ")[0] for line in lines] == ["%x", "%first", "%w", "%y"]
    assert "(%x, %w) ^first" in lines[-1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%a = Const[value=]()", r"line 1: expected a value, got \]: %a"),
        ("# a comment\n%a Const()", "line 2: expected =, got Const"),
        ("%a = NoOp() nonsense", "line 1: nothing should follow, got nonsense"),
        ("%a = NoOp(", "line 1: expected reference, got the end"),
        ("%a = NoOp(;)", r"line 1: cannot read ';\)'"),
        ("%a = Neg[T=floaty](%b)", "floaty is no value"),
    ],
)
def test_malformed_text(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_unknown_op_type():
    with pytest.raises(ValueError, match=r"'Nop' \(node 'a'\)"):
        from_text("%a = Nop()")

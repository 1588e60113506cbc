"""Graphs in forms that programs of several ages left in files give TensorFlow's values here."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.graph.proto import GraphDef, MetaGraphDef
from headrace.graph_files.import_graph import import_graph_def
from headrace.ops.core.build import raw

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "foreign"
NAMES = sorted(p.name.removesuffix(".meta.gz") for p in GOLDEN.glob("*.meta.gz"))


def meta_graph(name):
    return MetaGraphDef.FromString(gzip.decompress((GOLDEN / f"{name}.meta.gz").read_bytes()))


def runs_of(name):
    """The feeds of a golden, and for each run its fetches with the results."""
    runs = {}
    with np.load(GOLDEN / f"{name}.npz") as file:
        feeds = {k[3:]: file[k] for k in file.files if k.startswith("in/")}
        for key in file.files:
            if not key.startswith("in/"):
                kind, number, fetch = key.split("/", 2)
                runs.setdefault(int(number), {})[fetch] = file[key] if kind == "out" else None
    return feeds, [runs[i] for i in sorted(runs)]


def check(name):
    feeds, runs = runs_of(name)
    with tf.Session() as session:
        if "init" in session.graph._by_name:
            session.run("init")
        for i, expected in enumerate(runs):
            found = session.run(list(expected), feeds)
            for (fetch, wanted), value in zip(expected.items(), found, strict=True):
                if wanted is None:
                    assert value is None
                    continue
                assert value.dtype == wanted.dtype, fetch
                np.testing.assert_allclose(
                    value, wanted, rtol=2e-5, atol=2e-6, err_msg=f"run {i}: {fetch}"
                )


@pytest.mark.parametrize("name", NAMES)
def test_values(name):
    with tf.Graph().as_default():
        import_graph_def(meta_graph(name).graph_def, name="")
        check(name)


@pytest.mark.parametrize("name", NAMES)
def test_written_again_it_gives_the_same_values(name):
    with tf.Graph().as_default() as first:
        import_graph_def(meta_graph(name).graph_def, name="")
        written = first.as_graph_def().SerializeToString()
    with tf.Graph().as_default():
        import_graph_def(written, name="")
        check(name)


def test_arguments_and_results_of_a_function_that_became_a_graph():
    message = GraphDef()
    arg = message.node.add(name="arg", op="_Arg")
    arg.attr["T"].type = 1
    arg.attr["index"].i = 0
    double = message.node.add(name="double", op="AddV2", input=["arg", "arg"])
    double.attr["T"].type = 1
    result = message.node.add(name="result", op="_Retval", input=["double"])
    result.attr["T"].type = 1
    result.attr["index"].i = 0
    with tf.Graph().as_default(), tf.Session() as session:
        import_graph_def(message, name="")
        assert session.run("result:0", {"arg:0": [1.0, 2.0]}).tolist() == [2.0, 4.0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="'arg' with dtype float32"):
            session.run("result:0")


@pytest.mark.parametrize("op", ["MultiDeviceIterator", "DataServiceDataset", "DatasetToGraphV2"])
def test_parts_of_tf_data_that_are_not_there_are_named(op):
    message = GraphDef()
    message.node.add(name="input", op=op)
    expected = rf"Node 'input' is of type {op}, a part of tf.data.*feed them"
    with pytest.raises(ValueError, match=expected):
        import_graph_def(message, name="")


def test_the_output_of_a_switch_that_was_not_taken():
    with tf.Graph().as_default(), tf.Session() as session:
        import_graph_def(meta_graph("switches_and_merges").graph_def, name="")
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match="Output 0 of a Switch has no value: its predicate would have to be false",
        ):
            session.run("choose:0", {"x:0": [1.0, 2.0, 3.0]})
        assert session.run("choose:0", {"x:0": [-1.0, -2.0, 0.0]}).tolist() == [-1.0, -2.0, 0.0]


def test_optionals(interpret):
    x = tf.placeholder(tf.float32, [2])
    full, empty = raw.OptionalFromValue([x, x * 2.0]), raw.OptionalNone()
    options = {"output_types": [tf.float32] * 2, "output_shapes": [x.shape] * 2}
    first, second = raw.OptionalGetValue(full, **options)
    (grad,) = tf.gradients(first * 3.0 + second, x)
    with tf.Session() as session:
        found = session.run(
            [raw.OptionalHasValue(full), raw.OptionalHasValue(empty), first, second, grad],
            {x: [1.0, 2.0]},
        )
        assert [np.asarray(v).tolist() for v in found] == [
            *(True, False, [1.0, 2.0], [2.0, 4.0], [5.0, 5.0]),
        ]
        with pytest.raises(tf.errors.InvalidArgumentError, match="optional does not have a value"):
            session.run(raw.OptionalGetValue(empty, **options))


def test_a_placeholder_of_old_with_a_shape_keeps_it():
    message = GraphDef()
    message.versions.producer = 20
    for name, op in (("any", "Placeholder"), ("scalar", "PlaceholderV2"), ("pair", "Placeholder")):
        node = message.node.add(name=name, op=op)
        node.attr["dtype"].type = 1
        node.attr["shape"].shape.SetInParent()
    message.node[2].attr["shape"].shape.dim.add(size=2)
    found = import_graph_def(message, return_elements=["any:0", "scalar:0", "pair:0"])
    assert [t.shape.as_list() if t.shape.rank is not None else None for t in found] == [
        *(None, [], [2]),
    ]
    message.versions.producer = 22
    (scalar,) = import_graph_def(message, return_elements=["any:0"], name="newer")
    assert scalar.shape.as_list() == []


def test_functions_that_are_called_wrongly():
    message = meta_graph("functions_with_attributes").graph_def
    call = next(n for n in message.node if n.op == "Scaled")
    del call.attr["T"]
    with pytest.raises(ValueError, match=r"'Scaled'|Scaled"):
        import_graph_def(message, name="")
    message = meta_graph("gradients_of_functions").graph_def
    gradient = next(n for n in message.node if n.op == "SymbolicGradient")
    gradient.attr["f"].func.name = "Missing"
    with pytest.raises(
        ValueError, match=f"Node '{gradient.name}': SymbolicGradient of 'Missing', which is no"
    ):
        import_graph_def(message, name="")


@pytest.mark.parametrize("scope", [None, "old"])
def test_collections_of_the_programs_own(scope):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.train.import_meta_graph(meta_graph("collections"), import_scope=scope)
        session.run(f"{scope}/init" if scope else "init")
        check_collections(graph, session)
        step = tf.train.get_global_step()
        assert isinstance(step, tf.Variable)
        assert step in tf.global_variables()
        assert step.name == ("old/" if scope else "") + "global_step:0"
        assert session.run(step) == 0


def check_collections(graph, session):
    assert [v.tolist() for v in session.run(graph.get_collection("mine"))] == [[1.0, 2.0]]
    assert graph.get_collection("mine")[0].eval(session=session).tolist() == [1.0, 2.0]
    assert [v.tolist() for v in session.run(graph.get_collection("handles"))] == [[3.0]]
    assert [v.tolist() for v in session.run(graph.get_collection("mixed"))] == [[1.0, 2.0], [3.0]]
    assert [v.tolist() for v in session.run(graph.get_collection("tensors"))] == [[2.0, 4.0]]
    assert graph.get_collection("numbers") == [7]


def test_collections_written_here_hold_names_too():
    v, w = tf.Variable([1.0, 2.0], name="v"), tf.Variable([3.0], name="w")
    for key, items in {"mine": [v], "handles": [w], "mixed": [v, w], "tensors": [v * 2.0]}.items():
        for item in items:
            tf.add_to_collection(key, item)
    tf.add_to_collection("numbers", 7)
    tf.train.get_or_create_global_step()
    message = tf.train.export_meta_graph()
    assert list(message.collection_def["mixed"].node_list.value) == ["v:0", "w:0"]
    assert len(message.collection_def["global_step"].bytes_list.value) == 1
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.train.import_meta_graph(message)
        session.run(tf.global_variables_initializer())
        check_collections(graph, session)
        assert tf.train.get_global_step() in tf.global_variables()

"""TensorFlow's tools and utilities that programs import: frozen graphs, checkpoints, decorators."""

from __future__ import annotations

import collections
import zlib

import numpy as np
import pytest

import headrace as tf
from headrace.compat import file_io, internals, util
from headrace.compat.freeze_graph import freeze_graph
from headrace.compat.inspect_checkpoint import print_tensors_in_checkpoint_file


@pytest.fixture
def checkpoint(tmp_path):
    """A model with a checkpoint, its graph as text without and with restore operations."""
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    w = tf.Variable(tf.ones([3, 2]), name="w")
    y = tf.matmul(x, w + 1.0, name="y")
    plain = tf.get_default_graph().as_graph_def()
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(w.assign(np.full([3, 2], 2.0)))
        path = saver.save(session, str(tmp_path / "model"))
        tf.train.write_graph(plain, str(tmp_path), "plain.pb", as_text=False)
        tf.train.write_graph(session.graph_def, str(tmp_path), "graph.pbtxt")
    assert y.shape.as_list() == [None, 2]
    return path


@pytest.mark.parametrize("kind", ["restored by the graph", "by name", "meta graph"])
def test_a_graph_is_frozen(checkpoint, tmp_path, kind):
    graph, binary, meta = {
        "restored by the graph": ("graph.pbtxt", False, None),
        "by name": ("plain.pb", True, None),
        "meta graph": ("", True, f"{checkpoint}.meta"),
    }[kind]
    out = str(tmp_path / "frozen.pb")
    freeze_graph(
        str(tmp_path / graph) if graph else "",
        "",
        binary,
        checkpoint,
        "y",
        "save/restore_all",
        "save/Const:0",
        out,
        True,
        "",
        input_meta_graph=meta,
    )
    frozen = tf.GraphDef()
    frozen.ParseFromString(tf.gfile.GFile(out, "rb").read())
    assert "VarHandleOp" not in {node.op for node in frozen.node}
    with tf.Graph().as_default(), tf.Session() as session:
        (y,) = tf.import_graph_def(frozen, return_elements=["y:0"], name="")
        np.testing.assert_array_equal(session.run(y, {"x:0": np.ones([1, 3])}), [[9.0, 9.0]])


def test_freezing_needs_outputs(checkpoint, tmp_path):
    with pytest.raises(ValueError, match="--output_node_names"):
        freeze_graph(str(tmp_path / "plain.pb"), "", True, checkpoint, "", "", "", "", True, "")
    with pytest.raises(tf.errors.NotFoundError):
        freeze_graph("absent.pb", "", True, checkpoint, "y", "", "", "", True, "")


def test_a_checkpoint_is_printed(checkpoint, capsys):
    print_tensors_in_checkpoint_file(checkpoint, None, all_tensors=False)
    assert capsys.readouterr().out == "w (float32) [3, 2]\n# Total number of params: 6\n"
    print_tensors_in_checkpoint_file(checkpoint, "w", all_tensors=False)
    assert capsys.readouterr().out.startswith("tensor_name:  w\n[[2. 2.]")
    print_tensors_in_checkpoint_file(checkpoint, "", True, count_exclude_pattern="w")
    assert capsys.readouterr().out.endswith("# Total number of params: 0\n")


def test_decorators_of_deprecation(caplog):
    @util.deprecated("2020-01-01", "Use new.")
    def old(x):
        """Old."""
        return x

    @util.deprecated_args(None, "Say axis.", "dim", ("keep", None))
    def some(x, axis=None, dim=None, keep=None):
        return util.deprecated_argument_lookup("axis", axis, "dim", dim)

    @util.deprecated_arg_values(None, "Say no more.", mode="bad")
    def other(mode="good"):
        return mode

    assert [old(1), old(2), old.__name__, old.__doc__] == [1, 2, "old", "Old."]
    assert some(1, axis=2, keep=None) == 2
    assert some(1, dim=3) == 3
    with pytest.raises(ValueError, match="both 'dim' and 'axis'"):
        some(1, axis=2, dim=3)
    assert [other(), other("bad"), other(mode="bad")] == ["good", "bad", "bad"]
    messages = [r.getMessage() for r in caplog.records]
    assert len(messages) == 3
    assert "removed after 2020-01-01.\nInstructions for updating:\nUse new." in messages[0]
    assert "with dim is deprecated" in messages[1]
    assert "with mode is deprecated" in messages[2]
    with pytest.raises(ValueError, match="without conversion instructions"):
        util.deprecated(None, "")
    silent = util.deprecated(None, "Nothing.")(lambda: 1)
    with util.silence():
        assert silent() == 1
    assert len(caplog.records) == 3
    assert util.tf_export("a.b", v1=["c"])(old) is old
    assert util.deprecated_alias("a", "b", int) is int


def test_functions_described():
    def function(a, b=1, *c, **d):
        pass

    assert util.getargspec(function) == (["a", "b"], "c", "d", (1,))
    assert util.fn_args(function) == ("a", "b")
    assert util.has_kwargs(function)
    assert not util.has_kwargs(lambda x: x)
    assert util.get_func_name(function) == "function"
    assert util.get_func_code(function) is function.__code__
    wrapped = util.make_decorator(function, lambda *a, **k: None)
    assert util.unwrap(wrapped) == ([wrapped], function)
    only = util.keyword_args_only(lambda **kw: kw)
    assert only(a=1) == {"a": 1}
    with pytest.raises(ValueError, match="Must use keyword args"):
        only(1)
    lazy = util.LazyLoader("collections_", namespace := {}, "collections")
    assert lazy.OrderedDict is collections.OrderedDict
    assert namespace["collections_"] is collections


def test_containers_by_identity():
    a, b = [1], [1]
    by_identity = util.ObjectIdentityDictionary()
    by_identity[a] = 1
    assert (by_identity[a], b in by_identity, len(by_identity), list(by_identity)) == (
        1,
        False,
        1,
        [[1]],
    )
    del by_identity[a]
    assert a not in by_identity
    found = util.ObjectIdentitySet([a])
    assert a in found
    assert b not in found
    found.add(b)
    found.discard(a)
    assert (len(found), list(found)) == (1, [[1]])


def test_files(tmp_path):
    path = str(tmp_path / "a")
    file_io.write_string_to_file(path, "héllo")
    assert file_io.read_file_to_string(path) == "héllo"
    assert file_io.read_file_to_string(path, binary_mode=True) == "héllo".encode()
    other = str(tmp_path / "b")
    file_io.atomic_write_string_to_file(other, b"h\xc3\xa9llo")
    assert file_io.filecmp(path, other)
    with pytest.raises(tf.errors.AlreadyExistsError):
        file_io.atomic_write_string_to_file(other, "x", overwrite=False)
    assert file_io.list_directory(str(tmp_path)) == ["a", "b"]
    assert (
        file_io.file_crc32(path) == file_io.file_crc32(other) == hex(zlib.crc32("héllo".encode()))
    )
    assert sorted(file_io.get_matching_files(str(tmp_path / "*"))) == [path, other]
    assert not file_io.filecmp(path, __file__)


def test_inner_functions():
    assert internals.strip_name_scope("a/b", "a") == "b"
    assert internals.strip_name_scope("^a/b", "a/") == "^b"
    assert internals.prepend_name_scope("loc:@b", "a") == "loc:@a/b"
    assert internals.name_from_scope_name("a/") == "a"
    assert internals.uid() != internals.uid()
    assert internals.meta_graph_filename("m-1-?????-of-00002") == "m-1.meta"
    x = tf.placeholder(tf.float32, [None, 4])
    assert internals.constant_value_as_shape(tf.shape(x)).as_list() == [None, 4]
    assert internals.smart_constant_value(tf.constant(True)) is True
    assert internals.smart_constant_value(1) is True
    assert internals.smart_constant_value(tf.placeholder(tf.bool)) is None
    with pytest.raises(TypeError, match="must be a Tensor, or a Python bool"):
        internals.smart_constant_value("yes")
    assert internals.smart_cond(False, lambda: 1, lambda: 2) == 2
    assert isinstance(
        internals.smart_cond(tf.placeholder(tf.bool), lambda: x, lambda: -x), tf.Tensor
    )
    assert internals.broadcast_shape(
        tf.TensorShape([2, 1]), tf.TensorShape([None, 3])
    ).as_list() == [2, 3]
    assert not internals.is_broadcast_compatible(tf.TensorShape([2]), tf.TensorShape([3]))
    assert internals.RegisterShape("X")(len) is len
    used = internals.stripped_op_list_for_graph(tf.get_default_graph().as_graph_def())
    assert "Placeholder" in [op.name for op in used.op]
    assert internals.is_resource_variable(tf.Variable(1))


def test_losses_of_samples_in_the_old_order():
    labels = np.array([[1], [2]])
    inputs = np.ones([2, 3], np.float32)
    weights, biases = tf.ones([5, 3]), tf.zeros([5])
    values = tf.nn.log_uniform_candidate_sampler(labels.astype(np.int64), 1, 2, True, 5, seed=1)
    for loss in (tf.nn.nce_loss, tf.nn.sampled_softmax_loss):
        old = loss(weights, biases, tf.constant(inputs), labels, 2, 5, sampled_values=values)
        new = loss(weights, biases, labels, tf.constant(inputs), 2, 5, sampled_values=values)
        with tf.Session() as session:
            first, second = session.run([old, new])
        np.testing.assert_array_equal(first, second)

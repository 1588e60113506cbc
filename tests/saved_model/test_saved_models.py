"""SavedModels: written and read back, and those that TensorFlow wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.ops.control import script
from headrace.ops.sparse.cross import sparse_cross_first_hashed

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "saved_models"
KEY = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


OF_TWO = ["v2", "v2_layers", "v2_recurrent", "v2_words", "v2_programs"]


@pytest.mark.parametrize("name", ["v1", *OF_TWO])
def test_models_of_tensorflow_give_its_results(name):
    with np.load(GOLDEN / name / "results.npz") as file:
        results = {key: file[key] for key in file.files}
    with tf.Graph().as_default(), tf.Session() as sess:
        message = tf.saved_model.load(sess, ["serve"], str(GOLDEN / name))
        signature = message.signature_def[KEY]
        feeds = {signature.inputs[k].name: results[f"in/{k}"] for k in signature.inputs}
        found = sess.run({k: info.name for k, info in signature.outputs.items()}, feeds)
    assert {f"out/{k}" for k in found} == {k for k in results if k.startswith("out/")}
    for key, value in found.items():
        expected = results[f"out/{key}"]
        if expected.dtype.kind == "S":
            assert np.asarray(value).astype("S").tolist() == expected.tolist()
        else:
            assert value.dtype == expected.dtype
            np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-7)


def test_gradients_of_programs_that_tensorflow_has_saved_again():
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.saved_model.load(sess, ["serve"], str(GOLDEN / "v2_programs"))
        (kernel,) = [v for v in tf.trainable_variables() if "kernel" in v.name]
        x = sess.graph.get_tensor_by_name("x:0")
        (layer,) = [o for o in sess.graph.get_operations() if o.type == "XlaCallModule"][-1:]
        y = layer.outputs[0]
        (slope,) = tf.gradients(y, kernel)
        feed = {x: np.eye(3, dtype=np.float32)}
        found, value = sess.run([slope, y], feed)
    np.testing.assert_allclose(found, 1 - np.square(value), rtol=1e-5)


def test_modules_of_other_programs_are_refused_by_name():
    with pytest.raises(ValueError, match="StableHLO module that another program than Headrace"):
        tf.raw_ops.XlaCallModule(
            [tf.ones([2])], Tout=[tf.float32], module=b"ML", version=9, Sout=[]
        )


def _model():
    x = tf.placeholder(tf.float32, [None, 2], "x")
    w = tf.get_variable("w", initializer=[[1.0], [2.0]])
    return x, tf.matmul(x, w, name="y")


def _saved(folder, **arguments):
    with tf.Graph().as_default(), tf.Session() as sess:
        x, y = _model()
        sess.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(sess, str(folder), {"x": x}, {"y": y}, **arguments)


def test_simple_save(tmp_path):
    folder = tmp_path / "model"
    _saved(folder)
    assert tf.saved_model.maybe_saved_model_directory(str(folder))
    assert not tf.saved_model.maybe_saved_model_directory(str(tmp_path))
    with tf.Graph().as_default(), tf.Session() as sess:
        message = tf.saved_model.loader.load(
            sess, [tf.saved_model.tag_constants.SERVING], str(folder)
        )
        signature = message.signature_def[KEY]
        assert signature.method_name == "tensorflow/serving/predict"
        assert tf.saved_model.is_valid_signature(signature)
        x = tf.saved_model.get_tensor_from_tensor_info(signature.inputs["x"])
        y = tf.saved_model.utils.get_tensor_from_tensor_info(signature.outputs["y"])
        assert x.shape.as_list() == [None, 2]
        np.testing.assert_array_equal(sess.run(y, {x: [[3.0, 4.0]]}), [[11.0]])


def test_under_a_scope(tmp_path):
    _saved(tmp_path / "model")
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.saved_model.load(sess, ["serve"], str(tmp_path / "model"), import_scope="old")
        y = graph.get_tensor_by_name("old/y:0")
        np.testing.assert_array_equal(sess.run(y, {"old/x:0": [[1.0, 1.0]]}), [[3.0]])


@pytest.mark.parametrize("as_text", [True, False])
def test_several_graphs_by_their_tags(tmp_path, as_text):
    builder = tf.saved_model.builder.SavedModelBuilder(str(tmp_path / "model"))
    with pytest.raises(AssertionError, match="has not been saved yet"):
        builder.add_meta_graph(["serve"])
    with tf.Graph().as_default(), tf.Session() as sess:
        x, y = _model()
        train = tf.assign_add(tf.global_variables()[0], [[1.0], [1.0]], name="train")
        sess.run(tf.global_variables_initializer())
        builder.add_meta_graph_and_variables(sess, ["train"], strip_default_attrs=True)
        with pytest.raises(AssertionError, match="already been saved"):
            builder.add_meta_graph_and_variables(sess, ["serve"])
    with tf.Graph().as_default():
        x, y = _model()
        signature = tf.saved_model.signature_def_utils.build_signature_def(
            {"x": tf.saved_model.utils.build_tensor_info(x)},
            {"y": tf.saved_model.build_tensor_info(y)},
            "method",
        )
        builder.add_meta_graph(["serve", "gpu"], {"sig": signature}, main_op=tf.no_op("ready"))
    path = builder.save(as_text=as_text)
    assert path.endswith("saved_model.pbtxt" if as_text else "saved_model.pb")
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.saved_model.load(sess, ["train"], str(tmp_path / "model"))
        np.testing.assert_array_equal(sess.run(train.name), [[2.0], [3.0]])
        assert "ready" not in graph._by_name
    with tf.Graph().as_default(), tf.Session() as sess:
        message = tf.saved_model.load(sess, {"gpu", "serve"}, str(tmp_path / "model"))
        assert list(message.signature_def) == ["sig"]
    with (
        tf.Graph().as_default(),
        tf.Session() as sess,
        pytest.raises(RuntimeError, match=r"tags \['serve'\].*available tags.*\['gpu', 'serve'\]"),
    ):
        tf.saved_model.load(sess, ["serve"], str(tmp_path / "model"))


def test_assets_go_with_the_model_and_the_init_op_runs(tmp_path):
    for name, text in (("one", "first"), ("two", "second")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "words.txt").write_text(text)
    builder = tf.saved_model.Builder(str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as sess:
        paths = [tf.constant(str(tmp_path / n / "words.txt"), name=n) for n in ("one", "two")]
        v = tf.Variable("", name="v")
        loaded = tf.assign(v, tf.string_join([tf.read_file(p) for p in paths]))
        sess.run(tf.global_variables_initializer())
        builder.add_meta_graph_and_variables(
            sess, ["serve"], assets_collection=paths, legacy_init_op=loaded.op
        )
    builder.save()
    for name in ("one", "two"):
        (tmp_path / name / "words.txt").unlink()
    with tf.Graph().as_default(), tf.Session() as sess:
        message = tf.saved_model.load(sess, ["serve"], str(tmp_path / "model"))
        assert sess.run("v:0") == b"firstsecond"
    assert [a.filename for a in message.asset_file_def] == ["words.txt", "words.txt_1"]


def test_folders_that_are_not_empty(tmp_path):
    (tmp_path / "something").write_text("")
    with pytest.raises(AssertionError, match="already exists, and isn't empty"):
        tf.saved_model.Builder(str(tmp_path))


def test_wrong_arguments(tmp_path):
    builder = tf.saved_model.Builder(str(tmp_path / "model"))
    with tf.Session() as sess:
        x, _ = _model()
        sess.run(tf.global_variables_initializer())
        with pytest.raises(ValueError, match="an asset is a constant string"):
            builder.add_meta_graph_and_variables(sess, ["a"], assets_collection=[x])
    other = tf.saved_model.Builder(str(tmp_path / "other"))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        op = tf.no_op()
        with pytest.raises(ValueError, match="Only one of"):
            other.add_meta_graph_and_variables(sess, ["a"], legacy_init_op=op, main_op=op)
        with pytest.raises(TypeError, match="must be an Operation"):
            other.add_meta_graph_and_variables(sess, ["a"], main_op="op")
        empty = tf.saved_model.build_signature_def({"x": tf.TensorInfo()}, {}, "m")
        with pytest.raises(AssertionError, match="'x' of signature 's': it names no tensor"):
            other.add_meta_graph_and_variables(sess, ["a"], {"s": empty})


def test_damaged_models(tmp_path):
    with tf.Session() as sess:
        with pytest.raises(OSError, match="SavedModel file does not exist"):
            tf.saved_model.load(sess, ["serve"], str(tmp_path))
        _saved(tmp_path / "model")
        path = tmp_path / "model" / "saved_model.pb"
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(tf.errors.DataLossError, match=r"saved_model\.pb"):
            tf.saved_model.load(sess, ["serve"], str(tmp_path / "model"))
        path.unlink()
        path.with_suffix(".pbtxt").write_text("meta_graphs { no }")
        with pytest.raises(tf.errors.DataLossError, match=r"saved_model\.pbtxt"):
            tf.saved_model.load(sess, ["serve"], str(tmp_path / "model"))


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../b", "s3://bucket/x"])
def test_assets_stay_in_the_folder(tmp_path, name):
    _saved(tmp_path / "model")
    path = tmp_path / "model" / "saved_model.pb"
    from headrace.graph.proto import SavedModel

    message = SavedModel.FromString(path.read_bytes())
    asset = message.meta_graphs[0].asset_file_def.add(filename=name)
    asset.tensor_info.name = "x:0"
    path.write_bytes(message.SerializeToString())
    with (
        tf.Graph().as_default(),
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match="outside of its folder"),
    ):
        tf.saved_model.load(sess, ["serve"], str(tmp_path / "model"))


def test_python_functions_do_not_come_back_from_files(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [], "x")
        y = tf.py_func(lambda v: v + 1, [x], tf.float32, name="call")
        tf.saved_model.simple_save(sess, str(tmp_path / "model"), {"x": x}, {"y": y})
    # As in another process: nothing of this one is known there.
    script._scripts.clear()
    with tf.Graph().as_default(), tf.Session() as sess:
        message = tf.saved_model.load(sess, ["serve"], str(tmp_path / "model"))
        name = message.signature_def[KEY].outputs["y"].name
        with pytest.raises(tf.errors.InvalidArgumentError, match="call"):
            sess.run(name, {"x:0": 1.0})


def test_signatures():
    strings, floats = tf.constant(["a"]), tf.constant([1.0])
    make = tf.saved_model
    assert make.is_valid_signature(make.regression_signature_def(strings, floats))
    assert make.is_valid_signature(make.classification_signature_def(strings, strings, floats))
    assert make.is_valid_signature(make.classification_signature_def(strings, None, floats))
    assert make.is_valid_signature(make.predict_signature_def({"x": floats}, {"y": floats}))
    assert not make.is_valid_signature(make.build_signature_def({}, {}, "other"))
    assert not make.is_valid_signature(None)
    for wrong in (
        lambda: make.regression_signature_def(floats, floats),
        lambda: make.regression_signature_def(strings, strings),
        lambda: make.regression_signature_def(None, floats),
        lambda: make.classification_signature_def(strings, None, None),
        lambda: make.classification_signature_def(None, strings, None),
        lambda: make.classification_signature_def(strings, floats, None),
        lambda: make.classification_signature_def(strings, None, strings),
        lambda: make.predict_signature_def({}, {"y": floats}),
        lambda: make.predict_signature_def({"x": floats}, {}),
    ):
        with pytest.raises(ValueError, match=r"must be|cannot|needs"):
            wrong()


def test_tensor_info_of_sparse_tensors():
    sparse = tf.SparseTensor([[0, 1]], [2.0], [3, 4])
    info = tf.saved_model.build_tensor_info(sparse)
    assert [d.size for d in info.tensor_shape.dim] == [3, 4]
    again = tf.saved_model.get_tensor_from_tensor_info(info)
    assert again.values is sparse.values
    with pytest.raises(ValueError, match="Invalid TensorInfo"):
        tf.saved_model.get_tensor_from_tensor_info(tf.TensorInfo())


def test_main_op():
    v = tf.Variable(1.0)
    with tf.Session() as sess:
        sess.run(tf.saved_model.main_op.main_op())
        assert sess.run(v) == 1.0
        sess.run(tf.saved_model.main_op_with_restore(tf.assign(v, 5.0).op))
        assert sess.run(v) == 5.0


def _with_an_operation_of_our_own():
    """A model whose training has one that TensorFlow has not; what training adds to it."""
    x, y = _model()
    loss = tf.reduce_prod(tf.linspace(0.1, 1.0, 4) * tf.reduce_sum(y))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="learn")
    return x, y, train


def test_what_only_training_needs_is_left_out_and_named(tmp_path, caplog):
    with tf.Graph().as_default(), tf.Session() as sess:
        x, y, _ = _with_an_operation_of_our_own()
        sess.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(sess, str(tmp_path / "model"), {"x": x}, {"y": y})
    assert "leaves out" in caplog.text
    assert "TensorFlow has no SymbolicGradient ('gradients/" in caplog.text
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        message = tf.saved_model.load(sess, ["serve"], str(tmp_path / "model"))
        assert "learn" not in graph._by_name
        assert "SymbolicGradient" not in {n.op for n in message.graph_def.node}
        assert "train_op" not in message.collection_def
        assert not message.meta_info_def.HasField("any_info")
        np.testing.assert_array_equal(sess.run("y:0", {"x:0": [[1.0, 1.0]]}), [[3.0]])


def test_operations_of_a_library_of_tensorflow_are_served_and_named(tmp_path, caplog):
    """Programs of 1.x that load tf.contrib.layers can load it, as those that TensorFlow wrote."""
    with tf.Graph().as_default(), tf.Session() as sess:
        given = tf.placeholder(tf.string, [None], name="given")
        places = tf.stack([tf.range(tf.size(given)), tf.zeros_like(given, tf.int32)], 1)
        shape = tf.stack([tf.size(given), 1])
        column = tf.SparseTensor(tf.cast(places, tf.int64), given, tf.cast(shape, tf.int64))
        cross = sparse_cross_first_hashed([column, column], 7)
        found = tf.identity(cross.values, name="found")
        tf.saved_model.simple_save(sess, str(tmp_path / "one"), {"given": given}, {"found": found})
        right = sess.run(found, {given: ["a", "b"]}).tolist()
    assert "has operations of tf.contrib.layers: only programs of TensorFlow 1.x" in caplog.text
    assert "leaves out" not in caplog.text
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.saved_model.load(sess, ["serve"], str(tmp_path / "one"))
        assert sess.run("found:0", {"given:0": ["a", "b"]}).tolist() == right


def test_what_is_served_cannot_need_an_operation_of_our_own(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        x, _, train = _with_an_operation_of_our_own()
        sess.run(tf.global_variables_initializer())
        with tf.control_dependencies([train]):
            done = tf.identity(x)
        with pytest.raises(
            ValueError,
            match="the signature 'serving_default' needs 'Identity', which depends on operations "
            r"that TensorFlow does not have: 'gradients/Prod.*' \(SymbolicGradient: it "
            r"differentiates a kernel of ours\).*tf.train.Saver",
        ):
            tf.saved_model.simple_save(sess, str(tmp_path / "one"), {"x": x}, {"done": done})
        builder = tf.saved_model.Builder(str(tmp_path / "two"))
        with pytest.raises(ValueError, match="train_op needs 'learn', which depends on"):
            builder.add_meta_graph_and_variables(sess, ["train"], train_op=train)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda sm: sm.utils.build_tensor_info(3), "Expected a Tensor, a SparseTensor .*, not 3"),
        (
            lambda sm: sm.predict_signature_def([1], {"y": 1}),
            r"Expected a dictionary .*, not \[1\]",
        ),
        (
            lambda sm: sm.regression_signature_def(tf.constant("a"), 3),
            "Regression predictions must be a tensor of type float32, not 3",
        ),
        (
            lambda sm: sm.classification_signature_def(3, tf.constant("a"), None),
            "Classification examples must be a tensor of type string, not 3",
        ),
    ],
)
def test_what_is_no_tensor_is_refused_in_a_signature(call, text):
    with pytest.raises(TypeError, match=text):
        call(tf.saved_model)

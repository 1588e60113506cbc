"""tf.compat, tf.nest, tf.config, tf.sysconfig and the like; names that are missing."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import headrace as tf
from headrace.compat import old_names
from headrace.namespaces import missing


def test_strings_of_both_kinds():
    assert tf.compat.as_bytes("é") == "é".encode()
    assert tf.compat.as_bytes(bytearray(b"x")) == b"x"
    assert tf.compat.as_text(b"x") == tf.compat.as_str("x") == "x"
    assert tf.compat.as_str_any(3) == "3"
    assert tf.compat.as_str_any(b"x") == "x"
    assert tf.compat.path_to_str(pathlib.Path("a")) == "a"
    assert tf.compat.path_to_str(3) == 3
    for function in (tf.compat.as_bytes, tf.compat.as_text):
        with pytest.raises(TypeError, match="Expected binary or unicode string, got 3"):
            function(3)
    assert isinstance(np.int32(1), tf.compat.integral_types)
    assert isinstance(np.float32(1), tf.compat.real_types)
    assert isinstance(1j, tf.compat.complex_types)
    assert isinstance(b"", tf.compat.bytes_or_text_types)


def test_forward_compatibility():
    assert tf.compat.forward_compatible(2019, 8, 1)
    assert not tf.compat.forward_compatible(2030, 1, 1)
    with tf.compat.forward_compatibility_horizon(2030, 1, 2):
        assert tf.compat.forward_compatible(2030, 1, 1)
    assert not tf.compat.forward_compatible(2030, 1, 1)
    assert tf.compat.v1 is tf
    assert tf.compat.dimension_at_index(tf.TensorShape([2, 3]), 1).value == 3
    assert tf.compat.dimension_at_index(tf.TensorShape(None), 1).value is None


def test_switches_between_behaviours():
    assert not tf.executing_eagerly()
    tf.disable_v2_behavior()
    tf.disable_eager_execution()
    tf.enable_control_flow_v2()
    tf.disable_control_flow_v2()
    assert tf.control_flow_v2_enabled()
    with pytest.raises(RuntimeError, match="has no eager mode"):
        tf.enable_eager_execution()
    with pytest.raises(RuntimeError, match="graphs and sessions of TensorFlow 1"):
        tf.enable_v2_behavior()
    assert tf.is_tensor(tf.constant(1))
    assert tf.is_tensor(tf.Variable(1))
    assert not tf.is_tensor(1)


def test_what_needs_tensorflows_libraries_says_what_to_do_instead():
    with pytest.raises(NotImplementedError, match=r"'ops.so'.*kernels are JAX functions"):
        tf.load_op_library("ops.so")
    for function in (
        tf.sysconfig.get_include,
        tf.sysconfig.get_lib,
        tf.sysconfig.get_compile_flags,
        tf.sysconfig.get_link_flags,
    ):
        with pytest.raises(NotImplementedError, match="has no C"):
            function()


def test_devices():
    (cpu,) = tf.config.list_physical_devices("CPU")
    assert cpu == ("/physical_device:CPU:0", "CPU")
    assert cpu in tf.config.experimental.get_visible_devices()
    names = [d.name for d in tf.config.experimental.list_logical_devices("CPU")]
    assert names == ["/job:localhost/replica:0/task:0/device:CPU:0"]
    assert not tf.config.experimental.get_memory_growth(cpu)
    tf.config.experimental.set_memory_growth(cpu, True)
    assert tf.config.experimental.get_memory_growth(cpu)
    tf.config.experimental.set_memory_growth(cpu, False)
    tf.config.set_visible_devices([cpu], "CPU")
    with pytest.raises(NotImplementedError, match="CUDA_VISIBLE_DEVICES"):
        tf.config.set_visible_devices([], "CPU")
    with pytest.raises(NotImplementedError, match="does not divide devices"):
        tf.config.experimental.set_virtual_device_configuration(cpu, [])


def test_versions():
    assert tf.VERSION == tf.version.VERSION == "1.15.0"
    assert tf.GIT_VERSION.startswith("v1.15.0")
    assert tf.Graph().as_graph_def().versions.producer == tf.GRAPH_DEF_VERSION
    assert tf.GRAPH_DEF_VERSION_MIN_CONSUMER == tf.GRAPH_DEF_VERSION_MIN_PRODUCER == 0


def test_files_beside_the_program():
    here = pathlib.Path(__file__).parent
    assert tf.resource_loader.get_data_files_path() == str(here)
    assert tf.resource_loader.get_path_to_datafile("x") == str(here / "x")
    assert tf.resource_loader.get_root_dir_with_all_resources() == str(here)
    assert b"Headrace" in tf.resource_loader.load_resource("__init__.py")
    assert tf.resource_loader.readahead_file_path("x") == "x"


def test_dtypes_manip_and_user_ops():
    assert tf.dtypes.float32 is tf.float32
    assert tf.dtypes.cast is tf.cast
    assert tf.qint8 in tf.dtypes.QUANTIZED_DTYPES
    assert tf.manip.reshape is tf.reshape
    with tf.Session() as session:
        assert session.run(tf.user_ops.my_fact()) == b"0! == 1"


# -- nest ---------------------------------------------------------------------------------------


def test_nest_up_to_a_depth():
    nest = tf.contrib.framework.nest if hasattr(tf.contrib, "framework") else tf.nest
    deep = {"b": [1, (2, 3)], "a": 4}
    shallow = {"a": 0, "b": [0, 0]}
    assert nest.flatten_up_to(shallow, deep) == [4, 1, (2, 3)]
    mapped = nest.map_structure_up_to(shallow, lambda x, y: (x, y), deep, deep)
    assert mapped == {"a": (4, 4), "b": [(1, 1), ((2, 3), (2, 3))]}
    with pytest.raises(TypeError, match="input must also be a sequence"):
        nest.assert_shallow_structure([1], 1)
    with pytest.raises(TypeError, match="don't have the same sequence type"):
        nest.assert_shallow_structure([1], (1,))
    nest.assert_shallow_structure([1], (1,), check_types=False)
    with pytest.raises(ValueError, match="same sequence length"):
        nest.assert_shallow_structure([1], [1, 2])
    with pytest.raises(ValueError, match="same keys"):
        nest.assert_shallow_structure({"a": 1}, {"b": 1})


def test_nest_with_paths():
    deep = {"b": [1, (2, 3)], "a": 4}
    flat = tf.nest.flatten_with_joined_string_paths(deep)
    assert flat == [("a", 4), ("b/0", 1), ("b/1/0", 2), ("b/1/1", 3)]
    assert next(tf.nest.yield_flat_paths(deep)) == ("a",)
    assert tf.nest.map_structure_with_paths(lambda p, x: f"{p}={x}", [1, {"x": 2}]) == [
        "0=1",
        {"x": "1/x=2"},
    ]
    assert tf.nest.flatten_dict_items({(1, (2,)): ("a", ("b",)), 3: "c"}) == {
        1: "a",
        2: "b",
        3: "c",
    }
    with pytest.raises(ValueError, match="key 1 is not unique"):
        tf.nest.flatten_dict_items({1: "a", (1, 2): ("b", "c")})
    with pytest.raises(ValueError, match="Key had 2 elements, but value had 1"):
        tf.nest.flatten_dict_items({(1, 2): "b"})


def test_nest_of_composite_tensors():
    sparse = tf.SparseTensor([[0, 1]], [2.0], [2, 2])
    assert tf.nest.flatten([sparse, 1]) == [sparse, 1]
    parts = tf.nest.flatten([sparse, 1], expand_composites=True)
    assert len(parts) == 4
    again = tf.nest.pack_sequence_as([sparse, 1], parts, expand_composites=True)
    assert isinstance(again[0], tf.SparseTensor)
    assert again[0].values is sparse.values
    doubled = tf.nest.map_structure(tf.identity, [sparse], expand_composites=True)
    assert isinstance(doubled[0], tf.SparseTensor)
    assert tf.nest.is_sequence_or_composite(sparse)


# -- names that are not there -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("tf.reduce_summ", "module 'headrace' has no attribute 'reduce_summ'. Did you mean"),
        (
            "tf.distribute.cluster_resolver.GCEClusterResolver",
            "GCEClusterResolver is not part of Headrace yet: Headrace asks no cloud",
        ),
        ("tf.nn.sofmax", "module 'headrace.nn' has no attribute 'sofmax'. Did you mean 'softmax'"),
        ("tf.train.AdamOptimiser", "Did you mean 'AdamOptimizer'"),
        ("tf.layers.Dens", "Did you mean 'Dense'"),
        ("tf.layers.densee", "Did you mean 'dense'"),
        ("tf.math.nothing_of_the_kind", "module 'headrace.math' has no attribute"),
        ("tf.contrib.timeseries", "tf.contrib.timeseries is not part of Headrace yet: it"),
        ("tf.GradientTape", "use tf.gradients"),
        (
            "tf.contrib.opt.LazyAdamOptimizer",
            "part of Headrace yet: the optimizers are in tf.train",
        ),
        ("tf.contrib.signal.stft", "part of Headrace yet: tf.signal has the Fourier"),
        (
            "tf.contrib.distributions.MultivariateNormalDiag",
            "part of Headrace yet: tf.distributions.Normal has its components",
        ),
        ("tf.lite", "tf.lite is not part of Headrace yet"),
    ],
)
def test_missing_names(expression, message):
    with pytest.raises(AttributeError) as caught:
        eval(expression)
    assert message in str(caught.value)


def test_names_of_tensorflow_are_no_slips_of_the_pen():
    known = missing.known_names()["train"]
    absent = next(name for name in sorted(known) if not hasattr(tf.train, name))
    error = missing.attribute_error("headrace.train", absent, [absent + "s"])
    text = f"module 'headrace.train' has no attribute '{absent}'. tf.train.{absent} is not part of"
    assert str(error) == f"{text} Headrace yet."


def test_known_names():
    assert missing.is_known("nn.relu")
    assert missing.is_known("contrib.slim.conv2d")
    assert not missing.is_known("nn.relu7")
    assert "still to come" in missing.reason("contrib.timeseries.ARRegressor")
    assert missing.reason("nn.relu") == ""
    error = missing.attribute_error("headrace.nn", "__secret__", ["x"])
    assert str(error) == "module 'headrace.nn' has no attribute '__secret__'."


# -- old names and argument orders --------------------------------------------------------------


def test_old_names_mean_what_they_meant():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with tf.Session() as session:
        run = session.run
        np.testing.assert_array_equal(run(tf.concat(1, [x, x])), np.concatenate([x, x], 1))
        np.testing.assert_array_equal(
            run(tf.concat(concat_dim=0, values=[x, x])), np.concatenate([x, x])
        )
        for parts in (tf.split(1, 3, x), tf.split(split_dim=1, num_split=3, value=x)):
            np.testing.assert_array_equal(run(parts)[2], x[:, 2:])
        np.testing.assert_array_equal(run(tf.reverse(x, [False, True])), x[:, ::-1])
        np.testing.assert_array_equal(run(tf.reverse(x, dims=[True, False])), x[::-1])
        np.testing.assert_array_equal(run(tf.pack([x, x])), np.stack([x, x]))
        np.testing.assert_array_equal(run(tf.batch_matmul(x, x, adj_y=True)), x @ x.T)
        np.testing.assert_array_equal(run(tf.select(x > 2, x, -x)), np.where(x > 2, x, -x))
        loss = tf.nn.softmax_cross_entropy_with_logits
        np.testing.assert_array_equal(run(loss(x, x)), run(loss(logits=x, labels=x)))
        with tf.op_scope([x], None, "Old") as scope:
            assert scope == "Old/"
        with tf.variable_op_scope([x], None, "Scope"):
            assert tf.get_variable("v", [1]).name == "Scope/v:0"
    with pytest.raises(ValueError, match="with named arguments"):
        loss(x, logits=x)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'axis'"):
        tf.concat([x, x])
    with pytest.raises(TypeError, match="needs the arguments 'value'"):
        tf.split(x)


def test_old_summaries_have_their_tag_as_it_is():
    with tf.Session() as session:
        text = session.run(tf.scalar_summary("a b", 2.0))
        assert [v.tag for v in tf.Summary.FromString(text).value] == ["a_b"]
        text = session.run(tf.merge_all_summaries())
        assert len(tf.Summary.FromString(text).value) == 1
        text = session.run(tf.histogram_summary(["h"], [1.0, 2.0]))
        assert tf.Summary.FromString(text).value[0].histo.num == 2
    with pytest.raises(TypeError, match="takes one tag"):
        tf.scalar_summary(["a", "b"], [1.0, 2.0])


@pytest.mark.parametrize(
    ("namespace", "name"),
    [(space, name) for space, names in old_names.RENAMED.items() for name in names],
)
def test_every_old_name_stands_for_something_known(namespace, name):
    path = old_names.RENAMED[namespace][name]
    own = path.startswith(("compat.old_names.", "compat.internals."))
    assert own or missing.is_known(path) or path in missing.known_names(), path

"""Headrace under the name `tensorflow`, each test in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from headrace.compat import aliases
from headrace.compat.gen_ops import snake_case
from headrace.compat.module_table import row_of

pytestmark = pytest.mark.process


def _python(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_savers_of_the_era():
    """Savers that programs derive, by their inner names."""
    _python("""
        import os, tempfile
        import headrace.compat.tensorflow
        import tensorflow as tf
        from tensorflow.python.ops import io_ops
        from tensorflow.python.training import saver as saver_lib
        from tensorflow.python.training.saving import saveable_object, saveable_object_util
        from tensorflow.python.training.warm_starting_util import warm_start

        BaseSaverBuilder = saver_lib.BaseSaverBuilder
        assert BaseSaverBuilder.SaveSpec is saveable_object.SaveSpec
        assert BaseSaverBuilder.SaveableObject is saveable_object.SaveableObject
        resource = saveable_object_util.ResourceVariableSaveable
        assert resource is BaseSaverBuilder.ResourceVariableSaveable
        assert warm_start is tf.train.warm_start

        class Builder(saver_lib.BulkSaverBuilder):
            def save_op(self, filename_tensor, saveables):
                names, tensors, slices = [], [], []
                for saveable in saveables:
                    for spec in saveable.specs:
                        names.append("renamed/" + spec.name)
                        tensors.append(spec.tensor)
                        slices.append(spec.slice_spec)
                return io_ops.save_v2(filename_tensor, names, slices, tensors)

            def restore_op(self, filename_tensor, saveable, preferred_shard):
                return [
                    io_ops.restore_v2(
                        filename_tensor, ["renamed/" + s.name], [s.slice_spec], [s.dtype]
                    )[0]
                    for s in saveable.specs
                ]

            bulk_restore = BaseSaverBuilder.bulk_restore

        v = tf.Variable(3.0, name="v")
        [found] = saveable_object_util.validate_and_slice_inputs([v])
        assert found.name == "v" and isinstance(found, resource)
        [found] = saveable_object_util.saveable_objects_for_op(v, "w")
        assert found.specs[0].name == "w" and found.op is v
        saver = tf.train.Saver([v], builder=Builder())
        with tf.Session() as session, tempfile.TemporaryDirectory() as folder:
            session.run(v.initializer)
            path = saver.save(session, os.path.join(folder, "m"))
            assert tf.train.list_variables(path) == [("renamed/v", [])]
            session.run(v.assign(0.0))
            saver.restore(session, path)
            assert session.run(v) == 3.0
    """)


def test_modules_of_the_era_import_and_agree():
    """One process for all: starting one costs more than what it checks."""
    _python("""
        import pickle
        import headrace
        import headrace.compat.tensorflow as under_its_own_name
        import tensorflow as tf
        import tensorflow.compat.v1 as v1
        import tensorflow.contrib.training as contrib_training
        from tensorflow.contrib.learn.python.learn.datasets.mnist import read_data_sets
        from tensorflow.core.example import example_pb2, feature_pb2
        from tensorflow.core.framework import graph_pb2, summary_pb2, types_pb2
        from tensorflow.core.protobuf import config_pb2, saver_pb2
        from tensorflow.core.util import event_pb2
        from tensorflow.examples.tutorials.mnist import input_data
        from tensorflow.python.client import device_lib, session, timeline
        from tensorflow.python.eager import context
        from tensorflow.python.framework import (
            constant_op, dtypes, errors, errors_impl, graph_util, importer, ops, random_seed,
            sparse_tensor, tensor_shape, tensor_util, test_util,
        )
        from tensorflow.python.ops import (
            array_ops, clip_ops, control_flow_ops, data_flow_ops, embedding_ops, gen_array_ops,
            gen_math_ops, gradient_checker, gradients_impl, init_ops, io_ops, logging_ops,
            math_ops, nn, nn_grad, nn_ops, parsing_ops, random_ops, resource_variable_ops,
            rnn_cell_impl, script_ops, sparse_ops, state_ops, string_ops, tensor_array_ops,
            variable_scope, variables,
        )
        from tensorflow.python.platform import app, flags, gfile, resource_loader, test
        from tensorflow.python.platform import tf_logging as logging
        from tensorflow.python.training import (
            adam, checkpoint_management, coordinator, learning_rate_decay, moving_averages,
            optimizer, queue_runner, saver, training_util,
        )
        from tensorflow.python.util import compat, nest

        assert tf.Session is headrace.Session is session.Session is v1.Session
        assert tf.__version__ == tf.VERSION == v1.__version__ == "1.15.0"
        assert headrace.__version__ != tf.__version__
        assert under_its_own_name.Session is tf.Session
        assert tf.__path__ == [] and tf.__file__.endswith("__init__.py")
        assert tf.__spec__.name == "tensorflow"
        assert pickle.loads(pickle.dumps(math_ops)) is math_ops
        assert ops.Graph is headrace.Graph and dtypes.float32 is headrace.float32
        assert array_ops.placeholder is headrace.placeholder
        assert saver.Saver is headrace.train.Saver
        assert input_data.read_data_sets is read_data_sets
        assert types_pb2.DT_INT32 == 3 and graph_pb2.GraphDef is headrace.GraphDef
        assert feature_pb2.Feature is headrace.train.Feature
        assert "reduce_sum" in dir(tf) and "reduce_sum" in math_ops.__all__
        assert test.TestCase is tf.test.TestCase
        assert tf.python.framework.ops is ops

        x = constant_op.constant([[1.0, 2.0]])
        y = gen_math_ops._mat_mul(x, x, transpose_b=True) + gen_math_ops.add(1.0, 2.0)
        with tf.Session() as sess:
            assert sess.run(y) == [[8.0]]
        assert tensor_util.constant_value(x).tolist() == [[1.0, 2.0]]
        assert [d.device_type for d in device_lib.list_local_devices()].count("CPU") == 1
        assert not context.executing_eagerly() and not tf.executing_eagerly()
        """)


def test_the_plain_test_case_is_below_that_of_graphs():
    """Libraries derive classes from both."""
    _python("""
        import headrace.compat.tensorflow
        import tensorflow as tf
        from tensorflow.python.platform import googletest

        class LibraryCase(googletest.TestCase):
            pass

        class BothWays(LibraryCase, tf.test.TestCase):
            pass

        class AndAround(tf.test.TestCase, LibraryCase):
            pass

        assert issubclass(tf.test.TestCase, googletest.TestCase)
        assert googletest.skipIf and googletest.GetTempDir and googletest.mock
    """)


def test_real_tensorflow_that_is_loaded_already_is_refused():
    out = _python("""
        import sys, types
        real = types.ModuleType("tensorflow")
        real.__file__ = "/somewhere/tensorflow/__init__.py"
        sys.modules["tensorflow"] = real
        try:
            import headrace.compat.tensorflow
        except ImportError as error:
            print(error)
        assert sys.modules["tensorflow"] is real
        """)
    assert "TensorFlow itself is imported already (from /somewhere/tensorflow" in out
    assert "headrace run" in out


def test_what_is_missing_says_so_and_names_the_nearest():
    out = _python("""
        import headrace.compat.tensorflow
        import tensorflow as tf
        from tensorflow.python import debug

        for statement in (
            "from tensorflow.python.ops import math_opz",
            "from tensorflow.python.ops.math_ops import reduce_summ",
            "from tensorflow import nothing_like_it",
            "tf.lite.TFLiteConverter",
            "tf.reduce_summ",
            "tf.nn.sofmax",
            "debug.LocalCLIDebugWrapperSession",
        ):
            try:
                exec(statement)
            except (ImportError, AttributeError) as error:
                print(f"{type(error).__name__}: {error}")
            else:
                raise AssertionError(statement)
        """).splitlines()
    assert out[0].startswith("ModuleNotFoundError")
    assert "Did you mean 'math_ops'?" in out[0]
    assert "Did you mean 'reduce_sum'?" in out[1]
    assert "'tensorflow.nothing_like_it' is not part of Headrace." in out[2]
    assert out[3].startswith("AttributeError")
    assert "a converter can read those" in out[3]
    assert "Did you mean 'reduce_sum'?" in out[4]
    assert "Did you mean 'softmax'?" in out[5]
    assert "session.describe()" in out[6]


def test_rows_of_modules_that_have_none_of_their_own():
    assert row_of("core.framework.graph_pb2").sources == ("headrace.compat.messages",)
    assert row_of("python.training.adam").sources[1] == "headrace.train"
    assert row_of("contrib.slim").sources == ("headrace.contrib.slim",)
    assert row_of("contrib.framework.python.ops.arg_scope").sources == (
        "headrace.contrib.framework.ops.arg_scope",
        "headrace.contrib.framework",
        "headrace",
    )
    assert row_of("nn").sources == ("headrace.nn",)


def test_modules_of_recurrent_networks_of_releases_before_1_0():
    """The folder has modules only, so that they come from it whole."""
    assert row_of("models.rnn").sources == ()
    assert row_of("models.rnn.rnn").sources[0] == "headrace.nn"
    assert aliases.is_module("models.rnn.seq2seq")


def test_a_function_hides_the_module_of_its_name_where_tensorflow_has_it_so():
    assert aliases.is_module("contrib.framework.python.ops.arg_scope")
    names = row_of("contrib.framework.python.ops").names
    assert names["arg_scope"] == "headrace.contrib.framework.arg_scope"


def test_every_source_of_a_row_that_is_not_planned_exists():
    """A row's sources may be modules that are still to come; its single names are not."""
    for path in aliases.ROWS:
        for name in aliases.ROWS[path].names.values():
            assert name.startswith("headrace."), (path, name)
    assert aliases.is_module("python.framework.ops")
    assert aliases.is_module("contrib.layers.python.layers.utils")
    assert not aliases.is_module("python.framework.opz")


@pytest.mark.parametrize(
    ("op_type", "function"),
    [
        ("MatMul", "mat_mul"),
        ("Conv2DBackpropInput", "conv2d_backprop_input"),
        ("AvgPool3DGrad", "avg_pool3d_grad"),
        ("SparseSoftmaxCrossEntropyWithLogits", "sparse_softmax_cross_entropy_with_logits"),
        ("IFFT2D", "ifft2d"),
        ("CTCLoss", "ctc_loss"),
        ("ApplyRMSProp", "apply_rms_prop"),
        ("AdjustContrastv2", "adjust_contrastv2"),
        ("BatchMatMulV2", "batch_mat_mul_v2"),
        ("_Recv", "_recv"),
    ],
)
def test_names_of_generated_functions(op_type, function):
    assert snake_case(op_type) == function


def test_modules_of_operations_have_their_generated_functions():
    out = _python("""
        import headrace.compat.tensorflow
        from tensorflow.python.ops import array_ops, resource_variable_ops, variables
        print(array_ops.strided_slice_grad, variables.PartitionedVariable)
        print(resource_variable_ops.var_handle_op)
    """)
    assert "StridedSliceGrad" in out or "function" in out
    assert "PartitionedVariable" in out


def test_modules_have_the_modules_that_they_import():
    out = _python("""
        import headrace.compat.tensorflow
        from tensorflow.python.ops.rnn import rnn_cell_impl
        from tensorflow.contrib.layers.python.layers.layers import init_ops, nn
        from tensorflow.contrib.rnn.python.ops.core_rnn import static_rnn
        from tensorflow.contrib.eager.python import tfe
        import tensorflow as tf
        print(rnn_cell_impl.__name__, init_ops.__name__, tfe.in_graph_mode())
        assert static_rnn is tf.nn.static_rnn and nn.relu is tf.nn.relu
    """)
    assert out == "tensorflow.python.ops.rnn_cell_impl tensorflow.python.ops.init_ops True\n"

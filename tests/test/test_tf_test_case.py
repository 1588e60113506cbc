"""tf.test.TestCase: each assertion holds and fails where it should."""

from __future__ import annotations

import io
import os
import sys
import typing
import unittest

import numpy as np
import pytest

import headrace as tf
from headrace.test import protos, util
from headrace.test.benchmark import wanted


class _Case(tf.test.TestCase):
    __test__ = False

    def runTest(self):
        pass


@pytest.fixture
def case():
    case = _Case()
    case.setUp()
    yield case
    case.doCleanups()
    case.tearDown()


@pytest.mark.parametrize(
    ("method", "holds", "fails", "message"),
    [
        ("assertNear", (1.0, 1.05, 0.1), (1.0, 1.2, 0.1), r"1.0+ != 1.20+ \+/- 0.10+"),
        ("assertNear", (np.inf, np.inf, 0.1), (np.inf, 1.0, 0.1), "inf != 1"),
        ("assertArrayNear", ([1, 2], [1, 2.05], 0.1), ([1, 2], [1, 3], 0.1), "2.0+ != 3.0+"),
        ("assertNDArrayNear", ([1.0], [1.05], 0.1), ([1.0, 1.0], [2.0, 2.0], 1.4), "not below"),
        ("assertAllClose", ([1.0], [1.0 + 1e-7]), ([1.0], [1.1]), "not close where"),
        ("assertAllClose", ([np.nan], [np.nan]), ([np.nan], [1.0]), "not close"),
        ("assertAllClose", (1, 1), ([1], [1, 2]), r"Shape mismatch: expected \(1,\), got \(2,\)"),
        ("assertAllClose", ({"a": [1]}, {"a": (1,)}), ({"a": 1}, {"b": 1}), "mismatched keys"),
        ("assertAllClose", ([1, [2, 3]], [1, [2, 3]]), ([1, [2, 3]], [1, [2, 4]]), r"a\[1\] is"),
        (
            "assertAllCloseAccordingToType",
            (np.float16([1]), np.float16([1.001])),
            (np.float32([1]), np.float32([1.001])),
            "not close",
        ),
        ("assertNotAllClose", ([1], [2]), ([1], [1]), "close at all elements"),
        ("assertAllEqual", ([1, 2], [1, 2]), ([1, 2], [1, 3]), r"not equal rhs = \[3\]"),
        ("assertAllEqual", (["a"], [b"a"]), (["a"], [b"b"]), "not equal"),
        ("assertAllEqual", ([np.nan], [np.nan]), ([[1]], [1]), "Shape mismatch"),
        ("assertNotAllEqual", ([1], [2]), ([1], [1]), "equal at all elements"),
        ("assertAllGreater", ([2, 3], 1), ([2, 1], 1), r"greater than 1.*\n +\(1,\) : 1"),
        ("assertAllLess", ([2, 3], 4), ([2, 5], 4), "less than 4"),
        ("assertAllGreaterEqual", ([2], 2), ([1], 2), "at least 2"),
        ("assertAllLessEqual", ([2], 2), ([3], 2), "at most 2"),
        ("assertAllInRange", ([1.0, 2.0], 1, 2), ([1.0, np.nan], 1, 2), r"in the range \[1, 2\]"),
        ("assertAllInRange", ([1.5], 1, 2, True), ([1], 1, 2, True), r"\(1, 2\]"),
        ("assertAllInRange", ([1], 1, 2), (["a"], 1, 2), "ordered numeric type"),
        ("assertAllInSet", ([1, 2], {1, 2}), ([1, 5], {1, 2}), r"not in the set .*5"),
        ("assertDTypeEqual", (np.float32([1]), np.float32), ([1.0], np.float32), "float64"),
        ("assertStartsWith", ("abc", "ab"), ("abc", "b"), "'abc' does not start with 'b'"),
        ("assertDeviceEqual", ("/cpu:0", "/device:CPU:0"), ("/cpu:0", "/gpu:0"), "not equal"),
        ("assertItemsEqual", ([1, 2], [2, 1]), ([1], [2]), "1"),
    ],
)
def test_assertions(case, method, holds, fails, message):
    getattr(case, method)(*holds)
    with pytest.raises(AssertionError, match=message):
        getattr(case, method)(*fails)


def test_tensors_are_evaluated(case):
    x = tf.constant([1.0, 2.0])
    case.assertAllClose([1.0, 2.0], x)
    case.assertAllEqual(x, tf.Variable([1.0, 2.0], trainable=False).initial_value)
    case.assertShapeEqual(np.zeros(2), x)
    with pytest.raises(AssertionError):
        case.assertShapeEqual(np.zeros(3), x)
    with pytest.raises(TypeError, match="np_array must be"):
        case.assertShapeEqual([1], x)
    with pytest.raises(TypeError, match="tf_tensor must be"):
        case.assertShapeEqual(np.zeros(2), 1)
    with pytest.raises(ValueError, match="Can't compare dict to non-dict"):
        case.assertAllClose({"a": 1}, [1])
    with pytest.raises(ValueError, match="Mismatched length"):
        case.assertAllClose([1, [2, 3]], [1, [2, 3], 4])


def test_messages(case):
    node = tf.Graph().as_graph_def().node.add(name="x", op="NoOp")
    case.assertProtoEquals("name: 'x' op: 'NoOp'", node)
    case.assertProtoEquals(node, node)
    with pytest.raises(AssertionError, match=r'-name: "y"\n\+name: "x"'):
        case.assertProtoEquals("name: 'y' op: 'NoOp'", node)
    with pytest.raises(TypeError, match="Can't compare protos"):
        case.assertProtoEquals(3, node)
    with tf.Graph().as_default() as graph:
        tf.no_op(name="x")
    case.assertProtoEqualsVersion("node { name: 'x' op: 'NoOp' }", graph.as_graph_def())
    assert protos.ProtoEq(node, node)


def test_errors(case):
    with case.test_session() as session:
        bad = tf.placeholder_with_default(1, [])
        check = tf.Assert(tf.equal(bad, 2), ["two is wanted"])
        with case.assertRaisesOpError("two is wanted"):
            session.run(check)
        with case.assertRaisesWithPredicateMatch(
            tf.errors.InvalidArgumentError, lambda e: "two" in e.message
        ):
            session.run(check)
        with (
            pytest.raises(AssertionError, match="Exception of type"),
            case.assertRaisesOpError("three is wanted"),
        ):
            session.run(check)
        with (
            pytest.raises(AssertionError, match="OpError not raised"),
            case.assertRaisesOpError("anything"),
        ):
            session.run(bad)


def test_sessions(case):
    with case.cached_session() as first:
        assert tf.get_default_session() is first
        assert tf.constant(1).op.device == "/device:CPU:0"
    with case.cached_session(use_gpu=True) as second:
        assert second is first
        assert tf.constant(1).op.device == ""
    with case.test_session() as third:
        assert third is first
    with pytest.raises(ValueError, match="different than"), case.cached_session(graph=tf.Graph()):
        pass
    with tf.Graph().as_default() as graph:
        tf.constant(1, name="c")
    with case.session(graph=graph) as own:
        assert own is not first
        assert tf.get_default_graph() is graph
        assert case.evaluate("c:0") == 1
    with case.session(force_gpu=True):
        assert "GPU:0" in tf.constant(1).op.device
    assert case.evaluate({"a": tf.constant(2)}) == {"a": 2}


def test_each_test_starts_anew(case):
    tf.constant(1)
    draw = np.random.rand()
    case.setUp()
    assert tf.get_default_graph().get_operations() == []
    assert tf.get_default_graph().seed == 87654321
    assert np.random.rand() == draw


def test_threads(case):
    done = []
    thread = case.checkedThread(target=done.append, args=(1,))
    thread.start()
    thread.join()
    assert done == [1]
    assert not thread.is_alive()
    failing = case.checkedThread(target=lambda: 1 / 0)
    failing.start()
    with pytest.raises(AssertionError, match="Error in checkedThread: division by zero"):
        failing.join()
    case._threads.append(forgotten := type(failing)(case, print, (), {}))
    with pytest.raises(AssertionError, match="was not joined"):
        forgotten.check_termination()
    case._threads.clear()


def test_files_and_streams(case, capfd):
    folder = case.get_temp_dir()
    assert folder == case.get_temp_dir()
    assert os.path.isdir(folder)
    with capfd.disabled(), case.captureWritesToStream(sys.__stderr__) as captured:
        os.write(2, b"written below Python")
    assert captured.contents() == "written below Python"


def test_the_method_test_session_is_no_test():
    class Case(tf.test.TestCase):
        def test_other(self):
            with self.test_session():
                self.assertAllEqual(1, tf.constant(1))

    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Case)
    result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
    assert result.testsRun == 2
    assert result.wasSuccessful()
    assert [reason for _, reason in result.skipped] == ["Not a test."]


def test_decorators():
    class Case(tf.test.TestCase):
        __test__ = False
        ran: typing.ClassVar = []

        @util.run_in_graph_and_eager_modes
        def test_a(self):
            self.ran.append(tf.get_default_session() is not None)

        @util.run_v1_only("graphs")
        @util.run_deprecated_v1
        @util.disable_xla("no reason")
        def test_b(self):
            self.ran.append("b")

        @util.run_v2_only
        def test_c(self):
            self.ran.append("c")

        @util.skip_if(lambda: True)
        def test_d(self):
            self.ran.append("d")

    for name in "abcd":
        result = unittest.TestResult()
        Case(f"test_{name}").run(result)
        assert result.wasSuccessful(), result.errors
    assert Case.ran == [True, "b"]
    with pytest.raises(ValueError, match="'reason' should be string"):
        util.run_v1_only(lambda: None)


def test_graphs_compared():
    def graph_def(value, name="c"):
        with tf.Graph().as_default() as graph:
            tf.identity(tf.constant(value, name=name), name="out")
        return graph.as_graph_def()

    tf.test.assert_equal_graph_def(graph_def(1), graph_def(1))
    with pytest.raises(AssertionError, match="Node named 'c' differs"):
        tf.test.assert_equal_graph_def(graph_def(1), graph_def(2))
    with pytest.raises(AssertionError, match="Did not find expected node 'd'"):
        tf.test.assert_equal_graph_def(graph_def(1), graph_def(1, "d"))
    with pytest.raises(TypeError, match=r"Expected tf.GraphDef for expected, got int"):
        tf.test.assert_equal_graph_def(graph_def(1), 1)
    with tf.Graph().as_default() as graph:
        tf.no_op(name="n")
    assert set(util.assert_ops_in_graph({"n": "NoOp"}, graph)) == {"n"}
    with pytest.raises(ValueError, match="Add vs NoOp"):
        util.assert_ops_in_graph({"n": "Add"}, graph)
    with pytest.raises(ValueError, match="Not all expected ops"):
        util.assert_ops_in_graph({"m": "Add"}, graph)
    assert util.NHWCToNCHW([1, 2, 3, 4]) == [1, 4, 2, 3]
    assert util.NCHWToNHWC(tf.zeros([1, 2, 3, 4])).shape.as_list() == [1, 3, 4, 2]


def test_stubs():
    class Thing:
        value = 1

        @staticmethod
        def static():
            return 1

    thing = Thing()
    with tf.test.StubOutForTesting() as stubs:
        stubs.Set(os.path, "exists", lambda path: "stub")
        stubs.SmartSet(Thing, "static", lambda: 2)
        stubs.SmartSet(thing, "value", 5)
        stubs.Set(thing, "value", 6)
        assert os.path.exists("x") == "stub"
        assert thing.static() == 2
        assert (thing.value, Thing.value) == (6, 5)
        with pytest.raises(AttributeError):
            stubs.Set(thing, "absent", 1)
        with pytest.raises(AttributeError, match="has no attribute 'absent'"):
            stubs.SmartSet(thing, "absent", 1)
    assert os.path.exists(__file__) is True
    assert thing.static() == 1
    assert (thing.value, Thing.value) == (1, 1)
    assert vars(thing) == {}


def test_benchmarks(capsys):
    class Some(tf.test.Benchmark):
        def benchmark_add(self):
            with tf.Session() as session:
                one = self.evaluate(tf.constant(1))
                return self.run_op_benchmark(
                    session, tf.constant(one) + 1, min_iters=2, store_trace=True, mbs=1
                )

    results = Some().benchmark_add()
    assert results["iters"] == 2
    assert "traceEvents" in results["extras"]["full_trace_chrome_format"]
    assert capsys.readouterr().err.startswith("Some.benchmark_add: iters: 2, wall_time: ")
    assert not Some.is_abstract()
    assert tf.test.Benchmark.is_abstract()
    assert wanted(["p", "--benchmarks=all"]) == "."
    assert wanted(["p", "--benchmarks=Some"]) == "Some"
    assert wanted(["p", "benchmarks"]) is None


def test_what_tests_ask_of_the_machine():
    assert isinstance(tf.test.is_gpu_available(), bool)
    assert tf.test.is_gpu_available() == bool(tf.test.gpu_device_name())
    assert isinstance(tf.test.is_built_with_cuda(), bool)
    assert tf.test.mock.MagicMock is not None
    assert tf.test.get_temp_dir() == tf.test.get_temp_dir()


def test_source_paths(monkeypatch):
    monkeypatch.setenv("TEST_SRCDIR", "/src")
    assert tf.test.test_src_dir_path("core/x") == "/src/org_tensorflow/tensorflow/core/x"


@pytest.mark.process
def test_a_local_cluster():
    workers, servers = tf.test.create_local_cluster(1, 1)
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            variable = tf.Variable(3)
        with tf.Session(workers[0].target) as session:
            session.run(variable.initializer)
            assert session.run(variable + 1) == 4
    for server in workers + servers:
        server.stop()


def test_meta_graphs_are_compared():
    from headrace.test.util import assert_meta_graph_protos_equal

    class Case(tf.test.TestCase):
        def runTest(self) -> None: ...

    with tf.Graph().as_default():
        tf.add_to_collection("numbers", 3)
        tf.constant(1.0)
        first = tf.train.export_meta_graph()
        assert_meta_graph_protos_equal(Case(), first, tf.train.export_meta_graph())
        tf.constant(2.0)
        with pytest.raises(AssertionError, match="Const_1"):
            assert_meta_graph_protos_equal(Case(), first, tf.train.export_meta_graph())
        tf.add_to_collection("names", "x")
        with pytest.raises(AssertionError, match="names"):
            assert_meta_graph_protos_equal(Case(), first, tf.train.export_meta_graph())

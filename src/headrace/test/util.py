"""``tensorflow.python.framework.test_util``: what TensorFlow's own tests are written with."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from headrace.graph.graph import get_default_graph
from headrace.test.case import TensorFlowTestCase
from headrace.test.cluster import create_local_cluster
from headrace.test.devices import gpu_device_name, is_gpu_available

__all__ = ["TensorFlowTestCase", "create_local_cluster", "gpu_device_name", "is_gpu_available"]

_SHARDED = re.compile(rb"_temp_[0-9a-z]{32}/part")
_TABLE = re.compile(rb"hash_table_[0-9a-z\-]+")


# -- graphs -------------------------------------------------------------------------------------


def assert_ops_in_graph(expected_ops: dict[str, str], graph: Any) -> dict[str, Any]:
    """The nodes of operations that a graph must have.

    Args:
        expected_ops: the type of each operation, by name.
        graph: where to look.

    Raises:
        ValueError: if one is absent or of another type.
    """
    found = {}
    for node in graph.as_graph_def().node:
        if node.name in expected_ops:
            if expected_ops[node.name] != node.op:
                raise ValueError(
                    f"Expected op for node {node.name} is different. {expected_ops[node.name]} vs "
                    f"{node.op}"
                )
            found[node.name] = node
    if set(expected_ops) != set(found):
        raise ValueError(
            f"Not all expected ops are present. Expected {sorted(expected_ops)}, found "
            f"{sorted(found)}"
        )
    return found


def assert_equal_graph_def(
    actual: Any,
    expected: Any,
    checkpoint_v2: bool = False,
    hash_table_shared_name: bool = False,
) -> None:
    """Two GraphDefs have the same nodes, whatever their order and versions.

    Args:
        actual, expected: the GraphDefs.
        checkpoint_v2: leave out the random names of shards.
        hash_table_shared_name: leave out the random names of tables.

    Raises:
        AssertionError: if they differ.
        TypeError: if one is no GraphDef.
    """
    from headrace.graph.proto import GraphDef

    for what, value in (("actual", actual), ("expected", expected)):
        if not isinstance(value, GraphDef):
            raise TypeError(f"Expected tf.GraphDef for {what}, got {type(value).__name__}")
    left = _nodes(actual, checkpoint_v2, hash_table_shared_name)
    right = _nodes(expected, checkpoint_v2, hash_table_shared_name)
    for name in right:
        if name not in left:
            raise AssertionError(f"Did not find expected node '{name}'.")
        if left[name] != right[name]:
            raise AssertionError(
                f"Node named '{name}' differs.\nactual:\n{left[name]}\nexpected:\n{right[name]}"
            )
    for name in left:
        if name not in right:
            raise AssertionError(f"Found unexpected node '{name}'.")


assert_equal_graph_def_v1 = assert_equal_graph_def


def assert_meta_graph_protos_equal(tester: Any, a: Any, b: Any) -> None:
    """Two MetaGraphDefs have the same graph and collections, each in any order.

    Args:
        tester: the TestCase, whose ``assertProtoEquals`` compares.
        a, b: the MetaGraphDefs.

    Raises:
        AssertionError: if they differ.
    """
    tester.assertEqual(set(a.collection_def), set(b.collection_def))
    for key in a.collection_def:
        kinds = [c.collection_def[key].WhichOneof("kind") for c in (a, b)]
        tester.assertEqual(*kinds)
        values = [getattr(c.collection_def[key], kinds[0]).value for c in (a, b)]
        tester.assertEqual(sorted(values[0], key=repr), sorted(values[1], key=repr))
    assert_equal_graph_def(a.graph_def, b.graph_def)
    tester.assertEqual(a.saver_def, b.saver_def)
    tester.assertEqual(a.asset_file_def, b.asset_file_def)
    tester.assertEqual(a.signature_def, b.signature_def)


def _nodes(graph_def: Any, checkpoint_v2: bool, tables: bool) -> dict[str, Any]:
    copy = type(graph_def)()
    copy.CopyFrom(graph_def)
    for node in copy.node:
        data = [i for i in node.input if not i.startswith("^")]
        controls = sorted(i for i in node.input if i.startswith("^"))
        del node.input[:]
        node.input.extend([*(i.removesuffix(":0") for i in data), *controls])
        for key in [k for k in node.attr if k.startswith("_output_shapes")]:
            del node.attr[key]
        for key in [k for k in node.attr if _is_random(k, node.attr[k], checkpoint_v2, tables)]:
            del node.attr[key]
    return {node.name: node for node in copy.node}


def _is_random(key: str, value: Any, checkpoint_v2: bool, tables: bool) -> bool:
    texts = value.tensor.string_val
    if checkpoint_v2 and len(texts) == 1 and _SHARDED.match(texts[0]):
        return True
    return tables and key == "shared_name" and _TABLE.match(value.s) is not None


def get_node_def_from_graph(node_name: str, graph_def: Any) -> Any:
    """The node of that name, or None."""
    return next((node for node in graph_def.node if node.name == node_name), None)


# -- decorators ---------------------------------------------------------------------------------


def _decorator(function: Callable[..., Any] | None, wrap: Callable[..., Any]) -> Any:
    """For decorators that are used both with and without arguments."""
    return wrap if function is None else wrap(function)


def _unchanged(function: Any) -> Any:
    return function


def run_in_graph_and_eager_modes(
    func: Callable[..., Any] | None = None,
    config: Any = None,
    use_gpu: bool = True,
    reset_test: bool = True,
    assert_no_eager_garbage: bool = False,
) -> Any:
    """Run the test in the test's session, as its graph mode does; there is no eager mode."""

    def wrap(function: Any) -> Any:
        if isinstance(function, type):
            raise ValueError("`run_in_graph_and_eager_modes` only supports test methods.")

        @functools.wraps(function)
        def in_session(self: Any, *args: Any, **kwargs: Any) -> None:
            with self.test_session(use_gpu=use_gpu, config=config):
                function(self, *args, **kwargs)

        return in_session

    return _decorator(func, wrap)


def run_all_in_graph_and_eager_modes(cls: type) -> type:
    """`run_in_graph_and_eager_modes` for every test of a class."""
    for name in dir(cls):
        function = getattr(cls, name)
        if name.startswith("test") and name != "test_session" and callable(function):
            setattr(cls, name, run_in_graph_and_eager_modes(function))
    return cls


def run_deprecated_v1(func: Any = None) -> Any:
    """Nothing to do: every test runs as under 1.x."""
    return _decorator(func, _unchanged)


deprecated_graph_mode_only = run_deprecated_v1


def run_v1_only(reason: str, func: Any = None) -> Any:
    """Nothing to do: every test runs as under 1.x.

    Raises:
        ValueError: if ``reason`` is no string.
    """
    if not isinstance(reason, str):
        raise ValueError(f"'reason' should be string, got {type(reason)}")
    return _decorator(func, _unchanged)


def _skipping(reason: str, holds: Callable[[], bool]) -> Callable[..., Any]:
    def decorate(func: Any = None) -> Any:
        def wrap(function: Any) -> Any:
            @functools.wraps(function)
            def run_or_skip(self: Any, *args: Any, **kwargs: Any) -> Any:
                if not holds():
                    self.skipTest(reason)
                return function(self, *args, **kwargs)

            return run_or_skip

        return _decorator(func, wrap)

    return decorate


run_v2_only = _skipping("Test is only compatible with v2", lambda: False)
run_gpu_only = _skipping("Test requires GPU", is_gpu_available)
run_cuda_only = _skipping("Test requires CUDA GPU", lambda: is_gpu_available(cuda_only=True))


def skip_if(condition: Any) -> Callable[..., Any]:
    """Run the function only if ``condition`` is false: a value, or a function that gives it."""

    def wrap(function: Any) -> Any:
        @functools.wraps(function)
        def run_unless(*args: Any, **kwargs: Any) -> Any:
            if not (condition() if callable(condition) else condition):
                return function(*args, **kwargs)
            return None

        return run_unless

    return wrap


def enable_c_shapes(fn: Any) -> Any:
    """Nothing to do."""
    return fn


with_c_shapes = enable_c_shapes
enable_control_flow_v2 = enable_c_shapes
with_control_flow_v2 = enable_c_shapes
build_as_function_and_v1_graph = run_deprecated_v1
also_run_as_tf_function = enable_c_shapes
py_func_if_in_function = enable_c_shapes
use_deterministic_cudnn = run_deprecated_v1
assert_no_garbage_created = enable_c_shapes
assert_no_new_pyobjects_executing_eagerly = enable_c_shapes
enable_output_all_intermediates = enable_c_shapes


def _described(description: Any) -> Callable[..., Any]:
    return _unchanged


disable_control_flow_v2 = _described
disable_xla = _described
no_xla_auto_jit = _described
xla_allow_fallback = _described
enable_tf_xla_constant_folding = _described


def assert_no_new_tensors(f: Any) -> Any:
    """Nothing to do: a test's graph goes with the test."""
    return f


def for_all_test_methods(decorator: Any, *args: Any, **kwargs: Any) -> Callable[[type], type]:
    """Apply a decorator to every test of a class."""

    def wrap(cls: type) -> type:
        for name, value in list(vars(cls).items()):
            if callable(value) and name.startswith("test") and not inspect.isclass(value):
                setattr(cls, name, decorator(*args, **kwargs)(value))
        return cls

    return wrap


# -- devices and layouts ------------------------------------------------------------------------


@contextmanager
def device(use_gpu: bool) -> Any:
    """Put operations on a GPU if ``use_gpu`` and there is one, on the CPU otherwise."""
    name = gpu_device_name() if use_gpu else ""
    with get_default_graph().device(name or "/device:CPU:0"):
        yield


def use_gpu() -> Any:
    """Put operations on a GPU if there is one."""
    return device(True)


@contextmanager
def force_gpu() -> Any:
    """Put operations on a GPU."""
    with get_default_graph().device("/device:GPU:0"):
        yield


@contextmanager
def force_cpu() -> Any:
    """Put operations on the CPU."""
    with get_default_graph().device("/device:CPU:0"):
        yield


def IsGoogleCudaEnabled() -> bool:
    """Whether JAX can use CUDA here."""
    from headrace.test.devices import is_built_with_cuda

    return is_built_with_cuda()


def IsBuiltWithROCm() -> bool:
    """Whether JAX can use ROCm here."""
    from headrace.test.devices import is_built_with_rocm

    return is_built_with_rocm()


def IsMklEnabled() -> bool:
    """False."""
    return False


def is_xla_enabled() -> bool:
    """Whether tests run under TensorFlow's own XLA mode: never."""
    return False


def GpuSupportsHalfMatMulAndConv() -> bool:
    """Whether a GPU here multiplies half-precision matrices: every one that JAX uses does."""
    return is_gpu_available()


def InstallStackTraceHandler() -> None:
    """Nothing to do."""


def _permuted(value: Any, order: dict[int, list[int]]) -> Any:
    from headrace.ops.core.build import convert_to_tensor, raw

    if isinstance(value, (list, tuple)) and not any(hasattr(v, "op") for v in value):
        return [value[i] for i in order[len(value)]]
    tensor = convert_to_tensor(value)
    return raw.Transpose(tensor, order[len(tensor.shape.as_list())])


def NHWCToNCHW(input_tensor: Any) -> Any:
    """A tensor, or the list of its sizes, with the channels moved behind the batch."""
    return _permuted(input_tensor, {4: [0, 3, 1, 2], 5: [0, 4, 1, 2, 3]})


def NCHWToNHWC(input_tensor: Any) -> Any:
    """A tensor, or the list of its sizes, with the channels moved to the end."""
    return _permuted(input_tensor, {4: [0, 2, 3, 1], 5: [0, 2, 3, 4, 1]})

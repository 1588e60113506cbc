"""``tf.test``: test cases, checks of gradients, benchmarks."""

from importlib import import_module as _import_module
from typing import Any

_HOMES = {
    "Benchmark": "benchmark",
    "StubOutForTesting": "stubs",
    "TestCase": "case",
    "TensorFlowTestCase": "case",
    "assert_equal_graph_def": "util",
    "benchmark_config": "benchmark",
    "compute_gradient": "gradients",
    "compute_gradient_error": "gradients",
    "create_local_cluster": "cluster",
    "get_temp_dir": "running",
    "gpu_device_name": "devices",
    "is_built_with_cuda": "devices",
    "is_built_with_gpu_support": "devices",
    "is_built_with_rocm": "devices",
    "is_gpu_available": "devices",
    "main": "running",
    "test_src_dir_path": "running",
}


def __getattr__(name: str) -> Any:
    if name == "mock":
        return _import_module("unittest.mock")
    if name in _HOMES:
        return getattr(_import_module(f"headrace.test.{_HOMES[name]}"), name)
    raise AttributeError(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, "mock"])

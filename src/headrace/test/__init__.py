"""``tf.test``: test cases, checks of gradients, benchmarks."""

from headrace.namespaces.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.test.benchmark": ("Benchmark", "benchmark_config"),
        "headrace.test.case": ("TensorFlowTestCase", "TestCase"),
        "headrace.test.cluster": ("create_local_cluster",),
        "headrace.test.devices": (
            "gpu_device_name",
            "is_built_with_cuda",
            "is_built_with_gpu_support",
            "is_built_with_rocm",
            "is_gpu_available",
        ),
        "headrace.test.gradients": ("compute_gradient", "compute_gradient_error"),
        "headrace.test.running": ("get_temp_dir", "main", "test_src_dir_path"),
        "headrace.test.stubs": ("StubOutForTesting",),
        "headrace.test.util": ("assert_equal_graph_def",),
    },
    modules={"mock": "unittest.mock"},
)

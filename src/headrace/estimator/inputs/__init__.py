"""``tf.estimator.inputs``: input functions of arrays and data frames."""

from headrace.namespaces.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.estimator.inputs.arrays": ("numpy_input_fn",),
        "headrace.estimator.inputs.frames": ("pandas_input_fn",),
    },
)

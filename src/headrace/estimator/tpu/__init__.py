"""``tf.estimator.tpu``: TPUEstimator and its settings, on the devices that are there."""

from headrace.namespaces.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.estimator.tpu.config": ("InputPipelineConfig", "RunConfig", "TPUConfig"),
        "headrace.estimator.tpu.tpu_estimator": ("TPUEstimator", "TPUEstimatorSpec"),
    },
)

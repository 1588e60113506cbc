# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.estimator.tpu.config import InputPipelineConfig as InputPipelineConfig
from headrace.estimator.tpu.config import RunConfig as RunConfig
from headrace.estimator.tpu.config import TPUConfig as TPUConfig
from headrace.estimator.tpu.tpu_estimator import TPUEstimator as TPUEstimator
from headrace.estimator.tpu.tpu_estimator import TPUEstimatorSpec as TPUEstimatorSpec

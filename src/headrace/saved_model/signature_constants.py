"""Keys and method names of signatures, as serving systems know them."""

from typing import Final

DEFAULT_SERVING_SIGNATURE_DEF_KEY: Final = "serving_default"
CLASSIFY_INPUTS: Final = "inputs"
CLASSIFY_METHOD_NAME: Final = "tensorflow/serving/classify"
CLASSIFY_OUTPUT_CLASSES: Final = "classes"
CLASSIFY_OUTPUT_SCORES: Final = "scores"
PREDICT_INPUTS: Final = "inputs"
PREDICT_METHOD_NAME: Final = "tensorflow/serving/predict"
PREDICT_OUTPUTS: Final = "outputs"
REGRESS_INPUTS: Final = "inputs"
REGRESS_METHOD_NAME: Final = "tensorflow/serving/regress"
REGRESS_OUTPUTS: Final = "outputs"

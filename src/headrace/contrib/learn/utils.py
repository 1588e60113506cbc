"""``tf.contrib.learn.utils``: files of TensorFlow's sources that programs name."""

from headrace.contrib.learn import export as input_fn_utils
from headrace.contrib.learn import export as saved_model_export_utils

__all__ = ["input_fn_utils", "saved_model_export_utils"]

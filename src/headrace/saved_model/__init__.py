"""``tf.saved_model``: models in folders, with their signatures, variables and files.

In: a session and signatures of its graph. Out: a folder from which `loader.load` makes the same
graph with the same values. Invariant: loading runs no Python code that the folder brings.

    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     x = tf.placeholder(tf.float32, [], name="x")
    ...     tf.saved_model.simple_save(session, folder.name + "/m", {"x": x}, {"y": 2 * x})
    >>> sorted(os.listdir(folder.name + "/m"))
    ['saved_model.pb', 'variables']
    >>> folder.cleanup()
"""

from __future__ import annotations

from headrace.namespaces.lazy import lazy as _lazy
from headrace.saved_model.constants import (
    ASSETS_DIRECTORY,
    ASSETS_KEY,
    LEGACY_INIT_OP_KEY,
    MAIN_OP_KEY,
    SAVED_MODEL_FILENAME_PB,
    SAVED_MODEL_FILENAME_PBTXT,
    SAVED_MODEL_SCHEMA_VERSION,
    VARIABLES_DIRECTORY,
    VARIABLES_FILENAME,
)
from headrace.saved_model.signature_constants import (
    CLASSIFY_INPUTS,
    CLASSIFY_METHOD_NAME,
    CLASSIFY_OUTPUT_CLASSES,
    CLASSIFY_OUTPUT_SCORES,
    DEFAULT_SERVING_SIGNATURE_DEF_KEY,
    PREDICT_INPUTS,
    PREDICT_METHOD_NAME,
    PREDICT_OUTPUTS,
    REGRESS_INPUTS,
    REGRESS_METHOD_NAME,
    REGRESS_OUTPUTS,
)
from headrace.saved_model.tag_constants import (
    GPU,
    SERVING,
    TPU,
    TRAINING,
)

__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.saved_model.builder": ("Builder", "simple_save"),
        "headrace.saved_model.loader": (
            "contains_saved_model",
            "load",
            "maybe_saved_model_directory",
        ),
        "headrace.saved_model.main_op": ("main_op_with_restore",),
        "headrace.saved_model.signature_def_utils": (
            "build_signature_def",
            "classification_signature_def",
            "is_valid_signature",
            "predict_signature_def",
            "regression_signature_def",
        ),
        "headrace.saved_model.utils": ("build_tensor_info", "get_tensor_from_tensor_info"),
    },
    modules=(
        *("builder", "constants", "loader", "main_op", "signature_constants"),
        *("signature_def_utils", "tag_constants", "utils"),
    ),
)


__all__ = [
    "ASSETS_DIRECTORY",
    "ASSETS_KEY",
    "CLASSIFY_INPUTS",
    "CLASSIFY_METHOD_NAME",
    "CLASSIFY_OUTPUT_CLASSES",
    "CLASSIFY_OUTPUT_SCORES",
    "DEFAULT_SERVING_SIGNATURE_DEF_KEY",
    "GPU",
    "LEGACY_INIT_OP_KEY",
    "MAIN_OP_KEY",
    "PREDICT_INPUTS",
    "PREDICT_METHOD_NAME",
    "PREDICT_OUTPUTS",
    "REGRESS_INPUTS",
    "REGRESS_METHOD_NAME",
    "REGRESS_OUTPUTS",
    "SAVED_MODEL_FILENAME_PB",
    "SAVED_MODEL_FILENAME_PBTXT",
    "SAVED_MODEL_SCHEMA_VERSION",
    "SERVING",
    "TPU",
    "TRAINING",
    "VARIABLES_DIRECTORY",
    "VARIABLES_FILENAME",
]

"""``tf.saved_model``: models in folders, with their signatures, variables and files."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any as _Any

from headrace.errors import suggest as _suggest
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

_MODULES = (
    *("builder", "constants", "loader", "main_op", "signature_constants"),
    *("signature_def_utils", "tag_constants", "utils"),
)
#: Where names come from that are not loaded with the package.
_SOURCES = {
    "Builder": ("builder", "SavedModelBuilder"),
    "simple_save": ("builder", "simple_save"),
    "contains_saved_model": ("loader", "contains_saved_model"),
    "load": ("loader", "load"),
    "maybe_saved_model_directory": ("loader", "maybe_saved_model_directory"),
    "main_op_with_restore": ("main_op", "main_op_with_restore"),
    "build_tensor_info": ("utils", "build_tensor_info"),
    "get_tensor_from_tensor_info": ("utils", "get_tensor_from_tensor_info"),
} | {
    name: ("signature_def_utils", name)
    for name in (
        *("build_signature_def", "classification_signature_def", "is_valid_signature"),
        *("predict_signature_def", "regression_signature_def"),
    )
}


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _import_module(f"headrace.saved_model.{name}")
    if name in _SOURCES:
        module, attribute = _SOURCES[name]
        return getattr(_import_module(f"headrace.saved_model.{module}"), attribute)
    message = f"module 'headrace.saved_model' has no attribute {name!r}."
    raise AttributeError(message + _suggest(name, {*globals(), *_MODULES, *_SOURCES}))


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_SOURCES})


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

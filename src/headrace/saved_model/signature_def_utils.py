"""SignatureDef messages: what goes into a model and what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.graph.dtypes import as_dtype
from headrace.graph.proto import SignatureDef
from headrace.saved_model import signature_constants as keys
from headrace.saved_model.utils import build_tensor_info

__all__ = [
    "build_signature_def",
    "classification_signature_def",
    "is_valid_signature",
    "predict_signature_def",
    "regression_signature_def",
]


def build_signature_def(
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    method_name: str | None = None,
) -> SignatureDef:
    """A SignatureDef of TensorInfo messages (name, dtype, shape) by name.

    Raises:
        TypeError: if one is no TensorInfo (see `build_tensor_info`).
    """
    signature = SignatureDef()
    for name, info in (inputs or {}).items():
        signature.inputs[name].CopyFrom(info)
    for name, info in (outputs or {}).items():
        signature.outputs[name].CopyFrom(info)
    if method_name is not None:
        signature.method_name = method_name
    return signature


def _infos(tensors: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(tensors, Mapping):
        raise TypeError(f"Expected a dictionary of tensors by their names, not {tensors!r}.")
    return {name: build_tensor_info(t) for name, t in tensors.items()}


def _check_type(what: str, tensor: Any, wanted: str) -> None:
    if tensor is None:
        return
    if not hasattr(tensor, "dtype"):
        raise TypeError(f"{what} must be a tensor of type {wanted}, not {tensor!r}.")
    if tensor.dtype != as_dtype(wanted):
        raise ValueError(f"{what} must be of type {wanted}, not {tensor.dtype.name}.")


def _check_strings(method: str, **tensors: Any) -> None:
    for name, tensor in tensors.items():
        _check_type(f"{method} {name}", tensor, "string")


def regression_signature_def(examples: Any, predictions: Any) -> SignatureDef:
    """The signature of a model that predicts numbers for serialised Examples.

    Args:
        examples: strings ``[batch]``.
        predictions: float32 ``[batch]`` or ``[batch, 1]``. Ranks are not checked here.

    Raises:
        TypeError: if one is no tensor.
        ValueError: if one is missing, ``examples`` are no strings or ``predictions`` no float32.
    """
    if examples is None or predictions is None:
        raise ValueError("Regression needs both examples and predictions; one of them is None.")
    _check_strings("Regression", examples=examples)
    _check_type("Regression predictions", predictions, "float32")
    return build_signature_def(
        _infos({keys.REGRESS_INPUTS: examples}),
        _infos({keys.REGRESS_OUTPUTS: predictions}),
        keys.REGRESS_METHOD_NAME,
    )


def classification_signature_def(examples: Any, classes: Any, scores: Any) -> SignatureDef:
    """The signature of a model that gives classes, scores, or both.

    Args:
        examples: strings ``[batch]``, serialized Examples.
        classes: strings ``[batch, classes]`` or None.
        scores: float32 ``[batch, classes]`` or None. Ranks are not checked here.

    Raises:
        TypeError: if one is no tensor.
        ValueError: if ``examples`` or both outputs are missing, or of a wrong type.
    """
    if examples is None:
        raise ValueError("Classification examples cannot be None.")
    if classes is None and scores is None:
        raise ValueError("Classification classes and scores cannot both be None.")
    _check_strings("Classification", examples=examples, classes=classes)
    _check_type("Classification scores", scores, "float32")
    outputs = {keys.CLASSIFY_OUTPUT_CLASSES: classes, keys.CLASSIFY_OUTPUT_SCORES: scores}
    return build_signature_def(
        _infos({keys.CLASSIFY_INPUTS: examples}),
        _infos({name: t for name, t in outputs.items() if t is not None}),
        keys.CLASSIFY_METHOD_NAME,
    )


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> SignatureDef:
    """The signature of a model with any tensors in and out, of any shapes and types.

    Raises:
        TypeError: if ``inputs`` or ``outputs`` is no dictionary of tensors.
        ValueError: if there are no inputs or no outputs.
    """
    if not inputs:
        raise ValueError("Prediction inputs cannot be None or empty.")
    if not outputs:
        raise ValueError("Prediction outputs cannot be None or empty.")
    return build_signature_def(_infos(inputs), _infos(outputs), keys.PREDICT_METHOD_NAME)


def is_valid_signature(signature_def: Any) -> bool:
    """Whether serving systems will take a signature: its method, and what the method needs."""
    if signature_def is None:
        return False
    string, floats = as_dtype("string").as_datatype_enum, as_dtype("float32").as_datatype_enum
    inputs, outputs = signature_def.inputs, signature_def.outputs
    method = signature_def.method_name
    if method == keys.PREDICT_METHOD_NAME:
        return bool(inputs) and bool(outputs)
    if method == keys.REGRESS_METHOD_NAME:
        return (
            set(inputs) == {keys.REGRESS_INPUTS}
            and inputs[keys.REGRESS_INPUTS].dtype == string
            and set(outputs) == {keys.REGRESS_OUTPUTS}
            and outputs[keys.REGRESS_OUTPUTS].dtype == floats
        )
    if method == keys.CLASSIFY_METHOD_NAME:
        types = {keys.CLASSIFY_OUTPUT_CLASSES: string, keys.CLASSIFY_OUTPUT_SCORES: floats}
        return (
            set(inputs) == {keys.CLASSIFY_INPUTS}
            and inputs[keys.CLASSIFY_INPUTS].dtype == string
            and bool(outputs)
            and all(outputs[n].dtype == types.get(n) for n in outputs)
        )
    return False

"""``tf.dtypes``: the element types of tensors, and conversions between them."""

from typing import Any

from headrace.graph.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    qint8,
    qint16,
    qint32,
    quint8,
    quint16,
    resource,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
    variant,
)
from headrace.missing import attribute_error as _attribute_error
from headrace.ops.elementwise_cast import cast, complex, saturate_cast

__all__ = [
    "QUANTIZED_DTYPES",
    "DType",
    "as_dtype",
    "bfloat16",
    "bool",
    "cast",
    "complex",
    "complex64",
    "complex128",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "qint8",
    "qint16",
    "qint32",
    "quint8",
    "quint16",
    "resource",
    "saturate_cast",
    "string",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "variant",
]

QUANTIZED_DTYPES = frozenset((qint8, quint8, qint16, quint16, qint32))


def __getattr__(name: str) -> Any:
    if name == "as_string":
        import headrace

        return headrace.as_string
    raise _attribute_error(__name__, name, __all__)

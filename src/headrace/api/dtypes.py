"""``tf.dtypes``: the element types of tensors, and conversions between them."""

from typing import Any

from headrace.graph import dtypes as _types
from headrace.graph.dtypes import *  # noqa: F403
from headrace.graph.dtypes import qint8, qint16, qint32, quint8, quint16
from headrace.namespaces.missing import attribute_error as _attribute_error
from headrace.ops.math.cast import cast, complex, saturate_cast

__all__ = ["QUANTIZED_DTYPES", "cast", "complex", "saturate_cast"]
__all__ += _types.__all__

QUANTIZED_DTYPES = frozenset((qint8, quint8, qint16, quint16, qint32))


def __getattr__(name: str) -> Any:
    if name == "as_string":
        import headrace

        return headrace.as_string
    raise _attribute_error(__name__, name, __all__)

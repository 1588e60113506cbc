"""``tf.dtypes``: the element types of tensors, and conversions between them."""

from headrace.graph import dtypes as _types
from headrace.graph.dtypes import *  # noqa: F403
from headrace.graph.dtypes import DType, qint8, qint16, qint32, quint8, quint16
from headrace.namespaces.lazy import lazy as _lazy
from headrace.ops.every import fill as _fill

__all__ = [*_fill(__name__), "QUANTIZED_DTYPES"]
__all__ += _types.__all__

QUANTIZED_DTYPES: frozenset[DType] = frozenset((qint8, quint8, qint16, quint16, qint32))


__getattr__, __dir__ = _lazy(__name__, {"headrace.ops.strings.api": ("as_string",)})

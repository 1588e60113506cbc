# Written by tools/make_stubs.py from dtypes.py; do not edit.
from headrace.graph.dtypes import *
from headrace.graph.dtypes import DType as DType
from headrace.graph.dtypes import qint8 as qint8
from headrace.graph.dtypes import qint16 as qint16
from headrace.graph.dtypes import qint32 as qint32
from headrace.graph.dtypes import quint8 as quint8
from headrace.graph.dtypes import quint16 as quint16
__all__ = ['cast', 'complex', 'saturate_cast', 'QUANTIZED_DTYPES', 'DType', 'as_dtype', 'bfloat16', 'bool', 'complex64', 'complex128', 'double', 'float16', 'float32', 'float64', 'half', 'int8', 'int16', 'int32', 'int64', 'qint8', 'qint16', 'qint32', 'quint8', 'quint16', 'resource', 'string', 'uint8', 'uint16', 'uint32', 'uint64', 'variant']
QUANTIZED_DTYPES: frozenset[DType]
from headrace.ops.math.cast import cast as cast
from headrace.ops.math.cast import complex as complex
from headrace.ops.math.cast import saturate_cast as saturate_cast
from headrace.ops.strings.api import as_string as as_string

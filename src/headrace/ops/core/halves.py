"""What mixed precision does with each operation: the four lists of TensorFlow's rewrite.

The lists are TensorFlow's, which programs that train in mixed precision count on. Each room of
operations states those of its own in a module `halves`, at one glance: an operation of ours that is
on none of them stays in float32.

>>> treatment("MatMul", dtypes.bfloat16)
'allow'
>>> treatment("Sum", dtypes.float16), treatment("Sum", dtypes.bfloat16)
('deny', 'infer')
>>> treatment("Sin", dtypes.float16)
''
"""

from __future__ import annotations

from typing import Final, Literal

from headrace.graph import dtypes
from headrace.graph.dtypes import DType

__all__ = ["ALLOW", "CLEAR", "DENY", "INFER", "Treatment", "treat", "treated", "treatment"]

Treatment = Literal["", "allow", "infer", "deny", "clear"]

#: Safe, and what takes the time: always in half precision.
ALLOW: Final = "allow"
#: Safe, unless what comes to it was made by one that is not.
INFER: Final = "infer"
#: Not safe in half precision, and neither is what follows.
DENY: Final = "deny"
#: Moves or compares numbers: as safe as what comes to it.
CLEAR: Final = "clear"

_TREATMENTS: dict[DType, dict[str, Treatment]] = {dtypes.float16: {}, dtypes.bfloat16: {}}


def treat(names: str, float16: Treatment, bfloat16: Treatment | None = None) -> None:
    """State how operations are treated.

    Args:
        names: of operations, with spaces between them.
        float16: where the half precision is float16; bfloat16: where it is that, else alike.
    """
    for name in names.split():
        _TREATMENTS[dtypes.float16][name] = float16
        _TREATMENTS[dtypes.bfloat16][name] = float16 if bfloat16 is None else bfloat16


def treatment(name: str, dtype: DType) -> Treatment:
    """On which list an operation is; "" if on none."""
    return _TREATMENTS[dtype].get(name, "")


def treated(dtype: DType) -> dict[str, Treatment]:
    """All operations that are on a list."""
    return {name: kind for name, kind in _TREATMENTS[dtype].items() if kind}

"""Errors of shape rules and kernels: ours to say, whoever found them."""

from __future__ import annotations

import dis
import os

from headrace.errors import OpError
from headrace.graph.tensor import Operation

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
#: Packages whose errors speak of their own functions, of which users know nothing.
_LIBRARIES = tuple(f"{os.sep}{name}{os.sep}" for name in ("numpy", "jax", "jaxlib", "ml_dtypes"))
_RAISE = dis.opmap["RAISE_VARARGS"]
#: What Python and NumPy raise for arguments that do not fit.
_RAW = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError)


def raised_by_us(error: Exception) -> bool:
    """Whether a ``raise`` of this package made the error, with a text for users."""
    trace = error.__traceback__
    if trace is None or not isinstance(error, (ValueError, TypeError, NotImplementedError)):
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    # NumPy's C functions have no frame: the innermost one is then the call in our kernel.
    is_raise = code.co_code[trace.tb_lasti] == _RAISE
    return is_raise and os.path.abspath(code.co_filename).startswith(_PACKAGE)


def is_foreign(error: Exception) -> bool:
    """Whether NumPy, JAX or Python itself refused what our code gave it.

    Not so where other code took part: that of a user's function, or of another library.
    """
    if not isinstance(error, _RAW) or raised_by_us(error):
        return False
    trace = error.__traceback__
    last = ""
    while trace is not None:
        last = os.path.abspath(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    return last.startswith(_PACKAGE) or any(name in last for name in _LIBRARIES)


def place(op: Operation) -> str:
    """The line of the program that made an operation."""
    site = op.site
    return "an unknown line" if site is None else f"{site.filename}:{site.lineno}"


def building_error(op: Operation, error: Exception) -> Exception:
    """What to raise where the shape rule of an operation fails: which one, from what, and where.

    Texts of NumPy, and errors of Python in a rule that did not expect such inputs, give way to one
    of ours with all shapes.
    """
    if is_foreign(error):
        text = f"{op.type} cannot take inputs of these shapes"
    elif isinstance(error, (ValueError, OpError)):
        text = error.message if isinstance(error, OpError) else str(error)
    else:
        return error
    inputs = ", ".join(f"{t.name}: {t.shape} {t.dtype.name}" for t in op.inputs)
    return ValueError(
        f"{text} (building operation '{op.name}' of type {op.type}"
        f"{' from ' + inputs if inputs else ''}; made at {place(op)})"
    )

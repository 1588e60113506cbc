"""Errors of shape rules and kernels: ours to say, whoever found them."""

from __future__ import annotations

import dis
from types import TracebackType

from headrace.errors import InternalError, OpError
from headrace.graph.tensor import Operation, Tensor

_OWN = __name__.partition(".")[0]
#: Packages whose errors speak of their own functions, of which users know nothing.
_LIBRARIES = frozenset(("numpy", "jax", "jaxlib", "ml_dtypes"))
_RAISE = dis.opmap["RAISE_VARARGS"]
#: What our rules and kernels raise for inputs that do not fit.
_SAID = (ValueError, TypeError, NotImplementedError)
#: What Python and NumPy raise for arguments that do not fit.
_RAW = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError)


def _innermost(error: BaseException) -> TracebackType | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _package(trace: TracebackType) -> str:
    """The package whose code a traceback is in, whatever its files are called."""
    return str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]


def raised_by_us(error: Exception) -> bool:
    """Whether a ``raise`` of this package made the error, with a text for users."""
    trace = _innermost(error)
    if trace is None or not isinstance(error, _SAID):
        return False
    # NumPy's C functions have no frame: the innermost one is then the call in our kernel.
    is_raise = trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE
    return is_raise and _package(trace) == _OWN


def is_foreign(error: Exception) -> bool:
    """Whether NumPy, JAX or Python itself refused what our code gave it.

    Not so where other code took part: that of a user's function, or of another library.
    """
    if not isinstance(error, _RAW) or raised_by_us(error):
        return False
    return is_own(error)


def is_own(error: BaseException) -> bool:
    """Whether the error comes out of this package or the libraries that its kernels call."""
    trace = _innermost(error)
    return trace is not None and (_package(trace) == _OWN or _package(trace) in _LIBRARIES)


def internal_text(what: str, error: BaseException) -> str:
    """What to say of a mistake in our own code: what failed, with what, and what to do."""
    where, trace = "", error.__traceback__
    while trace is not None:
        if _package(trace) == _OWN:
            module = trace.tb_frame.f_globals["__name__"]
            where = f" in {module}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return (
        f"{what} failed with {type(error).__name__}{where}. This is a mistake in Headrace, not in "
        "your program; please report it with this message"
    )


def place(op: Operation) -> str:
    """The line of the program that made an operation."""
    site = op.site
    return "an unknown line" if site is None else f"{site.filename}:{site.lineno}"


def building_error(op: Operation, error: Exception) -> Exception:
    """What to raise where the shape rule of an operation fails: which one, from what, and where.

    A rule says itself what it refuses. Whatever else comes out of one, of Python or NumPy, is a
    mistake of ours, and is said to be one.
    """
    internal = is_foreign(error) or isinstance(error, AssertionError)
    if internal:
        text = internal_text(f"The shape rule of {op.type}", error)
    elif isinstance(error, (ValueError, OpError)):
        text = error.message if isinstance(error, OpError) else str(error)
    else:
        return error
    inputs = ", ".join(f"{t.name}: {t.shape} {t.dtype.name}" for t in op.inputs)
    whole = (
        f"{text} (building operation '{op.name}' of type {op.type}"
        f"{' from ' + inputs if inputs else ''}; made at {place(op)})"
    )
    return InternalError(None, None, whole) if internal else ValueError(whole)


def foreign_tensor(tensor: Tensor) -> str:
    """Why a tensor cannot be used outside its graph."""
    where = f"Tensor {tensor.name} (made at {place(tensor.op)})"
    if tensor.graph.building_function:
        return (
            f"{where} belongs to the body of a loop, branch or function and has no value outside "
            "it. Return it from the body to use it."
        )
    return (
        f"{where} is from another graph than the one being built. Build both in the same graph: "
        "`with graph.as_default():`."
    )

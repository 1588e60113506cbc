"""Tensors that stay in the session between steps: ``get_session_handle`` and its kin."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph import dtypes
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import placeholder, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import EXTERNAL, NotDifferentiable, define_op

_NO_GRADIENT = NotDifferentiable("the tensor is handed over between steps")
_numbers = itertools.count()


class SessionTensorKey(NamedTuple):
    """Names a kept tensor in the state of a session."""

    handle: str
    container: str = ""
    is_private: bool = False


def not_kept(handle: str) -> InvalidArgumentError:
    """The error for a handle that no tensor has."""
    message = f"The tensor with handle '{handle}' is not in the session store."
    return InvalidArgumentError(None, None, message)


def _keep(context: Any, value: Any) -> Any:
    handle = f"{context.node.name};{next(_numbers)};{context.node.device}"
    kept = context.owned(np.asarray(value))
    context.store.object(SessionTensorKey(handle), lambda: kept)
    result = np.empty((), object)
    result[()] = handle.encode()
    return result


def _find(context: Any, handle: Any, *, dtype: Any) -> Any:
    key = _key(handle)

    def missing() -> Any:
        raise not_kept(key.handle)

    value = context.store.object(key, missing)
    if value.dtype != dtype.np_dtype:
        message = f"The tensor with handle '{key.handle}' is of {value.dtype}, not {dtype.name}."
        raise InvalidArgumentError(None, None, message)
    return value


def _drop(context: Any, handle: Any) -> Any:
    context.store.drop(_key(handle))
    return ()


def _key(handle: Any) -> SessionTensorKey:
    name: Any = np.asarray(handle)[()]
    return SessionTensorKey(name.decode(errors="replace"))


define_op(
    "GetSessionHandle(value: T) -> handle: string",
    attrs="T: type",
    shape=lambda op: [()],
    host=_keep,
    effects=EXTERNAL,
    gradient=_NO_GRADIENT,
)

define_op(
    "GetSessionTensor(handle: string) -> value: dtype",
    attrs="dtype: type",
    shape=lambda op: [None],
    host=_find,
    effects=EXTERNAL,
    gradient=_NO_GRADIENT,
)

define_op(
    "DeleteSessionTensor(handle: string)",
    shape=lambda op: [],
    host=_drop,
    effects=EXTERNAL,
    gradient=_NO_GRADIENT,
)


@public("get_session_handle")
def get_session_handle(data: Any, name: str | None = None) -> Tensor:
    """A handle of ``data``, whose value stays in the session after the step: a string scalar.

    Fetching it gives a TensorHandle: feed that in the place of a tensor, or its ``handle`` to
    `get_session_tensor`.

    Args:
        data: a tensor of any shape and type.

    Raises:
        TypeError: if ``data`` is no tensor.
    """
    if not isinstance(data, Tensor):
        raise TypeError("`data` must be of type Tensor.")
    return raw.GetSessionHandle(data, name=name)


@public("get_session_tensor")
def get_session_tensor(handle: Any, dtype: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """A placeholder for a handle, and the tensor with that handle.

    Args:
        handle: text of a handle; only kept for programs that give it, the placeholder counts.
        dtype: the type of the tensor.

    Returns:
        A string scalar to feed, and a tensor of unknown shape.

    Raises:
        TypeError: if ``dtype`` is no type.
        InvalidArgumentError: when run, if the session has no such tensor, or one of another type.
    """
    holder = placeholder(dtypes.string)
    return holder, raw.GetSessionTensor(holder, dtype=dtype, name=name)


@public("delete_session_tensor")
def delete_session_tensor(handle: Any, name: str | None = None) -> tuple[Tensor, Operation]:
    """A placeholder for a handle, and an op that forgets the tensor with that handle.

    The placeholder is a string scalar; nothing happens for a handle that the session does not have.

    Raises:
        InvalidArgumentError: when run, if no handle is fed.
    """
    holder = placeholder(dtypes.string)
    return holder, raw.DeleteSessionTensor(holder, name=name)

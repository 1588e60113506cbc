"""Handles of tensors that stay in a session, as ``Session.run`` returns them."""

from __future__ import annotations

import weakref
from typing import Any

from headrace.graph.dtypes import DType
from headrace.ops.state.session_tensors import (
    SessionTensorKey,
    delete_session_tensor,
    get_session_tensor,
    not_kept,
)


class TensorHandle:
    """A tensor that stays in a session. It is forgotten when nobody has this object any more.

    It can be fed in the place of a tensor.

    Attributes:
        handle: its name, to be fed to the placeholder of ``tf.get_session_tensor``.
        dtype: the type of the tensor.
    """

    def __init__(self, handle: bytes | str, dtype: DType, session: Any) -> None:
        self.handle = handle.decode() if isinstance(handle, bytes) else handle
        self.dtype = dtype
        self._session = weakref.ref(session)
        self._is_kept = False

    def __del__(self) -> None:
        store = self._store()
        # The state of a cluster's session ends with it.
        if store is not None and not self._is_kept:
            store.drop(SessionTensorKey(self.handle))

    def __str__(self) -> str:
        return self.handle

    def eval(self) -> Any:
        """The value.

        Raises:
            InvalidArgumentError: if the tensor has been deleted.
        """
        store = self._store()
        if store is not None:
            value = store.get(SessionTensorKey(self.handle))
            if value is None:
                raise not_kept(self.handle)
            return value.copy() if value.ndim else value[()]
        session = self._live_session()
        with session.graph.as_default():
            holder, tensor = get_session_tensor(self.handle, self.dtype)
        return session.run(tensor, feed_dict={holder: self.handle})

    def delete(self) -> None:
        """Forget the tensor now."""
        self._is_kept = True
        store = self._store()
        if store is not None:
            store.drop(SessionTensorKey(self.handle))
            return
        session = self._live_session()
        with session.graph.as_default():
            holder, deleter = delete_session_tensor(self.handle)
        session.run(deleter, feed_dict={holder: self.handle})

    def get_raw_handle(self) -> str:
        """The name of the tensor, which then stays until it is deleted."""
        self._is_kept = True
        return self.handle

    def _store(self) -> Any:
        """The state of a session in this process; None for others."""
        session = self._session()
        return None if session is None else getattr(session._engine, "store", None)

    def _live_session(self) -> Any:
        session = self._session()
        if session is None:
            raise RuntimeError(f"The session of the tensor {self.handle} is gone.")
        return session

"""The few calls of UCX's protocol layer (UCP) that the RDMA pipe needs, bound with ctypes.

The Python binding that RAPIDS keeps up, ucxx, was weighed and left out: it brings CUDA's driver
bindings and RAPIDS' memory manager (110 MB on top of UCX) into processes that may have no GPU,
allocates through them, and pins one minor release of each. The C interface is stable: structures
grow at their end only, and each says which of its fields are set, so a program written for an old
release runs with every newer one.

The library comes from the package libucx-cu12 (extra `rdma`), whose builds carry TCP and shared
memory but no InfiniBand; a host with such hardware has UCX from its system or vendor, and
`HEADRACE_UCX_LIBRARY` names that libucp.so.0 (a path, or a name for the loader).

A `UcxWorker` must be used by one thread at a time; only `signal` may be called at any moment.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from ctypes import (
    POINTER,
    Structure,
    addressof,
    byref,
    c_char,
    c_char_p,
    c_int,
    c_int8,
    c_size_t,
    c_uint,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any, Final

from headrace import errors
from headrace.settings import environment_defaults

# What the structures below were written for. Newer libraries accept it; older ones say no.
_API: Final = (1, 12)

OK: Final = 0
IN_PROGRESS: Final = 1
_NO_ELEMENT: Final = -12
_LAST_ERROR: Final = -100
_ADDRESS_SPACE: Final = 1 << (8 * ctypes.sizeof(c_void_p))
_BUSY: Final = -15

_TAG_FEATURE: Final = 1 << 0
_WAKEUP_FEATURE: Final = 1 << 4
_WITH_FEATURES: Final = 1 << 0
_WITH_SHARED: Final = 1 << 5
_SERIALIZED: Final = 1
_REPORT_PEER_FAILURE: Final = 1
_FORCE: Final = 1
_HOST_MEMORY: Final = 0
_WITH_FLAGS: Final = 1 << 4
_WITH_MEMORY_TYPE: Final = 1 << 6
_ALWAYS_A_REQUEST: Final = 1 << 16
_EXACT_TAG: Final = (1 << 64) - 1

# What UCX does to a process unless told otherwise: handlers for SIGSEGV and its kin in the place
# of Python's faulthandler, and messages on standard output. Read once, when the library loads.
_QUIET: Final = {
    "UCX_HANDLE_ERRORS": "none",
    "UCX_LOG_LEVEL": "fatal",
    "UCX_WARN_UNUSED_ENV_VARS": "n",
}
# Set unless the environment says otherwise. Tensors lie in host memory, so the transports of
# CUDA only cost start-up time. Over TCP the small default segments halve the bandwidth.
_SETTINGS: Final = {
    "TLS": "^cuda",
    "KEEPALIVE_INTERVAL": "1s",
    "TCP_TX_SEG_SIZE": "64k",
    "TCP_RX_SEG_SIZE": "256k",
}


class _ContextParams(Structure):
    _fields_ = [
        ("field_mask", c_uint64),
        ("features", c_uint64),
        ("request_size", c_size_t),
        ("request_init", c_void_p),
        ("request_cleanup", c_void_p),
        ("tag_sender_mask", c_uint64),
        ("mt_workers_shared", c_int),
        ("unset", c_char * 204),
    ]


class _WorkerParams(Structure):
    _fields_ = [("field_mask", c_uint64), ("thread_mode", c_int), ("unset", c_char * 244)]


class _EndpointParams(Structure):
    _fields_ = [
        ("field_mask", c_uint64),
        ("address", c_void_p),
        ("error_mode", c_int),
        ("error_callback", c_void_p),
        ("error_argument", c_void_p),
        ("unset", c_char * 216),
    ]


class _OperationParams(Structure):
    _fields_ = [
        ("field_mask", c_uint32),
        ("flags", c_uint32),
        ("request", c_void_p),
        ("callback", c_void_p),
        ("datatype", c_uint64),
        ("user_data", c_void_p),
        ("reply_buffer", c_void_p),
        ("memory_type", c_int),
        ("unset", c_char * 200),
    ]


class _ReceiveInfo(Structure):
    _fields_ = [("sender_tag", c_uint64), ("length", c_size_t)]


_ErrorCallback = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_int8)

# name -> (result, arguments). A status is one byte: the enumeration is packed.
_SIGNATURES: Final[Mapping[str, tuple[Any, list[Any]]]] = {
    "ucp_get_version_string": (c_char_p, []),
    "ucp_config_read": (c_int8, [c_char_p, c_char_p, POINTER(c_void_p)]),
    "ucp_config_modify": (c_int8, [c_void_p, c_char_p, c_char_p]),
    "ucp_config_release": (None, [c_void_p]),
    "ucp_init_version": (
        c_int8,
        [c_uint, c_uint, POINTER(_ContextParams), c_void_p, POINTER(c_void_p)],
    ),
    "ucp_cleanup": (None, [c_void_p]),
    "ucp_worker_create": (c_int8, [c_void_p, POINTER(_WorkerParams), POINTER(c_void_p)]),
    "ucp_worker_destroy": (None, [c_void_p]),
    "ucp_worker_get_address": (c_int8, [c_void_p, POINTER(c_void_p), POINTER(c_size_t)]),
    "ucp_worker_release_address": (None, [c_void_p, c_void_p]),
    "ucp_worker_get_efd": (c_int8, [c_void_p, POINTER(c_int)]),
    "ucp_worker_progress": (c_uint, [c_void_p]),
    "ucp_worker_arm": (c_int8, [c_void_p]),
    "ucp_worker_signal": (c_int8, [c_void_p]),
    "ucp_ep_create": (c_int8, [c_void_p, POINTER(_EndpointParams), POINTER(c_void_p)]),
    "ucp_ep_close_nbx": (c_void_p, [c_void_p, c_void_p]),
    "ucp_tag_send_nbx": (c_void_p, [c_void_p, c_void_p, c_size_t, c_uint64, c_void_p]),
    "ucp_tag_send_sync_nbx": (c_void_p, [c_void_p, c_void_p, c_size_t, c_uint64, c_void_p]),
    "ucp_tag_recv_nbx": (
        c_void_p,
        [c_void_p, c_void_p, c_size_t, c_uint64, c_uint64, c_void_p],
    ),
    "ucp_tag_recv_request_test": (c_int8, [c_void_p, POINTER(_ReceiveInfo)]),
    "ucp_request_check_status": (c_int8, [c_void_p]),
    "ucp_request_cancel": (None, [c_void_p, c_void_p]),
    "ucp_request_free": (None, [c_void_p]),
}


class UcxError(Exception):
    """A call of UCX failed; the message is UCX's own text for the status."""


class _Library:
    """The loaded libucp with its calls typed, and the text of its statuses."""

    def __init__(self, calls: ctypes.CDLL, statuses: ctypes.CDLL) -> None:
        self._status_string = statuses.ucs_status_string
        self._status_string.restype = c_char_p
        self._status_string.argtypes = [c_int8]
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(calls, name)
            function.restype, function.argtypes = result, arguments
        self.calls = calls

    @property
    def version(self) -> str:
        text: bytes = self.calls.ucp_get_version_string()
        return text.decode("ascii", "replace")

    def text(self, status: int) -> str:
        message: bytes = self._status_string(status)
        return message.decode("ascii", "replace")

    def check(self, status: int, what: str) -> None:
        if status != OK:
            raise UcxError(f"UCX could not {what}: {self.text(status)}")


def _paths() -> tuple[list[str], str]:
    """The files to load, in the order of their dependences, and where they come from."""
    named = os.environ.get("HEADRACE_UCX_LIBRARY")
    if named:
        return [named], f"HEADRACE_UCX_LIBRARY={named}"
    package = importlib.util.find_spec("libucx")
    if package is None or not package.submodule_search_locations:
        return ["libucp.so.0"], "the system"
    folder = Path(package.submodule_search_locations[0]) / "lib"
    # Its parts name each other without a path; those that are loaded already are found.
    names = ("libucs.so.0", "libuct.so.0", "libucp.so.0")
    return [str(folder / name) for name in names], "the package libucx"


def _load() -> _Library:
    paths, source = _paths()
    try:
        with environment_defaults(_QUIET):
            loaded = [ctypes.CDLL(path) for path in paths]
        # A library named alone has loaded libucs by itself: its symbols are found through it.
        return _Library(loaded[-1], loaded[0])
    except (OSError, AttributeError) as error:
        raise errors.FailedPreconditionError(
            None,
            None,
            f"RDMA was asked for, but UCX could not be loaded from {source}: {error}. Install it "
            "with `pip install headrace[rdma]`, or point HEADRACE_UCX_LIBRARY at the libucp.so.0 "
            "of this host.",
        ) from error


_lock = threading.Lock()
_library: _Library | None = None
_contexts: dict[str, Context] = {}


def library() -> _Library:
    """UCX, loaded on first use.

    Raises:
        FailedPreconditionError: there is no UCX here that can be loaded; says where it was sought.
    """
    global _library
    with _lock:
        if _library is None:
            _library = _load()
        return _library


def available() -> bool:
    """Whether UCX can be loaded here."""
    with suppress(errors.FailedPreconditionError):
        library()
        return True
    return False


class Context:
    """The transports and devices that workers of this process use; kept for the process's life."""

    def __init__(self, net_devices: str = "") -> None:
        """`net_devices`: names of the only network devices to use, by UCX's syntax; "" is all."""
        self.library = library()
        calls = self.library.calls
        config = c_void_p()
        self.library.check(calls.ucp_config_read(None, None, byref(config)), "read its settings")
        try:
            settings = dict(_SETTINGS)
            if net_devices:
                settings["NET_DEVICES"] = net_devices
            for name, value in settings.items():
                if f"UCX_{name}" not in os.environ:
                    status = calls.ucp_config_modify(config, name.encode(), value.encode())
                    # A build without a transport does not know that transport's settings.
                    if status != _NO_ELEMENT:
                        self.library.check(status, f"set {name}={value}")
            features = _TAG_FEATURE | _WAKEUP_FEATURE
            # Each pipe has a worker and a thread: without locks in what they share, registered
            # memory among it, UCX may end the process when two of them are in it.
            params = _ContextParams(
                field_mask=_WITH_FEATURES | _WITH_SHARED, features=features, mt_workers_shared=1
            )
            handle = c_void_p()
            status = calls.ucp_init_version(*_API, byref(params), config, byref(handle))
            self.library.check(status, f"start (version {self.library.version})")
        finally:
            calls.ucp_config_release(config)
        self.handle = handle


def context(net_devices: str = "") -> Context:
    """The process's context for these devices, made on first use.

    Raises:
        FailedPreconditionError: there is no UCX here.
        UcxError: UCX does not start, such as when there is no device of that name.
    """
    library()
    with _lock:
        known = _contexts.get(net_devices)
    if known is None:
        made = Context(net_devices)
        with _lock:
            known = _contexts.setdefault(net_devices, made)
    return known


class UcxWorker:
    """One end of UCX: an address that others connect to, and the messages that arrive there.

    Only one thread at a time may be inside (the owner holds a lock around every call).
    """

    def __init__(self, context: Context) -> None:
        self._context = context  # outlives the worker
        self._library = context.library
        self._calls = calls = context.library.calls
        params = _WorkerParams(field_mask=1, thread_mode=_SERIALIZED)
        self._handle = c_void_p()
        status = calls.ucp_worker_create(context.handle, byref(params), byref(self._handle))
        self._library.check(status, "make a worker")
        self._endpoint = c_void_p()
        self._on_error: Any = None
        try:
            descriptor = c_int()
            status = calls.ucp_worker_get_efd(self._handle, byref(descriptor))
            self._library.check(status, "wait for events")
            self.fd: int = descriptor.value
            self.address: bytes = self._query_address()
        except UcxError:
            calls.ucp_worker_destroy(self._handle)
            raise
        self._handle_value: int = self._handle.value or 0
        self._params = _OperationParams(field_mask=_WITH_MEMORY_TYPE, memory_type=_HOST_MEMORY)
        self._send_params = addressof(self._params)
        # A receive always makes a request, so that its length can be asked for.
        self._receive = _OperationParams(
            field_mask=_WITH_MEMORY_TYPE | _ALWAYS_A_REQUEST, memory_type=_HOST_MEMORY
        )
        self._receive_params = addressof(self._receive)
        self._info = _ReceiveInfo()

    def _query_address(self) -> bytes:
        address, length = c_void_p(), c_size_t()
        calls = self._calls
        status = calls.ucp_worker_get_address(self._handle, byref(address), byref(length))
        self._library.check(status, "tell its address")
        text = ctypes.string_at(address, length.value)
        calls.ucp_worker_release_address(self._handle, address)
        return text

    def connect(self, address: bytes, on_error: Callable[[str], None]) -> None:
        """Make the worker's one endpoint; `on_error(reason)` runs inside `progress`."""
        library = self._library

        def failed(_argument: int, _endpoint: int, status: int) -> None:
            on_error(library.text(status))

        self._on_error = _ErrorCallback(failed)  # called for as long as the endpoint lives
        remote = ctypes.create_string_buffer(address, len(address))
        params = _EndpointParams(
            field_mask=0b111,
            address=addressof(remote),
            error_mode=_REPORT_PEER_FAILURE,
            error_callback=ctypes.cast(self._on_error, c_void_p),
        )
        status = self._calls.ucp_ep_create(self._handle, byref(params), byref(self._endpoint))
        library.check(status, "reach the peer's address")

    def progress(self) -> bool:
        """Do what there is to do, without waiting. True if that was anything."""
        return bool(self._calls.ucp_worker_progress(self._handle_value))

    def arm(self) -> bool:
        """Let the next event make `fd` readable. False: there are events now, progress first.

        Raises:
            UcxError: the worker cannot wait any more.
        """
        status = self._calls.ucp_worker_arm(self._handle_value)
        if status not in (OK, _BUSY):
            self._library.check(status, "wait for events")
        return bool(status == OK)

    def send(self, memory: int | bytes, nbytes: int, tag: int, matched: bool) -> int | None:
        """Send a message; the memory must live until it is done.

        Args:
            memory: address, or the bytes themselves.
            matched: done only when the receiver has asked for this very message, which it does in
                the order in which they were sent.

        Returns:
            None if it is done, else the request to pass to `status` and `free`.
        """
        calls = self._calls
        send = calls.ucp_tag_send_sync_nbx if matched else calls.ucp_tag_send_nbx
        return self._request(send(self._endpoint, memory, nbytes, tag, self._send_params))

    def receive(self, address: int, nbytes: int, tag: int) -> int:
        """Ask for the next message with this tag; returns the request."""
        calls, mask = self._calls, _EXACT_TAG
        request = self._request(
            calls.ucp_tag_recv_nbx(
                self._handle_value, address, nbytes, tag, mask, self._receive_params
            )
        )
        assert request is not None, "a receive without a request"
        return request

    def _request(self, pointer: int | None) -> int | None:
        if pointer is not None and pointer >= _ADDRESS_SPACE + _LAST_ERROR:
            raise UcxError(self._library.text(pointer - _ADDRESS_SPACE))
        return pointer

    def status(self, request: int) -> int:
        """IN_PROGRESS, OK or an error's number."""
        return int(self._calls.ucp_request_check_status(request))

    def received(self, request: int) -> int:
        """Length of the message of a receive that is done; frees the request.

        Raises:
            UcxError: it failed, such as because the message was longer than what was asked for.
        """
        info = self._info
        status = self._calls.ucp_tag_recv_request_test(request, byref(info))
        self._calls.ucp_request_free(request)
        if status != OK:
            raise UcxError(self._library.text(status))
        return int(info.length)

    def cancel(self, request: int) -> None:
        """Stop a receive; its status changes in a later `progress`."""
        self._calls.ucp_request_cancel(self._handle_value, request)

    def free(self, request: int) -> None:
        """Give a request back."""
        self._calls.ucp_request_free(request)

    def text(self, status: int) -> str:
        """UCX's words for a status."""
        return self._library.text(status)

    def disconnect(self, force: bool) -> int | None:
        """Close the endpoint: all its operations end, with `force` at once and as failed.

        Returns:
            The request of the close, None if it is done.
        """
        if not self._endpoint.value:
            return None
        params = _OperationParams(field_mask=_WITH_FLAGS, flags=_FORCE if force else 0)
        endpoint, self._endpoint = self._endpoint, c_void_p()
        return self._request(self._calls.ucp_ep_close_nbx(endpoint, addressof(params)))

    def destroy(self) -> None:
        """Free everything; from here on nothing is written to memory that was given to receive."""
        if self._handle.value:
            self._calls.ucp_worker_destroy(self._handle)
            self._handle = c_void_p()
            self._on_error = None

"""The built library: where it lies, whether it may be loaded, and its functions."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import logging
import platform
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jaxlib.version

from headrace.files.private import check_private, named_folder
from headrace.settings import environment_defaults, flags

#: The operations, by the names that XLA knows them by, in the order of `operations.h`.
CONVOLUTION, PRODUCT, POOL = "headrace_convolution", "headrace_product", "headrace_pool"
_OPERATIONS = {
    CONVOLUTION: "HeadraceConvolution",
    PRODUCT: "HeadraceProduct",
    POOL: "HeadracePool",
}
#: Types of elements, as `operations.h` numbers them.
ELEMENTS = {"float32": 0, "bfloat16": 1}

#: What all that calls oneDNN is made of, what XLA calls, and what they include.
CALLS = ("operations.cc", "team.cc", "prepared.cc", "convolution.cc", "product.cc", "pool.cc")
SOURCES = (*CALLS, "xla_targets.cc")
HEADERS = ("operations.h", "prepared.h", "team.h")
HERE = Path(__file__).resolve().parent

_SETTING = "HEADRACE_NATIVE"
_BUILDS = "`python -m headrace.native` builds it"
#: OpenMP reads this when it is loaded: its threads are not to spin while XLA's work.
_WHILE_LOADING = {"OMP_WAIT_POLICY": "passive"}
_log = logging.getLogger(__name__)
_inside = threading.local()


class Library:
    """What Python asks the library; XLA calls the rest.

    Args:
        path: of the shared library.

    Raises:
        OSError: if it cannot be loaded; oneDNN is not there, say.
        RuntimeError: if oneDNN is of another version, or has nothing for this processor.
    """

    def __init__(self, path: Path) -> None:
        self._handle = ctypes.CDLL(str(path))
        version = self._handle.headrace_native_version()
        if version < 0:
            raise RuntimeError(
                f"oneDNN is of another version than the one it was built with; {_BUILDS} again"
            )
        if version == 0:
            raise RuntimeError("the processor has no AVX2")
        self.onednn = divmod(version, 1000)
        capsule: Any = jax.ffi.pycapsule
        for name, symbol in _OPERATIONS.items():
            handler = capsule(getattr(self._handle, symbol))
            jax.ffi.register_ffi_target(name, handler, platform="cpu")

    def is_fast(self, operation: str, numbers: tuple[int, ...], threads: int) -> bool:
        """Whether oneDNN has more than loops of reference for a case, on this processor.

        It compiles the case to know, and keeps it for the call.

        Args:
            operation: `CONVOLUTION`, `PRODUCT` or `POOL`.
            numbers: as `operations.h` describes them, exactly so many.
            threads: how many are to work; the library divides the work when it compiles.
        """
        given = (ctypes.c_int64 * len(numbers))(*numbers)
        number = ctypes.c_int64(list(_OPERATIONS).index(operation))
        return bool(self._handle.headrace_native_is_fast(number, given, threads))

    def prepared(self) -> int:
        """How many cases are kept compiled."""
        count = self._handle.headrace_native_count_of_prepared
        count.restype = ctypes.c_int64
        return int(count())


def library() -> Library | None:
    """The library, or None: it is not there, does not fit, or is not to be used here."""
    return None if getattr(_inside, "portable", 0) else _loaded(flags.native)


@contextlib.contextmanager
def portable() -> Iterator[None]:
    """What this thread traces within it has no part of the library.

    Other machines are to run it, or JAX is to differentiate it.
    """
    _inside.portable = getattr(_inside, "portable", 0) + 1
    try:
        yield
    finally:
        _inside.portable -= 1


def built_file(folder: Path) -> Path:
    """Where the library for these sources, this JAX and this kind of machine lies."""
    text = hashlib.sha256()
    for name in (*SOURCES, *HEADERS):
        text.update((HERE / name).read_bytes())
    text.update(f"{jaxlib.version.__version__} {platform.machine()}".encode())
    return folder / f"headrace-native-{text.hexdigest()[:16]}.so"


def checksum_file(built: Path) -> Path:
    """Beside the library: what it is held against before it is loaded."""
    return built.with_suffix(".sha256")


@functools.cache
def _loaded(setting: str) -> Library | None:
    """The library of a folder; why there is none is said once."""
    if not setting:
        return None
    try:
        folder = named_folder(setting)
        built = built_file(folder)
        if not built.exists():
            raise FileNotFoundError(f"there is no {built}; {_BUILDS}")
        check_private(folder, _SETTING)
        found = hashlib.sha256(built.read_bytes()).hexdigest()
        if checksum_file(built).read_bytes() != found.encode():
            raise OSError(f"{built} is damaged; {_BUILDS} again")
        with environment_defaults(_WHILE_LOADING):
            return Library(built)
    except (OSError, RuntimeError) as error:
        _log.info("All runs on XLA alone: %s", error)
        return None

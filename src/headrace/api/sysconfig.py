"""``tf.sysconfig``: Headrace has no C++ interface, so there is nothing to compile against."""

from __future__ import annotations

from typing import NoReturn

__all__ = [
    "CXX11_ABI_FLAG",
    "MONOLITHIC_BUILD",
    "get_compile_flags",
    "get_include",
    "get_lib",
    "get_link_flags",
]

CXX11_ABI_FLAG = 0
MONOLITHIC_BUILD = 0


def _no_library(what: str) -> NoReturn:
    raise NotImplementedError(
        f"There are no {what}: Headrace has no C++ interface. Its kernels are JAX functions; "
        "define operations in Python with headrace.ops.core.registry.define_op, or call tf.py_func."
    )


def get_include() -> str:
    """Where TensorFlow has its header files.

    Raises:
        NotImplementedError: always.
    """
    _no_library("header files")


def get_lib() -> str:
    """Where TensorFlow has its libraries.

    Raises:
        NotImplementedError: always.
    """
    _no_library("libraries")


def get_compile_flags() -> list[str]:
    """The flags that kernels for TensorFlow are compiled with.

    Raises:
        NotImplementedError: always.
    """
    _no_library("compile flags")


def get_link_flags() -> list[str]:
    """The flags that kernels for TensorFlow are linked with.

    Raises:
        NotImplementedError: always.
    """
    _no_library("link flags")

"""`headrace run`: a program that imports TensorFlow runs on Headrace."""

from __future__ import annotations

import importlib
import os
import re
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn

import click

__all__ = ["run_program"]

#: What a SyntaxError says of Python 2's grammar.
_PYTHON_2_SYNTAX = (
    "Missing parentheses in call to",
    "multiple exception types must be parenthesized",
    "leading zeros in decimal integer literals",
    "inconsistent use of tabs",
)
_PYTHON_2_LINE = re.compile(
    r"^\s*(print\s+[\"'\w%]|print\s*>>|exec\s+[\"'\w]|raise\s+\w+\s*,|except\s+[\w.]+\s*,)"
    r"|<>|\bur[\"']|`|\b0[0-7]+\b|\b\d+[lL]\b"
)
#: Names, modules and methods that only Python 2 has.
_PYTHON_2_NAMES = frozenset(
    [
        "basestring",
        "cmp",
        "execfile",
        "file",
        "long",
        "raw_input",
        "reduce",
        "reload",
        "unichr",
        "unicode",
        "xrange",
    ]
)
_PYTHON_2_MODULES = frozenset(
    [
        "BaseHTTPServer",
        "ConfigParser",
        "Cookie",
        "HTMLParser",
        "Queue",
        "SocketServer",
        "StringIO",
        "Tkinter",
        "__builtin__",
        "anydbm",
        "cPickle",
        "cStringIO",
        "commands",
        "cookielib",
        "copy_reg",
        "dummy_thread",
        "httplib",
        "md5",
        "sets",
        "sha",
        "thread",
        "urllib2",
        "urlparse",
        "xmlrpclib",
    ]
)
_PYTHON_2_ATTRIBUTE = re.compile(
    r"'dict' object has no attribute '(has_key|iteritems|iterkeys|itervalues|viewitems)'"
    r"|module 'urllib' has no attribute '(urlopen|urlretrieve|quote|unquote|urlencode)'"
    r"|module 'string' has no attribute '(join|letters|lowercase|uppercase|maketrans|replace)'"
    r"|module 'itertools' has no attribute '(izip|imap|ifilter|izip_longest)'"
    r"|module 'sys' has no attribute '(maxint|setdefaultencoding)'"
    r"|module 'os' has no attribute 'getcwdu'"
    r"|'str' object has no attribute 'decode'"
    r"|'(dict_keys|dict_items|dict_values|map|filter|zip|range)' object has no attribute '\w+'"
    r"|'[\w.]+' object has no attribute 'next'"
)
#: What was a list in Python 2 and is none now.
_PYTHON_2_TYPE = re.compile(
    r"'(dict_keys|dict_items|dict_values|map|filter|zip)' object is not subscriptable"
    r"|object of type '(map|filter|zip)' has no len\(\)"
    r"|'range' object does not support item (assignment|deletion)"
)


def run_program(program: str, arguments: Sequence[str], as_module: bool) -> NoReturn:
    """Run a program as ``python program arguments`` would, with Headrace as ``tensorflow``.

    Args:
        program: a file, a folder or zip archive with a ``__main__.py``, or (with ``as_module``) the
            name of a module.
        arguments: its ``sys.argv[1:]``.

    Raises:
        click.ClickException: if there is no such program.
        SystemExit: always, with the program's exit status.
    """
    if not as_module and not Path(program).exists():
        raise click.ClickException(f"There is no file {program!r}.")
    sys.argv = [program, *arguments]
    _set_first_path(os.getcwd() if as_module else str(Path(program).resolve().parent))
    _serve_children()
    importlib.import_module("headrace.compat.older").restore()
    importlib.import_module("headrace.compat.tensorflow")
    try:
        if as_module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
    except SystemExit:
        raise
    except BaseException as error:
        _report(error, program)
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)
    sys.exit(0)


def _set_first_path(folder: str) -> None:
    """``sys.path[0]`` is the program's folder, in the place of that of the command."""
    if not sys.flags.safe_path:
        sys.path[:1] = [folder]


def _serve_children() -> None:
    """Python processes that the program starts import Headrace as ``tensorflow`` too."""
    site = str(Path(__file__).resolve().parents[1] / "compat" / "site")
    paths = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and p != site]
    os.environ["PYTHONPATH"] = os.pathsep.join([site, *paths])


def _report(error: BaseException, program: str) -> None:
    """Print the traceback from the program's first line on, and what Python 2 would explain."""
    sys.stdout.flush()
    shown = _without_runner(error.__traceback__)
    if sys.excepthook is sys.__excepthook__:
        traceback.print_exception(type(error), error, shown)
    else:
        sys.excepthook(type(error), error, shown)
    sign = python_2_sign(error)
    if sign:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        print(
            f"headrace: this looks like a program for Python 2 ({sign}). Headrace runs programs "
            f"for Python 3 (this is {version}): convert {program} first, for example with "
            "`futurize` or `2to3`.",
            file=sys.stderr,
        )


def _without_runner(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this module and of runpy above the program's."""
    inside = trace
    while inside is not None and (
        inside.tb_frame.f_code.co_filename in (__file__, runpy.__file__)
        or inside.tb_frame.f_code.co_filename == "<frozen runpy>"
    ):
        inside = inside.tb_next
    return inside


def python_2_sign(error: BaseException) -> str:
    """What in ``error`` says that the program was written for Python 2, or ""."""
    if isinstance(error, SyntaxError):
        message, line = error.msg or "", error.text or ""
        if message.startswith(_PYTHON_2_SYNTAX) or _PYTHON_2_LINE.search(line):
            return f"line {error.lineno}: {line.strip()}"
    elif isinstance(error, NameError):
        if error.name in _PYTHON_2_NAMES:
            return f"{error.name} is a built-in of Python 2"
    elif isinstance(error, ModuleNotFoundError):
        if error.name in _PYTHON_2_MODULES:
            return f"{error.name} is a module of Python 2"
    elif isinstance(error, (AttributeError, TypeError)):
        of_lists = isinstance(error, TypeError)
        found = (_PYTHON_2_TYPE if of_lists else _PYTHON_2_ATTRIBUTE).search(str(error))
        return found.group(0) if found else ""
    return ""

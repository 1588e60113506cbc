"""What says that a program was written for Python 2."""

from __future__ import annotations

import re

from headrace.compat.older_python import MODULES, NAMES

__all__ = ["python_2_sign"]

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
#: Names and modules that only Python 2 has: what files are given, and what has no likeness.
_PYTHON_2_NAMES = NAMES.keys() | {"execfile", "file"}
_PYTHON_2_MODULES = MODULES.keys() | {
    "BaseHTTPServer",
    "anydbm",
    "dummy_thread",
    "md5",
    "sets",
    "sha",
}
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

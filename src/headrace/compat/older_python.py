"""What Python 2 had, for program files that use it.

A file is read before it runs. What it uses and does not itself provide for (`xrange`,
``d.iteritems()``, ``import cPickle``) is there for it; a file that asks first (``try: unicode``
with ``except NameError``) gets the answer of today's Python, and so do libraries. Syntax of Python
2 is not translated. Only `headrace run` calls this.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import itertools
import string
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from headrace.compat.older_numpy import set_method

__all__ = ["MODULES", "NAMES", "help_files_below", "names_for"]

#: Built-in names.
NAMES: dict[str, Any] = {
    "basestring": (str, bytes),
    "cmp": lambda a, b: (a > b) - (a < b),
    "long": int,
    "raw_input": input,
    "reduce": functools.reduce,
    "reload": importlib.reload,
    "unichr": chr,
    "unicode": str,
    "xrange": range,
}
#: Modules that have another name now, and the same contents as far as programs use them.
MODULES = {
    "ConfigParser": "configparser",
    "Cookie": "http.cookies",
    "HTMLParser": "html.parser",
    "Queue": "queue",
    "SocketServer": "socketserver",
    "StringIO": "io",
    "Tkinter": "tkinter",
    "__builtin__": "builtins",
    "cPickle": "pickle",
    "cStringIO": "io",
    "commands": "subprocess",
    "cookielib": "http.cookiejar",
    "copy_reg": "copyreg",
    "httplib": "http.client",
    "thread": "_thread",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
    "xmlrpclib": "xmlrpc.client",
}
#: Attributes of modules, by module: what they are called now.
_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "itertools": {
        "ifilter": filter,
        "imap": map,
        "izip": zip,
        "izip_longest": itertools.zip_longest,
    },
    "os": {"getcwdu": "os.getcwd"},
    "string": {
        "join": lambda words, sep=" ": sep.join(words),
        "letters": string.ascii_letters,
        "lowercase": string.ascii_lowercase,
        "maketrans": str.maketrans,
        "uppercase": string.ascii_uppercase,
    },
    "sys": {"maxint": sys.maxsize, "setdefaultencoding": lambda name: None},
    "urllib": {
        "quote": "urllib.parse.quote",
        "unquote": "urllib.parse.unquote",
        "urlencode": "urllib.parse.urlencode",
        "urlopen": "urllib.request.urlopen",
        "urlretrieve": "urllib.request.urlretrieve",
    },
}
_DICT_METHODS: dict[str, Callable[..., Any]] = {
    "has_key": lambda self, key: key in self,
    "iteritems": lambda self: iter(self.items()),
    "iterkeys": lambda self: iter(self.keys()),
    "itervalues": lambda self: iter(self.values()),
}
#: Packages that lie below a program's folder and are not the program's.
_FOLDERS_OF_OTHERS = ("site-packages", "dist-packages")


def help_files_below(folder: str | Path) -> None:
    """Give the modules of a program, those in ``folder`` and below, what they use of Python 2."""
    sys.meta_path.insert(0, _ProgramFinder(Path(folder).resolve()))


def names_for(source: str | bytes | None) -> dict[str, Any]:
    """The built-in names of Python 2 that a file needs, by name.

    Its modules, and attributes of modules and dictionaries, are put where it will look for them.
    A file that cannot be parsed needs nothing: compiling it will say why.
    """
    try:
        tree = ast.parse(source or "")
    except (SyntaxError, ValueError):
        return {}
    uses = _Uses(tree)
    for module in uses.modules & MODULES.keys():
        try:
            sys.modules.setdefault(module, importlib.import_module(MODULES[module]))
        except ImportError:  # a Python without Tk, say: the program's own import says so
            continue
    for module, name in uses.attributes:
        _provide_attribute(module, name)
    for name in uses.methods & _DICT_METHODS.keys():
        if not hasattr(dict, name):
            set_method(dict, name, _DICT_METHODS[name])
    return {name: NAMES[name] for name in uses.names & NAMES.keys() if not hasattr(builtins, name)}


def _provide_attribute(module_name: str, name: str) -> None:
    value = _ATTRIBUTES.get(module_name, {}).get(name)
    module = importlib.import_module(module_name) if value is not None else None
    if module is None or hasattr(module, name):
        return
    if isinstance(value, str) and "." in value:
        home, _, attribute = value.rpartition(".")
        value = getattr(importlib.import_module(home), attribute)
    setattr(module, name, value)


class _Uses(ast.NodeVisitor):
    """What a file uses and neither binds nor asks for.

    Attributes:
        names: that it reads and nowhere binds.
        modules: that it imports outside of ``try``.
        attributes: pairs of a module that it imports and a name that it reads of it.
        methods: names of attributes that it reads of anything, and nowhere asks for.
    """

    def __init__(self, tree: ast.AST) -> None:
        self.names: set[str] = set()
        self.modules: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.methods: set[str] = set()
        self._bound: set[str] = set()
        self._asked: set[str] = set()
        self._caught: list[frozenset[str]] = []
        self.visit(tree)
        self.names -= self._bound | self._asked
        self.methods -= self._asked

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._bound.add(node.id)
        elif self._catches("NameError"):
            self._asked.add(node.id)
        else:
            self.names.add(node.id)

    def visit_arg(self, node: ast.arg) -> None:
        self._bound.add(node.arg)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        self._bound.add(node.name)
        self.generic_visit(node)

    visit_ClassDef = visit_FunctionDef

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._bound.add((alias.asname or alias.name).partition(".")[0])
            if not self._catches("ImportError"):
                self.modules.add(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self._bound.update(alias.asname or alias.name for alias in node.names)
        if node.module and not node.level and not self._catches("ImportError"):
            self.modules.add(node.module)
            self.attributes.update((node.module, alias.name) for alias in node.names)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not self._catches("AttributeError"):
            self.methods.add(node.attr)
            if isinstance(node.value, ast.Name):
                self.attributes.add((node.value.id, node.attr))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """``hasattr(d, "iteritems")`` asks."""
        if isinstance(node.value, str):
            self._asked.add(node.value)

    def visit_Try(self, node: ast.Try) -> None:
        self._caught.append(frozenset(itertools.chain(*map(_caught_by, node.handlers))))
        for statement in node.body:
            self.visit(statement)
        self._caught.pop()
        for part in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(part)

    def _catches(self, error: str) -> bool:
        also = ("Exception", "ModuleNotFoundError") if error == "ImportError" else ("Exception",)
        return any(caught & {error, *also} for caught in self._caught)


def _caught_by(handler: ast.ExceptHandler) -> Iterator[str]:
    if handler.type is None:
        yield "Exception"
        return
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    for kind in types:
        if isinstance(kind, ast.Name):
            yield kind.id


class _ProgramFinder(MetaPathFinder):
    """Finds the source files of the program, as Python does, and reads them before they run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or not self._owns(spec.origin):
            return None
        spec.loader = _ProgramLoader(spec.loader.name, spec.loader.path)
        return spec

    def _owns(self, origin: str | None) -> bool:
        path = Path(origin or "").resolve()
        return path.is_relative_to(self._folder) and not any(
            folder in path.relative_to(self._folder).parts for folder in _FOLDERS_OF_OTHERS
        )


class _ProgramLoader(SourceFileLoader):
    """Loads a source file of the program with the names of Python 2 that it needs."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        # Not in `exec_module`, which would be a line of each traceback through an import.
        module = ModuleType(spec.name)
        vars(module).update(names_for(self.get_data(self.path)))
        return module

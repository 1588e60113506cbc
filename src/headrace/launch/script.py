"""A look at a script before it is started: is it there, and does it know of clusters?"""

from __future__ import annotations

import ast
import importlib.util
import stat
from pathlib import Path

__all__ = ["cluster_sign", "is_plain", "knows_clusters", "source_of"]

#: It distributes itself, by servers and without waiting: in other modes, and without servers, it is
#: a plain one.
_ESTIMATORS = "train_and_evaluate"
#: Names of what makes a process a task of a cluster; plain programs have none of them.
_SIGNS = frozenset(
    {
        "ClusterSpec",
        "CollectiveAllReduceStrategy",
        "MultiWorkerMirroredStrategy",
        "ParameterServerStrategy",
        "TF_CONFIG",
        "TFConfigClusterResolver",
        "read_tf_config",
        _ESTIMATORS,
    }
)


def source_of(script: str, as_module: bool) -> Path | None:
    """The file of a script, if there is one with text.

    Raises:
        FileNotFoundError: if there is no such script, or nothing that several tasks can run.
    """
    if as_module:
        try:
            spec = importlib.util.find_spec(script)
        except (ImportError, ValueError):
            spec = None
        if spec is None:
            raise FileNotFoundError(f"There is no module {script!r} here or on the path.")
        found = Path(spec.origin) if spec.origin else None
        return found if found and found.suffix == ".py" else None
    path = Path(script)
    try:
        kind = path.stat().st_mode
        is_program = stat.S_ISREG(kind) or (path / "__main__.py").is_file()
    except (OSError, ValueError) as error:
        why = "" if isinstance(error, FileNotFoundError) else f": {_reason(error)}"
        raise FileNotFoundError(f"There is no file {_shown(script)}{why}.") from None
    if stat.S_ISDIR(kind) and not is_program:
        raise FileNotFoundError(f"The folder {_shown(script)} has no __main__.py to run.")
    if not is_program:
        # Only one task could read a pipe, and a device may have no end.
        raise FileNotFoundError(
            f"{_shown(script)} is no file: each task reads the script for itself, so it cannot "
            "come from a pipe or a device."
        )
    return path / "__main__.py" if stat.S_ISDIR(kind) else path


def _reason(error: OSError | ValueError) -> str:
    return str(getattr(error, "strerror", None) or error)


def _shown(script: str) -> str:
    return repr(script) if len(script) <= 200 else f"{script[:200]!r}..."


def is_plain(script: str, as_module: bool, mode: str | None = None) -> bool | None:
    """Whether a script knows nothing of clusters; None if there is no such script here.

    Args:
        mode: see `cluster_sign`.

    >>> is_plain("no such file.py", as_module=False) is None
    True
    """
    try:
        return not knows_clusters(source_of(script, as_module), mode)
    except FileNotFoundError:
        return None


def knows_clusters(file: Path | None, mode: str | None = None) -> bool:
    """Whether a program deals with its cluster itself; see `cluster_sign`."""
    return cluster_sign(file, mode) is not None


def cluster_sign(file: Path | None, mode: str | None = None) -> str | None:
    """By which a program, or a module beside it that it imports, deals with its cluster itself.

    What cannot be read is taken for one that does: it is run by every task then.

    Args:
        mode: that of training. Estimators that are trained and evaluated can be spread in those
            that join gradients.

    Returns:
        That it names something that clusters are made of, with its line; None if it does not.
    """
    if file is None:
        return "cannot be read"
    signs = _SIGNS - {_ESTIMATORS} if mode in ("sync", "all-reduce") else _SIGNS
    seen: set[Path] = set()
    queue = [file]
    while queue:
        path = queue.pop()
        if path in seen:
            continue
        seen.add(path)
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return f"cannot be read ({path})"
        for node in ast.walk(tree):
            if named := sorted(_names(node) & signs):
                return f"names {named[0]} ({path}, line {getattr(node, 'lineno', 1)})"
            queue += _beside(node, file.parent)
    return None


def _names(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Attribute):
        return {node.attr}
    if isinstance(node, ast.alias):
        return {node.name.rpartition(".")[2]}
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value}
    return set()


def _beside(node: ast.AST, folder: Path) -> list[Path]:
    """The files that an import finds in the folder of the program."""
    modules = []
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
        modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    found = []
    for module in modules:
        path = folder.joinpath(*module.split("."))
        found += [p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()]
    return found

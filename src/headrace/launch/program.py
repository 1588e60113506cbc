"""A program that imports TensorFlow runs on Headrace: `headrace run`, and what tasks do."""

from __future__ import annotations

import importlib
import importlib.util
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

from headrace import logging
from headrace.data_parallel.mode import ParallelMode
from headrace.data_parallel.start import end
from headrace.launch.python_2 import python_2_sign
from headrace.launch.script import is_plain
from headrace.ops.state import share
from headrace.settings import flags

__all__ = ["run_program"]


def run_program(
    program: str, arguments: Sequence[str], as_module: bool, plain: bool | None = None
) -> NoReturn:
    """Run a program as ``python program arguments`` would, with Headrace as ``tensorflow``.

    Args:
        program: a file, a folder or zip archive with a ``__main__.py``, or (with ``as_module``) the
            name of a module.
        arguments: its ``sys.argv[1:]``.
        plain: whether it knows nothing of clusters; None looks. A worker is alone again for one
            that distributes itself.

    Raises:
        click.ClickException: if there is no such program.
        SystemExit: always, with the program's exit status.
    """
    if not as_module and not os.path.exists(program):
        raise click.ClickException(f"There is no file {program!r}.")
    if not as_module and os.path.isdir(program) and not (Path(program) / "__main__.py").is_file():
        raise click.ClickException(f"The folder {program!r} has no __main__.py to run.")
    # As with `python -m`, the packages around a module do not know its file yet.
    sys.argv = ["-m" if as_module else program, *arguments]
    folder = os.getcwd() if as_module else str(Path(program).resolve().parent)
    _set_first_path(folder)
    _serve_children()
    _leave_alone(program, as_module, plain)
    importlib.import_module("headrace.compat.older").restore()
    importlib.import_module("headrace.compat.tensorflow")
    older_python = importlib.import_module("headrace.compat.older_python")
    older_python.help_files_below(folder)
    try:
        if as_module:
            names = older_python.names_for(_module_source(program))
            runpy.run_module(program, names, run_name="__main__", alter_sys=True)
        else:
            names = older_python.names_for(_file_source(Path(program)))
            runpy.run_path(program, names, run_name="__main__")
    except (SystemExit, click.ClickException):
        raise
    except BaseException as error:
        if _only_served(error):
            # In TensorFlow `join()` never returned, so programs of the time go on as workers.
            print(f"headrace: {program} has served until its server was stopped", file=sys.stderr)
            sys.exit(0)
        _report(error, program)
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)
    sys.exit(0)


def _leave_alone(program: str, as_module: bool, plain: bool | None) -> None:
    """Spread no program over workers that deals with its cluster itself; it is told so."""
    is_worker = share.current() is not None
    if plain is None and is_worker:
        plain = is_plain(program, as_module, ParallelMode.parse(flags.data_parallel).kind)
    if plain is not False:
        return
    logging.info(
        "The script names what clusters are made of (ClusterSpec, TF_CONFIG, train_and_evaluate "
        "...), so it distributes itself: it is run as it is."
    )
    if is_worker:
        end()


def _only_served(error: BaseException) -> bool:
    """Whether a program has gone on behind ``server.join()``, and then missed the server."""
    server = sys.modules.get("headrace.distributed.services.server")
    told = re.search(r"The server of this process at (\S+) was stopped", str(error))
    return server is not None and told is not None and bool(server.was_stopped(told[1]))


def _file_source(program: Path) -> bytes | None:
    """The text of a program; None for an archive."""
    file = program / "__main__.py" if program.is_dir() else program
    return file.read_bytes() if file.suffix == ".py" and file.exists() else None


def _module_source(name: str) -> str | None:
    """The text of a module that is to be run; its packages are imported.

    Raises:
        click.ClickException: if there is no such module.
    """
    try:
        # What begins with a dot would be relative to a package.
        spec = None if name.startswith(".") else importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
            if spec is None:
                raise click.ClickException(
                    f"{name!r} is a package, and has no module __main__ to run."
                )
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # a module of the program imports something that is not there
        spec = None
    if spec is None:
        raise click.ClickException(f"There is no module {name!r} in {os.getcwd()} or on the path.")
    get_source = getattr(spec.loader, "get_source", None)
    return get_source(spec.name) if get_source is not None else None


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
    package = hidden_package(error, Path(program))
    if package is not None:
        print(
            f"headrace: {program} hides the package {package.name!r} that it lies in. Run it as "
            f"a module, from the folder above: cd {package.parent} && headrace run "
            f"-m {package.name}.{Path(program).stem}",
            file=sys.stderr,
        )


def hidden_package(error: BaseException, program: Path) -> Path | None:
    """The package whose module ``program`` is, if ``error`` comes from taking one for the other.

    A file that is run stands first on the path, with its folder. Where it has the name of its
    package, or the package's modules have each other's, ``import`` finds the file.
    """
    folder = program.resolve().parent
    name = getattr(error, "name", None)
    if not isinstance(error, ImportError) or not (folder / "__init__.py").exists():
        return None
    return folder if str(name).partition(".")[0] == folder.name else None


def _without_runner(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of this module and of runpy above the program's."""
    inside = trace
    while inside is not None and (
        inside.tb_frame.f_code.co_filename in (__file__, runpy.__file__)
        or inside.tb_frame.f_code.co_filename == "<frozen runpy>"
    ):
        inside = inside.tb_next
    return inside

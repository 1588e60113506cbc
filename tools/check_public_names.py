"""Check that a type checker sees every public name, and every import of a namespace.

    python tools/check_public_names.py [pyright | mypy]

Writes a program that imports every public namespace and names every public name of it, and runs
the checker on that. Names of the interface are what ``dir`` shows, from ``tf`` on downwards.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import headrace as tf
from headrace.namespaces.missing import Namespace

ROOT = Path(__file__).resolve().parents[1]


def public_names(
    path: str = "tf", space: ModuleType = tf, seen: set[ModuleType] | None = None
) -> Iterator[tuple[str, str, object]]:
    """Each public name: the path and name by which a program reaches it, and its value.

    A namespace is gone through where it is met first; other modules are values.
    """
    seen = set() if seen is None else seen
    seen.add(space)
    for name in dir(space):
        if name.startswith("_"):
            continue
        value = getattr(space, name)
        yield path, name, value
        if isinstance(value, Namespace) and value not in seen:
            yield from public_names(f"{path}.{name}", value, seen)


def program() -> str:
    """The program that names them all."""
    names = list(public_names())
    spaces = {value.__name__ for _, _, value in names if isinstance(value, Namespace)}
    spaces.discard("headrace")
    lines = ["import headrace as tf"]
    for number, space in enumerate(sorted(spaces)):
        parent, _, name = space.rpartition(".")
        lines.append(f"import {space}")
        lines.append(f"import {space} as space_{number}")
        lines.append(f"from {parent} import {name} as name_{number}")
        lines.append(f"print({space}, space_{number}, name_{number})")
    for number, (path, name, _) in enumerate(names):
        lines.append(f"value_{number} = {path}.{name}")
    return "\n".join(lines) + "\n"


def complaints(checker: str, source: str) -> list[str]:
    """What a checker (``pyright``, ``mypy``) says of a program, each with the line it means."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(source, encoding="utf-8")
        found = (_pyright if checker == "pyright" else _mypy)(path)
    lines = source.splitlines()
    return [f"{lines[line - 1]}: {text}" for line, text in found]


def _pyright(path: Path) -> list[tuple[int, str]]:
    rules = {
        "extraPaths": [str(ROOT / "src")],
        "include": [str(path)],
        "reportUnknownMemberType": "error",
        "reportUnknownVariableType": "error",
        "typeCheckingMode": "standard",
    }
    config = path.with_name("pyrightconfig.json")
    config.write_text(json.dumps(rules), encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--outputjson"]
    command += ["--pythonpath", sys.executable, "-p", str(config)]
    done = subprocess.run(command, capture_output=True, text=True)
    report = json.loads(done.stdout)
    if not report["summary"]["filesAnalyzed"]:
        raise RuntimeError(f"basedpyright has read nothing: {done.stdout}{done.stderr}")
    return [
        (entry["range"]["start"]["line"] + 1, entry["message"])
        for entry in report["generalDiagnostics"]
        if entry["severity"] == "error" and "partially unknown" not in entry["message"]
    ]


def _mypy(path: Path) -> list[tuple[int, str]]:
    command = [sys.executable, "-m", "mypy", "--strict", "--output", "json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode > 1 or done.stderr:
        raise RuntimeError(f"mypy: {done.stdout}{done.stderr}")
    entries = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [(e["line"], e["message"]) for e in entries if e["severity"] == "error"]


def main(arguments: list[str]) -> int:
    """Print what the checker says; returns the status of the process."""
    found = complaints(arguments[0] if arguments else "pyright", program())
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

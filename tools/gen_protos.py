"""Regenerate the ``*_pb2.py`` and ``.pyi`` beside the ``.proto`` files of the package.

    python tools/gen_protos.py            # write the files
    python tools/gen_protos.py --check    # fail if the written files are out of date
    python tools/gen_protos.py --descriptors OUT.pb   # only write a FileDescriptorSet

The generator is pinned: code of protoc 26 is the newest that every protobuf runtime from 5.26 to
7.x imports without a version check (later code refuses or warns about other major versions). It is
installed into a throw-away environment, because the runtime it brings is older than ours.
"""

from __future__ import annotations

import argparse
import filecmp
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

GENERATOR = ("grpcio-tools==1.64.3", "setuptools<81")  # its protoc is version 26.1
SOURCE_ROOT = Path(__file__).resolve().parent.parent / "src"
PROTO_DIRS = (
    SOURCE_ROOT / "headrace" / "graph" / "proto",
    SOURCE_ROOT / "headrace" / "graph" / "proto" / "boosted_trees",
    SOURCE_ROOT / "headrace" / "distributed" / "protocol",
    SOURCE_ROOT / "headrace" / "operations",
)


def make_generator(cache: Path) -> Path:
    """The Python of an environment with the pinned generator, made on first use."""
    python = cache / "bin" / "python"
    if not python.exists():
        venv.create(cache, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *GENERATOR], check=True)
    return python


def protoc(python: Path, *arguments: str) -> None:
    found = [path for folder in PROTO_DIRS for path in sorted(folder.glob("*.proto"))]
    protos = [str(path.relative_to(SOURCE_ROOT)) for path in found]
    command = [python, "-m", "grpc_tools.protoc", f"-I{SOURCE_ROOT}", *arguments, *protos]
    subprocess.run(command, cwd=SOURCE_ROOT, check=True)


def generate(python: Path, out: Path) -> list[Path]:
    """Write the modules and their types below ``out``; returns them, relative to ``out``."""
    protoc(python, f"--python_out={out}", f"--pyi_out={out}")
    written = sorted(path.relative_to(out) for path in out.rglob("*_pb2.py*"))
    for path in written:
        text = (out / path).read_text()
        if path.suffix == ".pyi" and "# mypy: ignore-errors" not in text:
            (out / path).write_text("# mypy: ignore-errors\n" + text)
    return written


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare only; 1 if out of date")
    parser.add_argument("--descriptors", type=Path, help="write a FileDescriptorSet here, only")
    default = Path(tempfile.gettempdir()) / "headrace-proto-generator"
    parser.add_argument("--cache", type=Path, default=default, help="the generator's environment")
    options = parser.parse_args()
    python = make_generator(options.cache)
    if options.descriptors:
        protoc(python, "--include_imports", f"--descriptor_set_out={options.descriptors.resolve()}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        written = generate(python, Path(folder))
        stale = [
            path
            for path in written
            if not (SOURCE_ROOT / path).exists()
            or not filecmp.cmp(Path(folder) / path, SOURCE_ROOT / path, shallow=False)
        ]
        if not options.check:
            for path in stale:
                shutil.copyfile(Path(folder) / path, SOURCE_ROOT / path)
    for path in stale:
        print(f"{'out of date' if options.check else 'wrote'}: {path}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())

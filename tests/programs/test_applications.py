"""The applications of `examples/applications` do on real data what their page says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from example_cases import EXAMPLES, ROOT, measured
from PIL import Image

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

DATA = ROOT / "tests" / "data"
GRADES = ("brick", "grass", "gravel")


def run(folder: Path, program: str, *arguments: str, lines: str = "", status: int = 0) -> str:
    """What one of the commands prints; what it says of errors, where it is to fail."""
    path = str(EXAMPLES / "applications" / f"{program}.py")
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "run", path, *arguments],
        cwd=folder,
        input=lines,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == status, done.stderr[-4000:]
    return done.stderr if status else done.stdout


def test_applications_are_listed_in_their_page():
    page = (EXAMPLES / "README.md").read_text()
    found = sorted((EXAMPLES / "applications").glob("*.py"))
    assert found
    assert [p.name for p in found if f"`applications/{p.name}`" not in page] == []


@pytest.mark.slow
def test_the_sorter_sorts_what_comes_in(tmp_path):
    run(tmp_path, "sorter", "prepare", str(DATA / "surfaces"), "pictures")
    pictures = tmp_path / "pictures"
    counts = [len(list((pictures / "test" / grade).glob("*.jpg"))) for grade in GRADES]
    assert counts == [64, 64, 64]

    printed = run(tmp_path, "sorter", "train", "pictures", "model", "--steps=150")
    assert measured(printed, "accuracy") >= 0.95
    with Image.open(tmp_path / "model" / "confusion.png") as drawn:
        assert min(drawn.size) >= 300
        assert len(drawn.convert("RGB").getcolors(1 << 16)) > 20

    inbox, outbox = tmp_path / "inbox", tmp_path / "outbox"
    inbox.mkdir()
    for grade in GRADES:
        for picture in sorted((pictures / "test" / grade).glob("*.jpg"))[:10]:
            shutil.copy(picture, inbox / f"{grade}_{picture.name}")
    (inbox / "damaged.jpg").write_bytes(b"\xff\xd8 no picture")
    run(tmp_path, "sorter", "sort", "model", "inbox", "outbox")
    assert not list(inbox.iterdir())
    right = sum(len(list((outbox / g).glob(f"{g}_*.jpg"))) for g in GRADES)
    assert right >= 27
    assert (outbox / "damaged" / "damaged.jpg").exists()
    assert sum(path.is_file() for path in outbox.rglob("*")) == 31
    shutil.rmtree(inbox)
    assert "no folder inbox to sort" in run(
        tmp_path, "sorter", "sort", "model", "inbox", "outbox", status=1
    )


def test_the_filter_learns_and_is_corrected(tmp_path):
    printed = run(tmp_path, "message_filter", "train", str(DATA / "sms_spam/messages.tsv.gz"), "m")
    assert measured(printed, "accuracy") >= 0.975
    assert measured(printed, "precision") >= 0.97
    assert measured(printed, "recall") >= 0.8

    lines = "see you at home\nYou have WON a prize! call 09061701461 now to claim\n\n"
    verdicts = [line.split()[0] for line in run_filter(tmp_path, lines)]
    assert verdicts == ["keep", "trash", "keep"]

    run(
        tmp_path, "message_filter", "correct", "m", "trash", lines="buy my new book about gardens\n"
    )
    lines = "buy my new book about gardens\nsee you at home\n"
    assert [line.split()[0] for line in run_filter(tmp_path, lines)] == ["trash", "keep"]


def run_filter(folder: Path, lines: str) -> list[str]:
    return run(folder, "message_filter", "filter", "m", lines=lines).splitlines()


def test_what_the_applications_lack_is_said(tmp_path):
    (tmp_path / "pictures" / "train" / "grass").mkdir(parents=True)
    assert "There is no *.jpg in" in run(tmp_path, "sorter", "train", "pictures", "model", status=1)
    assert "train one first" in run(tmp_path, "sorter", "sort", "model", "in", "out", status=1)
    assert "train one first" in run(tmp_path, "message_filter", "filter", "model", status=1)
    (tmp_path / "messages").write_text("no label\n")
    assert "'no label'" in run(tmp_path, "message_filter", "train", "messages", "m", status=1)

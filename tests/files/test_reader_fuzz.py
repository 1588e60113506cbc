"""Every reader of files meets damaged ones: errors that name the file, no memory, no hang."""

from __future__ import annotations

from pathlib import Path

import pytest
import reader_fuzz

READERS = {reader.name: reader for reader in reader_fuzz.readers()}


@pytest.mark.parametrize("name", sorted(READERS))
def test_whole_files_are_read(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    for file, data in reader.files.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    reader.read(tmp_path)


@pytest.mark.parametrize("name", sorted(READERS))
def test_damaged_files(name: str, tmp_path: Path) -> None:
    found = [reader_fuzz.try_once(READERS[name], tmp_path, seed) for seed in range(3)]
    assert [problem for problem in found if problem] == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(READERS))
def test_many_damaged_files(name: str, tmp_path: Path) -> None:
    found = [reader_fuzz.try_once(READERS[name], tmp_path, seed) for seed in range(3, 1500)]
    assert [problem for problem in found if problem] == []

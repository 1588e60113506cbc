"""Messages in text form: what a backslash may stand before."""

from __future__ import annotations

import pytest
from google.protobuf import text_format

import headrace as tf
from headrace.graph.proto import CheckpointState
from headrace.graph.text_messages import parse_text


def path_of(text: str) -> str:
    return parse_text(text.encode(), CheckpointState()).model_checkpoint_path


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"a\\q", "a\\q"),
        (r"\\\"\'", "\\\"'"),
        (r"\a\b\f\n\r\t\v", "\a\b\f\n\r\t\v"),
        (r"\0\12\101\1011", "\0\nAA1"),
        (r"\x41\xA", "A\n"),
        (r"\u00e9\U0001F600", "é😀"),
        (r"\303\251", "é"),
    ],
)
def test_escapes(written: str, read: str) -> None:
    assert path_of(f'model_checkpoint_path: "{written}"') == read
    assert path_of(f"# a comment's \\q\nmodel_checkpoint_path: '{written}'") == read


@pytest.mark.parametrize("escape", [r"\q", r"\8", r"\400", r"\777", r"\N{DASH}", r"\x", r"\u12"])
def test_what_is_no_escape_is_an_error(escape: str) -> None:
    text = f'# 1\nmodel_checkpoint_path: "ab{escape}"'
    with pytest.raises(text_format.ParseError, match=r"2:27 : Invalid escape sequence '\\\\"):
        path_of(text)


def test_files_with_such_strings_are_damaged(tmp_path) -> None:
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "a\\q"')
    assert tf.train.latest_checkpoint(str(tmp_path)) is None
    (tmp_path / "graph.pbtxt").write_text('node { name: "a\\q" op: "NoOp" }')
    with pytest.raises(tf.errors.DataLossError, match=r"graph\.pbtxt"):
        tf.train.import_meta_graph(str(tmp_path / "graph.pbtxt"))

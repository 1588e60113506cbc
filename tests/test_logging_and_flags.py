"""tf.logging, tf.flags and tf.app; what is global to a process is tried in one of its own."""

from __future__ import annotations

import logging
import subprocess
import sys

import numpy as np
import pytest

import headrace as tf
from headrace import flags
from headrace.ops.core import old_arguments


@pytest.fixture
def records(caplog, monkeypatch):
    """What is logged, at every level."""
    monkeypatch.setattr(tf.logging, "_counts", {})
    caplog.set_level(logging.DEBUG, "tensorflow")
    return lambda: caplog.records


def test_levels_and_arguments(records):
    tf.logging.debug("a %d", 1)
    tf.logging.info("b %s", "x")
    tf.logging.warn("c")
    tf.logging.warning("d")
    tf.logging.error("e")
    tf.logging.fatal("f")
    tf.logging.log(tf.logging.ERROR, "g %d %d", 1, 2)
    tf.logging.vlog(tf.logging.INFO, "h")
    tf.logging.TaskLevelStatusMessage("i")
    tf.logging.log_if(tf.logging.INFO, "j", True)
    tf.logging.log_if(tf.logging.INFO, "k", False)
    assert [(r.levelname, r.getMessage()) for r in records()] == [
        ("DEBUG", "a 1"),
        ("INFO", "b x"),
        ("WARNING", "c"),
        ("WARNING", "d"),
        ("ERROR", "e"),
        ("CRITICAL", "f"),
        ("ERROR", "g 1 2"),
        ("INFO", "h"),
        ("ERROR", "i"),
        ("INFO", "j"),
    ]
    assert {r.filename for r in records()} == {"test_logging_and_flags.py"}
    assert {r.name for r in records()} == {"tensorflow"}
    tf.logging.flush()


def test_counts_are_those_of_the_line(records):
    for i in range(5):
        tf.logging.log_every_n(tf.logging.INFO, "every %d", 2, i)
        tf.logging.log_first_n(tf.logging.INFO, "first %d", 2, i)
    messages = [r.getMessage() for r in records()]
    assert messages == ["every 0", "first 0", "first 1", "every 2", "every 4"]


def test_verbosity_is_that_of_both_loggers():
    before = tf.logging.get_verbosity()
    try:
        tf.logging.set_verbosity(tf.logging.ERROR)
        assert tf.logging.get_verbosity() == logging.ERROR
        assert logging.getLogger("headrace").level == logging.ERROR
        tf.logging.set_verbosity("INFO")
        assert tf.get_logger().level == logging.INFO
    finally:
        tf.logging.set_verbosity(before)


def test_deprecation_is_noted_once(records, monkeypatch):
    monkeypatch.setattr(old_arguments, "_noted", set())
    assert tf.mul is tf.multiply
    assert tf.mul is tf.multiply
    assert tf.train.SummaryWriter is tf.summary.FileWriter
    assert [r.getMessage() for r in records()] == [
        "tf.mul is deprecated; use tf.multiply instead.",
        "tf.train.SummaryWriter is deprecated; use tf.summary.FileWriter instead.",
    ]


_PROGRAM = """
import sys
import headrace as tf
from absl import logging

flags = tf.app.flags
flags.DEFINE_integer("n", 5, "A number.")
flags.DEFINE_boolean(flag_name="on", default_value=False, docstring="A switch.")
flags.DEFINE_string("log_dir", "logs", "Also a flag of absl.")
flags.DEFINE_string("v", "own", "And this.")
flags.DEFINE_enum("kind", "a", ["a", "b"], "One of two.")
flags.DEFINE_list("names", ["x"], "Several.")
FLAGS = flags.FLAGS

def main(argv):
    print(argv[1:], FLAGS.n, FLAGS.on, FLAGS.log_dir, FLAGS.v, FLAGS.kind, FLAGS.names)
    tf.logging.warning("own")
    logging.warning("absl's")
    assert FLAGS.__flags["n"].value == FLAGS.n == FLAGS["n"].value
    assert "n" in FLAGS and "absent" not in FLAGS and "on" in list(FLAGS)
    FLAGS.n = 6
    assert tf.flags.FLAGS.n == 6 and FLAGS.flag_values_dict()["n"] == 6
    del FLAGS.names
    try:
        FLAGS.names
    except AttributeError:
        return 3

tf.app.run(argv=None)
"""


@pytest.fixture
def program(tmp_path):
    def start(*arguments, text=_PROGRAM):
        (tmp_path / "program.py").write_text(text)
        return subprocess.run(
            [sys.executable, "program.py", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=50,
        )

    return start


@pytest.mark.process
def test_flags_of_a_program(program):
    done = program("--n=7", "--on", "file", "--unknown=1", "--log_dir", "x", "--names=a,b")
    assert done.returncode == 3, done.stderr
    assert done.stdout == "['file', '--unknown=1'] 7 True x own a ['a', 'b']\n"
    lines = done.stderr.splitlines()
    assert lines[0].startswith("WARNING:tensorflow:The arguments flag_name, default_value and")
    assert [line for line in lines if "own" in line] == ["WARNING:tensorflow:own"]
    assert sum("absl's" in line for line in lines) == 1


@pytest.mark.process
def test_wrong_values(program):
    text = """
import headrace as tf
tf.flags.DEFINE_integer("n", 5, "A number.")
tf.flags.DEFINE_boolean("on", False, "A switch.")
tf.flags.DEFINE_enum("kind", "a", ["a", "b"], "One of two.")
for argument in ("--n=x", "--on=maybe", "--kind=c"):
    try:
        tf.app.run(lambda argv: None, ["program.py", argument])
    except SystemExit as stop:
        print(stop.code)
"""
    done = program(text=text)
    assert (done.returncode, done.stdout) == (0, "1\n1\n1\n")
    for message in (
        "flag --n=x: invalid literal for int() with base 10: 'x'",
        "flag --on=maybe: ('Non-boolean argument to boolean flag', 'maybe')",
        "flag --kind=c: value should be one of <a|b>",
    ):
        assert f"FATAL Flags parsing error: {message}" in done.stderr


def test_defaults_of_another_type():
    """Releases before 1.5 took any default: programs compute theirs with NumPy."""
    values = flags.FlagValues()
    flags.DEFINE_integer("size", np.power(2, 9), "Of a batch.", flag_values=values)
    flags.DEFINE_integer("steps", 1e3, "In all.", flag_values=values)
    flags.DEFINE_string("gpu", 0, "Its number.", flag_values=values)
    values(["program"])
    assert (values.size, values.steps, values.gpu) == (512, 1000, 0)
    assert type(values.size) is type(values.steps) is int
    values(["program", "--size=4", "--gpu=1"])
    assert (values.size, values.gpu) == (4, "1")
    with pytest.raises(flags.IllegalFlagValueError, match="invalid literal"):
        flags.DEFINE_integer("other", "x", "", flag_values=values)


@pytest.mark.process
def test_flags_are_parsed_when_first_read(program):
    text = """
import headrace as tf
tf.flags.DEFINE_float("rate", None, "A rate.")
tf.flags.mark_flag_as_required("rate")
print(tf.flags.FLAGS.rate)
"""
    assert program("--rate=2", text=text).stdout == "2.0\n"
    done = program(text=text)
    assert done.returncode == 1
    assert "Flag --rate must have a value other than None" in done.stderr


@pytest.mark.process
def test_help_shows_the_flags(program):
    done = program("--help")
    assert done.returncode == 1
    assert "--n: A number." in done.stdout
    assert "--[no]on: A switch." in done.stdout


def test_tf_print_goes_to_the_log(records):
    with tf.Session() as session:
        session.run(tf.print("x", tf.constant([1]), output_stream=tf.logging.info))
        session.run(tf.print("y", output_stream=logging.warning))
    assert [r.getMessage() for r in records()] == ["x [1]", "y"]

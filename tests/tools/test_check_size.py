"""The size limits count what they say they count."""

import importlib.util
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "check_size.py"
spec = importlib.util.spec_from_file_location("check_size", TOOL)
check_size = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_size)


def function(lines, docstring_lines=0):
    docstring = '    """' + "\n" * (docstring_lines - 1) + '"""\n' if docstring_lines else ""
    return "def f():\n" + docstring + "    x = 1\n" * (lines - 1)


def test_long_functions_and_files_are_named(tmp_path, capsys):
    (tmp_path / "long.py").write_text(function(61))
    (tmp_path / "longer.py").write_text("x = 1\n" * 601)
    assert check_size.main([str(tmp_path)]) == 1
    output = capsys.readouterr().out
    assert "long.py:1: f() has 61 lines, more than 60" in output
    assert "longer.py:1: 601 lines, more than 600" in output


def test_limits_docstrings_and_generated_files_pass(tmp_path):
    (tmp_path / "a.py").write_text(function(60, docstring_lines=20))
    (tmp_path / "b.py").write_text("x = 1\n" * 600)
    (tmp_path / "c_pb2.py").write_text("x = 1\n" * 900)
    assert check_size.main([str(tmp_path)]) == 0

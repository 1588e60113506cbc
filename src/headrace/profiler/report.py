"""Profiles as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.profiler.nodes import ProfiledNode, RunStats
from headrace.profiler.options import Options
from headrace.profiler.views import ROOT

_VIEWS = {
    "scope": "ops by the parts of their names",
    "graph": "ops below those that take their outputs",
    "op": "types of ops, with the sums of all ops of a type",
    "code": "lines of the program, with the sums of the ops made there",
}


def count_text(value: float) -> str:
    """A number in a few digits: 49617 is ``49.62k``."""
    for limit, unit in ((1e9, "b"), (1e6, "m"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.2f}{unit}"
    return str(int(value))


def time_text(micros: float) -> str:
    """A time in microseconds with its unit."""
    if micros < 1000:
        return f"{int(micros)}us"
    if micros < 1e6:
        return f"{micros / 1e3:.2f}ms"
    return f"{micros / 1e6:.2f}sec" if micros < 60e6 else f"{micros / 60e6:.2f}min"


def bytes_text(size: float) -> str:
    """A number of bytes with its unit."""
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if size >= limit:
            return f"{size / limit:.2f}{unit}"
    return f"{int(size)}B"


_Text = Callable[[float], str]

#: Columns by what is selected: title, figure, how to write it, unit behind it.
_COLUMNS: dict[str, list[tuple[str, str, _Text, str]]] = {
    "bytes": [("requested bytes", "bytes", bytes_text, "")],
    "peak_bytes": [("peak bytes", "peak_bytes", bytes_text, "")],
    "residual_bytes": [("residual bytes", "residual_bytes", bytes_text, "")],
    "output_bytes": [("output bytes", "output_bytes", bytes_text, "")],
    "micros": [
        ("total execution time", "micros", time_text, ""),
        ("accelerator execution time", "accelerator_micros", time_text, ""),
        ("cpu execution time", "cpu_micros", time_text, ""),
    ],
    "accelerator_micros": [
        ("accelerator execution time", "accelerator_micros", time_text, ""),
    ],
    "cpu_micros": [("cpu execution time", "cpu_micros", time_text, "")],
    "params": [("# parameters", "params", count_text, " params")],
    "float_ops": [("# float_ops", "float_ops", count_text, " flops")],
}


def _columns(options: Options) -> list[tuple[str, str, _Text, str]]:
    chosen: list[tuple[str, str, _Text, str]] = []
    for key in _COLUMNS:
        if key in options["select"]:
            chosen += [c for c in _COLUMNS[key] if c not in chosen]
    return chosen


def _titles(options: Options) -> str:
    titles = [title for title, _, _, _ in _columns(options)]
    for key, title in _EXTRA_TITLES.items():
        if key in options["select"]:
            titles.append(title)
    return " | ".join(["node name", *titles])


_EXTRA_TITLES = {
    "device": "assigned devices",
    "op_types": "op types",
    "occurrence": "op occurrence (run|defined)",
}


def _extras(node: ProfiledNode, stats: RunStats, options: Options) -> list[str]:
    select = options["select"]
    extras = []
    if "device" in select:
        extras.append(",".join(node.devices))
    if "op_types" in select:
        extras.append("|".join(sorted(node.types - {""})))
    if "occurrence" in select:
        extras.append(f"{stats.runs}|{stats.definitions}")
    return extras


def head(view: str, options: Options) -> list[str]:
    """What stands above the lines of a report."""
    lines = ["", "Options:"]
    for key in sorted(options):
        value = options[key]
        text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        lines.append(f"  {key:<28}{text}")
    return [*lines, "", f"Profile ({view}: {_VIEWS[view]})", _titles(options)]


def tree_lines(top: ProfiledNode, options: Options) -> list[str]:
    """One line for each node that is shown, indented by its depth: own figure / total."""
    columns = _columns(options)
    lines = []
    waiting = [(top, 0)]
    while waiting:
        node, depth = waiting.pop()
        cells = []
        for _, figure, text, unit in columns:
            own = text(getattr(node.own, figure)) if node.is_counted else "--"
            cell = f"{own}/{text(getattr(node.total, figure))}{unit}"
            if figure == "params" and node.shape is not None and node.is_counted:
                cell = f"{'x'.join(map(str, node.shape)) or 'scalar'}, {cell}"
            cells.append(cell)
        cells += _extras(node, node.total, options)
        lines.append(f"{'  ' * depth}{node.name} ({', '.join(cells)})")
        waiting += [(child, depth + 1) for child in reversed(node.shown)]
    return lines


def type_lines(entries: Sequence[ProfiledNode], options: Options) -> list[str]:
    """One line for each type: figure (share of it and all that follow, share of it)."""
    columns = _columns(options)
    width = max((len(e.name) for e in entries), default=0)
    lines = []
    for entry in entries:
        cells = []
        for _, figure, text, unit in columns:
            whole = getattr(entries[0].total, figure) or 1
            own, rest = getattr(entry.own, figure), getattr(entry.total, figure)
            share = f"({100 * rest / whole:.2f}%, {100 * own / whole:.2f}%)"
            cells.append(f"{text(own)}{unit} {share}".rjust(28))
        cells += _extras(entry, entry.own, options)
        lines.append(f"{entry.name:<{width}}{', '.join(cells)}")
    return lines or [f"{ROOT} (nothing to show)"]

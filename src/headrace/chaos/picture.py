"""The timeline of a run as a picture: what happened to each task, and how fast training was."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from headrace.chaos.schedule import Cluster, Fault

__all__ = ["timeline"]

_LEFT, _WIDTH, _ROW, _CURVE = 90, 900, 22, 90
_COLOURS = {
    "kill": "#c0392b",
    "restart": "#e67e22",
    "stop": "#8e44ad",
    "cut": "#2c3e50",
    "delay": "#2980b9",
    "slow disk": "#95a5a6",
    "full disk": "#7f6000",
    "clock": "#16a085",
}
_NARROWEST = 3.0


def timeline(
    title: str,
    seconds: float,
    cluster: Cluster,
    faults: Sequence[Fault],
    gaps: Sequence[tuple[float, float]],
    steps: Sequence[float],
) -> str:
    """An SVG document: a row for each task with its faults, and steps a second below.

    Args:
        seconds: how long the run took.
        gaps: times without a step, drawn behind all.
        steps: when the steps of all workers ended.

    >>> text = timeline("a run", 60.0, Cluster(1, 1), [Fault(3.0, "kill", "ps/0", 1.0)], [], [1.0])
    >>> text.startswith("<svg"), "kill ps/0" in text
    (True, True)
    """
    rows = [*cluster.tasks, ""]
    bottom = _ROW * (len(rows) + 2)
    scale = _WIDTH / max(seconds, 1e-9)
    made = [f'<text x="{_LEFT}" y="16" font-weight="bold">{escape(title)}</text>']
    for begin, end in gaps:
        made.append(_box(begin, end, _ROW, bottom + _CURVE, "#f6dddb", scale, "no step"))
    for row, task in enumerate(rows, 1):
        y = row * _ROW
        made.append(f'<text x="4" y="{y + 15}">{escape(task or "disk")}</text>')
        made.append(_line(_LEFT, y + _ROW, _LEFT + _WIDTH, y + _ROW))
    for fault in faults:
        y = (1 + rows.index(fault.task)) * _ROW + 3
        colour = _COLOURS[fault.kind]
        made.append(_box(fault.at, fault.end, y, y + _ROW - 6, colour, scale, str(fault)))
    made += _legend(bottom)
    made += _curve(steps, seconds, bottom, scale)
    height = bottom + _CURVE + _ROW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 10}" '
        f'height="{height}" font-family="sans-serif" font-size="12">\n'
        '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(made) + "\n</svg>\n"
    )


def _box(
    begin: float, end: float, top: float, bottom: float, colour: str, scale: float, text: str
) -> str:
    width = max(_NARROWEST, (end - begin) * scale)
    return (
        f'<rect x="{_LEFT + begin * scale:.1f}" y="{top}" width="{width:.1f}" '
        f'height="{bottom - top}" fill="{colour}"><title>{escape(text)}</title></rect>'
    )


def _line(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" stroke="#dddddd"/>'


def _legend(top: float) -> list[str]:
    found = []
    for i, (kind, colour) in enumerate(_COLOURS.items()):
        x = _LEFT + 110 * i
        found.append(f'<rect x="{x}" y="{top - 14}" width="10" height="10" fill="{colour}"/>')
        found.append(f'<text x="{x + 14}" y="{top - 5}">{kind}</text>')
    return found


def _curve(steps: Sequence[float], seconds: float, top: float, scale: float) -> list[str]:
    """Steps in each second, as a line that fills its height."""
    counts = [0] * (int(seconds) + 1)
    for at in steps:
        if 0 <= at < seconds:
            counts[int(at)] += 1
    most = max(*counts, 1)
    base = top + _CURVE
    points = " ".join(
        f"{_LEFT + (i + 0.5) * scale:.1f},{base - (_CURVE - 8) * n / most:.1f}"
        for i, n in enumerate(counts[:-1] or counts)
    )
    return [
        f'<text x="4" y="{top + 18}">steps/s</text><text x="4" y="{top + 34}">most {most}</text>',
        _line(_LEFT, base, _LEFT + _WIDTH, base),
        f'<polyline points="{points}" fill="none" stroke="#27ae60" stroke-width="1.5"/>',
        f'<text x="{_LEFT}" y="{base + 16}">0 s</text>',
        f'<text x="{_LEFT + _WIDTH}" y="{base + 16}" text-anchor="end">{seconds:.0f} s</text>',
    ]

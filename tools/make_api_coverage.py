"""Write docs/api-coverage.md: what Headrace has of the symbols that programs of the era use.

    python tools/make_api_coverage.py           write the page
    python tools/make_api_coverage.py --check   exit with 1 if the page is out of date
    python tools/make_api_coverage.py --missing list what is not there or does not fit

`api_symbols.tsv` lists the symbols: name, kind, how many of 822 programs and of 630 test files use
it, and its signature. A symbol *works* if it is there and takes the listed parameters under their
names and in their order. `api_overrides.tsv` says by hand what no program can see: symbol, state
(works, differs, absent), note.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import NamedTuple

TOOLS = Path(__file__).resolve().parent
PAGE = TOOLS.parent / "docs" / "api-coverage.md"

_PARAMETER = re.compile(r"(\*{0,2}[A-Za-z_]\w*)(=.*)?", re.DOTALL)

_HEAD = """\
# What Headrace has of TensorFlow's interface

Written by `tools/make_api_coverage.py`; do not edit. The symbols are those that a sample of 822
programs and 630 test files of the 1.x era use; the numbers behind each are how many of them do.

A symbol **works** if it is there and takes the parameters of TensorFlow 1.15 under their names and
in their order. Old names and argument orders of releases 0.x are taken too, with a note in the log.
Programs see these symbols under `import headrace as tf`, and unchanged through `headrace run`.

"""

_RANDOM = """\
## Random numbers

With a seed of the operation (`seed=`), with or without one of the graph, these give TensorFlow's
numbers:

| functions | how exact |
|---|---|
| `random_uniform` (floats and integers), `random_shuffle`, `nn.dropout`, `multinomial`, \
`random.categorical`, `random_uniform_initializer` and initializers of uniform kind | to the last \
bit |
| `random_normal`, `truncated_normal`, initializers of normal kind | to 3 units in the last place: \
98.5 % of the numbers are equal, the C library's logarithm rounds the others differently |
| `random_gamma`, `random_poisson` | equal on all stored cases |

With a seed of the graph only (`tf.set_random_seed`) an operation's second seed is the number of
random operations before it. That is the rule of TensorFlow 2 in graph mode, whose numbers come out
the same; 1.x counted all operations of the graph, so programs that set the graph's seed only repeat
themselves here, but not the runs of 1.x, unless `HEADRACE_GRAPH_SEEDS=operations` is set
([old-programs.md](old-programs.md)).

"""


class Symbol(NamedTuple):
    """A line of api_symbols.tsv."""

    name: str
    kind: str
    programs: int
    tests: int
    signature: str


class Verdict(NamedTuple):
    """What is to be said of a symbol: works, differs, absent; and why."""

    state: str
    note: str


def read_symbols() -> list[Symbol]:
    """The symbols, most used first."""
    rows = (TOOLS / "api_symbols.tsv").read_text().splitlines()[1:]
    fields = (row.split("\t") for row in rows)
    return [Symbol(n, k, int(p or 0), int(t or 0), s) for n, k, p, t, s in fields]


def read_overrides() -> dict[str, Verdict]:
    """What is known by hand."""
    rows = (TOOLS / "api_overrides.tsv").read_text().splitlines()
    found = {}
    for row in rows:
        name, state, note = row.split("\t")
        if state not in ("works", "differs", "absent"):
            raise ValueError(f"{name}: the state is works, differs or absent, not {state!r}.")
        found[name] = Verdict(state, note)
    return found


def listed_parameters(signature: str) -> list[tuple[str, bool]]:
    """The parameters of a signature as API.tsv writes it, each with whether it has a default.

    >>> listed_parameters("(x, strides=(1, 1), field_delim=,, *args, **kwargs)")
    [('x', False), ('strides', True), ('field_delim', True), ('*args', False), ('**kwargs', False)]
    """
    found = []
    for part in signature.strip()[1:-1].split(", "):
        match = _PARAMETER.fullmatch(part)
        if match:
            found.append((match[1], match[2] is not None))
    return found


def mismatch(value: object, signature: str) -> str:
    """How a callable does not take the listed parameters, or ""."""
    try:
        own = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return ""
    kinds = {p.kind for p in own}
    listed = listed_parameters(signature)
    if own and own[0].name in ("self", "cls"):
        own = own[1:]
    if listed and listed[0][0] in ("self", "cls"):
        listed = listed[1:]
    positional = [p for p in own if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_any = inspect.Parameter.VAR_KEYWORD in kinds
    for i, (name, has_default) in enumerate(listed):
        if name.startswith("*"):
            continue
        if i >= len(positional):
            if takes_any or any(p.name == name for p in own):
                continue
            return f"has no parameter {name}"
        if positional[i].name != name:
            if takes_any and inspect.Parameter.VAR_POSITIONAL in kinds:
                continue
            return f"parameter {i + 1} is {positional[i].name}, not {name}"
        if has_default and positional[i].default is inspect.Parameter.empty:
            return f"parameter {name} has no default"
    return ""


def judge(symbol: Symbol, tf: object, overrides: dict[str, Verdict]) -> Verdict:
    """What is to be said of ``symbol``."""
    from headrace.compat.module_table import ROWS
    from headrace.namespaces.missing import is_known, reason

    path = symbol.name.removeprefix("tf.")
    if symbol.name in overrides and overrides[symbol.name].state != "works":
        return overrides[symbol.name]
    note = overrides[symbol.name].note if symbol.name in overrides else ""
    try:
        if path in ROWS[""].names:
            path = ROWS[""].names[path].removeprefix("headrace.")
        value = reduce(getattr, path.split("."), tf)
    except (AttributeError, ImportError, NotImplementedError):
        public = is_known(path) or path.startswith("contrib.")
        return Verdict("absent", reason(path) or ("" if public else "no name of release 1.15"))
    if symbol.signature and symbol.kind in ("function", "method") and callable(value):
        wrong = mismatch(value, symbol.signature)
        if wrong:
            return Verdict("differs", wrong)
    return Verdict("works", note)


def verdicts() -> list[tuple[Symbol, Verdict]]:
    """Every symbol with what is to be said of it."""
    import headrace as tf

    tf.logging.set_verbosity(tf.logging.ERROR)
    overrides = read_overrides()
    symbols = read_symbols()
    unknown = set(overrides) - {s.name for s in symbols}
    if unknown:
        raise ValueError(f"api_overrides.tsv names symbols that are not listed: {sorted(unknown)}")
    return [(symbol, judge(symbol, tf, overrides)) for symbol in symbols]


def _namespace(name: str) -> str:
    parts = name.split(".")
    depth = 3 if parts[1] == "contrib" else 2
    plain = [p for p in parts[:-1] if not p[:1].isupper()]
    return ".".join(plain[:depth])


def page(judged: Sequence[tuple[Symbol, Verdict]]) -> str:
    """The page as text."""
    groups: dict[str, list[tuple[Symbol, Verdict]]] = {}
    for symbol, verdict in judged:
        groups.setdefault(_namespace(symbol.name), []).append((symbol, verdict))
    lines = [_HEAD, "| namespace | works | differs | not there |\n|---|---|---|---|\n"]
    total: Counter[str] = Counter()
    for name in sorted(groups):
        counts = Counter(v.state for _, v in groups[name])
        total += counts
        link = f"[{name}](#{name.replace('.', '')})"
        lines.append(f"| {link} | {counts['works']} | {counts['differs']} | {counts['absent']} |\n")
    lines.append(f"| all | {total['works']} | {total['differs']} | {total['absent']} |\n\n")
    lines.append(_RANDOM)
    for name in sorted(groups):
        lines.append(f"## {name}\n\n| symbol | programs, tests | state |\n|---|---|---|\n")
        for symbol, verdict in groups[name]:
            lines.append(
                f"| `{symbol.name}` | {symbol.programs}, {symbol.tests} | {_text(verdict)} |\n"
            )
        lines.append("\n")
    return "".join(lines).rstrip("\n") + "\n"


def _text(verdict: Verdict) -> str:
    state = {"absent": "not there"}.get(verdict.state, verdict.state)
    return f"{state}: {verdict.note}" if verdict.note else state


def main(argv: Sequence[str]) -> int:
    """Write, check or list."""
    judged = verdicts()
    if "--missing" in argv:
        for symbol, verdict in judged:
            if verdict.state != "works":
                uses = f"{symbol.programs}\t{symbol.tests}"
                print(f"{verdict.state}\t{uses}\t{symbol.name}\t{verdict.note}")
        return 0
    text = page(judged)
    if "--check" in argv:
        current = PAGE.exists() and PAGE.read_text() == text
        if not current:
            print(f"{PAGE.name} is out of date: run tools/make_api_coverage.py", file=sys.stderr)
        return 0 if current else 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

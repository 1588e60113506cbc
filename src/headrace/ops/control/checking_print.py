"""``tf.print``: values written to a stream or file when the graph runs."""

from __future__ import annotations

import itertools
import logging as python_logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from headrace import logging
from headrace.errors import InvalidArgumentError
from headrace.graph import dtypes
from headrace.graph.composite import CompositeTensor
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.checking import element_text
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import EXTERNAL, NotDifferentiable, define_op


def tensor_text(value: Any, edge: int) -> str:
    """An array in rows, the ``edge`` first and last entries of each dimension (all, if -1)."""
    array = np.asarray(value)

    def entry(item: Any) -> str:
        text = element_text(item)
        return f'"{text}"' if isinstance(item, (bytes, str)) else text

    if array.ndim == 0:
        return entry(array[()])

    def rows(part: Any, depth: int) -> str:
        cut = 0 <= 2 * edge < part.shape[0]
        chosen = [*range(edge), *range(part.shape[0] - edge, part.shape[0])] if cut else None
        indices = range(part.shape[0]) if chosen is None else chosen
        texts = [entry(part[i]) if part.ndim == 1 else rows(part[i], depth + 1) for i in indices]
        if cut:
            texts.insert(edge, "...")
        separator = " " if part.ndim == 1 else "\n" * (part.ndim - 1) + " " * (depth + 1)
        return f"[{separator.join(texts)}]"

    return rows(array, 0)


def _string_format(
    context: Any, inputs: list[Any], *, template: Any, placeholder: Any, summarize: int
) -> Any:
    pieces = _text(template).split(_text(placeholder))
    if len(pieces) != len(inputs) + 1:
        raise InvalidArgumentError(
            None,
            context.node.op,
            f"The template has {len(pieces) - 1} placeholders for {len(inputs)} inputs.",
        )
    shown = [tensor_text(v, summarize) for v in inputs]
    text = pieces[0] + "".join(s + p for s, p in zip(shown, pieces[1:], strict=True))
    result = np.empty((), object)
    result[()] = text.encode()
    return result


def _text(value: str | bytes) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value


def _log(level: str) -> Callable[[str], None]:
    return lambda text: getattr(logging.get_logger(), level)(text.rstrip("\n"))


def _print(context: Any, value: Any, *, output_stream: str, end: str) -> Any:
    line: Any = value[()] if isinstance(value, np.ndarray) else value
    text = _text(line) + _text(end)
    if output_stream.startswith("file://"):
        with open(output_stream[len("file://") :], "a", encoding="utf-8") as file:
            file.write(text)
    elif output_stream.startswith("log("):
        _log(output_stream[4:-1])(text)
    elif output_stream in ("stdout", "stderr"):
        stream = sys.stdout if output_stream == "stdout" else sys.stderr
        stream.write(text)
        stream.flush()
    else:
        raise InvalidArgumentError(
            None,
            context.node.op,
            f"Unknown output stream: {output_stream}, should be stdout, stderr, log(info), "
            "log(warning), log(error) or file://<filename>.",
        )
    return ()


define_op(
    "StringFormat(inputs: T) -> output: string",
    attrs='T: list(type), template: string = "%s", placeholder: string = "%s", summarize: int = 3',
    shape=lambda op: [()],
    host=_string_format,
    gradient=NotDifferentiable("its result is text"),
)
define_op(
    "PrintV2(input: string)",
    attrs='output_stream: string = "stderr", end: string = "\\n"',
    shape=lambda op: [],
    host=_print,
    effects=EXTERNAL,
    gradient=NotDifferentiable("it has no outputs"),
)

#: What Python streams and logging functions are called in the op.
_LEVELS = {
    getattr(module, level): f"log({level})"
    for module in (logging, python_logging)
    for level in ("info", "warning", "error")
}


@public("print")
def print_v2(*inputs: Any, **kwargs: Any) -> Operation:
    """An operation that prints its inputs, as Python's ``print`` does.

    Args:
        *inputs: tensors, texts, other Python values, and lists, tuples and dictionaries of them.
        output_stream: ``sys.stderr`` (default), ``sys.stdout``, ``tf.logging.info`` (or
            ``warning``, ``error``), or "file://path".
        summarize: how many entries at each end of a dimension are shown (3; -1: all).
        sep, end: as for Python's ``print``.
        name: of the operation.

    Returns:
        The operation; what it prints of a tensor are its values, nested as its shape says.
        The operation; what it prints of a tensor are its values, nested as its shape says.

    Raises:
        ValueError: for an unknown stream or keyword.
    """
    stream = kwargs.pop("output_stream", sys.stderr)
    name, summarize = kwargs.pop("name", None), kwargs.pop("summarize", 3)
    sep, end = kwargs.pop("sep", " "), kwargs.pop("end", "\n")
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {sorted(kwargs)}")
    pieces: list[Any] = []
    for i, value in enumerate(inputs):
        pieces += [sep] * bool(i) + _pieces(value, True)
    with get_default_graph().name_scope(name or "PrintV2") as scope:
        if len(pieces) == 1 and _is_text(pieces[0]):
            text = pieces[0]  # alone it is printed without quotes
        else:
            text = _formatted(pieces, summarize or 3)
        return raw.PrintV2(text, output_stream=_stream_name(stream), end=end, name=scope)


def _stream_name(stream: Any) -> str:
    if stream is sys.stderr:
        return "stderr"
    if stream is sys.stdout:
        return "stdout"
    if isinstance(stream, str) and stream.startswith("file://"):
        return stream
    known = _LEVELS.get(stream) if callable(stream) else None
    if known is None:
        raise ValueError(
            f"Unsupported output stream {stream!r}: use sys.stdout, sys.stderr, logging.info, "
            "logging.warning, logging.error or 'file://path'."
        )
    return known


def _is_text(piece: Any) -> bool:
    return isinstance(piece, Tensor) and piece.dims == () and piece.dtype is dtypes.string


def _formatted(pieces: list[Any], summarize: int) -> Tensor:
    """Texts and tensors as one text."""
    tensors = [piece for piece in pieces if isinstance(piece, Tensor)]
    for n in itertools.count():
        # Texts may hold the placeholder themselves: then another one stands for tensors.
        placeholder = f"{{{n or ''}}}"
        template = "".join([p if isinstance(p, str) else placeholder for p in pieces])
        if template.count(placeholder) == len(tensors):
            break
    return raw.StringFormat(
        tensors, template=template, placeholder=placeholder, summarize=summarize
    )


def _pieces(value: Any, top: bool) -> list[Any]:
    """The texts and tensors that a value consists of."""
    if isinstance(value, Tensor) or hasattr(value, "_to_tensor"):
        return [convert_to_tensor(value)]
    if isinstance(value, CompositeTensor):
        return value._print_pieces()
    if isinstance(value, Mapping):
        items = [[f"{k!r}: ", *_pieces(v, False)] for k, v in value.items()]
        return ["{", *_listed(items), "}"]
    if isinstance(value, (list, tuple)):
        opening, closing = "[]" if isinstance(value, list) else "()"
        return [opening, *_listed([_pieces(v, False) for v in value]), closing]
    return [str(value) if top else repr(value)]


def _listed(items: list[list[Any]]) -> list[Any]:
    joined: list[Any] = []
    for i, item in enumerate(items):
        joined += [", "] * bool(i) + item
    return joined

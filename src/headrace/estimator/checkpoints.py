"""Checkpoints in a model_dir: whether there are some, and what to say if they do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.errors import InvalidArgumentError, NotFoundError, OpError
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.train.checkpoint_state import latest_checkpoint
from headrace.train.checkpoint_utils import load_checkpoint

__all__ = ["global_step_of", "naming_both_models", "required_checkpoint"]

_MOST_ROWS = 60


def required_checkpoint(model_dir: str) -> str:
    """The latest checkpoint of a directory. Raises ValueError if there is none."""
    path = latest_checkpoint(model_dir)
    if not path:
        raise ValueError(f"Could not find trained model in model_dir: {model_dir}.")
    return path


def global_step_of(model_dir: str) -> int:
    """The global step of the latest checkpoint of a directory; 0 if there is none."""
    path = latest_checkpoint(model_dir)
    if not path:
        return 0
    reader = load_checkpoint(path)
    if not reader.has_tensor(GraphKeys.GLOBAL_STEP):
        return 0
    return int(reader.get_tensor(GraphKeys.GLOBAL_STEP))


@contextmanager
def naming_both_models(path: str | None, model_dir: str) -> Iterator[None]:
    """Let an error of restoring show the names of model and checkpoint side by side.

    Args:
        path: the checkpoint; None for the latest of ``model_dir``.
    """
    graph = get_default_graph()
    try:
        yield
    except (NotFoundError, InvalidArgumentError) as error:
        path = path or latest_checkpoint(model_dir)
        if not path or "Restoring from checkpoint failed" not in error.message:
            raise
        raise _explained(error, graph, path, model_dir) from error


def _explained(
    error: NotFoundError | InvalidArgumentError, graph: Any, path: str, model_dir: str
) -> OpError:
    mine = dict(map(_saved, graph.get_collection(GraphKeys.GLOBAL_VARIABLES)))
    shapes = load_checkpoint(path).get_variable_to_shape_map()
    theirs = {name: _shape(shape) for name, shape in shapes.items()}
    differing = sorted(n for n in mine.keys() | theirs.keys() if mine.get(n) != theirs.get(n))
    rows = [(_row(n, mine), _row(n, theirs)) for n in differing[:_MOST_ROWS]]
    width = max([len(left) for left, _ in rows] + [len("the model_fn")])
    table = [f"    {'the model_fn':{width}}  {'the checkpoint'}"]
    table += [f"    {left:{width}}  {right}" for left, right in rows]
    if len(differing) > _MOST_ROWS:
        table.append(f"    and {len(differing) - _MOST_ROWS} more")
    message = (
        f"The checkpoint {path} is of another model than model_fn builds. Use another model_dir "
        f"than {model_dir}, empty it, or build the model that was saved there. What differs:\n"
        + "\n".join(table)
        + f"\n{error.message}"
    )
    return type(error)(None, None, message)


def _saved(variable: Any) -> tuple[str, str]:
    """The name and the shape of a variable in a checkpoint; of a part those of the whole."""
    info = getattr(variable, "_save_slice_info", None)
    if info is not None:
        return str(info.full_name), _shape(list(info.full_shape))
    shape = variable.get_shape()
    return variable.op.name, _shape(shape.as_list() if shape.rank is not None else None)


def _shape(shape: Any) -> str:
    return "?" if shape is None else str([n if n is not None else "?" for n in shape])


def _row(name: str, shapes: dict[str, str]) -> str:
    return f"{name} {shapes[name]}" if name in shapes else "-"

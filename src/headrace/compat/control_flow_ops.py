"""Control flow by hand: what `control_flow_ops` had below `tf.cond` and `tf.while_loop`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw

__all__ = ["enter", "exit", "loop_cond", "merge", "next_iteration", "switch"]


def switch(
    data: Any, pred: Any, dtype: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """``data`` as the second output if ``pred`` is true, else as the first; the other is dead."""
    found: tuple[Tensor, Tensor] = raw.Switch(
        convert_to_tensor(data, dtype, name="data"), convert_to_tensor(pred, name="pred"), name=name
    )
    return found


def merge(inputs: Sequence[Any], name: str | None = None) -> tuple[Tensor, Tensor]:
    """The one of ``inputs`` that is not dead, and its place among them (int32).

    Raises:
        ValueError: if one is None.
    """
    if any(value is None for value in inputs):
        raise ValueError(f"At least one of the merge inputs is None: {inputs}")
    found: tuple[Tensor, Tensor] = raw.Merge([convert_to_tensor(v) for v in inputs], name=name)
    return found


def enter(
    data: Any,
    frame_name: str,
    is_constant: bool = False,
    parallel_iterations: int = 10,
    use_ref: bool = True,
    use_input_shape: bool = True,
    name: str | None = None,
) -> Tensor:
    """``data`` inside the loop ``frame_name``; in each of its rounds, if ``is_constant``."""
    result: Tensor = raw.Enter(
        convert_to_tensor(data, name="data"),
        frame_name=frame_name,
        is_constant=is_constant,
        parallel_iterations=parallel_iterations,
        name=name,
    )
    return result


def exit(data: Any, name: str | None = None) -> Tensor:
    """``data`` outside of its loop, once that has ended."""
    result: Tensor = raw.Exit(convert_to_tensor(data, name="data"), name=name)
    return result


def next_iteration(data: Any, name: str | None = None) -> Tensor:
    """``data`` in the next round of its loop."""
    result: Tensor = raw.NextIteration(convert_to_tensor(data, name="data"), name=name)
    return result


def loop_cond(input: Any, name: str | None = None) -> Tensor:
    """Whether there is another round of the loop."""
    result: Tensor = raw.LoopCond(convert_to_tensor(input), name=name)
    return result

"""``tf.case`` and ``tf.switch_case``: one of several functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.flow_api import Branch, Value, check_branches, cond, unpack_singleton
from headrace.ops.control.functions import call_op, unify_captures
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.core.public import public


@overload
def case(
    pred_fn_pairs: Sequence[tuple[Any, Callable[[], Value]]] | Mapping[Any, Callable[[], Value]],
    default: Callable[[], Value] | None = None,
    exclusive: bool = False,
    strict: Literal[False] = False,
    name: str = "case",
) -> Tensor: ...
@overload
def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any: ...
@public("case")
def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """The result of the first function whose predicate is true.

    Args:
        pred_fn_pairs: list of ``(boolean scalar, function)``, or a dict of them (then
            ``exclusive`` is meant: a dict has no order that programs should rely on).
        default: runs if no predicate is true; without it that is an error when the graph runs.
        exclusive: fail when the graph runs if more than one predicate is true.

    Raises:
        TypeError: if the pairs are malformed or a function cannot be called.
        ValueError: if there are no pairs.
    """
    pairs = _checked_pairs(pred_fn_pairs)
    if default is not None and not callable(default):
        raise TypeError("default must be callable.")
    graph = get_default_graph()
    with graph.name_scope(name):
        preds = [convert_to_tensor(p) for p, _ in pairs]
        checks = _case_checks(preds, exclusive, default is None)
        with graph.control_dependencies(checks):
            if default is None:
                *pairs, (_, last) = pairs
                preds = preds[:-1]
            else:
                last = default
            chosen: Callable[[], Any] = last
            for pred, (_, function) in reversed(list(zip(preds, pairs, strict=True))):
                chosen = _either(pred, function, chosen, strict)
            if not preds:
                return _only(last, strict)
            return chosen()


def _only(function: Callable[[], Any], strict: bool) -> Any:
    result = function()
    return result if strict else unpack_singleton(result)


def _either(
    pred: Tensor, function: Callable[[], Any], otherwise: Callable[[], Any], strict: bool
) -> Callable[[], Any]:
    return lambda: cond(pred, function, otherwise, strict=strict)


def _checked_pairs(pred_fn_pairs: Any) -> list[tuple[Any, Callable[[], Any]]]:
    if isinstance(pred_fn_pairs, Mapping):
        pairs = list(pred_fn_pairs.items())
        pairs.sort(key=lambda pair: getattr(pair[0], "name", ""))
    elif isinstance(pred_fn_pairs, (list, tuple)):
        pairs = list(pred_fn_pairs)
    else:
        raise TypeError("pred_fn_pairs must be a list, tuple, or dict")
    if not pairs:
        raise ValueError("case(): pred_fn_pairs must not be empty.")
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError("Each entry in pred_fn_pairs must be a 2-tuple")
        pred, function = pair
        if isinstance(pred, Tensor) and pred.dtype is not dtypes.bool:
            raise TypeError(f"pred must be Tensor of type bool: {pred.name}")
        if not callable(function):
            raise TypeError(f"fn for pred {getattr(pred, 'name', pred)} must be callable.")
    return pairs


def _case_checks(preds: list[Tensor], exclusive: bool, complete: bool) -> list[Operation]:
    """Assertions on how many predicates hold."""
    if not (exclusive or complete):
        return []
    stacked = raw.Pack([raw.Reshape(p, constant(np.zeros(0, np.int32))) for p in preds])
    names = ", ".join(p.name for p in preds)
    checks = []
    if complete:
        checks.append(
            raw.Assert(
                raw.Any(stacked, constant(0)),
                [
                    constant(f"None of the conditions evaluated as True: ({names}). Values:"),
                    stacked,
                ],
            )
        )
    if exclusive:
        count = raw.Sum(raw.Cast(stacked, DstT=dtypes.int32), constant(0))
        checks.append(
            raw.Assert(
                raw.LessEqual(count, constant(1)),
                [
                    constant(
                        f"More than one condition evaluated as True but exclusive=True: "
                        f"({names}). Values:"
                    ),
                    stacked,
                ],
            )
        )
    return checks


@overload
def switch_case(
    branch_index: Any,
    branch_fns: Sequence[Callable[[], Value]] | Mapping[int, Callable[[], Value]],
    default: Callable[[], Value] | None = None,
    name: str = "switch_case",
) -> Tensor: ...
@overload
def switch_case(
    branch_index: Any,
    branch_fns: Any,
    default: Callable[[], Any] | None = None,
    name: str = "switch_case",
) -> Any: ...
@public("switch_case")
def switch_case(
    branch_index: Any,
    branch_fns: Any,
    default: Callable[[], Any] | None = None,
    name: str = "switch_case",
) -> Any:
    """The result of the function that the int32 scalar ``branch_index`` chooses.

    Args:
        branch_fns: list of functions, or a dict or list of pairs from index to function.
        default: for all other indices; by default the last function.

    Raises:
        TypeError: if a function cannot be called or indices are no integers.
        ValueError: if indices are not ``0 .. n-1`` or the functions return different types.
    """
    functions = _checked_functions(branch_fns, default)
    graph = get_default_graph()
    with graph.name_scope(name):
        index = convert_to_tensor(branch_index, dtypes.int32, name="branch_index")
        branches = [Branch(f"branch{i}", f, strict=False) for i, f in enumerate(functions)]
        check_branches(branches, "branch_fns")
        bodies = [b.body for b in branches]
        captured = unify_captures(bodies)
        attrs = {"branches": bodies, "Tout": [t.dtype for t in bodies[0].outputs]}
        op = call_op("Case", "StatelessCase", bodies, [index, captured], attrs, "Case")
        return branches[0].pack(op)


def _checked_functions(
    branch_fns: Any, default: Callable[[], Any] | None
) -> list[Callable[[], Any]]:
    if isinstance(branch_fns, Mapping):
        pairs = list(branch_fns.items())
    elif not isinstance(branch_fns, (list, tuple)):
        raise TypeError("branch_fns must be a list, tuple, or dict")
    elif branch_fns and all(callable(f) for f in branch_fns):
        pairs = list(enumerate(branch_fns))
    else:
        pairs = list(branch_fns)
    if not pairs:
        raise ValueError("branch_fns must not be empty.")
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError("Each entry in branch_fns must be a 2-tuple")
        if not isinstance(pair[0], int):
            raise TypeError("key must be a Python `int`")
        if not callable(pair[1]):
            raise TypeError(f"fn for key {pair[0]} must be callable.")
    pairs.sort()
    if [k for k, _ in pairs] != list(range(len(pairs))):
        raise ValueError(
            f"branch indices must form contiguous range of [0 to {len(pairs)}) but found "
            f"{{{','.join(str(k) for k, _ in pairs)}}}"
        )
    functions = [f for _, f in pairs]
    return [*functions, default] if default is not None else functions

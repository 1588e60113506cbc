"""Attributes of newer programs that our ops do not declare, with the value that changes nothing."""

from __future__ import annotations

from typing import Any

#: Hints on how to compute, not on what: any value will do.
_HINTS = frozenset(
    {"force_synchronous", "metadata", "use_cudnn_on_gpu", "use_locking", "use_unbounded_threadpool"}
)
#: Options that came later, with the value at which an op does what it always did.
_NEUTRAL: dict[str, Any] = {
    "bad_indices_policy": "",
    "cardinality_options": "",
    "dim_args_spec": (),
    "explicit_paddings": (),
    "function_list": (),
    "grad_a": False,
    "grad_b": False,
    "grad_x": False,
    "grad_y": False,
    "has_token_input_output": False,
    "incompatible_shape_error": True,
    "is_files": False,
    "multiply_linear_by_lr": False,
    "replicate_on_split": False,
    "timeout_seconds": 0.0,
    "use_shardy_partitioner": False,
}


def is_neutral(name: str, value: Any) -> bool:
    """Whether an attribute that the op does not declare may be ignored with this value.

    Args:
        name: the name of the attribute.
        value: the AttrValue message.
    """
    from headrace.graph.attr_proto import decode

    return name in _HINTS or (name in _NEUTRAL and bool(decode(value) == _NEUTRAL[name]))

"""Attributes of newer programs that our ops do not declare, with the value that changes nothing."""

from __future__ import annotations

from typing import Any

#: (op, attribute) -> the neutral value. An op of "*" stands for every op.
_NEUTRAL: dict[tuple[str, str], Any] = {
    ("*", "use_locking"): None,
    ("*", "incompatible_shape_error"): True,
    ("*", "grad_a"): False,
    ("*", "grad_b"): False,
    ("*", "grad_x"): False,
    ("*", "grad_y"): False,
    ("*", "use_cudnn_on_gpu"): None,
    ("*", "explicit_paddings"): (),
    ("*", "bad_indices_policy"): "",
    ("*", "config"): None,
    ("*", "config_proto"): None,
    ("*", "executor_type"): None,
    ("*", "parallel_iterations"): None,
    ("*", "debug_name"): None,
    ("*", "allowed_devices"): (),
    ("*", "validate_indices"): None,
    ("*", "element_shape"): None,
}


def is_neutral(op: str, name: str, value: Any) -> bool:
    """Whether attribute ``name`` of ``op``, which we do not declare, has a value to be ignored.

    A neutral value of None in the table stands for any value: the attribute is a hint.
    """
    from headrace.graph.attr_proto import decode

    for key in ((op, name), ("*", name)):
        if key in _NEUTRAL:
            neutral = _NEUTRAL[key]
            return neutral is None or bool(decode(value) == neutral)
    return False

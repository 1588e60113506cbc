"""What is converted to tensors in test_tensor_proto.py and by tools/make_proto_goldens.py.

Plain data without a framework: the tool imports this file under TensorFlow's interpreter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np


class Case(NamedTuple):
    """Arguments of make_tensor_proto; `dtype` is a name or None."""

    name: str
    values: Any
    dtype: str | None = None
    shape: list[int] | None = None


CASES = [
    Case("float", 1.5),
    Case("float_as_double", 0.1, "float64"),
    Case("float_as_half", 1.5, "float16"),
    Case("float_as_bfloat16", -1.5, "bfloat16"),
    Case("int", 3),
    Case("int_as_float", 3, "float32"),
    Case("int_as_int64", 3, "int64"),
    Case("big_int", 2**40),
    Case("huge_int", 2**63),
    Case("bool", True),
    Case("bool_as_float", True, "float32"),
    Case("complex", 1 + 2j),
    Case("complex64_list", [1 + 1j, 2], "complex64"),
    Case("text", "caf\u00e9"),
    Case("bytes_with_zeros", b"a\0"),
    Case("text_nest", [["a", b"b"], ["", "\u00fc"]]),
    Case("text_array", np.array(["a", "bc"])),
    Case("object_array", np.array([b"a\0", b"b"], object)),
    Case("floats", [[1.5, 2.5], [3.5, -4.5]]),
    Case("one_float", [1.5]),
    Case("ints_and_floats", [1, 2.5]),
    Case("bools_and_ints", [True, 1]),
    Case("bools", [True, False]),
    Case("empty", []),
    Case("empty_rows", [[], []], "int32"),
    Case("empty_text", [], "string"),
    Case("halves", [1.5, 2.0], "float16"),
    Case("bfloat16s", [1.5, 2.0], "bfloat16"),
    Case("bfloat16_array", np.array([1.5, 3.0], ml_dtypes.bfloat16)),
    Case("int8s", [1, -2], "int8"),
    Case("one_uint8", [200], "uint8"),
    Case("uint16s", [1, 65535], "uint16"),
    Case("one_uint32", 2**32 - 1, "uint32"),
    Case("uint64s", [2**64 - 1, 2**63], "uint64"),
    Case("double_array", np.array([0.1, 0.2])),
    Case("double_scalar", np.float64(0.1)),
    Case("doubles_in_list", [np.float64(0.1), np.float64(0.2)]),
    Case("int64_array", np.array([1, 2], np.int64)),
    Case("array_cast", np.array([1.7, -1.7]), "int32"),
    Case("fortran_order", np.asfortranarray([[1, 2], [3, 4]])),
    Case("qint8_array", np.array([5, -6], np.int8), "qint8"),
    Case("one_quint8", np.array([5], np.uint8), "quint8"),
    Case("filled", 1.5, None, [2, 2]),
    Case("filled_by_last", [1, 2], None, [2, 2]),
    Case("filled_halves", [1.0, 2.0], "float16", [4]),
    Case("filled_complex", [1 + 1j], "complex64", [3]),
    Case("filled_text", "a", None, [2]),
    Case("filled_bools", [True], None, [3]),
    Case("filled_qint8", np.array([5], np.int8), "qint8", [2]),
    Case("filled_with_nothing", [], None, [2]),
    Case("reshaped", [1, 2, 3, 4], None, [2, 2]),
    Case("no_elements", 7, "int32", [0, 3]),
    Case("no_elements_untyped", 7, None, [0]),
    Case("not_a_number", float("nan")),
    Case("least_int32", -(2**31)),
]

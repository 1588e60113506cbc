# Written by tools/make_stubs.py from debugging.py; do not edit.
__all__ = ['Assert', 'assert_all_finite', 'assert_equal', 'assert_greater', 'assert_greater_equal', 'assert_integer', 'assert_less', 'assert_less_equal', 'assert_near', 'assert_negative', 'assert_non_negative', 'assert_non_positive', 'assert_none_equal', 'assert_positive', 'assert_proper_iterable', 'assert_rank', 'assert_rank_at_least', 'assert_rank_in', 'assert_same_float_dtype', 'assert_scalar', 'assert_shapes', 'assert_type', 'check_numerics', 'is_finite', 'is_inf', 'is_nan', 'is_non_decreasing', 'is_numeric_tensor', 'is_strictly_increasing']
from headrace.ops.control.checking_api import Assert as Assert
from headrace.ops.control.checking_api import verify_tensor_all_finite as _assert_all_finite
assert_all_finite = _assert_all_finite
from typing import Any as _Any
from collections.abc import Sequence as _Sequence
from builtins import int as _int
from builtins import str as _str
from headrace.graph.tensor import Operation as _Operation
def assert_equal(
    x: _Any,
    y: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
def assert_greater(
    x: _Any,
    y: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
def assert_greater_equal(
    x: _Any,
    y: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
def assert_less(
    x: _Any,
    y: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
def assert_less_equal(
    x: _Any,
    y: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
from headrace.ops.control.checking_api import assert_near as assert_near
def assert_negative(
    x: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
def assert_non_negative(
    x: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
def assert_non_positive(
    x: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
def assert_none_equal(
    x: _Any,
    y: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
def assert_positive(
    x: _Any,
    data: _Sequence[_Any] | None = None,
    summarize: _int | None = None,
    message: _str | None = None,
    name: _str | None = None,
) -> _Operation: ...
from headrace.ops.control.checking_api import check_numerics as check_numerics
from headrace.ops.control.checking_api import is_non_decreasing as is_non_decreasing
from headrace.ops.control.checking_api import is_strictly_increasing as is_strictly_increasing
from headrace.ops.control.checking_types import assert_integer as assert_integer
from headrace.ops.control.checking_types import assert_proper_iterable as assert_proper_iterable
from headrace.ops.control.checking_types import assert_rank as assert_rank
from headrace.ops.control.checking_types import assert_rank_at_least as assert_rank_at_least
from headrace.ops.control.checking_types import assert_rank_in as assert_rank_in
from headrace.ops.control.checking_types import assert_same_float_dtype as assert_same_float_dtype
from headrace.ops.control.checking_types import assert_scalar as assert_scalar
from headrace.ops.control.checking_types import assert_shapes as assert_shapes
from headrace.ops.control.checking_types import assert_type as assert_type
from headrace.ops.control.checking_types import is_numeric_tensor as is_numeric_tensor
from headrace.graph.tensor import Tensor as _Tensor
def is_finite(x: _Any, name: _str | None = None) -> _Tensor: ...
def is_inf(x: _Any, name: _str | None = None) -> _Tensor: ...
def is_nan(x: _Any, name: _str | None = None) -> _Tensor: ...

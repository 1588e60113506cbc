"""Assertions about arrays, tensors and nested structures of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from headrace.graph.composite import CompositeTensor
from headrace.graph.tensor import Tensor

__all__ = ["ArrayAssertions"]

Array = np.ndarray[Any, Any]

#: Arrays of more elements are not printed whole.
_PRINTED = 500


def _is_ragged(value: Any) -> bool:
    return hasattr(value, "row_splits")


class ArrayAssertions:
    """For test cases: first the expected value, then the actual one; tensors are evaluated."""

    # What the test case brings.
    assertEqual: Any
    assertCountEqual: Any
    assertTrue: Any
    evaluate: Any
    fail: Any

    def _GetNdArray(self, a: Any) -> Array:
        if isinstance(a, (Tensor, CompositeTensor)) or hasattr(a, "_to_tensor"):
            a = self.evaluate(a)
        return a if isinstance(a, np.ndarray) else np.array(a)

    # -- near -----------------------------------------------------------------------------------

    def assertNear(self, f1: Any, f2: Any, err: Any, msg: str | None = None) -> None:
        """Two numbers differ by ``err`` at most."""
        note = f" ({msg})" if msg is not None else ""
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, f"{f1:f} != {f2:f} +/- {err:f}{note}")

    def assertArrayNear(self, farray1: Any, farray2: Any, err: Any, msg: str | None = None) -> None:
        """The numbers of two sequences differ by ``err`` at most, each."""
        self.assertEqual(len(farray1), len(farray2), msg=msg)
        for f1, f2 in zip(farray1, farray2, strict=True):
            self.assertNear(float(f1), float(f2), err, msg=msg)

    def assertNDArrayNear(
        self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None
    ) -> None:
        """The Euclidean distance of two arrays is less than ``err``."""
        distance = np.linalg.norm(self._GetNdArray(ndarray1) - self._GetNdArray(ndarray2))
        self.assertTrue(distance < err, msg=msg or f"the distance is {distance}, not below {err}")

    def assertAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Two structures of arrays or tensors have near values: |a - b| <= atol + rtol * |b|.

        Raises:
            ValueError: if only one of two corresponding values is a dictionary, or two sequences
                differ in length.
        """
        if _is_ragged(a) or _is_ragged(b):
            self._assert_ragged(a, b, lambda x, y: self._assert_close(x, y, rtol, atol, msg))
        else:
            self._assert_close(a, b, rtol, atol, msg)

    def _assert_close(
        self, a: Any, b: Any, rtol: float, atol: float, msg: str | None, path: str = ""
    ) -> None:
        a = a._asdict() if hasattr(a, "_asdict") else a
        b = b._asdict() if hasattr(b, "_asdict") else b
        if isinstance(a, Mapping) != isinstance(b, Mapping):
            raise ValueError(f"Can't compare dict to non-dict, a{path} vs b{path}. {msg or ''}")
        if isinstance(a, Mapping):
            keys = f"mismatched keys: a{path} has keys {list(a)}, but b{path} has keys {list(b)}"
            self.assertCountEqual(a.keys(), b.keys(), msg=f"{keys}. {msg or ''}")
            for key in a:
                self._assert_close(a[key], b[key], rtol, atol, msg, f"{path}[{key}]")
            return
        text = f"Mismatched value: a{path} is different from b{path}. {msg or ''}"
        if not isinstance(a, (list, tuple)):
            self._assert_arrays_close(a, b, rtol, atol, text)
            return
        try:
            arrays = self._GetNdArray(a), self._GetNdArray(b)
            plain = all(array.dtype != object for array in arrays)
        except (ValueError, TypeError):
            plain = False
        if plain:
            self._assert_arrays_close(*arrays, rtol, atol, text)
            return
        if len(a) != len(b):
            raise ValueError(
                f"Mismatched length: a{path} has {len(a)} items, but b{path} has {len(b)} items. "
                f"{msg or ''}"
            )
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            self._assert_close(x, y, rtol, atol, msg, f"{path}[{i}]")

    def _assert_arrays_close(self, a: Any, b: Any, rtol: float, atol: float, text: str) -> None:
        a, b = self._GetNdArray(a), self._GetNdArray(b)
        self._assert_shapes(a, b, text)
        if np.allclose(a, b, rtol=rtol, atol=atol):
            return
        far = (np.abs(a - b) > atol + rtol * np.abs(b)) | (np.isnan(a) != np.isnan(b))
        lines = [text, *self._where(a, b, far, "not close")]
        if np.any(far):
            x, y = (a[far], b[far]) if a.ndim else (a, b)
            lines += [f"not close dif = {np.abs(x - y)}"]
            lines += [f"not close tol = {atol + rtol * np.abs(y)}"]
        lines += [f"dtype = {a.dtype}, shape = {a.shape}"]
        np.testing.assert_allclose(
            a, b, rtol=rtol, atol=atol, err_msg="\n".join(lines), equal_nan=True
        )

    def _assert_shapes(self, a: Array, b: Array, text: str) -> None:
        contents = f" with contents {b}" if b.ndim <= 3 or b.size < _PRINTED else ""
        self.assertEqual(
            a.shape, b.shape, f"Shape mismatch: expected {a.shape}, got {b.shape}{contents}. {text}"
        )

    def _where(self, a: Array, b: Array, differs: Any, what: str) -> list[str]:
        if not a.ndim:
            return [f"{what} lhs = {a}", f"{what} rhs = {b}"]
        where = np.where(differs)
        return [
            f"{what} where = {where}",
            f"{what} lhs = {a[where]}",
            f"{what} rhs = {b[where]}",
        ]

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """`assertAllClose` with the tolerance of the coarser type of the two."""
        a, b = self._GetNdArray(a), self._GetNdArray(b)
        types = {a.dtype.type, b.dtype.type}
        for fitting, type_rtol, type_atol in (
            ({np.float32, np.complex64}, float_rtol, float_atol),
            ({np.float16}, half_rtol, half_atol),
            ({ml_dtypes.bfloat16}, bfloat16_rtol, bfloat16_atol),
        ):
            if types & fitting:
                rtol, atol = max(rtol, type_rtol), max(atol, type_atol)
        self.assertAllClose(a, b, rtol=rtol, atol=atol, msg=msg)

    def assertNotAllClose(self, a: Any, b: Any, **kwargs: Any) -> None:
        """`assertAllClose` would fail."""
        try:
            self.assertAllClose(a, b, **kwargs)
        except AssertionError:
            return
        raise AssertionError("The two values are close at all elements")

    # -- equal ----------------------------------------------------------------------------------

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Two arrays or tensors have the same shape and values; NaN equals NaN."""
        if _is_ragged(a) or _is_ragged(b):
            self._assert_ragged(a, b, lambda x, y: self.assertEqual(x, y, msg))
            return
        a, b = self._GetNdArray(a), self._GetNdArray(b)
        self._assert_shapes(a, b, msg or "")
        same = _bytes(a) == _bytes(b)
        if a.dtype.type in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16):
            same = same | (np.isnan(a) & np.isnan(b))
        if not np.all(same):
            lines = [msg or "", *self._where(a, b, np.logical_not(same), "not equal")]
            np.testing.assert_array_equal(_bytes(a), _bytes(b), err_msg="\n".join(lines))
            raise AssertionError("\n".join(lines))

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """`assertAllEqual` would fail."""
        try:
            self.assertAllEqual(a, b, msg)
        except AssertionError:
            return
        raise AssertionError("The two values are equal at all elements")

    def _GetPyList(self, a: Any) -> Any:
        if isinstance(a, (Tensor, CompositeTensor)):
            a = self.evaluate(a)
        return a.to_list() if hasattr(a, "to_list") else np.array(a, object).tolist()

    def _assert_ragged(self, a: Any, b: Any, compare: Any) -> None:
        """Compare the lists behind two values, and their numbers of ragged dimensions."""
        compare(self._GetPyList(a), self._GetPyList(b))
        if not isinstance(a, (list, tuple)) and not isinstance(b, (list, tuple)):
            self.assertEqual(getattr(a, "ragged_rank", 0), getattr(b, "ragged_rank", 0))

    # -- bounds ---------------------------------------------------------------------------------

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Every element is greater than a number."""
        self._assert_all(a, lambda x: x > comparison_target, f"greater than {comparison_target}")

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Every element is less than a number."""
        self._assert_all(a, lambda x: x < comparison_target, f"less than {comparison_target}")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Every element is greater than a number, or equal."""
        self._assert_all(a, lambda x: x >= comparison_target, f"at least {comparison_target}")

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Every element is less than a number, or equal."""
        self._assert_all(a, lambda x: x <= comparison_target, f"at most {comparison_target}")

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Every element lies between two bounds.

        Raises:
            AssertionError: also if the elements are no real numbers, or NaN.
        """
        target = self._GetNdArray(target)
        if not np.issubdtype(target.dtype, np.floating) and target.dtype.kind not in "iu":
            raise AssertionError(
                f"The value of {target} does not have an ordered numeric type, instead it has "
                f"type: {target.dtype}"
            )
        left, right = "(" if open_lower_bound else "[", ")" if open_upper_bound else "]"
        above = np.greater if open_lower_bound else np.greater_equal
        below = np.less if open_upper_bound else np.less_equal
        self._assert_all(
            target,
            lambda x: above(x, lower_bound) & below(x, upper_bound),
            f"in the range {left}{lower_bound}, {upper_bound}{right}",
        )

    def _assert_all(self, a: Any, holds: Any, what: str) -> None:
        a = self._GetNdArray(a)
        wrong = np.logical_not(holds(a))
        if np.any(wrong):
            found = [f"{tuple(map(int, i))} : {a[tuple(i)]}" for i in np.argwhere(wrong)[:10]]
            more = ["..."] if np.count_nonzero(wrong) > len(found) else []
            raise AssertionError(
                f"{np.count_nonzero(wrong)} of the {a.size} element(s) are not {what}. "
                "Subscript(s) and value(s) of the offending elements:\n  "
                + "\n  ".join(found + more)
            )

    def assertAllInSet(self, target: Any, expected_set: Iterable[Any]) -> None:
        """Every element is one of a set."""
        expected = list(expected_set)
        strange = np.setdiff1d(self._GetNdArray(target).flatten(), expected)
        if strange.size:
            raise AssertionError(
                f"{strange.size} unique element(s) are not in the set {expected_set}: {strange}"
            )

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """The elements have a NumPy type."""
        self.assertEqual(self._GetNdArray(target).dtype, expected_dtype)

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any, msg: str | None = None) -> None:
        """An array and a tensor have the same static shape.

        Raises:
            TypeError: if they are no array and no tensor.
        """
        if not isinstance(np_array, (np.ndarray, np.generic)):
            raise TypeError("np_array must be a Numpy ndarray or Numpy scalar")
        if not isinstance(tf_tensor, Tensor) and not hasattr(tf_tensor, "_to_tensor"):
            raise TypeError("tf_tensor must be a Tensor")
        self.assertAllEqual(np_array.shape, tf_tensor.get_shape().as_list(), msg=msg)


def _bytes(array: Array) -> Array:
    """Strings are compared as the bytes that sessions return."""
    if array.dtype.kind == "U":
        return np.char.encode(array, "utf-8").astype(object)
    if array.dtype.kind == "S":
        return array.astype(object)
    if array.dtype.kind == "O":
        plain = [x.encode() if isinstance(x, str) else x for x in array.ravel()]
        result = np.empty(len(plain), object)
        result[:] = plain
        return result.reshape(array.shape)
    return array

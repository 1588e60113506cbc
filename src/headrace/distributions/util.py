"""What several distributions need: parameters, shapes, checks, seeds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

import headrace as tf

#: Integers up to this are exact in a type.
_EXACT = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24, "float64": 2**53}


def with_dependencies(dependencies: Sequence[Any], tensor: Any) -> Any:
    """``tensor``, once ``dependencies`` have run."""
    with tf.control_dependencies(dependencies):
        return tf.identity(tensor)


def gen_new_seed(seed: int | None, salt: str) -> int | None:
    """Another seed for a second random op, made from the first."""
    if seed is None:
        return None
    text = (str(seed) + salt).encode()
    return int(hashlib.md5(text, usedforsecurity=False).hexdigest()[:8], 16) & 0x7FFFFFFF


def common_shape(*tensors: Any) -> Any:
    """The static shape that tensors broadcast to."""
    return reduce(tf.broadcast_static_shape, [t.shape for t in tensors])


def common_shape_tensor(*tensors: Any) -> Any:
    """The shape that tensors broadcast to, as a tensor."""
    return reduce(tf.broadcast_dynamic_shape, [tf.shape(t) for t in tensors])


def same_param_shapes(names: Sequence[str], sample_shape: Any) -> dict[str, Any]:
    """For parameters that all have the shape of a sample."""
    shape = tf.convert_to_tensor(sample_shape, tf.int32)
    return dict.fromkeys(names, shape)


def nan_unless(defined: Any, value: Any) -> Any:
    """``value`` where it is defined, else NaN."""
    return tf.where_v2(defined, value, tf.constant(np.nan, value.dtype))


# -- logits, probabilities ----------------------------------------------------------------------


def get_logits_and_probs(
    logits: Any = None,
    probs: Any = None,
    multidimensional: bool = False,
    validate_args: bool = False,
    name: str = "get_logits_and_probs",
) -> tuple[Any, Any]:
    """Both log-odds and probabilities, from one of them.

    Args:
        multidimensional: the last dimension are classes; else each element is one event.
        validate_args: checks, when run, that probabilities are some.

    Raises:
        ValueError: if not exactly one is given.
        TypeError: if it is not floating.
    """
    with tf.name_scope(name):
        if (probs is None) == (logits is None):
            raise ValueError("Must pass probs or logits, but not both.")
        if probs is None:
            logits = tf.convert_to_tensor(logits, name="logits")
            if not logits.dtype.is_floating:
                raise TypeError(f"logits must having floating type, not {logits.dtype.name}.")
            if not multidimensional:
                return logits, tf.sigmoid(logits, name="probs")
            logits = check_classes(logits) if validate_args else logits
            return logits, tf.nn.softmax(logits, name="probs")
        probs = tf.convert_to_tensor(probs, name="probs")
        if not probs.dtype.is_floating:
            raise TypeError(f"probs must having floating type, not {probs.dtype.name}.")
        if validate_args:
            probs = _checked_probs(probs, multidimensional)
        with tf.name_scope("logits"):
            if multidimensional:
                return tf.log(probs), probs
            return tf.log(probs) - tf.log1p(-probs), probs


def _checked_probs(probs: Any, multidimensional: bool) -> Any:
    with tf.name_scope("validate_probs"):
        one = tf.constant(1.0, probs.dtype)
        checks = [tf.assert_non_negative(probs)]
        if multidimensional:
            probs = check_classes(probs)
            total = tf.reduce_sum(probs, -1)
            checks.append(tf.assert_near(total, one, message="probs does not sum to 1."))
        else:
            message = "probs has components greater than 1."
            checks.append(tf.assert_less_equal(probs, one, message=message))
        return with_dependencies(checks, probs)


# -- checks -------------------------------------------------------------------------------------


def check_classes(x: Any) -> Any:
    """A parameter with one entry for each class, checked: at least 2, and countable in its type.

    Raises:
        ValueError: if static shapes tell that it is not.
        TypeError: if it is not floating.
    """
    most = _EXACT.get(x.dtype.base_dtype.name)
    if most is None:
        raise TypeError(f"Unable to validate size of unrecognized dtype ({x.dtype.name}).")
    if x.dims == ():
        raise ValueError("A categorical-distribution parameter must have at least 1 dimension.")
    few = "A categorical-distribution parameter must have at least 2 events."
    count = None if x.dims is None else x.dims[-1]
    if count is None:
        return with_dependencies([tf.assert_greater_equal(tf.shape(x)[-1], 2, message=few)], x)
    if count < 2:
        raise ValueError(few)
    if count > most:
        raise ValueError(
            f"Number of classes exceeds `dtype` precision, i.e., {x.dtype.name} implies shape "
            f"({count}) cannot exceed {most}."
        )
    return x


def _has_no_fractions(x: Any, message: str) -> list[Any]:
    if not x.dtype.is_floating:
        return []
    return [tf.assert_equal(x, tf.floor(x), message=message)]


def check_counts(x: Any) -> Any:
    """Numbers checked, when run, to be integers from 0 on."""
    x = tf.convert_to_tensor(x)
    return with_dependencies(
        [
            tf.assert_non_negative(x, message=f"'{x.name}' must be non-negative."),
            *_has_no_fractions(x, f"'{x.name}' cannot contain fractional components."),
        ],
        x,
    )


def check_events(x: Any, most: int) -> Any:
    """Numbers checked, when run, to be integers in ``[0, most]``."""
    return with_dependencies(
        [
            tf.assert_non_negative(x, message="Elements must be non-negative."),
            tf.assert_less_equal(
                x, tf.cast(most, x.dtype), message=f"Elements cannot exceed {most}."
            ),
            *_has_no_fractions(x, "Elements must be integers."),
        ],
        x,
    )


def log_combinations(n: Any, counts: Any) -> Any:
    """The logarithm of the multinomial coefficient of ``n`` over ``counts`` ``[..., k]``."""
    with tf.name_scope("log_combinations"):
        return tf.lgamma(n + 1) - tf.reduce_sum(tf.lgamma(counts + 1), axis=[-1])


def softplus_inverse(x: Any, name: str = "softplus_inverse") -> Any:
    """``y`` with ``softplus(y) = x``, for ``x`` above 0; the shape stays.

    0 gives -inf, less than 0 gives NaN.

    Raises:
        TypeError: if the type is not floating.
    """
    with tf.name_scope(name):
        x = tf.convert_to_tensor(x, name="x")
        if not x.dtype.is_floating:
            raise TypeError(f"softplus_inverse takes a floating type, got {x.dtype.name}.")
        threshold = float(np.log(np.finfo(x.dtype.as_numpy_dtype).eps) + 2.0)
        too_small, too_large = tf.less(x, np.exp(threshold)), tf.greater(x, -threshold)
        inside = tf.where(tf.logical_or(too_small, too_large), tf.ones_like(x), x)
        y = inside + tf.log(-tf.expm1(-inside))
        return tf.where(too_small, tf.log(x), tf.where(too_large, x, y))

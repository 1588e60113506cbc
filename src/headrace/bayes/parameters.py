"""Named parameters with constraints as one row of real numbers, and log densities over such rows.

Samplers and variational families see only the row. What its place in the parameters is, and what
the change of variables adds to the log density, is worked out here: Kucukelbir et al., "Automatic
differentiation variational inference" (JMLR 18, 2017), section 2.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import headrace as tf
from headrace.distributions import bijectors
from headrace.graph import nest

__all__ = ["LogDensity", "Parameters"]

#: What a constraint may be called.
_NAMED: dict[str, Callable[[], bijectors.Bijector]] = {
    "real": bijectors.Identity,
    "positive": bijectors.Exp,
    "unit": bijectors.Sigmoid,
}


class Parameters:
    """The form of the parameters of a log density.

    Args:
        start: a tensor or a nest of tensors (mostly a dictionary by name), of float32 or float64
            and of shapes that are known while the graph is built.
        constraints: for parameters that are not any real numbers: a dictionary (by the names of
            those of ``start``; others are real) or, if ``start`` is one tensor, one constraint:
            "positive", "unit" (between 0 and 1), "real", or a bijector from real numbers.
        chains: whether the first axis of each start counts chains and is no part of the parameter.

    Attributes:
        size: how many real numbers the parameters are.
        chains: how many chains the starts are for; None without that axis.

    Raises:
        TypeError: if they are no floats, or of different types.
        ValueError: if a shape is not known, there are no numbers at all, or a constraint does not
            belong to a parameter.
    """

    def __init__(self, start: Any, constraints: Any = None, chains: bool = False) -> None:
        self.form = start
        self.starts = [tf.convert_to_tensor(s, name="start") for s in nest.flatten(start)]
        if not self.starts:
            raise ValueError("start has no parameters: give a tensor, or a dictionary of tensors.")
        self.dtype = _one_type(self.starts)
        shapes = [_static_shape(t) for t in self.starts]
        self.chains = _chains(self.starts, shapes) if chains else None
        self.shapes = [s[1:] for s in shapes] if chains else shapes
        self.sizes = [math.prod(s) for s in self.shapes]
        self.size = sum(self.sizes)
        if not self.size:
            raise ValueError(
                f"The parameters have no elements: start has the shapes {shapes}. A density needs "
                "at least one number."
            )
        self.bijectors = _bijectors(start, constraints, len(self.starts))

    def row(self) -> Any:
        """Where it starts, as unconstrained numbers: ``[size]``, or ``[chains, size]``."""
        lead = [] if self.chains is None else [self.chains]
        free = [b.inverse(t) for b, t in zip(self.bijectors, self.starts, strict=True)]
        flat = [tf.reshape(f, [*lead, n]) for f, n in zip(free, self.sizes, strict=True)]
        return flat[0] if len(flat) == 1 else tf.concat(flat, axis=-1)

    def split(self, rows: Any) -> list[Any]:
        """Rows ``[..., size]`` as the unconstrained values of each parameter, ``[..., *shape]``."""
        lead = rows.shape.as_list()[:-1]
        flat = [rows] if len(self.sizes) == 1 else tf.split(rows, self.sizes, axis=-1)
        return [tf.reshape(f, [*lead, *s]) for f, s in zip(flat, self.shapes, strict=True)]

    def pack(self, rows: Any) -> Any:
        """The parameters that rows stand for, in the form of the start."""
        free = self.split(rows)
        return self.nested([b.forward(f) for b, f in zip(self.bijectors, free, strict=True)])

    def nested(self, tensors: list[Any]) -> Any:
        """One tensor for each parameter, in the form of the start."""
        return nest.pack_sequence_as(self.form, tensors)

    def log_slope(self, row: Any) -> Any:
        """What a change of variables adds to the log density of one row: a scalar, or None."""
        parts = [
            tf.reduce_sum(b.forward_log_det_jacobian(f))
            for b, f in zip(self.bijectors, self.split(row), strict=True)
            if type(b) is not bijectors.Identity
        ]
        return tf.add_n(parts) if parts else None


class LogDensity:
    """The log density of rows of unconstrained numbers, with its gradient.

    Args:
        function: takes the parameters, returns a scalar of their dtype: the log density up to a
            constant.
        parameters: their form.

    Raises:
        TypeError, ValueError: when called: if the function does not return such a scalar, or it
            does not depend on the parameters.
    """

    def __init__(self, function: Callable[[Any], Any], parameters: Parameters) -> None:
        if not callable(function):
            raise TypeError(f"log_density must be a function of the parameters, not {function!r}.")
        self.function = function
        self.parameters = parameters

    def of_row(self, row: Any) -> Any:
        """The log density of one row ``[size]``: a scalar."""
        found = tf.convert_to_tensor(self.function(self.parameters.pack(row)), name="log_density")
        if found.dtype is not self.parameters.dtype:
            raise TypeError(
                f"log_density must return {self.parameters.dtype.name} as the parameters are, not "
                f"{found.dtype.name}: cast what it returns, or the start."
            )
        if found.shape.ndims is None:
            found = tf.ensure_shape(found, [])
        if found.shape.ndims:
            raise ValueError(
                f"log_density must return a scalar, not a tensor of shape {found.shape}: add up "
                "the terms with tf.reduce_sum."
            )
        slope = self.parameters.log_slope(row)
        return found if slope is None else found + slope

    def with_gradient(self, row: Any) -> tuple[Any, Any]:
        """The log density of one row, and its gradient ``[size]``."""
        value = self.of_row(row)
        (gradient,) = tf.gradients(value, [row])
        if gradient is None:
            raise ValueError(
                "log_density has no gradient with respect to the parameters: what it returns does "
                "not depend on them, or only through operations without a gradient."
            )
        return value, tf.convert_to_tensor(gradient)

    def of_chains(self, rows: Any) -> tuple[Any, Any]:
        """The same for rows ``[chains, size]``: ``[chains]`` and ``[chains, size]``."""
        if rows.shape.as_list()[0] == 1:
            value, gradient = self.with_gradient(tf.reshape(rows, [self.parameters.size]))
            return tf.reshape(value, [1]), tf.reshape(gradient, [1, self.parameters.size])
        found: tuple[Any, Any] = tf.vectorized_map(self.with_gradient, rows)
        return found


def _one_type(tensors: list[Any]) -> Any:
    kinds = {t.dtype for t in tensors}
    if len(kinds) > 1 or not kinds <= {tf.float32, tf.float64}:
        names = ", ".join(sorted(k.name for k in kinds))
        raise TypeError(f"The parameters must all be float32 or all float64, not {names}.")
    return tensors[0].dtype


def _static_shape(tensor: Any) -> list[int]:
    if not tensor.shape.is_fully_defined():
        raise ValueError(
            f"The shape of a parameter must be known while the graph is built; the start "
            f"{tensor.name} has {tensor.shape}. Give it one: tf.ensure_shape(start, [...])."
        )
    found: list[int] = tensor.shape.as_list()
    return found


def _chains(tensors: list[Any], shapes: list[list[int]]) -> int:
    counts = {s[0] if s else 0 for s in shapes}
    if len(counts) > 1 or 0 in counts:
        raise ValueError(
            "With num_chains=None the first axis of each start counts the chains, at least one; "
            f"the starts have the shapes {shapes}."
        )
    return counts.pop()


def _bijectors(start: Any, constraints: Any, count: int) -> list[bijectors.Bijector]:
    if constraints is None:
        return [bijectors.Identity() for _ in range(count)]
    if not isinstance(start, Mapping):
        if nest.is_nested(start):
            raise ValueError("constraints go by name: make start a dictionary of parameters.")
        return [_bijector(constraints)]
    if not isinstance(constraints, Mapping):
        raise ValueError(
            f"constraints of several parameters go by their names, {sorted(start)}: give a "
            f"dictionary, not {constraints!r}."
        )
    unknown = sorted(set(constraints) - set(start))
    if unknown:
        raise ValueError(f"constraints names {unknown}; the parameters are {sorted(start)}.")
    chosen = {
        name: nest.map_structure(lambda _, n=name: _bijector(constraints.get(n, "real")), value)
        for name, value in start.items()
    }
    return list(nest.flatten(chosen))


def _bijector(constraint: Any) -> bijectors.Bijector:
    if isinstance(constraint, bijectors.Bijector):
        return constraint
    if isinstance(constraint, str) and constraint in _NAMED:
        return _NAMED[constraint]()
    raise ValueError(
        f"A constraint is one of {', '.join(map(repr, _NAMED))}, or a bijector of "
        f"tf.contrib.distributions.bijectors; not {constraint!r}."
    )

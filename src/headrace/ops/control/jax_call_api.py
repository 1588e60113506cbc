"""``tf.from_jax``: functions on JAX arrays as functions on tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from headrace.graph import dtypes
from headrace.graph.composite import CompositeTensor
from headrace.graph.graph import get_default_graph
from headrace.graph.random_seed import seed_to_draw
from headrace.graph.site import user_site
from headrace.graph.tensor import Tensor
from headrace.ops.control.jax_call import add_call
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.core.public import public

_LOWEST, _HIGHEST = -(2**31), 2**31 - 1


def random_key(seed: int | None = None, name: str = "random_key") -> Tensor:
    """A new key for `jax.random` in each run: uint32[2].

    Args:
        seed: with the graph's seed it decides which keys follow each other, as for any random op.
    """
    first, second = seed_to_draw(get_default_graph(), seed)
    with get_default_graph().name_scope(name):
        drawn = raw.RandomUniformInt(
            constant([2], dtypes.int32),
            constant(_LOWEST, dtypes.int32),
            constant(_HIGHEST, dtypes.int32),
            seed=first or 0,
            seed2=second or 0,
        )
        key: Tensor = raw.Bitcast(drawn, type=dtypes.uint32)
    return key


def _is_value(leaf: Any) -> bool:
    return isinstance(leaf, (Tensor, np.ndarray, np.generic, jax.Array)) or hasattr(
        leaf, "_to_tensor"
    )


class _Call:
    """One call of a JAX function: its arguments apart from their structure."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.function = function
        self.leaves, self.structure = jax.tree.flatten((args, kwargs), is_leaf=_is_composite)
        for leaf in self.leaves:
            if _is_composite(leaf):
                raise TypeError(
                    f"{_name(function)} is a JAX function and takes dense tensors; it was given "
                    f"{leaf!r}. Give its values and indices, or a dense form of it."
                )
        self.places = [i for i, leaf in enumerate(self.leaves) if _is_value(leaf)]
        self.__name__ = _name(function)
        self.results: Any = None

    def inputs(self) -> list[Tensor]:
        return [convert_to_tensor(self.leaves[i]) for i in self.places]

    def flat(self, *values: Any) -> list[Any]:
        leaves = list(self.leaves)
        for i, value in zip(self.places, values, strict=True):
            leaves[i] = value
        args, kwargs = jax.tree.unflatten(self.structure, leaves)
        found, self.results = jax.tree.flatten(self.function(*args, **kwargs))
        return found


def _is_composite(leaf: Any) -> bool:
    return isinstance(leaf, CompositeTensor) and not hasattr(leaf, "_to_tensor")


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


@public("from_jax")
def from_jax(
    fn: Callable[..., Any],
    *,
    key_argument: str | None = None,
    seed: int | None = None,
    polymorphic_shapes: Sequence[str | None] | None = None,
    name: str | None = None,
) -> Callable[..., Any]:
    """``fn``, a function on JAX arrays, as a function on tensors.

    A call traces ``fn`` and puts it into the graph as one operation, which holds the program that
    `jax.export` makes of it. That is written to graph files, runs on any task and platform, and has
    gradients (of first order in graphs out of files, of any order where ``fn`` is at hand).

    Arguments and results are structures of any kind that JAX knows. Tensors, variables and arrays
    are inputs; all other values (Python numbers, strings, None) reach ``fn`` as they are. Sizes
    that the graph does not know are symbolic dimensions for ``fn``, each its own; where ``fn``
    cannot do with that, unknown first sizes are taken for one size.

    Types are those that ``fn`` makes of its inputs; 64-bit types are on if an input has 64 bits.

    Args:
        fn: takes and returns arrays; has to be a function of its arguments alone.
        key_argument: the parameter of ``fn`` that takes a key for `jax.random`. Each run of a call
            gets another one, unless the call gives it.
        seed: for these keys, as for any random operation.
        polymorphic_shapes: for each input a shape in which the same letter stands for the same size
            (`jax.export.symbolic_shape`: ``"batch, 3"``), or None.
        name: of the operations.

    Raises:
        TypeError: if ``fn`` cannot be called, has no parameter ``key_argument``, or is called with
            strings or sparse tensors as inputs.
        ValueError: if the rank of an input is not known.
        whatever ``fn`` raises as it is traced, with the line that called it.

    >>> import jax.numpy as jnp
    >>> norm = tf.from_jax(lambda x: jnp.sqrt(jnp.sum(x * x)))
    >>> x = tf.constant([3.0, 4.0])
    >>> y = norm(x)
    >>> [slope] = tf.gradients(y, x)
    >>> with tf.Session() as session:
    ...     length, direction = session.run([y, slope])
    >>> float(length), direction.tolist()
    (5.0, [0.6000000238418579, 0.800000011920929])
    """
    if not callable(fn):
        raise TypeError(f"tf.from_jax takes a function on JAX arrays, not {fn!r}.")
    if key_argument is not None and key_argument not in inspect.signature(fn).parameters:
        raise TypeError(
            f"{_name(fn)} has no parameter '{key_argument}' (key_argument); it has "
            f"{list(inspect.signature(fn).parameters)}."
        )

    @functools.wraps(fn)
    def on_tensors(*args: Any, **kwargs: Any) -> Any:
        scope = name or _scope_name(_name(fn))
        if key_argument is not None:
            bound = inspect.signature(fn).bind_partial(*args, **kwargs)
            if key_argument not in bound.arguments:
                kwargs[key_argument] = random_key(seed, f"{scope}_key")
        call = _Call(fn, args, kwargs)
        inputs = call.inputs()
        for tensor in inputs:
            _require_numbers(fn, tensor)
        try:
            outputs = add_call(call.flat, inputs, scope, polymorphic_shapes)
        except Exception as error:
            shown = ", ".join(f"{t.dtype.name}{t.shape}" for t in inputs)
            site = user_site()
            where = "" if site is None else f", called at {site.filename}:{site.lineno}"
            error.add_note(f"tf.from_jax: {_name(fn)} was traced on ({shown}){where}.")
            raise
        return jax.tree.unflatten(call.results, outputs)

    return on_tensors


def _scope_name(name: str) -> str:
    return name if name.isidentifier() and not name.startswith("_") else "jax_call"


def _require_numbers(fn: Any, tensor: Tensor) -> None:
    kind = tensor.dtype
    if not (kind.is_floating or kind.is_complex or kind.is_bool or kind.is_integer):
        raise TypeError(
            f"{_name(fn)} is a JAX function and takes numbers; {tensor.name} has type {kind.name}."
        )

"""JAX functions as programs of their own: traced once, kept as bytes, called from any graph.

A program is what `jax.export` writes: StableHLO for CPU, CUDA and TPU with the shapes and types of
inputs and outputs. A size that the graph does not know is a symbolic dimension.

What is differentiated is kept in two programs. The first one gives the outputs and, behind them,
what the second one needs besides the inputs (residuals); the second one takes those and the
gradients of the outputs. XLA leaves out the residuals where nothing asks for them. Source: reverse
mode as in `jax.vjp`, cut in two at the values that it keeps.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import export
from jax import numpy as jnp

from headrace import native
from headrace.graph.tensor import Dims

#: A function of arrays that returns a list of arrays.
FlatFunction = Callable[..., Sequence[Any]]

PLATFORMS = ("cpu", "cuda", "tpu")


class JaxProgram(bytes):
    """The bytes of a program. In the process that traced it, the function too.

    Attributes:
        function: what was traced, on flat lists of arrays; None for a program out of a file.
        specs: what it was traced with: shapes (with their symbols) and types of the inputs.
        results: the same of what it gives.
    """

    function: FlatFunction | None = None
    specs: Sequence[Any] = ()
    results: Sequence[Any] = ()


class Pair(NamedTuple):
    """A program and the one that computes its gradients.

    Attributes:
        program: gives ``outputs`` results, and the residuals behind them.
        backward: takes the kept values and the gradients of the ``differentiable`` outputs; gives
            gradients for the inputs ``wrt``. None if there is nothing to differentiate.
        kept: what ``backward`` takes: positions among the inputs, then (counted on from there)
            among all results of ``program``.
    """

    program: JaxProgram
    backward: JaxProgram | None
    outputs: int
    wrt: tuple[int, ...]
    differentiable: tuple[int, ...]
    kept: tuple[int, ...]


def x64_for(dtypes: Sequence[Any]) -> Any:
    """The context to trace in: 64 bits where an input has them, else as the process has it."""
    wide = any(np.dtype(d).itemsize == 8 and np.dtype(d).kind in "iuf" for d in dtypes)
    wide = wide or any(np.dtype(d).kind == "c" and np.dtype(d).itemsize == 16 for d in dtypes)
    return jax.enable_x64(True if wide else jax.config.read("jax_enable_x64"))  # type: ignore[no-untyped-call]


def as_bytes(value: Any) -> bytes:
    """Bytes of an attribute: those that happen to be text arrive as text."""
    return value.encode() if isinstance(value, str) else value


@functools.lru_cache(maxsize=4096)
def load(program: bytes) -> Any:
    """The program, ready to be called.

    Raises:
        ValueError: if the bytes are no program.
    """
    try:
        return export.deserialize(bytearray(program))
    except ImportError:
        raise
    except Exception as error:
        raise ValueError(f"The attribute holds no program of jax.export: {error}") from error


# -- shapes -------------------------------------------------------------------------------------


def _specs(
    dims: Sequence[tuple[int | None, ...]], dtypes: Sequence[Any], *, empty: bool, shared: bool
) -> list[Any]:
    """Specifications of inputs with a symbol for each unknown size.

    Args:
        empty: sizes may be 0. JAX takes symbols as at least 1, so that the size is one less.
        shared: unknown first sizes are one size, that of a batch.
    """
    scope = export.SymbolicScope()
    numbers = itertools.count()
    result = []
    for shape, dtype in zip(dims, dtypes, strict=True):
        parts = []
        for axis, size in enumerate(shape):
            if size is not None:
                parts.append(str(size))
                continue
            symbol = "batch" if shared and axis == 0 else f"d{next(numbers)}"
            parts.append(f"{symbol} - 1" if empty else symbol)
        symbolic = export.symbolic_shape(", ".join(parts), scope=scope) if parts else ()
        result.append(_struct(symbolic, dtype))
    return result


def _attempts(
    dims: Sequence[tuple[int | None, ...]], dtypes: Sequence[Any], one_batch: bool
) -> list[list[Any]]:
    """Specifications to try, the most general one first."""
    unknown = [[size is None for size in shape] for shape in dims]
    if not any(map(any, unknown)):
        return [_specs(dims, dtypes, empty=True, shared=False)]
    several = sum(1 for shape in unknown if shape and shape[0]) > 1
    sharing = [True] if one_batch else [False, True] if several else [False]
    return [
        _specs(dims, dtypes, empty=empty, shared=shared)
        for shared in sharing
        for empty in (True, False)
    ]


def _polymorphic(
    dims: Sequence[tuple[int | None, ...]], dtypes: Sequence[Any], given: Sequence[str | None]
) -> list[Any]:
    concrete = [
        _struct(tuple(1 if d is None else d for d in shape), dtype)
        for shape, dtype in zip(dims, dtypes, strict=True)
    ]
    texts = [
        ", ".join("_" if d is not None else "?" for d in shape) if text is None else text
        for shape, text in zip(dims, given, strict=True)
    ]
    return list(export.symbolic_args_specs(concrete, texts))


def known_dims(shape: Sequence[Any]) -> tuple[int | None, ...]:
    """A shape of JAX with None for each symbolic size."""
    return tuple(d if isinstance(d, int) else None for d in shape)


def infer(program: bytes, dims: Sequence[Dims]) -> list[Dims]:
    """The shapes of all outputs of ``program`` for inputs of these shapes.

    Raises:
        ValueError: if the program takes other shapes.
    """
    found = load(program)
    if len(found.in_avals) != len(dims):
        raise ValueError(f"The program takes {len(found.in_avals)} inputs, not {len(dims)}.")
    filled = []
    for i, (aval, given) in enumerate(zip(found.in_avals, dims, strict=True)):
        wanted = known_dims(aval.shape)
        if given is None:
            filled.append(wanted)
            continue
        fits = len(given) == len(wanted) and all(
            w is None or g is None or g == w for g, w in zip(given, wanted, strict=True)
        )
        if not fits:
            shown = "[" + ", ".join("?" if w is None else str(w) for w in wanted) + "]"
            got = "[" + ", ".join("?" if g is None else str(g) for g in given) + "]"
            raise ValueError(f"Input {i} of the program has shape {shown}; it was given {got}.")
        filled.append(tuple(w if g is None else g for g, w in zip(given, wanted, strict=True)))
    outputs = [known_dims(a.shape) for a in found.out_avals]
    if all(None not in o for o in outputs) or any(None in f for f in filled):
        return list(outputs)
    specs = [_struct(shape, aval.dtype) for shape, aval in zip(filled, found.in_avals, strict=True)]
    with jax.enable_x64(True):
        results = jax.eval_shape(found.call, *specs)
    return [tuple(r.shape) for r in results]


# -- tracing ------------------------------------------------------------------------------------


def trace(
    function: FlatFunction,
    dims: Sequence[tuple[int | None, ...]],
    dtypes: Sequence[Any],
    wrt: Sequence[int],
    polymorphic: Sequence[str | None] | None = None,
    one_batch: bool = False,
) -> Pair:
    """The programs of ``function`` and of its gradient with respect to the inputs ``wrt``.

    Args:
        function: takes the arrays and returns a list of them.
        dims: shapes of the inputs, None for each unknown size.
        dtypes: NumPy types of the inputs.
        polymorphic: for each input a shape in the language of `jax.export.symbolic_shape`, or None.
        one_batch: unknown first sizes are one size.

    Raises:
        whatever ``function`` raises.
    """
    with x64_for(dtypes):
        if polymorphic is not None:
            attempts = [_polymorphic(dims, dtypes, polymorphic)]
        else:
            attempts = _attempts(dims, dtypes, one_batch)
        first: Exception | None = None
        for specs in attempts:
            try:
                return _traced(function, specs, tuple(wrt))
            except Exception as error:
                # The most general sizes tell most; a function may need to know more of them.
                first = first or error
        assert first is not None
        raise first


def _traced(function: FlatFunction, specs: list[Any], wrt: tuple[int, ...]) -> Pair:
    cut = _Cut(function, wrt)
    program = _export(cut.forward, specs)
    # A cut belongs to one trace: whoever traces the program again makes another one.
    program.function = lambda *args: _Cut(function, wrt).forward(*args)
    if not cut.floats:
        return Pair(program, None, len(cut.results), (), (), ())
    cut.keep_sizes(specs)
    residuals = iter(range(len(specs) + len(cut.results), len(specs) + len(cut.results) + 10**9))
    kept = tuple(next(residuals) if same is None else same for same in cut.same)
    taken = [*cut.kept, *[cut.results[i] for i in cut.floats]]
    backward = _export(cut.backward, taken)
    return Pair(program, backward, len(cut.results), wrt, cut.floats, kept)


def _export(function: FlatFunction, specs: Sequence[Any]) -> JaxProgram:
    results: list[Any] = []

    def flat(*args: Any) -> list[Any]:
        found = [jnp.asarray(r) for r in function(*args)]
        results[:] = [_spec(r) for r in found]
        return found

    flat.__name__ = getattr(function, "__name__", "function")
    # Files of TensorFlow list the inputs that the program takes: all of them.
    with native.portable():
        exported = export.export(jax.jit(flat, keep_unused=True), platforms=PLATFORMS)(*specs)
    program = JaxProgram(exported.serialize())
    program.function, program.specs, program.results = function, tuple(specs), results
    return program


def keep_inputs(program: bytes) -> bytes:
    """``program``, or, where its module leaves out inputs that it does not use, one that has all.

    Programs in files of earlier releases leave them out.
    """
    exported = load(program)
    if len(exported.module_kept_var_idx) == len(exported.in_avals):
        return program
    specs = [_spec(a) for a in exported.in_avals]
    with x64_for([s.dtype for s in specs]):
        return _export(lambda *args: list(exported.call(*args)), specs)


class _Cut:
    """A function and its gradient, cut in two at the values that reverse mode keeps.

    Attributes:
        results: shapes and types of the results; ``floats``: which of them have gradients.
        kept: shapes and types of what the gradient needs; ``same``: which inputs these are.
    """

    def __init__(self, function: FlatFunction, wrt: tuple[int, ...]) -> None:
        self.function = function
        self.wrt = wrt
        self.__name__ = getattr(function, "__name__", "function")
        self.results: list[Any] = []
        self.floats: tuple[int, ...] = ()
        self.kept: list[Any] = []
        self.same: list[int | None] = []
        self.structure: Any = None

    def forward(self, *args: Any) -> list[Any]:
        """The results, and behind them what the gradient keeps and is no input."""

        def primal(*chosen: Any) -> tuple[list[Any], list[Any]]:
            values = list(args)
            for i, value in zip(self.wrt, chosen, strict=True):
                values[i] = value
            results = [jnp.asarray(r) for r in self.function(*values)]
            return [r for r in results if _has_gradient(r)], results

        chosen = [args[i] for i in self.wrt]
        if not chosen:
            results = primal()[1]
            self.results = [_spec(r) for r in results]
            return results
        _, pullback, results = jax.vjp(primal, *chosen, has_aux=True)
        self.results = [_spec(r) for r in results]
        self.floats = tuple(i for i, r in enumerate(results) if _has_gradient(r))
        if not self.floats:
            return list(results)
        leaves, self.structure = jax.tree.flatten(pullback)
        places = {id(a): i for i, a in enumerate(args)}
        self.same = [places.get(id(leaf)) for leaf in leaves]
        self.kept = [_spec(jnp.asarray(leaf)) for leaf in leaves]
        extra = [leaf for leaf, same in zip(leaves, self.same, strict=True) if same is None]
        return [*results, *extra]

    def keep_sizes(self, specs: Sequence[Any]) -> None:
        """Keep inputs too whose sizes are gradients' sizes that nothing else tells."""
        told = _told([*self.kept, *[self.results[i] for i in self.floats]])
        for i, spec in enumerate(specs):
            if not _told([spec]) <= told:
                told |= _told([spec])
                self.same.append(i)
                self.kept.append(spec)

    def backward(self, *args: Any) -> list[Any]:
        """Gradients of the chosen inputs from what was kept and the gradients of the results."""
        pullback = jax.tree.unflatten(self.structure, args[: self.structure.num_leaves])
        # JAX's gradients of complex numbers are the conjugates of TensorFlow's.
        return [conjugate(g) for g in pullback([conjugate(g) for g in args[len(self.same) :]])]


def _told(specs: Sequence[Any]) -> set[str]:
    """The symbolic sizes that arrays of these shapes tell: those that an axis has."""
    return {str(d) for s in specs for d in s.shape if not isinstance(d, int)}


def _has_gradient(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jnp.inexact))


def _spec(value: Any) -> Any:
    return _struct(value.shape, value.dtype)


def _struct(shape: Any, dtype: Any) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]


def conjugate(value: Any) -> Any:
    return jnp.conj(value) if jnp.iscomplexobj(value) else value


def gradient_of(program: JaxProgram, wrt: tuple[int, ...], used: tuple[int, ...]) -> Pair:
    """The gradient of a program by its function, of its inputs and gradients of ``used`` results.

    It computes the function again: for gradients of gradients.
    """
    function, count = program.function, len(program.specs)
    assert function is not None

    def gradient(*args: Any) -> list[Any]:
        values, grads = list(args[:count]), args[count:]

        def primal(*chosen: Any) -> list[Any]:
            given = list(values)
            for i, value in zip(wrt, chosen, strict=True):
                given[i] = value
            results = function(*given)
            return [results[i] for i in used]

        _, pullback = jax.vjp(primal, *[values[i] for i in wrt])
        return [conjugate(g) for g in pullback([conjugate(g) for g in grads])]

    # The symbols of the program are those of its gradient.
    specs = [*program.specs, *[program.results[i] for i in used]]
    again = tuple(i for i, s in enumerate(specs) if _has_gradient(s))
    with x64_for([s.dtype for s in specs]):
        return _traced(gradient, specs, again)

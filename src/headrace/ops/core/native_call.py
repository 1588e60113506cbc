"""One call of the native library (`headrace.native`), as kernels make it while they are traced."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from headrace import native
from headrace.ops.core.parallel import available_cores

#: Of fewer multiplications waking other threads takes longer than they would save.
LEAST_TOGETHER = 1 << 22

#: Room for so many spatial dimensions in what is handed over: `kMostSpatial` of `operations.h`.
_MOST_SPATIAL = 3


def by_dimension(*rows: Sequence[int]) -> list[int]:
    """Numbers of a case that there are for each spatial dimension: sizes, strides and the like."""
    return [n for row in rows for n in (*row, *[0] * (_MOST_SPATIAL - len(row)))]


def native_call(
    operation: str,
    numbers: Sequence[int],
    operands: Sequence[jax.Array],
    shape: Sequence[int],
    threads: int = 0,
) -> jax.Array | None:
    """The result of an operation by oneDNN, or None where that is not there or not fast.

    Args:
        operation: `native.CONVOLUTION`, say.
        numbers: its case, as `operations.h` describes it, without the type of the elements.
        operands: arrays of one type.
        shape: of the result, which has that type, too.
        threads: how many are to work; 0 takes as many as XLA has.
    """
    library = native.library()
    types = {operand.dtype.name for operand in operands}
    if library is None or len(types) > 1 or not types <= native.ELEMENTS.keys():
        return None
    sizes = [*shape, *(size for operand in operands for size in operand.shape)]
    if not all(isinstance(size, int) for size in sizes) or 0 in sizes:  # exported programs
        return None
    case = (native.ELEMENTS[types.pop()], *map(int, numbers))
    if not library.is_fast(operation, case, threads or available_cores()):
        return None
    call = jax.ffi.ffi_call(
        operation,
        jax.ShapeDtypeStruct(tuple(shape), operands[0].dtype),  # type: ignore[no-untyped-call]
        vmap_method="sequential",
    )
    made = call(*operands, numbers=np.array(case, np.int64), threads=np.int64(threads))
    return jnp.asarray(made)

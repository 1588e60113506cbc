"""Values that XLA is to make as they are said, before anything is made of them."""

from __future__ import annotations

from typing import TypeVar

from jax import lax

Values = TypeVar("Values")


def barrier(values: Values) -> Values:
    """The same array, or tuple or list of arrays, after all of them are made.

    XLA neither fuses nor rearranges across it; on CPUs that holds with
    `executor.region_options.CPU_OPTIONS`.
    """
    held: Values = lax.optimization_barrier(values)  # type: ignore[no-untyped-call]
    return held

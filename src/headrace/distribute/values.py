"""Values that differ between replicas, and structures of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.graph.tensor import Tensor
from headrace.ops.state import replica_scope

__all__ = ["PerReplica", "local_results", "regroup", "select"]


class PerReplica:
    """One value for each replica.

    Args:
        values: tensors or other objects, in the order of replicas.

    >>> strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    >>> with strategy.scope():
    ...     number = strategy.experimental_run_v2(
    ...         lambda: tf.distribute.get_replica_context().replica_id_in_sync_group)
    >>> number.values
    (0, 1)
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = tuple(values)

    def get(self, replica: int | None = None) -> Any:
        """The value of a replica; by default of the one that is being built.

        Raises:
            ValueError: across replicas, without a number.
        """
        if replica is None:
            place = replica_scope.current()
            if place is None or place.replica is None:
                raise ValueError(self._text("It has no single value across replicas"))
            replica = place.replica
        return self.values[replica]

    def _to_tensor(self, dtype: Any = None, name: str | None = None) -> Tensor:
        from headrace.ops.core.build import convert_to_tensor

        return convert_to_tensor(self.get(), dtype, name)

    def _as_graph_element(self) -> Any:
        raise TypeError(self._text("It cannot be fetched or fed as one tensor"))

    def _text(self, problem: str) -> str:
        return (
            f"{self!r} holds a value for each replica. {problem}: use strategy.reduce(...) for "
            "their sum or mean, or strategy.experimental_local_results(...) for all of them."
        )

    def __repr__(self) -> str:
        return f"PerReplica({', '.join(map(repr, self.values))})"


def _mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        pairs = [(k, _mapped(v, function)) for k, v in value.items()]
        kind: Any = type(value)
        return kind(pairs)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)._make(_mapped(v, function) for v in value)  # type: ignore[attr-defined]
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(v, function) for v in value)
    return function(value)


def select(replica: int, structure: Any) -> Any:
    """What one replica has of a structure."""

    def own(value: Any) -> Any:
        return value.values[replica] if isinstance(value, PerReplica) else value

    return _mapped(structure, own)


def regroup(results: Sequence[Any]) -> Any:
    """One structure of what all replicas have: equal objects as they are, others `PerReplica`.

    Raises:
        ValueError: if the structures of replicas differ.
    """
    first = results[0]
    if all(r is first for r in results):
        return first
    if isinstance(first, (Mapping, list, tuple)):
        _check_alike(results)
        if isinstance(first, Mapping):
            kind: Any = type(first)
            return kind([(key, regroup([r[key] for r in results])) for key in first])
        parts = [regroup([r[i] for r in results]) for i in range(len(first))]
        if hasattr(first, "_fields"):
            return type(first)._make(parts)  # type: ignore[union-attr]
        return type(first)(parts)
    if any(isinstance(r, (Mapping, list, tuple)) or r is None for r in results):
        _check_alike(results)
    if isinstance(first, (str, bytes, int, float)) and all(r == first for r in results):
        return first
    return PerReplica(results)


def _check_alike(results: Sequence[Any]) -> None:
    first = results[0]
    for number, other in enumerate(results):
        alike = type(other) is type(first)
        if alike and isinstance(first, Mapping):
            alike = set(other) == set(first)
        elif alike and isinstance(first, (list, tuple)):
            alike = len(other) == len(first)
        if not alike:
            raise ValueError(
                "The replicas of a strategy have to return structures that are alike, but replica "
                f"0 returns {_kind(first)} and replica {number} {_kind(other)}. Let the function "
                "return the same parts in all replicas."
            )


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"a {type(value).__name__} of {sorted(map(str, value))}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)} parts"
    return "None" if value is None else f"a {type(value).__name__}"


def local_results(value: Any, count: int) -> tuple[Any, ...]:
    """The values of all replicas of this process."""
    if isinstance(value, PerReplica):
        return value.values
    copies = getattr(value, "values", None)
    if isinstance(copies, tuple) and hasattr(value, "primary"):
        return copies  # a variable with copies
    if isinstance(value, (Mapping, list, tuple)):
        return tuple(select(i, value) for i in range(count))
    return (value,) * count

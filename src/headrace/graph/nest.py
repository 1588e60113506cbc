"""Nested structures of values: lists, tuples, named tuples and dictionaries.

A structure is flattened depth first; dictionaries in the order of their sorted keys. Strings,
arrays, tensors and everything else are leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any


def is_sequence(structure: Any) -> bool:
    """Whether ``structure`` is a container (and not a leaf)."""
    return isinstance(structure, (list, tuple, Mapping))


is_nested = is_sequence


#: How deep lists may lie in lists to make an array: as many dimensions as NumPy has.
MAX_DEPTH = 64


def flatten(structure: Any) -> list[Any]:
    """All leaves in order; a leaf alone gives a list of itself.

    >>> flatten({"b": 1, "a": [2, (3, 4)]})
    [2, 3, 4, 1]

    Raises:
        ValueError: if a container holds itself.
    """
    leaves: list[Any] = []
    try:
        _collect(structure, leaves)
    except RecursionError:
        raise too_deep(structure) from None
    return leaves


def check_depth(values: Any) -> None:
    """Refuse lists nested too deeply for an array, such as one that holds itself.

    NumPy would look through all that such a list seems to hold, for years. Lists make an array only
    if all parts are equally deep, so following the first elements tells.

    Raises:
        ValueError: if they are more than `MAX_DEPTH` deep.
    """
    inner = values
    for _ in range(MAX_DEPTH + 1):
        if not isinstance(inner, (list, tuple)) or not inner:
            return
        inner = inner[0]
    raise too_deep(values)


def too_deep(structure: Any) -> ValueError:
    """What is wrong with a structure that has no end, or whose end is too far inside."""
    kind = type(structure).__name__
    if _holds_itself(structure):
        return ValueError(f"The {kind} holds itself, directly or through others: {structure!r:.80}")
    return ValueError(f"The {kind} is nested more than {MAX_DEPTH} deep: {structure!r:.80}")


def _holds_itself(structure: Any) -> bool:
    """Whether a container is reached from itself: depth first, without recursion."""
    above: set[int] = {id(structure)}
    path = [(structure, iter(_containers(structure)))]
    done: set[int] = set()
    while path:
        container, rest = path[-1]
        inner = next(rest, None)
        if inner is None:
            above.discard(id(container))
            done.add(id(container))
            path.pop()
        elif id(inner) in above:
            return True
        elif id(inner) not in done:
            above.add(id(inner))
            path.append((inner, iter(_containers(inner))))
    return False


def _containers(structure: Any) -> list[Any]:
    items = structure.values() if isinstance(structure, Mapping) else structure
    return [item for item in items if is_sequence(item)]


def _collect(structure: Any, leaves: list[Any]) -> None:
    if not is_sequence(structure):
        leaves.append(structure)
        return
    for item in _items(structure):
        _collect(item, leaves)


def _items(structure: Any) -> list[Any]:
    if isinstance(structure, Mapping):
        return [structure[k] for k in _keys(structure)]
    return list(structure)


def _keys(structure: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(structure)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """``flat_sequence`` in the form of ``structure``: the inverse of ``flatten``.

    Raises:
        TypeError: if ``flat_sequence`` is no sequence.
        ValueError: if the number of leaves differs.
    """
    if not isinstance(flat_sequence, (list, tuple)):
        raise TypeError(f"flat_sequence must be a sequence, not {flat_sequence!r}")
    flat = list(flat_sequence)
    if not is_sequence(structure):
        if len(flat) != 1:
            raise ValueError(
                f"Structure is a scalar but len(flat_sequence) == {len(flat)} > 1: {flat!r}"
            )
        return flat[0]
    expected = len(flatten(structure))
    if expected != len(flat):
        raise ValueError(
            f"Could not pack sequence. Structure had {expected} elements, but flat_sequence had "
            f"{len(flat)} elements. Structure: {structure!r}, flat_sequence: {flat!r}."
        )
    return _rebuild(structure, iter(flat))


def _rebuild(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_sequence(structure):
        return next(leaves)
    return _like(structure, [_rebuild(item, leaves) for item in _items(structure)])


def _like(structure: Any, items: list[Any]) -> Any:
    """A container of the type of ``structure`` that holds ``items``."""
    if isinstance(structure, Mapping):
        by_key = dict(zip(_keys(structure), items, strict=True))
        ordered = {k: by_key[k] for k in structure}
        return ordered if type(structure) is dict else type(structure)(ordered)  # type: ignore[call-arg]
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*items)
    return type(structure)(items)


def map_structure(function: Callable[..., Any], *structures: Any, **options: Any) -> Any:
    """``function`` of the corresponding leaves of one or more structures of the same form.

    Args:
        check_types: also compare the types of the containers (default True).

    Raises:
        TypeError: if ``function`` cannot be called or no structure is given.
        ValueError: if the structures differ.
    """
    check_types = options.pop("check_types", True)
    if options:
        raise ValueError(f"Only valid keyword argument is check_types, not {sorted(options)}.")
    if not callable(function):
        raise TypeError(f"func must be callable, got: {function!r}")
    if not structures:
        raise ValueError("Must provide at least one structure")
    for other in structures[1:]:
        assert_same_structure(structures[0], other, check_types)
    columns = zip(*[flatten(s) for s in structures], strict=True)
    return pack_sequence_as(structures[0], [function(*leaves) for leaves in columns])


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Check that two structures have the same form.

    Raises:
        ValueError: if they do not nest in the same way.
        TypeError: if they use containers of different types (with ``check_types``).
    """
    try:
        _assert_same(nest1, nest2, check_types)
    except (ValueError, TypeError) as error:
        raise type(error)(
            "The two structures don't have the same nested structure.\n\n"
            f"First structure: type={type(nest1).__name__} str={nest1}\n\n"
            f"Second structure: type={type(nest2).__name__} str={nest2}\n\n"
            f"More specifically: {error}"
        ) from None


def _assert_same(a: Any, b: Any, check_types: bool) -> None:
    if is_sequence(a) != is_sequence(b):
        nested, leaf = (a, b) if is_sequence(a) else (b, a)
        raise ValueError(f'Substructure "{nested}" is a sequence, while "{leaf}" is not.')
    if not is_sequence(a):
        return
    if isinstance(a, Mapping) != isinstance(b, Mapping):
        raise TypeError(f"One is a dictionary: {type(a).__name__} and {type(b).__name__}.")
    if isinstance(a, Mapping):
        if set(a) != set(b):
            raise ValueError(f"The two dictionaries have different keys: {list(a)} and {list(b)}.")
    elif check_types and not _same_kind(a, b):
        raise TypeError(f"Containers of types {type(a).__name__} and {type(b).__name__}.")
    if len(a) != len(b):
        raise ValueError(f"They have {len(a)} and {len(b)} elements: {a} and {b}.")
    for x, y in zip(_items(a), _items(b), strict=True):
        _assert_same(x, y, check_types)


def _same_kind(a: Any, b: Any) -> bool:
    """Equal types; named tuples of the same name and fields count as equal."""
    fields = getattr(a, "_fields", None)
    if fields is not None and fields == getattr(b, "_fields", None):
        return type(a).__name__ == type(b).__name__
    return type(a) is type(b)


def flatten_up_to(shallow: Any, structure: Any) -> list[Any]:
    """The parts of ``structure`` that stand where ``shallow`` has leaves.

    Raises:
        ValueError: if ``structure`` is not at least as deep as ``shallow``.
    """
    if not is_sequence(shallow):
        return [structure]
    if not is_sequence(structure) or len(shallow) != len(structure):
        raise ValueError(f"{structure!r} does not have the structure of {shallow!r}.")
    found: list[Any] = []
    for part, inner in zip(_items(shallow), _items(structure), strict=True):
        found.extend(flatten_up_to(part, inner))
    return found


__all__ = [
    "assert_same_structure",
    "flatten",
    "flatten_up_to",
    "is_nested",
    "is_sequence",
    "map_structure",
    "pack_sequence_as",
]

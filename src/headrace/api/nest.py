"""``tf.nest`` and ``tf.contrib.framework.nest``: nested structures of values.

With ``expand_composites`` sparse tensors, ragged tensors and slices are structures of their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from headrace.graph import nest as _nest
from headrace.graph.composite import CompositeTensor
from headrace.graph.nest import is_nested, is_sequence

__all__ = [
    "assert_same_structure",
    "assert_shallow_structure",
    "flatten",
    "flatten_dict_items",
    "flatten_up_to",
    "flatten_with_joined_string_paths",
    "flatten_with_tuple_paths",
    "is_nested",
    "is_sequence",
    "is_sequence_or_composite",
    "map_structure",
    "map_structure_up_to",
    "map_structure_with_paths",
    "map_structure_with_tuple_paths",
    "pack_sequence_as",
    "yield_flat_paths",
]


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """All leaves in order, whatever their shape; a leaf alone gives a list of itself.

    Dictionaries give their values in the order of their sorted keys.

    Raises:
        TypeError: if the keys of a dictionary cannot be sorted.
    """
    leaves = _nest.flatten(structure)
    return _expanded(leaves) if expand_composites else leaves


def _expanded(leaves: list[Any]) -> list[Any]:
    return [part for leaf in leaves for part in _parts(leaf)]


def _parts(leaf: Any) -> list[Any]:
    return list(leaf._parts()) if isinstance(leaf, CompositeTensor) else [leaf]


def pack_sequence_as(
    structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False
) -> Any:
    """``flat_sequence`` in the form of ``structure``: the inverse of `flatten`.

    Args:
        flat_sequence: as many leaves as ``structure`` has, of any shape.

    Raises:
        TypeError: if ``flat_sequence`` is no sequence.
        ValueError: if the number of leaves differs.
    """
    if not expand_composites:
        return _nest.pack_sequence_as(structure, flat_sequence)
    rest = list(flat_sequence)
    leaves = []
    for leaf in _nest.flatten(structure):
        count = len(_parts(leaf))
        taken, rest = rest[:count], rest[count:]
        leaves.append(leaf._from_parts(taken) if isinstance(leaf, CompositeTensor) else taken[0])
    return _nest.pack_sequence_as(structure, leaves)


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """``func`` of the corresponding leaves of structures of the same form.

    Args:
        func: takes one leaf of each structure; leaves may have any shape.
        check_types: also compare the types of the containers (default True).
        expand_composites: see the module.

    Returns:
        The results in the form of the first structure.

    Raises:
        TypeError: if ``func`` cannot be called, or containers differ in type (with
            ``check_types``).
        ValueError: if the structures differ in form, or there is none.
    """
    if not kwargs.pop("expand_composites", False):
        return _nest.map_structure(func, *structure, **kwargs)
    columns = zip(*[flatten(s, True) for s in structure], strict=True)
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in columns], True)


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Check that two structures have the same form.

    Args:
        nest1, nest2: nests of lists, tuples, dictionaries and the like; what the leaves are, and
            their shapes, does not count.
        nest1, nest2: nests of lists, tuples, dictionaries and the like; what the leaves are, and
            their shapes, does not count.

    Raises:
        ValueError: if they do not nest in the same way.
        TypeError: if they use containers of different types (with ``check_types``).
    """
    _nest.assert_same_structure(nest1, nest2, check_types)


def is_sequence_or_composite(seq: Any) -> bool:
    """Whether ``seq`` is a container, or a tensor made of tensors."""
    return is_sequence(seq) or isinstance(seq, CompositeTensor)


def flatten_dict_items(dictionary: Mapping[Any, Any]) -> dict[Any, Any]:
    """A dictionary whose keys and values may be structures, with their leaves as items.

    Raises:
        TypeError: if ``dictionary`` is none.
        ValueError: if a key and its value differ in form, or a key comes twice.
    """
    if not isinstance(dictionary, Mapping):
        raise TypeError("input must be a dictionary")
    flat: dict[Any, Any] = {}
    for key, value in dictionary.items():
        keys, values = ([key], [value]) if not is_nested(key) else (flatten(key), flatten(value))
        if len(keys) != len(values):
            raise ValueError(
                f"Could not flatten dictionary. Key had {len(keys)} elements, but value had "
                f"{len(values)} elements. Key: {key}, value: {value}."
            )
        for k, v in zip(keys, values, strict=True):
            if k in flat:
                raise ValueError(
                    "Could not flatten dictionary: key %s is not unique." % (k,)  # noqa: UP031
                )
            flat[k] = v
    return flat


def assert_shallow_structure(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Check that ``shallow_tree`` is the upper part of ``input_tree``.

    Args:
        shallow_tree, input_tree: nests; what the leaves are, and their shapes, does not count.
        shallow_tree, input_tree: nests; what the leaves are, and their shapes, does not count.

    Raises:
        TypeError: if containers differ in type (with ``check_types``), or one is a leaf.
        ValueError: if they differ in length or keys.
    """
    if not is_sequence(shallow_tree):
        return
    if not is_sequence(input_tree):
        raise TypeError(
            "If shallow structure is a sequence, input must also be a sequence. Input has type: "
            f"{type(input_tree)}."
        )
    mappings = isinstance(shallow_tree, Mapping) and isinstance(input_tree, Mapping)
    if check_types and not mappings and type(shallow_tree) is not type(input_tree):
        raise TypeError(
            "The two structures don't have the same sequence type. Input structure has type "
            f"{type(input_tree)}, while shallow structure has type {type(shallow_tree)}."
        )
    if len(shallow_tree) != len(input_tree):
        raise ValueError(
            "The two structures don't have the same sequence length. Input structure has length "
            f"{len(input_tree)}, while shallow structure has length {len(shallow_tree)}."
        )
    if mappings and set(shallow_tree) != set(input_tree):
        raise ValueError(
            f"The two structures don't have the same keys: {sorted(input_tree)} and "
            f"{sorted(shallow_tree)}."
        )
    for upper, whole in zip(_children(shallow_tree), _children(input_tree), strict=True):
        assert_shallow_structure(upper, whole, check_types)


def _children(structure: Any) -> list[Any]:
    return [value for _, value in _named_children(structure)]


def _named_children(structure: Any) -> list[tuple[Any, Any]]:
    if isinstance(structure, Mapping):
        return [(key, structure[key]) for key in sorted(structure)]
    names = getattr(structure, "_fields", None) or range(len(structure))
    return list(zip(names, structure, strict=True))


def flatten_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False
) -> list[Any]:
    """The parts of ``input_tree`` that stand where ``shallow_tree`` has leaves.

    Returns:
        A list: leaves of any shape, or whole structures.
        A list: leaves of any shape, or whole structures.

    Raises:
        TypeError, ValueError: as `assert_shallow_structure`.
    """
    assert_shallow_structure(shallow_tree, input_tree, check_types)
    return _nest.flatten_up_to(shallow_tree, input_tree)


def map_structure_up_to(
    shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any
) -> Any:
    """``func`` of the parts of each input that stand where ``shallow_tree`` has leaves.

    Returns:
        The results, of any shape, in the form of ``shallow_tree``.
        The results, of any shape, in the form of ``shallow_tree``.

    Raises:
        ValueError: if there is no input, or as `assert_shallow_structure`.
    """
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    check_types = kwargs.pop("check_types", True)
    columns = [flatten_up_to(shallow_tree, tree, check_types) for tree in inputs]
    return pack_sequence_as(shallow_tree, [func(*p) for p in zip(*columns, strict=True)])


def yield_flat_paths(nest: Any, expand_composites: bool = False) -> Iterator[tuple[Any, ...]]:
    """For each leaf, of any shape, the keys and indices that lead to it.

    Raises:
        TypeError: if the keys of a dictionary cannot be sorted.
    """
    for path, _ in flatten_with_tuple_paths(nest):
        yield path


def flatten_with_tuple_paths(
    structure: Any, expand_composites: bool = False
) -> list[tuple[tuple[Any, ...], Any]]:
    """Each leaf, of any shape, with the keys and indices that lead to it.

    Raises:
        TypeError: if the keys of a dictionary cannot be sorted.
    """
    if not is_sequence(structure):
        return [((), structure)]
    return [
        ((name, *path), leaf)
        for name, child in _named_children(structure)
        for path, leaf in flatten_with_tuple_paths(child)
    ]


def flatten_with_joined_string_paths(
    structure: Any, separator: str = "/", expand_composites: bool = False
) -> list[tuple[str, Any]]:
    """Each leaf, of any shape, with what leads to it as one string.

    Raises:
        TypeError: if the keys of a dictionary cannot be sorted.
    """
    found = flatten_with_tuple_paths(structure)
    return [(separator.join(map(str, path)), leaf) for path, leaf in found]


def map_structure_with_tuple_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """As `map_structure`; ``func`` also gets the path of the leaves, first.

    Raises:
        TypeError, ValueError: as `map_structure`, whatever the shape of the leaves.
    """
    if not structure:
        raise ValueError("Must provide at least one structure")
    paths = iter([path for path, _ in flatten_with_tuple_paths(structure[0])])
    return map_structure(lambda *leaves: func(next(paths), *leaves), *structure, **kwargs)


def map_structure_with_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """As `map_structure`; ``func`` also gets the path of the leaves as a string, first.

    Raises:
        TypeError, ValueError: as `map_structure`, whatever the shape of the leaves.
    """
    return map_structure_with_tuple_paths(
        lambda path, *leaves: func("/".join(map(str, path)), *leaves), *structure, **kwargs
    )

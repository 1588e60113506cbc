"""Nested structures."""

from __future__ import annotations

import collections

import pytest

from headrace.graph import nest

Point = collections.namedtuple("Point", "x y")


def test_flatten_goes_depth_first_with_sorted_keys():
    structure = {"b": (1, [2]), "a": Point(x={"k": 3}, y="text")}
    assert nest.flatten(structure) == [3, "text", 1, 2]
    assert nest.flatten(5) == [5]


def test_pack_restores_types_and_order_of_keys():
    structure = collections.OrderedDict([("z", Point(0, [0])), ("a", (0,))])
    packed = nest.pack_sequence_as(structure, [1, 2, 3])
    assert packed == collections.OrderedDict([("z", Point(2, [3])), ("a", (1,))])
    assert type(packed) is collections.OrderedDict
    assert list(packed) == ["z", "a"]


def test_map_structure_takes_several_structures():
    assert nest.map_structure(lambda a, b: a + b, [1, (2,)], [10, (20,)]) == [11, (22,)]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nest.pack_sequence_as([1, 2], [1]), ValueError, "had 2 elements"),
        (lambda: nest.pack_sequence_as(1, [1, 2]), ValueError, "is a scalar"),
        (lambda: nest.pack_sequence_as([1], 1), TypeError, "must be a sequence"),
        (lambda: nest.assert_same_structure([1], 1), ValueError, "is a sequence, while"),
        (lambda: nest.assert_same_structure([1], (1,)), TypeError, "Containers of types"),
        (lambda: nest.assert_same_structure({"a": 1}, {"b": 1}), ValueError, "different keys"),
        (lambda: nest.assert_same_structure([1, 2], [1]), ValueError, "2 and 1 elements"),
        (lambda: nest.map_structure(1, [1]), TypeError, "must be callable"),
    ],
)
def test_refuses(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_types_of_containers_may_be_ignored():
    nest.assert_same_structure([1, (2,)], (1, [2]), check_types=False)

"""The rule that gives a random operation its two seeds."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from headrace.graph.random_seed import DEFAULT_GRAPH_SEED, get_seed


@dataclass
class FakeGraph:
    seed: int | None
    _last_id: int = 4


@pytest.mark.parametrize(
    ("graph_seed", "op_seed", "expected"),
    [
        (None, None, (None, None)),
        (None, 0, (DEFAULT_GRAPH_SEED, 0)),
        (None, 12, (87654321, 12)),
        (12, None, (12, 4)),
        (12, 34, (12, 34)),
        (0, 0, (0, 2**31 - 1)),
        (2**31 - 1, 0, (0, 2**31 - 1)),
        (-1, 2**31, (2**31 - 2, 1)),
        (0, 5, (0, 5)),
    ],
)
def test_get_seed(
    graph_seed: int | None, op_seed: int | None, expected: tuple[int | None, int | None]
) -> None:
    assert get_seed(FakeGraph(graph_seed), op_seed) == expected


def test_operations_made_later_get_other_seeds() -> None:
    assert get_seed(FakeGraph(3, _last_id=1), None) != get_seed(FakeGraph(3, _last_id=2), None)

"""The rule that gives a random operation its two seeds."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from headrace.graph.random_seed import DEFAULT_GRAPH_SEED, get_seed


@dataclass
class FakeGraph:
    seed: int | None
    given: int = 0

    def _next_op_seed(self) -> int:
        self.given += 1
        return self.given - 1


@pytest.mark.parametrize(
    ("graph_seed", "op_seed", "expected"),
    [
        (None, None, (None, None)),
        (None, 0, (DEFAULT_GRAPH_SEED, 0)),
        (None, 12, (87654321, 12)),
        (12, None, (12, 0)),
        (12, 34, (12, 34)),
        (0, 0, (0, 2**31 - 1)),
        (2**31 - 1, 0, (0, 2**31 - 1)),
        (-1, 2**31, (2**31 - 2, 1)),
        (0, 5, (0, 5)),
        (0, None, (0, 2**31 - 1)),
    ],
)
def test_get_seed(
    graph_seed: int | None, op_seed: int | None, expected: tuple[int | None, int | None]
) -> None:
    assert get_seed(FakeGraph(graph_seed), op_seed) == expected


def test_operations_made_later_get_other_seeds() -> None:
    graph = FakeGraph(3)
    assert [get_seed(graph, None) for _ in range(3)] == [(3, 0), (3, 1), (3, 2)]
    assert get_seed(graph, 7) == (3, 7)
    assert get_seed(graph, None) == (3, 3)

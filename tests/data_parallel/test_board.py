"""What workers of a plain script tell each other by name."""

import pytest

from headrace.data_parallel.board import Board
from headrace.harness.cluster import with_cluster

CHIEF = "/job:worker/task:0"


@pytest.mark.process
def test_all_hear_what_one_has_told():
    with with_cluster(worker=2) as cluster:
        first, second = (Board(cluster.target("worker", i), None, CHIEF) for i in range(2))
        assert second.hear("where") is None
        first.tell("where", "here")
        first.tell("else", "there")
        assert [b.hear("where") for b in (first, second)] == ["here", "here"]
        second.tell("where", "gone")
        assert first.hear("where") == "gone"


@pytest.mark.process
def test_who_waits_hears_what_comes_later_or_nothing():
    with with_cluster(worker=1) as cluster:
        board = Board(cluster.target("worker"), None, CHIEF, pause=lambda seconds: None)
        looks = []

        def meanwhile():
            looks.append(1)
            if len(looks) == 3:
                board.tell("late", "now")
            return True

        assert board.hear("late", 1.0, meanwhile) == "now"
        assert len(looks) == 3
        assert board.hear("never", 0.1) is None
        assert board.hear("never", 60.0, lambda: False) is None


def test_a_board_is_no_graph_of_the_script(second):
    """Workers count those alike, and not each has a board."""
    before = set(second.graphs)
    board = Board("", None, CHIEF)
    assert board
    assert set(second.graphs) == before

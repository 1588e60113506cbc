"""Steps that are run once for all, with workers that join a job that is under way."""

import threading
from types import SimpleNamespace

import headrace as tf
from headrace.data_parallel.turns import Turns


def test_a_worker_that_joins_later_has_no_number_that_others_wait_for():
    """The numbers were made for two; the third comes to its steps all the same."""
    server = tf.train.Server.create_local_server()
    try:
        made = {
            worker: Turns(server.target, None, "/job:localhost/task:0", "", worker, workers)
            for worker, workers in ((0, 2), (1, 2), (2, 3))
        }
        log = []

        def come(worker):
            return made[worker].run(
                lambda: log.append(f"{worker} runs it") or "all",
                lambda: log.append(f"{worker} does the rest") or "rest",
                lambda: True,
                frozenset(),
            )

        assert [come(worker) for worker in (0, 1, 2)] == ["all", "rest", "rest"]
        assert log == ["0 runs it", "1 does the rest", "2 does the rest"]
        assert made[0]._numbers() == [1, 0, 1]
        for turns in made.values():
            turns.close()
    finally:
        server.stop()


def test_workers_wait_for_the_first_steps_of_all():
    """Who is there first is woken when the last one has trained; who joins later does not wait."""
    server = tf.train.Server.create_local_server()
    device, gone = "/job:localhost/task:0", []
    ranks = ((0, 3), (1, 3), (2, 3), (3, 4))
    made = [Turns(server.target, None, device, "", w, count) for w, count in ranks]

    def gather(worker):
        made[worker].gather()
        gone.append(worker)

    try:
        assert made[0]._numbers() == [0, 0, 0, 0]  # the chief has begun
        gather(3)
        first = [threading.Thread(target=gather, args=[worker]) for worker in (0, 1)]
        for thread in first:
            thread.start()
        assert gone == [3]
        gather(2)
        for thread in first:
            thread.join()
        assert sorted(gone) == [0, 1, 2, 3]
        gather(1)  # as one that was started again
    finally:
        for turns in made:
            turns.close()
        server.stop()


def test_workers_wait_no_longer_than_they_are_told():
    server = tf.train.Server.create_local_server()
    made = [Turns(server.target, None, "/job:localhost/task:0", "", w, 2) for w in range(2)]
    try:
        made[0].gather(seconds=0.05)
        made[1].gather()  # the other one has trained
    finally:
        for turns in made:
            turns.close()
        server.stop()


def test_who_waits_does_something_meanwhile():
    """It is told whether it still waits: the chief comes while it asks."""
    server, seen = tf.train.Server.create_local_server(), []

    def meanwhile(waits):
        seen.append(waits())
        made[0].run(bool, bool, lambda: True, frozenset())
        seen.append(waits())

    made = [
        Turns(server.target, None, "/job:localhost/task:0", "", w, 2, f)
        for w, f in enumerate((None, meanwhile))
    ]
    try:
        made[1].run(bool, bool, lambda: True, frozenset())
        assert seen == [True, False]
    finally:
        for turns in made:
            turns.close()
        server.stop()


def test_workers_without_servers_wait_for_nobody_that_was_lost():
    server, looks = tf.train.Server.create_local_server(), []
    device = "/job:localhost/task:0"
    group = SimpleNamespace(
        chief=0, shared_device=device, has_ended=[False, True].__getitem__, find_chief=bool
    )
    made = Turns(server.target, None, device, "", 0, 2, pause=looks.append, group=group)
    try:
        made.meet()
        assert len(looks) < 100  # of 3000
        # Its own number, and that it has seen all come.
        assert made._numbers() == [1, 1, 0, 1, 0]
    finally:
        made.close()
        server.stop()


def test_workers_meet_at_another_one_when_the_chief_was_lost():
    """What is on its task goes with it: the second worker has other numbers."""
    servers = [tf.train.Server.create_local_server() for _ in range(2)]
    group = SimpleNamespace(
        chief=0, shared_device="/task:0", has_ended=lambda worker: False, find_chief=bool
    )
    made = [Turns(servers[0].target, None, "/task:0", "", w, 2, group=group) for w in (0, 1)]
    try:
        both = [threading.Thread(target=turns.meet) for turns in made]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        servers[0].stop()
        group.chief, group.shared_device = 1, "/job:localhost/task:0"
        group.has_ended = [True, False].__getitem__
        made[1]._where = servers[1].target, None, ""
        made[1].meet()
        assert made[1].is_chief
        assert made[1]._numbers() == [2, 0, 2, 0, 2]
    finally:
        for turns in made:
            turns.close()
        servers[1].stop()

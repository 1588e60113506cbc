"""Steps that are run once for all, with workers that join a job that is under way."""

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
    """Who is there first goes on when the others have trained, or does not come in time."""
    server = tf.train.Server.create_local_server()
    made, pauses = {}, []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 5:
            made[0]._all_have_trained()
        if len(pauses) == 10:
            made[2]._all_have_trained()

    try:
        device = "/job:localhost/task:0"
        for worker, workers in ((0, 3), (1, 3), (2, 3), (3, 4)):
            made[worker] = Turns(server.target, None, device, "", worker, workers, pause)
        made[1].gather()
        assert len(pauses) == 10
        made[0].gather()
        made[3].gather()  # it has joined later
        assert len(pauses) == 10
    finally:
        for turns in made.values():
            turns.close()
        server.stop()

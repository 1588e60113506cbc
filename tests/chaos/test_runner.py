"""A schedule is followed, by a clock that the test moves."""

import signal

from headrace.chaos.runner import follow
from headrace.chaos.schedule import Fault


class Noting:
    """Tasks that note what happens to them, and when."""

    def __init__(self):
        self.now, self.looks, self.done = 0.0, 0, []

    def start(self, task):
        self.done.append((round(self.now, 2), "start", task))

    def end(self, task, number):
        self.done.append((round(self.now, 2), number.name, task))
        self.now += 0.05  # it takes a while

    def signal(self, task, number):
        self.done.append((round(self.now, 2), number.name, task))

    def look(self):
        self.looks += 1

    def wait(self, seconds):
        assert 0 < seconds <= 0.25
        self.now += seconds


def test_faults_begin_and_end_in_the_order_of_their_times():
    tasks = Noting()
    schedule = [
        Fault(1.0, "stop", "ps/0", 2.0),
        Fault(1.5, "kill", "worker/1", 1.0),
        Fault(2.0, "restart", "ps/1", 0.0),
    ]
    follow(schedule, 4.0, tasks, lambda: tasks.now, tasks.wait)
    assert tasks.done == [
        (1.0, signal.SIGSTOP.name, "ps/0"),
        (1.5, signal.SIGKILL.name, "worker/1"),
        (2.0, signal.SIGTERM.name, "ps/1"),
        (2.05, "start", "ps/1"),
        (2.5, "start", "worker/1"),
        (3.0, signal.SIGCONT.name, "ps/0"),
    ]
    assert tasks.now >= 4.0
    assert tasks.looks > 10

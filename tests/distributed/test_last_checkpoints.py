"""The last checkpoint, when the connections of who had the chief's duties have just broken."""

from __future__ import annotations

import threading

import pytest
from server_clusters import eventually

import headrace as tf
from headrace.train.chief_candidate import ChiefCandidate


class Duties(tf.train.SessionRunHook):
    """A hook of a chief: how often it was told of a step and of the end."""

    steps = ends = 0

    def before_run(self, run_context):
        self.steps += 1

    def end(self, session):
        self.ends += 1


class Worker:
    """A training of one worker, in a graph of its own."""

    def __init__(self, servers, index, folder) -> None:
        self.graph, self.duties = tf.Graph(), Duties()
        self._server = servers["worker", index]
        with self.graph.as_default():
            with tf.device("/job:ps/task:0"):
                step = tf.train.get_or_create_global_step()
                self._train = tf.assign_add(step, 1)
            self.session = tf.train.MonitoredTrainingSession(
                servers.target("worker", index),
                index == 0,
                checkpoint_dir=str(folder),
                chief_only_hooks=[self.duties],
                save_checkpoint_steps=1000,
                save_summaries_steps=None,
                log_step_count_steps=None,
            )

    def step(self):
        with self.graph.as_default():
            return int(self.session.run(self._train))

    def is_on_duty(self):
        """Whether it has the duties in a step that it makes."""
        before = self.duties.steps
        self.step()
        return self.duties.steps > before

    def break_connections(self):
        for link in self._server.task.peers.all():
            link.fail("cut by the test")

    def close(self):
        with self.graph.as_default():
            self.session.close()


def saved(folder):
    """The step of the newest checkpoint."""
    return int(tf.train.latest_checkpoint(str(folder)).rpartition("-")[2])


@pytest.fixture
def may_stand(monkeypatch):
    """Workers stand for the duties, or do so again, when this is set."""
    event, follow = threading.Event(), ChiefCandidate._follow

    def follow_later(candidate):
        event.wait(20)
        follow(candidate)

    monkeypatch.setattr(ChiefCandidate, "_follow", follow_later)
    event.set()
    return event


def test_a_chief_whose_connection_broke_before_its_end_writes_it(cluster, tmp_path, may_stand):
    worker = Worker(cluster(ps=1, worker=1), 0, tmp_path)
    assert worker.is_on_duty()
    may_stand.clear()
    worker.break_connections()
    assert eventually(lambda: not worker.is_on_duty())
    last = worker.step()
    may_stand.set()
    worker.close()
    assert worker.duties.ends == 1
    assert saved(tmp_path) == last


def test_a_worker_that_took_the_duties_over_writes_it(cluster, tmp_path, may_stand):
    servers = cluster(ps=1, worker=2)
    first, second = (Worker(servers, index, tmp_path) for index in range(2))
    assert first.is_on_duty()
    assert not second.is_on_duty()
    may_stand.clear()
    first.break_connections()
    assert eventually(second.is_on_duty)
    assert eventually(lambda: not first.is_on_duty())
    may_stand.set()
    first.close()
    assert first.duties.ends == 0
    last = second.step()
    second.close()
    assert second.duties.ends == 1
    assert saved(tmp_path) == last

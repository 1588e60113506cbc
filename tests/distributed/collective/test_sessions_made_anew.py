"""All-reduce when one member's session is made anew, and the others' steps have gone on."""

import threading

import numpy as np
import pytest
from server_clusters import eventually

import headrace as tf

WORKERS = 3


class _Break(tf.train.SessionRunHook):
    """Fails one step of one worker, before or after it has taken part in the sums."""

    def __init__(self, before, at):
        self._before, self._at, self._count = before, at, 0

    def before_run(self, run_context):
        self._count += 1
        if self._before and self._count == self._at:
            raise tf.errors.AbortedError(None, None, "a server is gone")

    def after_run(self, run_context, run_values):
        if not self._before and self._count == self._at:
            self._count += 1
            raise tf.errors.AbortedError(None, None, "a server is gone")


class _Member:
    """A worker that trains in a thread, until it has made so many steps."""

    def __init__(self, servers, index, steps, hooks=()):
        self.graph = tf.Graph()
        self.acknowledged = 0
        self.error = None
        self.values = None
        self._made, self._steps = servers, steps
        with self.graph.as_default(), tf.device(f"/job:worker/task:{index}"):
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", initializer=np.full(4, index, np.float32))
            flag = tf.get_variable("flag", initializer=tf.constant(True), trainable=False)
            loss = tf.reduce_sum(tf.square(w - float(index)))
            optimizer = tf.train.AllReduceOptimizer(tf.train.MomentumOptimizer(0.01, 0.9), WORKERS)
            train = optimizer.minimize(loss, global_step=step)
            self.hooks = [optimizer.make_session_run_hook(index == 0), *hooks]
            self._fetches = [step, w, flag, *[v for v in tf.global_variables() if "Mom" in v.name]]
        self._train, self._step = train, step
        self._target, self._is_chief = servers.target("worker", index), index == 0
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self):
        try:
            with (
                self.graph.as_default(),
                tf.train.MonitoredTrainingSession(
                    self._target, True, hooks=self.hooks, log_step_count_steps=None
                ) as session,
            ):
                done = 0
                while done < self._steps:
                    done, _ = session.run([self._step, self._train])
                    done = session.run(self._step)
                    self.acknowledged = max(self.acknowledged, int(done))
                self.values = session.run(self._fetches)
        except BaseException as error:
            self.error = error


def _together(cluster, breaks):
    servers = cluster(worker=WORKERS)
    members = [_Member(servers, i, 12, breaks.get(i, [])) for i in range(WORKERS)]
    assert eventually(lambda: not any(m.thread.is_alive() for m in members), 60)
    assert [m.error for m in members] == [None] * WORKERS
    first = members[0].values
    for member in members:
        assert member.acknowledged == 12
        for one, other in zip(first, member.values, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("broken", [0, 2])
@pytest.mark.parametrize("before", [True, False])
def test_all_go_on_together(cluster, broken, before):
    _together(cluster, {broken: [_Break(before, 5)]})


@pytest.mark.parametrize("steps", [(5, 5), (5, 6), (1, 2), (12, 3)])
def test_two_sessions_that_are_made_anew_at_once(cluster, steps):
    _together(cluster, {0: [_Break(True, steps[0])], 1: [_Break(False, steps[1])]})


class _Kill(_Break):
    """Ends another worker in that moment, too."""

    def __init__(self, server, at):
        super().__init__(True, at)
        self._server = server

    def before_run(self, run_context):
        if self._count == self._at - 1:
            self._server.stop()
        super().before_run(run_context)


@pytest.mark.parametrize(("broken", "killed"), [(0, 2), (1, 0)])
def test_one_dies_while_another_s_session_is_made_anew(cluster, broken, killed):
    servers = cluster(worker=WORKERS)
    kill = _Kill(servers["worker", killed], 5)
    members = [_Member(servers, i, 12, [kill] if i == broken else []) for i in range(WORKERS)]
    left = [m for i, m in enumerate(members) if i != killed]
    assert eventually(lambda: not any(m.thread.is_alive() for m in left), 60)
    assert [m.error for m in left] == [None, None]
    for one, other in zip(left[0].values, left[1].values, strict=True):
        np.testing.assert_array_equal(one, other)
    members[killed].thread.join(60)

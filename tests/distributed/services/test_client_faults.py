"""Faults between a client and its master: no wrong result, no hang, nothing left."""

import itertools

import pytest
from server_clusters import eventually

import headrace as tf
from headrace.distributed.services import client
from headrace.distributed.services.dialling import dial
from headrace.distributed.services.task import Task
from headrace.errors import UnavailableError
from headrace.harness.faults import FaultRule, Faults


@pytest.fixture
def faults(monkeypatch, remote):
    """Faults on all links of clients, who act as if they were in other processes."""
    made = Faults()
    adopt = Task.adopt

    def faulty_dial(controls, address, task, me, *args, **ways):
        pipe, peer = dial(controls, address, task, me, *args, **ways)
        return made.wrap(pipe, "client", "master"), peer

    def faulty_adopt(self, pipe, peer):
        if peer.task.startswith("client:"):
            pipe = made.wrap(pipe, "master", "client")
        adopt(self, pipe, peer)

    monkeypatch.setattr(client, "dial", faulty_dial)
    monkeypatch.setattr(Task, "adopt", faulty_adopt)
    return made


def test_every_frame_of_a_client_meets_every_fault(cluster, faults):
    servers = cluster(worker=1)
    with tf.device("/job:worker/task:0"):
        v = tf.get_variable("v", initializer=0.0, use_resource=True)
    add, value = v.assign_add(1.0), v.read_value()
    with tf.Session(servers.target()) as session:
        session.run(tf.global_variables_initializer())
        faults.watch()
        session.run(add)
        assert [f.kind for f in faults.seen] == ["RUN_STEP", "STEP_RESULT"]
    low = high = 1
    for kind, action in itertools.product(
        ("RUN_STEP", "STEP_RESULT"), ("drop", "delay", "duplicate", "cut")
    ):
        session = tf.Session(servers.target())
        assert low <= session.run(value) <= high
        rule = FaultRule(action, kind=kind, number=1)
        faults.add(rule)
        high += 1
        if action in ("delay", "duplicate"):
            session.run(add)
            low += 1
        else:
            with pytest.raises(UnavailableError):
                session.run(add)
            # The session is found again over a new link.
            assert low <= session.run(value) <= high
        assert rule.hits == 1
        faults.clear()
        session.close()
        assert eventually(lambda: not servers.leftovers())

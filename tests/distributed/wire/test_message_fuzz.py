"""Messages that no honest peer sends: the link that brought them breaks, the task lives on."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

import headrace as tf
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.steps import part_def
from headrace.distributed.transport.base import PeerInfo, PipeBroken
from headrace.distributed.transport.inproc import inproc_pair
from headrace.distributed.transport.link import Link
from headrace.distributed.wire import codec
from headrace.distributed.wire.messages import _CLASSES, pack
from headrace.errors import OpError
from headrace.graph.proto import ConfigProto
from headrace.harness.cluster import with_cluster
from headrace.partition.parts import cut_at_tasks
from headrace.passes.ir import build_step

PS = "/job:ps/replica:0/task:0"


class Stranger:
    """A peer of a task that says whatever the test wants."""

    def __init__(self, task) -> None:
        here, there = inproc_pair("stranger")
        self.answers = []
        self.answered = threading.Semaphore(0)
        task.adopt(there, PeerInfo("client:stranger", 1))
        self.link = Link(here, task.me, self._frame, lambda *_: self.answered.release())
        self.say(pack(pb.Links(number=1, upto=1, live=[1])))
        assert self.answered.acquire(timeout=10)
        self.answers.clear()

    def _frame(self, link, head, buffers) -> None:
        self.answers.append((head, buffers))
        self.answered.release()

    def say(self, head, buffers=()) -> None:
        self.link.send(head, buffers)

    def close(self) -> None:
        self.link.close()


def works(cluster) -> None:
    """A step over both tasks still gives the right result."""
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            x = tf.constant([1.0, 2.0]) * tf.placeholder_with_default(3.0, [])
        with tf.device("/job:worker/task:0"):
            y = x + 1.0
        with tf.Session(cluster.target("worker", 0)) as sess:
            np.testing.assert_array_equal(sess.run(y), [4.0, 7.0])


def a_part():
    """An honest part of a plan, as message and buffers."""
    with tf.Graph().as_default(), tf.device(PS + "/device:CPU:0"):
        x = tf.placeholder(tf.float32, [2])
        y = tf.matmul([[1.0, 2.0]], tf.reshape(x, [2, 1])) + tf.random_normal([1, 1], seed=1)
        step = build_step([y], [x], [])
        (part,) = cut_at_tasks(step).parts.values()
    return part_def.to_message(part)


def mutated(message, rng):
    """The bytes of a message with some of them changed."""
    data = bytearray(message.SerializeToString(deterministic=True))
    for _ in range(rng.randint(1, 4)):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def test_random_bytes_break_the_link_only():
    rng = random.Random(2016)
    with with_cluster(ps=1, worker=1) as cluster:
        task = cluster.tasks[PS]
        for _ in range(200):
            stranger = Stranger(task)
            head = bytes([rng.choice([*_CLASSES, 0, 77, 255])]) + rng.randbytes(rng.randint(0, 60))
            buffers = [np.frombuffer(rng.randbytes(8), np.uint8)] * rng.randint(0, 2)
            stranger.say(head, buffers)
            stranger.close()
        works(cluster)


def test_mutated_parts_are_refused_or_run():
    rng = random.Random(7)
    message, buffers = a_part()
    refused = 0
    for _ in range(1000):
        try:
            changed = pb.PartDef.FromString(mutated(message, rng))
        except Exception:  # no message at all: messages.unpack refuses it
            continue
        try:
            part_def.from_message(changed, buffers)
        except OpError:
            refused += 1
    assert refused > 20  # most others are no message at all, or change names only


def test_a_worker_answers_a_bad_part_with_the_reason():
    message, buffers = a_part()
    message.nodes[1].op = "NoSuchOperation"
    with with_cluster(ps=1, worker=1) as cluster:
        stranger = Stranger(cluster.tasks[PS])
        request = pb.RegisterPart(plan=5, session=6, part=message)
        request.config = ConfigProto().SerializeToString()
        stranger.say(pack(request), buffers)
        assert stranger.answered.acquire(timeout=10)
        answer = pb.Registered.FromString(stranger.answers[0][0][1:])
        assert "NoSuchOperation" in answer.failure.message
        stranger.close()
        works(cluster)


def test_a_plan_that_nobody_registered_is_refused_with_the_reason():
    with with_cluster(ps=1, worker=1) as cluster:
        stranger = Stranger(cluster.tasks[PS])
        stranger.say(pack(pb.RunPart(step=9, plan=123)))
        assert stranger.answered.acquire(timeout=10)
        done = pb.PartDone.FromString(stranger.answers[0][0][1:])
        assert "does not know plan" in done.failure.message
        stranger.close()


@pytest.mark.parametrize("count", [0, 3])
def test_feeds_that_do_not_fit_fail_the_step_only(count):
    message, buffers = a_part()
    with with_cluster(ps=1, worker=1) as cluster:
        stranger = Stranger(cluster.tasks[PS])
        request = pb.RegisterPart(plan=5, session=6, part=message)
        request.config = ConfigProto().SerializeToString()
        stranger.say(pack(request), buffers)
        assert stranger.answered.acquire(timeout=10)
        metas, feeds = codec.encode_many([np.ones(2, np.float32)] * count)
        try:
            stranger.say(pack(pb.RunPart(step=9, plan=5, feeds=metas)), feeds)
            assert stranger.answered.acquire(timeout=10)
        except PipeBroken:
            pass  # told so in the only other way there is
        stranger.close()
        works(cluster)

"""Messages that no member would send: each is refused with an error, and nothing changes by it."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest
from simulated_group import Simulation, call, name_of

import headrace as tf
from headrace import errors
from headrace.distributed.collective import collectives, exchange
from headrace.distributed.collective.exchange import Exchange, checked
from headrace.distributed.collective.group import CollectiveGroup
from headrace.distributed.collective.parts import Formed, LifeProbe, Send
from headrace.distributed.links.timing import Timing
from headrace.distributed.protocol import step_pb2 as pb
from headrace.harness.cluster import with_cluster

STRANGER = name_of(9)


def groups(size=3):
    return [CollectiveGroup(1, size, (name_of(i), i + 1), name_of(0)) for i in range(size)]


def formed(size=3):
    """Groups whose members are known to all."""
    made = groups(size)
    by_name = {name_of(i): g for i, g in enumerate(made)}
    sent = [(i, a) for i, g in enumerate(made) for a in g.join("/device:CPU:0")]
    while sent:
        i, action = sent.pop()
        if isinstance(action, Send):
            got = by_name[action.task].received(name_of(i), action.message, action.value)
            target = int(action.task[-1])
            sent += [(target, a) for a in got]
    assert all(g.is_formed for g in made)
    return made


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (pb.Collective(kind=pb.JOIN, group_size=3), "without members"),
        (pb.Collective(kind=pb.FORMED), "without members"),
        (pb.Collective(kind=pb.COMMIT, epoch=2), "without members"),
        (
            pb.Collective(
                kind=pb.JOIN, group_size=3, members=[{"task": name_of(2), "devices": ["d"]}]
            ),
            "of another task than its own",
        ),
        (
            pb.Collective(
                kind=pb.JOIN, group_size=0, members=[{"task": name_of(1), "devices": ["d"]}]
            ),
            "for a group of 0",
        ),
        (pb.Collective(kind=pb.JOIN, members=[{"task": name_of(1)}]), "without names or devices"),
        (
            pb.Collective(kind=pb.LEFT, members=[{"task": name_of(2), "devices": ["d"]}]),
            "of another task than its own",
        ),
        (pb.Collective(kind=pb.REFUSED, piece=-1, sequence=-1), "of an error with the code -1"),
        (pb.Collective(kind=pb.REFUSED, piece=99, sequence=-1), "of an error with the code 99"),
    ],
)
@pytest.mark.parametrize("make", [groups, formed])
def test_what_makes_no_sense_is_an_error(message, text, make):
    for group in make():
        with pytest.raises(errors.InvalidArgumentError, match=f"makes no sense: .*{text}"):
            group.received(name_of(1), message)
        assert group.refused is None


@pytest.mark.parametrize(
    "message",
    [
        pb.Collective(kind=pb.FORMED, members=[{"task": STRANGER, "devices": ["d"]}]),
        pb.Collective(kind=pb.REFUSED, piece=3, sequence=-1, text="go away"),
        pb.Collective(kind=pb.PREPARE, epoch=2**40),
        pb.Collective(kind=pb.PIECE, epoch=2**40, instance=1, sequence=1),
        pb.Collective(kind=pb.PIECE, epoch=1, instance=99, sequence=2**40),
        pb.Collective(kind=pb.LOST, epoch=2**40),
    ],
)
def test_who_is_no_member_has_nothing_to_say(message):
    for group in formed():
        work, _ = group.begin(call("reduce", 3, 1, np.ones(3, np.float32)), 0.0)
        assert group.received(STRANGER, message, np.ones(3, np.float32)) == []
        assert group.is_active
        assert group.open == [work]
        assert not group._later
        assert not group._early


def test_a_list_of_members_comes_from_the_leader_and_names_this_one():
    group = groups()[1]
    group.join("/device:CPU:0")
    members = [{"task": name_of(i), "devices": ["d"]} for i in (0, 2)]
    assert group.received(name_of(0), pb.Collective(kind=pb.FORMED, members=members)) == []
    members.append({"task": name_of(1), "devices": ["d"]})
    assert group.received(name_of(2), pb.Collective(kind=pb.FORMED, members=members)) == []
    assert not group.is_formed
    group.received(name_of(0), pb.Collective(kind=pb.FORMED, members=members))
    assert group.is_formed


@pytest.mark.parametrize(
    ("sender", "piece", "root", "up", "data", "text"),
    [
        (1, 7, 0, True, np.ones(3, np.float32), "piece 7 of 1"),
        (1, -1, 0, True, np.ones(3, np.float32), "piece -1 of 1"),
        (1, 0, 2, True, np.ones(3, np.float32), "piece 0 for member 2"),
        (1, 0, 0, False, np.ones(3, np.float32), "piece 0, which does not come this way"),
        (1, 0, 0, True, np.ones(1, np.float32), r"float32\[1\], where float32\[3\] is awaited"),
        (1, 0, 0, True, np.ones((3, 3), np.float32), r"float32\[3, 3\], where"),
        (1, 0, 0, True, np.ones(3, np.float64), r"float64\[3\], where float32"),
        (1, 0, 0, True, np.array([b"x"] * 3, object), r"object\[3\], where float32"),
        (1, 0, 0, True, None, "no array, where float32"),
    ],
)
def test_pieces_that_cannot_be(sender, piece, root, up, data, text):
    one = Exchange(call("reduce", 3, 1, np.ones(3, np.float32)), 0, 3, 3)
    one.begin()
    with pytest.raises(errors.DataLossError, match=f"makes no sense: {text}"):
        one.came(sender, piece, root, up, data)
    for number in (1, 2):
        one.came(number, 0, 0, True, np.ones(3, np.float32))
    assert one.result.tolist() == [3.0] * 3


def test_a_piece_counts_once(monkeypatch):
    monkeypatch.setattr(exchange, "TREE_BYTES", 0)
    one = Exchange(call("reduce", 3, 1, np.ones(9, np.float32)), 0, 3, 3)
    one.begin()
    one.came(2, 2, 2, False, np.ones(3, np.float32))
    with pytest.raises(errors.DataLossError, match="piece 2 once more, from member 2"):
        one.came(2, 2, 2, False, np.ones(3, np.float32))
    assert not one.is_done


@pytest.mark.parametrize("value", [np.ones(2, np.float32), np.ones(3, np.int32), "x"])
def test_results_that_cannot_be(value):
    with pytest.raises(errors.DataLossError, match=r"where float32\[3\] is awaited, from a member"):
        checked(call("reduce", 3, 1, np.ones(3, np.float32)), value)


def test_the_leader_dies_before_all_know_the_members():
    """Who hears of the group by its next epoch only is told that it is there."""
    first, second, third = groups()
    joins = [a for g in (second, third) for a in g.join("/device:CPU:0")]
    told = first.join("/device:CPU:0")
    for i, action in enumerate(joins):
        told += first.received(name_of(i + 1), action.message)
    (to_second,) = [a for a in told if isinstance(a, Send) and a.task == name_of(1)]
    second.received(name_of(0), to_second.message)
    assert second.lost(name_of(0)) == [LifeProbe(1, name_of(0), 1)]
    (prepare,) = second.verdict(name_of(0), 1, False)
    (state,) = third.received(name_of(1), prepare.message)
    told = second.received(name_of(2), state.message)
    assert Formed(1) in told  # anew, without the first
    (commit,) = [a for a in told if isinstance(a, Send) and a.message.kind == pb.COMMIT]
    assert Formed(1) in third.received(name_of(1), commit.message)
    assert third.tasks == second.tasks == [name_of(1), name_of(2)]


def test_a_group_that_lacks_a_member_says_so(monkeypatch, caplog):
    monkeypatch.setattr(collectives, "NOTICE_SECONDS", 0.1)
    caplog.set_level(logging.WARNING, "headrace.distributed")
    said = threading.Event()

    def heard(record):
        if "1 of 2 members are here: /job:worker/replica:0/task:0" in record.getMessage():
            said.set()
        return True

    logger = logging.getLogger("headrace.distributed")
    logger.addFilter(heard)
    try:
        with (
            with_cluster(timing=Timing(tick=0.02), worker=2) as cluster,
            tf.device("/job:worker/task:0"),
        ):
            total = tf.collective.all_reduce(1.0, 2, 1, 1)
            with tf.Session(cluster.target("worker", 0)) as sess:

                def wait():
                    with pytest.raises(errors.OpError):
                        sess.run(total)

                step = threading.Thread(target=wait)
                step.start()
                assert said.wait(10)
            step.join(10)
    finally:
        logger.removeFilter(heard)


@pytest.mark.parametrize("kind", ["reduce", "gather", "scatter"])
def test_strangers_in_any_moment(kind):
    """Whatever a stranger says and whenever, the members get what they would have got."""
    value = np.ones(3, np.float32)
    rng = np.random.default_rng(0)
    for seed in range(60):
        sim = Simulation(3, seed, lambda n, i, s: call(kind, 3, i, value * 10**n), runs=2)
        when, which = int(rng.integers(8, 40)), int(rng.integers(0, 3))
        numbers = rng.choice([-1, 0, 1, 2, 2**30], 5).tolist()
        what = int(rng.choice([pb.REFUSED, pb.LOST, pb.PREPARE, pb.STATE, pb.PIECE, pb.RESULT]))
        message = pb.Collective(
            kind=what,
            group=1,
            epoch=abs(numbers[0]),
            instance=numbers[1],
            sequence=numbers[2],
            piece=3 if what == pb.REFUSED else numbers[3],
            root=numbers[4],
        )

        def hostile(number, sim=sim, when=when, which=which, message=message):
            group = sim.nodes[which].group
            if number == when and group.is_formed:
                for action in group.received(STRANGER, message, value):
                    assert action.task == STRANGER  # it is told that it is no member

        sim.run(hostile)
        assert sim.is_over
        assert all(w.error is None for n in sim.nodes for w in n.done.values())

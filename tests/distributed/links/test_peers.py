"""The links of one process: made, used once both sides have spoken, given up; peers are played."""

import logging
import struct
import threading

import pytest

from headrace.distributed.links import peers as module
from headrace.distributed.links.peers import Peers
from headrace.distributed.links.timing import Timing
from headrace.distributed.protocol import step_pb2 as pb
from headrace.distributed.transport.base import PeerInfo, Pipe, PipeBroken
from headrace.distributed.wire.messages import pack, unpack
from headrace.errors import UnavailableError
from headrace.executor.threads import step_threads

PEER = PeerInfo("/job:ps/replica:0/task:0", 7, "host:1")
DATA = pack(pb.CancelStep(step=1))


def links(number, *live, upto=None):
    upto = number if upto is None else upto
    return pack(pb.Links(number=number, upto=upto, live=[*live, number]))


class PlayedPipe(Pipe):
    """A pipe whose other end the test plays: ``says`` arrives as soon as somebody reads."""

    kind = "played"

    def __init__(self, *says, answers=(), broken=""):
        self.says, self.answers = list(says), list(answers)
        self.heard = []
        self.broken = broken
        self.deaf = False
        self._count = 0

    def start(self, on_frame, on_lost):
        self.on_frame = on_frame
        self.say(*self.says)

    def say(self, *heads):
        for head in heads:
            self._count += 1
            self.on_frame(struct.pack("<BQ", 0, self._count - 1) + head, [])

    def send(self, head, buffers=(), block=True):
        if self.broken:
            raise PipeBroken(self.broken)
        if head[0] == 0:
            self.heard.append(unpack(head[9:]))
            answers, self.answers = self.answers, []
            self.say(*answers)

    def rolls(self):
        """What it was told: for each time its number and those of the live links."""
        return [(m.number, list(m.live)) for m in self.heard if isinstance(m, pb.Links)]

    def close(self):
        self.fail("closed")

    def fail(self, reason):
        self.broken = self.broken or reason

    @property
    def progress(self):
        return 0, 0

    @property
    def unread(self):
        return None


class Handler:
    """Notes what `Peers` tells, and which link was used then; a tick may be made to fail."""

    def __init__(self):
        self.frames = []
        self.lost = []
        self.ticks = threading.Semaphore(0)
        self.peers = None

    def on_frame(self, link, head, buffers):
        self.frames.append((link, self.peers.known(PEER.task), list(self.lost)))

    def on_lost(self, link, reason):
        heard = [roll for other in self.peers.all() for roll in other.pipe.rolls()[-1:]]
        self.lost.append((link, reason, heard))

    def on_tick(self, now):
        self.ticks.release()
        raise RuntimeError("a tick went wrong")


@pytest.fixture
def played(monkeypatch):
    """Peers, and the pipes that its next attempts to dial give."""
    handler = Handler()
    pipes = []

    def dial(address, task, timeout):
        assert task == PEER.task
        return pipes.pop(0), PEER

    monkeypatch.setattr(module, "RETRY_SECONDS", 0.001)
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.01)
    made = handler.peers = Peers(handler, dial, Timing(tick=0.001))
    made.handler, made.pipes = handler, pipes
    made.start()
    yield made
    made.close()


def accept(peers, *says, incarnation=7):
    """A link that the peer has dialled."""
    return peers.adopt(PlayedPipe(*says), PeerInfo(PEER.task, incarnation))


def test_the_heart_survives_what_goes_wrong_beside_it(played, caplog):
    with caplog.at_level(logging.WARNING, "headrace.distributed"):
        for _ in range(3):
            assert played.handler.ticks.acquire(timeout=10)
    assert "a tick went wrong" in caplog.text


def test_nobody_hears_of_the_time_before_all_is_there():
    handler = Handler()
    made = Peers(handler, None, Timing(tick=0.0))
    made.close()
    assert not handler.ticks.acquire(blocking=False)


def test_a_link_that_was_dialled_is_used_when_the_peer_has_answered(played):
    pipe = PlayedPipe(answers=[links(5)])
    played.pipes.append(pipe)
    link = played.link(PEER.task, "host:1", 1.0)
    assert played.known(PEER.task) is link
    assert pipe.rolls() == [(1, [1])]
    assert played.link(PEER.task, "host:1", 1.0) is link
    pipe.say(DATA)
    assert played.handler.frames == [(link, link, [])]


def test_the_peer_that_dialled_speaks_first(played):
    link = accept(played)
    assert played.known(PEER.task) is None
    assert link.pipe.rolls() == []
    link.pipe.say(links(1))
    assert played.known(PEER.task) is link
    assert link.pipe.rolls() == [(1, [1])]


def test_a_frame_before_the_peer_has_said_which_links_it_has(played):
    link = accept(played)
    with pytest.raises(PipeBroken, match="the peer has not said which links it has"):
        link.pipe.say(DATA)
    assert played.handler.frames == []


def test_a_link_that_gets_another_number(played):
    link = accept(played, links(1))
    with pytest.raises(PipeBroken, match="its number was 1, and is 2 now"):
        link.pipe.say(links(2))


def test_what_comes_at_once_finds_the_new_link_in_use_and_the_stale_one_given_up(played):
    """A step must not answer on a link that its asker has lost."""
    stale = accept(played, links(1))
    assert played.known(PEER.task) is stale
    fresh = accept(played, links(2), DATA)
    given_up = (stale, f"{PEER.task} has lost it", [(2, [2])])
    assert played.handler.frames == [(fresh, fresh, [given_up])]
    assert stale.lost
    with pytest.raises(PipeBroken, match="has lost it"):
        stale.send(DATA)


def test_of_two_links_to_a_peer_one_may_go(played):
    first, second = accept(played, links(1)), accept(played, links(2, 1))
    assert played.known(PEER.task) is second
    second.fail("cut")
    assert played.known(PEER.task) is first
    # The peer has heard of it before steps fail here.
    assert first.pipe.rolls() == [(1, [1]), (1, [1])]
    assert [(m.number, m.upto) for m in first.pipe.heard] == [(1, 1), (1, 2)]
    assert played.handler.lost == [(second, "cut", [(1, [1])])]
    first.fail("cut")
    assert played.known(PEER.task) is None


def test_a_link_that_carried_nothing_goes_without_a_word(played):
    used, half = accept(played, links(1)), accept(played)
    half.fail("its dialler gave up")
    assert played.handler.lost == []
    assert played.known(PEER.task) is used


def test_a_new_start_of_a_peer_ends_the_links_to_the_old_one(played):
    old = accept(played, links(1), incarnation=1)
    new = accept(played, incarnation=2)
    assert old.lost
    assert played.handler.lost == [(old, f"{PEER.task} was started again", [])]
    new.pipe.say(links(1))
    assert played.known(PEER.task) is new
    assert not new.lost


def test_a_pipe_that_breaks_while_it_is_dialled_is_dialled_again(played):
    played.pipes += [PlayedPipe(broken="reset"), PlayedPipe(answers=[links(1)])]
    link = played.link(PEER.task, "host:1", 1.0)
    assert not link.lost
    assert played.pipes == []


def test_a_peer_that_does_not_answer_is_given_up(played):
    pipe = PlayedPipe()
    played.pipes.append(pipe)
    with pytest.raises(UnavailableError, match=r"no answer at host:1 .*does not answer on it"):
        played.link(PEER.task, "host:1", 0.0)
    assert pipe.broken
    assert played.known(PEER.task) is None


def test_who_dials_takes_the_link_that_the_peer_made_meanwhile(played):
    met = []
    pipe = PlayedPipe(answers=[met])
    pipe.say = lambda answer=None: answer is None or answer.append(accept(played, links(1)))
    played.pipes.append(pipe)
    assert played.link(PEER.task, "host:1", 1.0) is met[0]


def test_nothing_is_adopted_after_the_end(played):
    played.close()
    link = accept(played, links(1))
    assert played.known(PEER.task) is None
    assert link.lost


@pytest.mark.parametrize(
    ("peer", "alive", "lost_after"),
    [(PEER.task, True, 62.5), (PEER.task, False, 2.5), ("client:1", False, 60)],
)
def test_who_is_silent_is_asked_whether_it_is_alive(peer, alive, lost_after):
    """A task that answers may be silent for a minute, as clients may, whose death is seen."""
    now = [0.0]
    asked = []

    def probe(task, timeout):
        asked.append((task, now[0]))
        return alive

    made = Peers(Handler(), None, clock=lambda: now[0], probe=probe)
    made._handler.peers = made
    link = made.adopt(PlayedPipe(links(1)), PeerInfo(peer, 7))
    while not link.lost:
        assert now[0] < 100
        now[0] += 0.25
        made._look_after(link, now[0])
        assert step_threads.wait_until_idle(10)
    assert lost_after <= now[0] <= lost_after + 0.5
    assert bool(asked) == (not peer.startswith("client:"))
    assert all(task == peer and at >= 1.5 for task, at in asked)

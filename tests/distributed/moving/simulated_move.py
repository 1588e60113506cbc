"""A variable that moves between two servers on a virtual network, for random schedules.

Masters count with it: each step adds a number to a set. Messages between two processes come in
order, late or never (their connection breaks, which each notices in its own time). The record of
the cluster is one value; to change it may fail, fail after all, or succeed later. Servers end and
are started again with nothing in memory; then the variable is made anew if it was there.

With copies each server has one, which gets what changes in order, but late; whatever the server
says of a change waits for that. When a server ends, its copy is served, with what has come there,
and nothing may be lost: first it settles with the record what the copy knows of moves.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from headrace.distributed.moving.rules import Giver, Taker

SERVERS = ("ps0", "ps1")
MASTERS = ("worker0", "worker1")


class Server:
    """One start of a server."""

    def __init__(self, home: str, incarnation: int) -> None:
        self.me = (home, incarnation)
        self.data: frozenset[int] | None = None
        self.has_left = False
        self.left_at = 0
        self.source: Giver | None = None
        self.target: Taker | None = None
        self.staged: frozenset[int] = frozenset()
        self.move = 0
        self.users: set[tuple[str, int]] = set()
        self.copied = False
        #: The epoch of the record for which the move is written down.
        self.until = 0
        #: What a copy knows of moves: "giving", "arriving" or nothing.
        self.mark = ""
        self.is_settling = False
        #: What is on its way to the copy, with what waits for it, and what that has.
        self.journal: deque[tuple[Any, list[tuple[Any, ...]]]] = deque()
        self.copy: tuple[frozenset[int] | None, str, bool, int] = (None, "", False, 0)
        self.is_marked = False


class Master:
    """A task whose steps use the variable."""

    def __init__(self, home: str) -> None:
        self.me = (home, 1)
        #: Where it thinks that the variable is, by which epoch of the record.
        self.where, self.epoch = "ps0", 0
        self.running: tuple[int, str] | None = None
        self.held: tuple[int, str] | None = None
        self.has_said = False


class SimulatedMove:
    """Two servers, two masters, and what the masters were told.

    Args:
        calm: nothing ends and no connection breaks.
        copies: each server has a copy, which is served when it ends.

    Attributes:
        acknowledged: steps that a master knows to have run, and that must not be lost.
    """

    def __init__(self, seed: int, calm: bool = False, copies: bool = False) -> None:
        self.calm, self.copies = calm, copies
        self.random = random.Random(seed)
        self.count = 0
        self.servers = {home: self.start(home) for home in SERVERS}
        self.masters = {home: Master(home) for home in MASTERS}
        self.where, self.epoch = "ps0", 0
        self.servers["ps0"].data = frozenset()
        self.servers["ps0"].copy = (frozenset(), "", False, 0)
        if calm:  # all plans are there
            for server in self.servers.values():
                server.users = {master.me for master in self.masters.values()}
        self.acknowledged: set[int] = set()
        self.updates = self.moves = self.given_up = self.refused = self.losses = 0
        self.promotions = self.settled = 0
        self.wires: dict[tuple[str, str], deque[Any]] = {}
        self.unaware: set[tuple[str, str]] = set()
        self.down: dict[str, int] = {}
        #: A change of the record that may yet be made: to where, for which epoch. Who has asked for
        #: it may have ended.
        self.late: tuple[str, int] | None = None
        self.undecided: tuple[str, int] | None = None

    def start(self, home: str) -> Server:
        self.count += 1
        return Server(home, self.count)

    # -- the network ------------------------------------------------------------------------------

    def send(self, sender: str, receiver: str, *message: Any) -> bool:
        pair = sender, receiver
        broken = {pair, pair[::-1]} & self.unaware
        if broken or receiver in self.down or sender in self.down:
            return False
        self.wires.setdefault(pair, deque()).append(message)
        return True

    def deliver(self) -> None:
        full = [pair for pair, wire in self.wires.items() if wire]
        if full:
            sender, receiver = self.random.choice(full)
            message = self.wires[sender, receiver].popleft()
            if receiver in self.masters:
                self.master_hears(self.masters[receiver], sender, *message)
            else:
                self.server_hears(self.servers[receiver], sender, *message)

    def break_wires(self, pair: tuple[str, str]) -> None:
        for one in (pair, pair[::-1]):
            self.wires.pop(one, None)
            self.unaware.add(one)

    def cut(self) -> None:
        pairs = [(m, s) for m in MASTERS for s in SERVERS] + [SERVERS]
        pair = self.random.choice(pairs)
        if self.random.random() < 0.15:
            self.break_wires(pair)

    def notice(self) -> None:
        """A process sees that a connection is gone; it is made anew when both have."""
        for pair in sorted(self.unaware):
            if self.random.random() < 0.5:
                self.unaware.discard(pair)
                self.lost(*pair)

    def lost(self, home: str, other: str) -> None:
        if home in self.down:
            return
        if home in self.masters:
            master = self.masters[home]
            if master.running is not None and master.running[1] == other:
                master.running = None
            if master.held is not None and master.held[1] == other:
                master.held = None
            return
        server = self.servers[home]
        if other in self.masters:
            if server.source is not None:
                server.source.lost(self.masters[other].me)
        elif server.source is not None and self.undecided != server.me:
            self.give_up(server)
        elif server.target is not None and not server.target.lost():
            self.over(server)

    # -- masters ----------------------------------------------------------------------------------

    def begin_step(self) -> None:
        master = self.masters[self.random.choice(MASTERS)]
        if master.running is None and master.held is None:
            self.updates += 1
            if self.send(master.me[0], master.where, "run", self.updates, master.epoch):
                master.running = self.updates, master.where

    def master_hears(self, master: Master, sender: str, kind: str, *args: Any) -> None:
        if kind == "done":
            if master.running is not None and master.running[0] == args[0]:
                self.acknowledged.add(args[0])
                master.running = None
        elif kind == "refused":
            if master.running is not None and master.running[0] == args[0]:
                master.running = None
                self.refused += 1
        elif kind == "prepare":
            self.send(master.me[0], sender, "prepared", args[0])
        elif kind == "hold":
            master.held, master.has_said = (args[0], sender), False
        elif kind == "end":
            self.tell(master, args[1], args[2])
            if master.held is not None and master.held[0] == args[0]:
                master.held = None
        self.say_held(master)

    def say_held(self, master: Master) -> None:
        if master.held is not None and master.running is None and not master.has_said:
            master.has_said = True
            self.send(master.me[0], master.held[1], "held", master.held[0])

    def tell(self, master: Master, epoch: int, where: str) -> None:
        if epoch > master.epoch:
            master.epoch, master.where = epoch, where

    def learn(self) -> None:
        """The record reaches a master by itself."""
        self.tell(self.masters[self.random.choice(MASTERS)], self.epoch, self.where)

    def run_out(self) -> None:
        """A master holds its steps no longer."""
        self.masters[self.random.choice(MASTERS)].held = None

    # -- servers ----------------------------------------------------------------------------------

    def server_hears(self, server: Server, sender: str, kind: str, *args: Any) -> None:
        home, source = server.me[0], server.source
        if kind == "run":
            master = self.masters[sender].me
            server.users.add(master)
            is_closed = source is not None and source.is_closed
            # A plan of before the variable went away stays refused when it has come back.
            is_old = args[1] < server.left_at
            is_closed |= server.is_settling
            if server.data is None or server.has_left or is_closed or is_old:
                self.send(home, sender, "refused", args[0])
            else:
                server.data |= {args[0]}
                self.check(server)
                self.changed(server, (sender, "done", args[0]))
            if source is not None and source.joined(master):
                self.send(home, sender, "hold", server.move)
        elif kind in ("prepared", "held") and source is not None and args[0] == server.move:
            getattr(source, kind)(self.masters[sender].me)
        elif kind == "copy":
            if source is not None or server.is_settling:  # that is not decided
                self.send(home, sender, "no", args[0])
                return
            is_other = server.target is not None and server.move != args[0]
            if is_other and server.target is not None and server.target.stage == "sealed":
                self.send(home, sender, "no", args[0])
                return
            if server.target is None or server.move != args[0]:
                server.target, server.move = Taker(), args[0]
            server.staged = args[1]
            server.has_left = False
            if args[2]:
                server.data = server.staged
                server.target.seal()
                server.mark = "arriving"
                self.changed(server, (sender, "kept", args[0], True))
            else:
                self.send(home, sender, "kept", args[0], False)
        elif kind == "no" and source is not None and args[0] == server.move:
            self.give_up(server)
        elif kind == "kept" and source is not None and args[0] == server.move:
            server.copied = True
            if args[1] and source.stage == "sealing":
                server.mark = "giving"
                self.changed(server, (home, "marked", args[0]))
        elif kind == "marked" and source is not None and args[0] == server.move:
            source.sealed()
        elif kind == "over" and server.target is not None and args[0] == server.move:
            server.target.ended(args[1])
            self.over(server)

    def over(self, server: Server) -> None:
        """Whether a variable stays that came here is known."""
        if server.target is not None and server.target.stage in ("dropped", "owns"):
            if server.target.stage == "dropped" and self.where != server.me[0]:
                server.data = None
            server.target, server.mark = None, ""
            self.changed(server)

    # -- copies -----------------------------------------------------------------------------------

    def changed(self, server: Server, *then: tuple[Any, ...]) -> None:
        """Something has changed; what is to be said when the copy has that."""
        now = server.data, server.mark, server.has_left, server.left_at
        if self.copies:
            server.journal.append((now, list(then)))
        else:
            self.say(server, list(then))

    def say(self, server: Server, messages: list[tuple[Any, ...]]) -> None:
        for receiver, *message in messages:
            if receiver == server.me[0]:
                self.server_hears(server, receiver, *message)
            else:
                self.send(server.me[0], receiver, *message)

    def keep(self) -> None:
        """A copy gets the next change."""
        server = self.servers[self.random.choice(SERVERS)]
        if server.me[0] not in self.down and server.journal:
            server.copy, messages = server.journal.popleft()
            self.say(server, messages)

    def settle_moves(self) -> None:
        """Who serves a copy, or has lost the source of a move, changes the record, if it can."""
        server = self.servers[self.random.choice(SERVERS)]
        home = server.me[0]
        is_lost = server.target is not None and server.target.stage == "sealed"
        may_be = not self.calm and self.random.random() < 0.05
        is_lost = is_lost and (self.other(server) in self.down or may_be)
        if home in self.down or not (server.is_settling or is_lost) or self.random.random() < 0.5:
            return
        self.record(self.where)
        self.settled += 1
        if server.target is not None:
            server.target.ended(self.where == home)
            self.over(server)
            return
        server.is_settling = False
        if self.where != home:
            server.data = None
        server.mark = ""
        self.changed(server)

    def other(self, server: Server) -> str:
        return "ps1" if server.me[0] == "ps0" else "ps0"

    def work(self) -> None:
        """The thread that makes moves."""
        home = self.random.choice(SERVERS)
        server = self.servers[home]
        if home in self.down:
            return
        source, other = server.source, self.other(server)
        if source is None:
            is_free = server.target is None and not server.is_settling
            if is_free and self.where == home and server.data is not None:
                self.count += 1
                server.move, server.source, server.copied = self.count, Giver(), False
                self.send(home, other, "copy", server.move, server.data, False)
        elif source.stage == "copying" and server.copied:
            source.prepare(server.users)
            for master in sorted(server.users):
                if not self.send(home, master[0], "prepare", server.move):
                    source.lost(master)
        elif source.stage == "prepared":
            source.hold(server.users)
            for master in sorted(server.users):
                if not self.send(home, master[0], "hold", server.move):
                    source.lost(master)
        elif source.stage == "closing":
            source.quiet()
            server.until = self.epoch
            self.send(home, other, "copy", server.move, server.data, True)
        elif source.stage == "committing":
            self.commit(server, other)

    def commit(self, server: Server, other: str) -> None:
        self.undecided = server.me
        if self.epoch != server.until:
            if self.where == other:
                self.decided(server, other)
            else:  # somebody has settled it
                assert server.source is not None
                server.source.refused()
                self.undecided = None
                self.give_up(server)
            return
        chance = self.random.random()
        if chance < 0.3:
            self.late = other, server.until
        elif chance < 0.8:
            self.record(other)
            if chance < 0.6:
                self.decided(server, other)

    def record(self, where: str) -> None:
        self.where, self.epoch = where, self.epoch + 1

    def decide_late(self) -> None:
        if self.late is not None and self.late[1] == self.epoch:
            self.record(self.late[0])

    def decided(self, server: Server, other: str) -> None:
        assert server.source is not None
        self.undecided = None
        server.source.decided()
        for home in MASTERS:
            self.send(server.me[0], home, "end", server.move, self.epoch, self.where)
        self.send(server.me[0], other, "over", server.move, True)
        server.data, server.source, server.has_left = None, None, True
        server.left_at, server.mark = self.epoch, ""
        self.changed(server)
        self.moves += 1

    def give_up(self, server: Server) -> None:
        if server.source is not None and server.source.give_up():
            for home in MASTERS:
                self.send(server.me[0], home, "end", server.move, self.epoch, self.where)
            self.send(server.me[0], self.other(server), "over", server.move, False)
            server.source, server.mark = None, ""
            self.changed(server)
            self.given_up += 1

    def late_enough(self) -> None:
        server = self.servers[self.random.choice(SERVERS)]
        if server.me[0] not in self.down and self.random.random() < 0.3:
            self.give_up(server)

    def kill(self) -> None:
        if not self.down and not self.unaware and self.random.random() < 0.1:
            home = self.random.choice(SERVERS)
            self.down[home] = self.random.randrange(40)
            if not self.copies and self.late is not None and self.late[0] != home:
                # What the source was about to write goes with it: a target settles that within a
                # second, and nobody restores the variable before.
                self.late = None
            for other in (*MASTERS, *SERVERS):
                if other != home:
                    self.break_wires((home, other))

    def restart(self) -> None:
        for home in list(self.down):
            self.down[home] -= 1
            if self.down[home] < 0 and not any(home in pair for pair in self.unaware):
                del self.down[home]
                ended = self.servers[home]
                made = self.servers[home] = self.start(home)
                if self.copies:
                    made.copy = ended.copy
                    made.data, made.mark, made.has_left, made.left_at = ended.copy
                    made.is_settling = bool(made.mark)
                    self.promotions += 1
                if self.undecided == ended.me:
                    self.undecided = None

    def restore(self) -> None:
        """The variable is nowhere: what it had is lost, and it is made anew."""
        owner = self.servers[self.where]
        if self.where not in self.down and owner.data is None and not owner.has_left:
            assert not self.copies, "it was lost although there are copies"
            assert owner.me[1] > 2, "it was lost although no server ended"
            self.losses += 1
            self.acknowledged.clear()
            for master in self.masters.values():
                master.running = None
            for wire in self.wires.values():
                wire.clear()
            owner.data = frozenset()

    # -- what must hold ---------------------------------------------------------------------------

    def check(self, server: Server) -> None:
        """A server that takes an update has all that was acknowledged before."""
        lost = self.acknowledged - (server.data or frozenset())
        assert not lost, f"{server.me[0]} takes updates without {sorted(lost)}"

    def step(self) -> None:
        """One event."""
        events = [self.begin_step] * 8 + [self.deliver] * 24 + [self.work] * 6
        events += [self.notice] * 3 + [self.learn, self.decide_late, self.late_enough]
        events += [self.keep] * 8 + [self.settle_moves] * 2
        if not self.calm:
            events += [self.run_out, self.cut, self.kill, self.restart, self.restart, self.restore]
        self.random.choice(events)()
        for master in self.masters.values():
            self.say_held(master)

    def settle(self) -> None:
        """No more failures, and no new moves: steps must run in all masters."""
        before = {home: 0 for home in MASTERS}
        for _ in range(4000):
            events = [self.begin_step] * 4 + [self.deliver] * 12 + [self.notice, self.learn]
            events += [self.restart, self.restore, self.decide_late, self.end_moves]
            events += [self.keep] * 4 + [self.settle_moves]
            self.random.choice(events)()
            for home, master in self.masters.items():
                self.say_held(master)
                before[home] += master.running is not None and master.where == self.where
            fits = all(m.where == self.where and m.held is None for m in self.masters.values())
            owner = self.servers[self.where]
            serves = owner.data is not None and owner.source is None and not owner.is_settling
            is_calm = not (self.down or self.unaware or any(self.wires.values()))
            if fits and serves and is_calm and min(before.values()):
                return
        raise AssertionError("stuck")

    def end_moves(self) -> None:
        for home, server in self.servers.items():
            if server.source is not None and home not in self.down:
                if server.source.stage == "committing":
                    self.commit(server, self.other(server))
                elif not server.source.is_closed or server.source.stage != "moved":
                    self.give_up(server)
        for master in self.masters.values():
            if master.held is not None and self.random.random() < 0.1:
                master.held = None

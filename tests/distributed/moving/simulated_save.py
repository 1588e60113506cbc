"""Consistent saves of two servers on a virtual network, for random schedules.

A step of a master adds its number to a set on one server, then on the other. One master saves: the
servers hold the steps of all masters as `moving.rules` says, one after the other; then it reads
both sets, and asks whether steps were held for all of the time. Messages come in order, late or
never: connections break, which each end notices in its own time. A step whose connection breaks
fails, and may have changed one server alone. Steps are held for nine seconds from when all were
asked to, again and again, and masters let go after ten; who looks at a clock may be late.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from headrace.distributed.moving.rules import Giver

SERVERS, MASTERS = ("ps0", "ps1"), ("worker0", "worker1", "worker2")
SAVER = "saver"
#: Steps are held so long (seconds) by a server, and by masters for one that says nothing more.
SERVER_SECONDS, MASTER_SECONDS = 9.0, 10.0


class Server:
    def __init__(self) -> None:
        self.data: set[int] = set()
        self.hold: Giver | None = None
        self.number = 0
        self.told: set[str] = set()
        self.absent: set[str] = set()
        self.is_broken = self.has_said = False
        #: Who has not renewed yet, since when that is asked for, and until when all hold.
        self.renewing: set[str] = set()
        self.renewed_at = self.until = 0.0


class Master:
    def __init__(self) -> None:
        self.step = 0
        #: On which servers its step was made.
        self.done: list[str] = []
        #: The number of the hold of each server that holds its steps, whether it has said so, and
        #: since when.
        self.held: dict[str, list[Any]] = {}


class SimulatedSave:
    """Two servers, three masters, and one that saves.

    Attributes:
        saved: pairs of sets that count as checkpoints; ``failed``: steps that failed.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.servers = {name: Server() for name in SERVERS}
        self.masters = {name: Master() for name in MASTERS}
        self.wires: dict[tuple[str, str], deque[Any]] = {}
        self.unaware: set[tuple[str, str]] = set()
        self.count, self.number = 0, 0
        self.failed: set[int] = set()
        self.saved: list[tuple[set[int], set[int]]] = []
        self.given_up = self.ended = 0
        self.save: dict[str, Any] | None = None
        self.now = 0.0
        self.renewals = self.let_go = 0

    def run(self, events: int) -> SimulatedSave:
        kinds = [self.deliver] * 12 + [self.begin] * 3 + [self.work] * 4
        kinds += [self.cut, self.notice, self.notice]
        kinds += [self.pass_time] * 3 + [self.renew] * 2
        for _ in range(events):
            self.random.choice(kinds)()
        return self

    # -- the network ------------------------------------------------------------------------------

    def send(self, sender: str, receiver: str, *message: Any) -> bool:
        if {(sender, receiver), (receiver, sender)} & self.unaware:
            return False
        self.wires.setdefault((sender, receiver), deque()).append(message)
        return True

    def deliver(self) -> None:
        full = [pair for pair, wire in self.wires.items() if wire]
        if not full:
            return
        sender, receiver = self.random.choice(full)
        message = self.wires[sender, receiver].popleft()
        if receiver in self.masters:
            self.master_hears(receiver, sender, *message)
        elif receiver in self.servers:
            self.server_hears(receiver, sender, *message)

    def cut(self) -> None:
        if self.random.random() < 0.2:
            pair = self.random.choice(MASTERS), self.random.choice(SERVERS)
            for one in (pair, pair[::-1]):
                self.wires.pop(one, None)
                self.unaware.add(one)

    def notice(self) -> None:
        for home, other in sorted(self.unaware):
            if self.random.random() < 0.5:
                self.unaware.discard((home, other))
                self.lost(home, other)

    def lost(self, home: str, other: str) -> None:
        if home in self.masters:
            master = self.masters[home]
            master.held.pop(other, None)
            if master.step:
                self.failed.add(master.step)
                master.step = 0
            self.say_held(home)
            return
        server = self.servers[home]
        if server.hold is not None:
            server.hold.lost((other, 1))
            server.is_broken |= other in server.told

    # -- masters ----------------------------------------------------------------------------------

    def begin(self) -> None:
        name = self.random.choice(MASTERS)
        master = self.masters[name]
        if not master.step and not master.held:
            self.count += 1
            master.step, master.done = self.count, []
            if not self.send(name, "ps0", "add", master.step):
                self.failed.add(master.step)
                master.step = 0

    def master_hears(self, name: str, sender: str, kind: str, number: int) -> None:
        master = self.masters[name]
        if kind == "added" and number == master.step:
            master.done.append(sender)
            if sender == "ps1":
                master.step = 0
            elif not self.send(name, "ps1", "add", number):
                self.failed.add(number)
                master.step = 0
        elif kind == "hold":
            master.held.setdefault(sender, [number, False, self.now])
        elif kind == "renew":
            held = master.held.get(sender, [0])
            if held[0] == number:
                held[2] = self.now
            self.send(name, sender, "renewed" if held[0] == number else "let go", number)
        elif kind == "end" and master.held.get(sender, [0])[0] == number:
            del master.held[sender]
        self.say_held(name)

    def say_held(self, name: str) -> None:
        master = self.masters[name]
        for server, held in master.held.items():
            if not master.step and not held[1]:
                held[1] = self.send(name, server, "held", held[0])

    # -- servers ----------------------------------------------------------------------------------

    def server_hears(self, name: str, sender: str, kind: str, number: int) -> None:
        server = self.servers[name]
        if kind == "add":
            server.data.add(number)
            self.send(name, sender, "added", number)
        elif server.hold is None or number != server.number:
            return
        elif kind == "held":
            server.hold.held((sender, 1))
        else:
            server.is_broken |= kind == "let go"
            server.renewing.discard(sender)
            self.renewed(server)

    def renewed(self, server: Server) -> None:
        if not server.renewing and not server.is_broken:
            server.until = server.renewed_at + SERVER_SECONDS
            self.renewals += 1

    def renew(self) -> None:
        """Who saves asks for more time."""
        for name in self.save["held"] if self.save is not None else ():
            server = self.servers[name]
            if server.hold is None or server.renewing or not self.is_held(name):
                continue
            server.renewing, server.renewed_at = server.told - server.absent, self.now
            for master in sorted(server.renewing):
                if not self.send(name, master, "renew", server.number):
                    server.is_broken = True

    def is_held(self, name: str) -> bool:
        """Whether steps were held until now."""
        server = self.servers[name]
        back = [m for m in server.absent if (name, m) not in self.unaware]
        return not (server.is_broken or back) and self.now < server.until

    def hold(self, name: str) -> None:
        server = self.servers[name]
        self.number += 1
        server.hold, server.number = Giver(), self.number
        server.told, server.absent, server.is_broken = set(MASTERS), set(), False
        server.renewing, server.until = set(), self.now + SERVER_SECONDS
        server.hold.prepare(())
        server.hold.hold((m, 1) for m in MASTERS)
        for master in MASTERS:
            if not self.send(name, master, "hold", server.number):
                server.hold.lost((master, 1))
                server.absent.add(master)

    def release(self, name: str) -> bool:
        """Whether steps were held until now."""
        server = self.servers[name]
        is_held = self.is_held(name)
        hold, server.hold = server.hold, None
        if hold is None or not hold.give_up():
            return False
        for master in MASTERS:
            self.send(name, master, "end", server.number)
        return is_held

    def pass_time(self) -> None:
        """Time passes; those who have held steps for long enough may notice."""
        self.now += self.random.choice([0.1, 0.2, 0.5, 3.0])
        for name, server in self.servers.items():
            if server.hold is not None and self.now >= server.until and self.random.random() < 0.2:
                self.release(name)
                self.ended += 1
        for master in self.masters.values():
            for source, held in list(master.held.items()):
                if self.now - held[2] > MASTER_SECONDS and self.random.random() < 0.5:
                    del master.held[source]
                    self.let_go += 1

    # -- who saves --------------------------------------------------------------------------------

    def work(self) -> None:
        save = self.save
        if save is None:
            self.save = {"held": [], "read": {}, "asked": False}
            return
        if len(save["held"]) < 2:
            name = SERVERS[len(save["held"])]
            server = self.servers[name]
            if not save["asked"]:
                self.hold(name)
                save["asked"] = True
            elif server.hold is None or self.random.random() < 0.02:  # it takes too long
                self.end_save(False)
            elif server.hold.is_closed:
                save["held"].append(name)
                save["asked"] = False
        elif self.random.random() < 0.6:
            pass  # it takes its time
        elif len(save["read"]) < 2:
            name = self.random.choice(SERVERS)
            save["read"][name] = set(self.servers[name].data)
        else:
            self.end_save(True)

    def end_save(self, is_whole: bool) -> None:
        assert self.save is not None
        kept = [self.release(name) for name in SERVERS]
        if is_whole and all(kept):
            read = self.save["read"]
            self.saved.append((read["ps0"], read["ps1"]))
        else:
            self.given_up += 1
        self.save = None

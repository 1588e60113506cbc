"""A primary, its standby and their witness on a virtual network, for random schedules.

Messages between the first two come in order, late or never (the connection breaks, which each side
notices in its own time); calls of the witness, or their answers, may be lost. Processes end and are
started again with nothing in memory. A new failure of a process comes only when the one before is
mended, since two copies are all there are; connections break at any time.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from headrace.distributed.standby.rules import Primary, Standby, View, Witness

TASK = "ps0"
HOMES = ("ps0", "ps1", "worker")


class Process:
    """One start of a process: what it is for the task, and its data."""

    def __init__(self, home: str, incarnation: int) -> None:
        self.me = (home, incarnation)
        self.witness = Witness()
        self.primary: Primary | None = None
        self.standby: Standby | None = None
        #: Numbers of the updates that it has.
        self.data: frozenset[int] = frozenset()
        self.sent = self.kept = 0
        self.waiting: deque[tuple[int, int]] = deque()


class SimulatedPair:
    """The three processes, and what clients were told.

    Attributes:
        acknowledged: updates that a client was told of.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.incarnations = 0
        self.processes = {home: self.start(home) for home in HOMES}
        self.processes["ps0"].primary = Primary(self.processes["ps0"].me)
        #: Who serves, as clients find it; the other one of the two follows.
        self.acknowledged: set[int] = set()
        self.updates = 0
        self.promotions = self.drops = self.depositions = self.departures = 0
        #: The connection of the pair: messages by receiver; None while there is none.
        self.wires: dict[str, deque[Any]] | None = None
        #: Who has not noticed that the connection is gone, and whether the peer is known dead.
        self.unaware: dict[str, bool] = {}
        self.down: dict[str, int] = {}
        self.cut = 0

    def start(self, home: str) -> Process:
        self.incarnations += 1
        return Process(home, self.incarnations)

    # -- what happens -----------------------------------------------------------------------------

    def step(self) -> None:
        """One event."""
        events = [self.update] * 6 + [self.deliver] * 10 + [self.notice] * 3
        events += [self.ask] * 4 + [self.connect] * 2 + [self.restart] * 2
        events += [self.break_wires, self.kill, self.stop_standby]
        self.random.choice(events)()
        self.cut -= self.cut > 0
        self.acknowledge()
        self.check()

    def update(self) -> None:
        """A client changes something, at whoever it finds serving."""
        for process in self.serving():
            assert process.primary is not None
            self.updates += 1
            process.data |= {self.updates}
            process.sent += 1
            process.waiting.append((process.sent, self.updates))
            self.send_copy(process)

    def serving(self) -> list[Process]:
        live = [p for h, p in self.processes.items() if h not in self.down]
        return [p for p in live if p.primary is not None and p.primary.stage != "deposed"]

    def other(self, home: str) -> str:
        return "ps1" if home == "ps0" else "ps0"

    def send(self, process: Process, *message: Any) -> None:
        if self.wires is not None:
            self.wires[self.other(process.me[0])].append(message)

    def send_copy(self, process: Process) -> None:
        if process.primary is not None and process.primary.follower is not None:
            self.send(process, "copy", process.sent, process.data)

    def acknowledge(self) -> None:
        for process in self.serving():
            assert process.primary is not None
            while process.waiting:
                sequence, update = process.waiting[0]
                if process.primary.is_gated and sequence > process.kept:
                    break
                process.waiting.popleft()
                self.acknowledged.add(update)

    def deliver(self) -> None:
        if self.wires is None:
            return
        home = self.random.choice(["ps0", "ps1"])
        if self.wires[home] and home not in self.down:
            self.receive(self.processes[home], *self.wires[home].popleft())

    def receive(self, process: Process, kind: str, *args: Any) -> None:
        primary, standby = process.primary, process.standby
        if kind == "follow" and primary is not None:
            primary.followed(args[0])
            process.kept = 0
            process.sent += 1
            self.send_copy(process)
        elif kind == "copy" and standby is not None:
            process.sent, process.data = args
            self.send(process, "kept", args[0])
        elif kind == "kept" and primary is not None:
            process.kept = max(process.kept, args[0])
            if primary.stage == "filling":
                primary.filled()
        elif kind == "name" and standby is not None:
            standby.named(args[0])
            self.send(process, "named", args[0].epoch)
        elif kind == "named" and primary is not None:
            primary.named(args[0])
        elif kind == "release" and standby is not None:
            if standby.release(args[0]):
                self.send(process, "released", args[0])
        elif kind == "released" and primary is not None:
            primary.released(args[0])

    def ask(self) -> None:
        """Somebody calls the witness; the call or its answer may be lost."""
        home = self.random.choice(["ps0", "ps1"])
        process = self.processes[home]
        if home in self.down:
            return
        primary, standby = process.primary, process.standby
        if primary is not None and primary.stage == "filled":
            wanted = primary.appoint(self.processes["worker"].me)
            primary.appointed(self.call(wanted, "appoint"))
            if primary.stage == "naming":
                self.send(process, "name", primary.wanted)
        elif primary is not None and primary.stage == "dropping":
            proposal = primary.lost()
            stage = primary.answered(self.call(proposal, "propose", primary.wanted.witness))
            self.drops += stage == "alone"
            self.depositions += stage == "deposed"
        elif primary is not None and primary.stage in ("protected", "releasing"):
            if self.processes["worker"].me != primary.view.witness and primary.lost_witness():
                self.send(process, "release", primary.view.epoch)
        elif standby is not None and standby.stage == "claiming" and standby.view is not None:
            stage = standby.answered(self.call(standby.lost(), "propose", standby.view.witness))
            if stage == "promoted":
                self.promotions += 1
                process.primary = Primary(process.me, standby.view.epoch)
                process.standby = None

    def call(self, view: View | None, kind: str, at: Any = None) -> View | None:
        witness = self.processes["worker"]
        lost = self.random.random()
        if view is None or lost < 0.2 or "worker" in self.down or at not in (None, witness.me):
            return None
        answer = getattr(witness.witness, kind)(TASK, view)
        return None if lost < 0.4 else answer

    def break_wires(self) -> None:
        if self.wires is not None and self.random.random() < 0.3:
            self.wires = None
            self.cut = self.random.randrange(30)
            self.unaware = {"ps0": False, "ps1": False}

    def notice(self) -> None:
        """A side sees that the connection is gone."""
        for home in [h for h in self.unaware if self.random.random() < 0.5]:
            is_dead = self.unaware.pop(home)
            process = self.processes[home]
            if home in self.down:
                continue
            if process.primary is not None:
                process.primary.lost(is_dead and self.random.random() < 0.7)
            elif process.standby is not None:
                process.standby.lost()

    def connect(self) -> None:
        """Who is no standby of anybody follows whoever serves."""
        serving = self.serving()
        if self.wires is not None or self.unaware or self.down.keys() & {"ps0", "ps1"} or self.cut:
            return
        for process in (self.processes["ps0"], self.processes["ps1"]):
            if process.primary is not None and process.primary.stage == "deposed":
                process = self.processes[process.me[0]] = self.start(process.me[0])
            if process.primary is None and serving:
                if process.standby is None:
                    process.standby = Standby(process.me)
                view = process.standby.view
                if view is not None and view.witness != self.processes["worker"].me:
                    process.standby.give_up()
                if process.standby.stage == "following":
                    self.wires = {"ps0": deque(), "ps1": deque()}
                    self.send(process, "follow", process.me)

    def is_well(self) -> bool:
        """Whether a process may end, and nothing is lost."""
        stages = [p.primary.stage for p in self.serving() if p.primary is not None]
        live_witness = all(
            p.primary.view.witness == self.processes["worker"].me
            for p in self.serving()
            if p.primary is not None
        )
        mended = not self.down and not self.unaware
        return mended and stages == ["protected"] and live_witness

    def stop_standby(self) -> None:
        """The standby ends in good order; what it has sent before may be lost on its way."""
        if not self.is_well() or self.wires is None:
            return
        (serving,) = self.serving()
        home, to = self.other(serving.me[0]), self.wires[serving.me[0]]
        standby = self.processes[home].standby
        view = standby.leave() if standby is not None else None
        if view is None:
            return
        self.send(self.processes[home], "released", view.epoch)
        while to and self.random.random() < 0.9:
            self.receive(serving, *to.popleft())
        assert serving.primary is not None
        self.departures += serving.primary.stage == "alone"
        self.end(home)

    def kill(self) -> None:
        """A process ends, if all is well."""
        if self.is_well():
            self.end(self.random.choice(HOMES))

    def end(self, home: str) -> None:
        self.down[home] = self.random.randrange(40)
        if home != "worker":
            self.wires = None
            self.unaware = {self.other(home): True}

    def restart(self) -> None:
        for home in list(self.down):
            self.down[home] -= 1
            if self.down[home] < 0 and not self.unaware:
                del self.down[home]
                self.processes[home] = self.start(home)

    # -- what must hold ---------------------------------------------------------------------------

    def check(self) -> None:
        serving = self.serving()
        free = [p for p in serving if p.primary is not None and not p.primary.is_gated]
        assert len(free) <= 1, "two acknowledge without asking anybody"
        for process in free:
            lost = self.acknowledged - process.data
            assert not lost, f"acknowledged, but lost: {sorted(lost)}"

    def settle(self) -> None:
        """No more failures: everything must become well again."""
        for _ in range(3000):
            mends = [self.deliver, self.notice, self.ask, self.connect, self.restart]
            self.random.choice(mends)()
            self.cut -= self.cut > 0
            self.acknowledge()
            self.check()
            stages = [p.primary.stage for p in self.serving() if p.primary is not None]
            if stages == ["protected"] and not any(p.waiting for p in self.serving()):
                return
        raise AssertionError(f"stuck: {stages}")

"""Replicas that train synchronously in a simulation: the real rule, and one move at a time.

Nothing runs by itself: `World.move` makes one of the moves that are possible, drawn by its seed, so
that a seed is a schedule. Accumulators and the token queue follow their published rules.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

from headrace.ops.io.replica_rules import BarrierRules, LiveReplica

Move = Callable[[], None]


class Gradients:
    """An accumulator: gradients of steps before its own are dropped."""

    def __init__(self) -> None:
        self.count = 0
        self.step = 0
        self.is_new = True

    def apply(self, local_step: int) -> None:
        """Add a gradient."""
        self.count += local_step >= self.step

    def take(self, needed: int) -> None:
        """The average of all there are."""
        assert self.count >= needed > 0, "the leader would wait for ever"
        self.count = 0
        self.step += 1


class Worker:
    """One replica. Between two moves of it anything may happen.

    Attributes:
        batches: how many it still computes.
        state: out, joined, computing, waiting or gone.
    """

    def __init__(self, world: World, number: int, batches: int) -> None:
        self.world = world
        self.number = number
        self.batches = batches
        self.state = "out"
        self.local_step = 0
        self.applied = 0
        self.leading = self._begin_to_lead()

    def move(self) -> Move | None:
        """What its training loop does next; None while it must wait."""
        if self.state == "waiting" and not self.world.tokens:
            return None
        if self.state == "leaving" and self.world.rules.busy is self:
            return None
        if self.state == "joined" and not self.world.rules.has_started:
            return None
        return {
            "out": self.join,
            "joined": self.read_step,
            "computing": self.compute,
            "waiting": self.take_token,
            "leaving": self.leave,
        }.get(self.state)

    def join(self) -> None:
        """STAY has begun."""
        self.world.rules.join(self, LiveReplica(str(self.number), self.number == 0))
        self.state = "joined"

    def read_step(self) -> None:
        """Once a leader has set the step (STARTED), the local step is the global step."""
        self.local_step = self.world.global_step
        self.state = "computing"

    def compute(self) -> None:
        """Add to one accumulator after the other, then say so; the last batch waits, too."""
        world = self.world
        if self.applied < len(world.gradients):
            world.gradients[self.applied].apply(self.local_step)
            self.applied += 1
            return
        self.applied = 0
        world.rules.arrive(self, self.local_step)
        self.batches -= 1
        self.state = "waiting"

    def take_token(self) -> None:
        """The token is the next local step."""
        self.local_step = self.world.tokens.popleft()
        self.state = "computing"
        if not self.batches:
            self.state = "leaving"

    def leave(self) -> None:
        """The end of the replica, whatever it was doing."""
        self.world.rules.leave(self)
        self.state = "gone"

    def lose_server(self) -> None:
        """A server that it needs for what it is doing is lost; what waits elsewhere goes on."""
        is_leading = self.world.rules.busy is self or self.leads_on
        if self.state == "leaving":
            if is_leading:
                self.world.rules.resign(self)
        elif is_leading or self.applied:
            self.leave()

    @property
    def leads_on(self) -> bool:
        """Whether it waits for gradients to apply."""
        return self.state not in ("out", "gone") and self.leading == self._wait

    # What its other thread does, as far as it has come: the next move, or None while it must wait.

    def lead_move(self) -> Move | None:
        """What it does to lead."""
        if self.state in ("out", "gone"):
            return None
        if self.state == "leaving" and self.world.rules.busy is not self:
            return None
        return self.leading()

    def _begin_to_lead(self) -> Callable[[], Move | None]:
        return lambda: self._learn_step if self.world.rules.leads(self) else None

    def _learn_step(self) -> None:
        self.world.rules.begin_to_lead(self)
        step = self.world.global_step
        self.leading = lambda: lambda: self._see_lost(step)

    def _see_lost(self, step: int) -> None:
        lost = sum(g.is_new for g in self.world.gradients)

        def tell() -> None:
            self.world.rules.lose(lost)
            self._set_steps(0, step)

        self.leading = lambda: tell

    def _set_steps(self, index: int, step: int) -> None:
        world = self.world

        def set_one() -> None:
            world.gradients[index].step = step
            world.gradients[index].is_new = False
            self._set_steps(index + 1, step)

        def set_own() -> None:
            world.rules.set_step(step)
            tokens = world.rules.tokens_to_begin()
            self.leading = lambda: lambda: give(world.first_tokens if tokens < 0 else tokens)

        def give(count: int) -> None:
            world.tokens.extend([step] * count)
            self.leading = lambda: self._begin_to_wait

        move = set_one if index < len(world.gradients) else set_own
        self.leading = lambda: move

    def _begin_to_wait(self) -> None:
        self.world.rules.begin_to_wait(self)
        self.leading = self._wait

    def _wait(self) -> Move | None:
        rules = self.world.rules
        if self.state == "leaving":
            return None
        if rules.leader is not self:

            def step_down() -> None:
                self.leading = self._begin_to_lead()

            return step_down
        return self._begin_round if rules.is_ready(self) else None

    def _begin_round(self) -> None:
        needs = self.world.rules.needs
        count = self.world.rules.begin_round(self)
        assert count >= needs
        self._take(0, count)

    def _take(self, index: int, count: int) -> None:
        world = self.world

        def take() -> None:
            world.gradients[index].take(count)
            if index + 1 < len(world.gradients):
                self._take(index + 1, count)
            else:
                self.leading = lambda: update

        def update() -> None:
            world.global_step += 1
            world.updates += 1
            self.leading = lambda: release

        def release() -> None:
            tokens = world.rules.end_round()

            def give() -> None:
                world.tokens.extend([world.global_step] * tokens)
                world.most_tokens = max(world.most_tokens, len(world.tokens))
                self.leading = lambda: self._begin_to_wait

            self.leading = lambda: give

        self.leading = lambda: take


class World:
    """A run of several replicas.

    Args:
        needed, total: of the optimiser; ``first_tokens``: of the chief's hook.
        batches: how many each of the first ``total`` replicas computes.
        accumulators: how many variables there are.
    """

    def __init__(
        self,
        seed: int,
        needed: int,
        total: int,
        batches: list[int],
        first_tokens: int,
        accumulators: int = 2,
    ) -> None:
        self.random = random.Random(seed)
        self.rules = BarrierRules(needed, total)
        self.gradients = [Gradients() for _ in range(accumulators)]
        self.tokens: deque[int] = deque()
        self.first_tokens = first_tokens
        self.global_step = 0
        self.updates = 0
        self.most_tokens = 0
        self.workers = [Worker(self, i, count) for i, count in enumerate(batches)]

    def add(self, number: int, batches: int) -> None:
        """One more replica; number 0 is a chief that was started again."""
        self.workers.append(Worker(self, number, batches))

    def moves(self) -> list[Move]:
        """All that may happen next."""
        self.workers = [w for w in self.workers if w.state != "gone"]
        return [m for w in self.workers for m in (w.move(), w.lead_move()) if m is not None]

    def some_move(self) -> Move | None:
        """One of them; it looks at all only if it finds none by chance."""
        for _ in range(4):
            if not self.workers:
                break
            worker = self.random.choice(self.workers)
            move = self.random.choice((worker.move, worker.lead_move))()
            if move is not None:
                return move
        moves = self.moves()
        return self.random.choice(moves) if moves else None

    def lose_server(self) -> None:
        """One accumulator is begun anew, as its server."""
        self.gradients[self.random.randrange(len(self.gradients))] = Gradients()
        for worker in self.workers:
            worker.lose_server()

    def run(
        self, kill: float = 0.0, join: float = 0.0, lose: float = 0.0, most: int = 10**6
    ) -> None:
        """Make moves until all replicas have ended.

        Args:
            kill: how likely a replica dies before a move; ``join``: that a new one comes;
                ``lose``: that a server with an accumulator is lost.
        """
        for _ in range(most):
            if self.random.random() < lose:
                self.lose_server()
            if self.random.random() < join:
                self.add(self.random.choice((0, 1, 2)), self.random.randrange(1, 6))
            if self.random.random() < kill:
                alive = [w for w in self.workers if w.state not in ("out", "gone")]
                if alive:
                    self.random.choice(alive).leave()
            move = self.some_move()
            if not self.workers:
                return
            assert move is not None, self.describe()
            move()
        raise AssertionError(f"no end: {self.describe()}")

    def describe(self) -> str:
        """What everybody waits for."""
        rules = self.rules
        states = [(w.number, w.state, w.local_step, w.batches) for w in self.workers]
        return (
            f"nothing can move: step {self.global_step}, {len(self.tokens)} tokens, {states}, "
            f"arrived {rules.arrived} of {rules.needs}, live {rules.live}, leads {rules.leader}, "
            f"busy {rules.busy}, accumulators {[(g.count, g.step) for g in self.gradients]}"
        )

"""The dispenser of input ranges: the rule of `dispenser_rules` as a resource of a server.

A participant is a session. It is there, and keeps its ranges, as long as its STAY request waits
(`session_requests`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import CancelledError, FailedPreconditionError, InvalidArgumentError
from headrace.ops.core.copied import CopiedResource
from headrace.ops.core.registry import Effects, NotDifferentiable, define_op
from headrace.ops.core.traits import Traits
from headrace.ops.io.dispenser_rules import DispenserRules
from headrace.ops.io.queues import BLOCKS, host_resource
from headrace.ops.io.session_requests import WaitingResource, session_key

__all__ = ["ALL_DONE", "NONE_NOW", "REQUESTS", "RangeDispenser"]

#: In place of a deal: there is none any more, or none before the participant has finished others.
ALL_DONE, NONE_NOW = -1, -2

_NO_GRADIENT = NotDifferentiable("a dispenser says who reads what")
_OURS = Traits(only_here="in TensorFlow each worker reads what it was told to at the beginning")
_READS = Effects(reads=(0,))
_CHANGES = Effects(reads=(0,), writes=(0,))
#: The form of the saved state.
_FORM = 1


class InputNumbers(NamedTuple):
    """What all participants must agree on.

    Attributes:
        num_ranges: how many ranges an epoch has; num_epochs: -1 for no end.
        fingerprint: of the ranges and their order.
    """

    num_ranges: int
    num_epochs: int
    fingerprint: int


class RangeDispenser(WaitingResource, CopiedResource):
    """A `DispenserRules` whose requests wait.

    A copy knows what is done, not who is there: participants join it anew.

    Attributes:
        spec: what is dealt out; None before it was initialised or restored.
    """

    def __init__(self, name: str) -> None:
        super().__init__("Input dispenser", name)
        self.rules = DispenserRules(0)
        self.spec: InputNumbers | None = None
        self._marked: Any = None

    def begin(self, spec: InputNumbers, following: int = 0, unfinished: Sequence[int] = ()) -> None:
        """Deal out from the beginning, or from a state; who holds ranges loses them."""
        total = None if spec.num_epochs < 0 else spec.num_epochs * spec.num_ranges
        with self._changed:
            self.rules.members.clear()  # their requests end, and they join again
            self.rules = DispenserRules(total, following, unfinished)
            self.spec = spec
            self._marked = None
            self._changed.notify_all()
            self._tell()

    def state(self, marked: bool) -> Any:
        """What `restore` takes: an int64 vector of as many numbers as ranges are unfinished, and 4.

        Args:
            marked: that of the last `mark`, if there was one.

        Raises:
            FailedPreconditionError: if it was never initialised.
        """
        with self._changed:
            return self._marked if marked and self._marked is not None else self._state()

    def mark(self) -> None:
        """A save begins, which reads the variables from now on.

        Workers go on meanwhile: what they finish after the variables were read is not in these, so
        it must not be done in the state that is saved.
        """
        with self._changed:
            self._marked = None if self.spec is None else self._state()

    def _state(self) -> Any:
        spec = self._initialized()
        found = [self.rules.following, *self.rules.unfinished()]
        return np.array([_FORM, spec.num_ranges, spec.fingerprint, *found], np.int64)

    def restore(self, spec: InputNumbers, state: Any) -> None:
        """Go on from a state: ranges that were dealt out and not done then come again.

        Raises:
            InvalidArgumentError: if it is one of other ranges.
        """
        if state.ndim != 1 or state.size < 4 or state[0] != _FORM:
            raise InvalidArgumentError(
                None,
                None,
                "Expected the state of an input dispenser, an int64 vector of 4 numbers or more "
                f"that begins with {_FORM}, but it has shape {list(state.shape)}. Was it saved by "
                "another release?",
            )
        numbers = [int(x) for x in state]
        if (numbers[1], numbers[2]) != (spec.num_ranges, spec.fingerprint):
            raise InvalidArgumentError(
                None,
                None,
                f"The saved state is one of {numbers[1]} other ranges, or of another order, than "
                f"the {spec.num_ranges} ranges of this program. Give the ranges, their order and "
                "the shuffle_seed that were saved, or restore the variables without the dispenser "
                "(tf.train.Saver(var_list)).",
            )
        self.begin(spec, numbers[3], numbers[4:])

    def _initialized(self) -> InputNumbers:
        if self.spec is None:
            raise FailedPreconditionError(
                None,
                None,
                f"Input dispenser '{self.name}' is uninitialized: run its initializer, as "
                "tf.train.MonitoredTrainingSession does.",
            )
        return self.spec

    # Requests; each returns a number. ``key`` is the participant that asks.

    def stay(self, key: Hashable, value: int, spec: InputNumbers, step: Any) -> int:
        """Be there until LEAVE, the end of the step, or until the state is another one."""
        with self._changed:
            if self._initialized() != spec:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Workers disagree on the input: this one has {_text(spec)}, but input "
                    f"dispenser '{self.name}' has {_text(self.spec)}. Give all workers the same "
                    "ranges in the same order, and the same num_epochs and shuffle_seed.",
                )
            rules = self.rules
            rules.join(key)
            self._changed.notify_all()
            try:
                self._wait(lambda: key not in rules.members, step)
            finally:
                rules.leave(key)
                self._changed.notify_all()
        return 0

    def joined(self, key: Hashable, value: int, spec: InputNumbers, step: Any) -> int:
        """Wait until STAY has begun."""
        with self._changed:
            self._wait(lambda: key in self.rules.members, step)
        return 0

    def leave(self, key: Hashable, value: int, spec: InputNumbers, step: Any) -> int:
        """End STAY, and what else waits for this participant."""
        with self._changed:
            self.rules.leave(key)
            self._changed.notify_all()
        return 0

    def take(self, key: Hashable, value: int, spec: InputNumbers, step: Any) -> int:
        """The next deal, or ALL_DONE; waits as long as others, or this one, may give some back."""
        return self._take(key, step, lambda: False, NONE_NOW)

    def take_more(self, key: Hashable, value: int, spec: InputNumbers, step: Any) -> int:
        """The same; NONE_NOW in place of waiting while the participant holds deals itself."""
        return self._take(key, step, lambda: self.rules.holds(key), NONE_NOW)

    def take_left(self, key: Hashable, value: int, spec: InputNumbers, step: Any) -> int:
        """The same; ALL_DONE in place of waiting."""
        return self._take(key, step, lambda: True, ALL_DONE)

    def _take(self, key: Hashable, step: Any, gives_up: Callable[[], bool], instead: int) -> int:
        def ready() -> bool:
            rules = self.rules
            is_member = key in rules.members
            return not is_member or rules.is_any_left or rules.is_over or gives_up()

        with self._changed:
            self._wait(ready, step)
            rules = self.rules
            if key not in rules.members:
                raise CancelledError(None, None, "This participant has left, or has to join again.")
            deal = rules.take(key)
            if deal is None:
                return ALL_DONE if rules.is_over else instead
            self._tell()
            return deal

    def done(self, key: Hashable, value: int, spec: InputNumbers, step: Any) -> int:
        """The deal ``value`` is finished; whether that counts."""
        with self._changed:
            counts = self.rules.done(key, value)
            self._changed.notify_all()
            self._tell()
        return int(counts)

    # Copies; their changes are the whole state, which is small.

    def begin_copy(self, listener: Callable[[], None]) -> None:
        with self._changed:
            self.listener = listener

    def changes(self, most: int) -> tuple[list[Any], bool]:
        with self._changed:
            spec, rules = self.spec, self.rules
            if spec is None:
                return [np.empty(0, np.int64)], True
            return [np.array([*spec, rules.following, *rules.unfinished()], np.int64)], True

    @classmethod
    def copy_of(cls, name: str, changes: Sequence[Any]) -> RangeDispenser:
        return cls(name)

    def apply_changes(self, changes: Sequence[Any]) -> None:
        numbers = changes[0].tolist()
        if numbers:
            self.begin(InputNumbers(*numbers[:3]), numbers[3], numbers[4:])

    def adopt_copy(self, copy: RangeDispenser) -> None:
        with self._changed:
            self.spec, self.rules, self.listener = copy.spec, copy.rules, copy.listener


def _text(spec: InputNumbers | None) -> str:
    if spec is None:
        return "nothing"
    epochs = "epochs without end" if spec.num_epochs < 0 else f"{spec.num_epochs} epochs"
    return f"{spec.num_ranges} ranges ({spec.fingerprint:x}) in {epochs}"


#: What can be asked, by name.
REQUESTS = {
    "DONE": RangeDispenser.done,
    "JOINED": RangeDispenser.joined,
    "LEAVE": RangeDispenser.leave,
    "STAY": RangeDispenser.stay,
    "TAKE": RangeDispenser.take,
    "TAKE_LEFT": RangeDispenser.take_left,
    "TAKE_MORE": RangeDispenser.take_more,
}


def _dispenser(context: Any, handle: Any) -> RangeDispenser:
    found: RangeDispenser = host_resource(context, handle)
    return found


def _initialize(
    context: Any, handle: Any, *, num_ranges: int, num_epochs: int, fingerprint: int
) -> None:
    _dispenser(context, handle).begin(InputNumbers(num_ranges, num_epochs, fingerprint))


def _restore(
    context: Any, handle: Any, state: Any, *, num_ranges: int, num_epochs: int, fingerprint: int
) -> None:
    spec = InputNumbers(num_ranges, num_epochs, fingerprint)
    _dispenser(context, handle).restore(spec, state)


def _request(
    context: Any,
    handle: Any,
    value: Any,
    *,
    request: str,
    num_ranges: int,
    num_epochs: int,
    fingerprint: int,
) -> Any:
    dispenser = _dispenser(context, handle)
    key = session_key(context, "participant", dispenser.name)
    spec = InputNumbers(num_ranges, num_epochs, fingerprint)
    return np.int64(REQUESTS[request](dispenser, key, int(value), spec, context.step))


define_op(
    "InputDispenser() -> handle: resource",
    attrs="container: string = '', shared_name: string = ''",
    makes_handle="input dispenser",
    provide=lambda store, handle, node: store.object(handle, lambda: RangeDispenser(handle.name)),
    shape=lambda op: [()],
    gradient=_NO_GRADIENT,
    traits=_OURS,
)
_NUMBERS = "num_ranges: int, num_epochs: int, fingerprint: int"
define_op(
    "InputDispenserInitialize(handle: resource)",
    attrs=_NUMBERS,
    shape=lambda op: [],
    host=_initialize,
    effects=_CHANGES,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)
define_op(
    "InputDispenserIsInitialized(handle: resource) -> is_initialized: bool",
    shape=lambda op: [()],
    host=lambda context, handle: np.bool_(_dispenser(context, handle).spec is not None),
    effects=_READS,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)
define_op(
    "InputDispenserState(handle: resource) -> state: int64",
    attrs="marked: bool = False",
    shape=lambda op: [(None,)],
    host=lambda context, handle, *, marked: _dispenser(context, handle).state(marked),
    effects=_READS,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)
define_op(
    "InputDispenserMark(handle: resource)",
    shape=lambda op: [],
    host=lambda context, handle: _dispenser(context, handle).mark(),
    effects=_CHANGES,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)
define_op(
    "InputDispenserRestore(handle: resource, state: int64)",
    attrs=_NUMBERS,
    shape=lambda op: [],
    host=_restore,
    effects=_CHANGES,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)
_KINDS = ", ".join(f"'{name}'" for name in sorted(REQUESTS))
define_op(
    "InputDispenserRequest(handle: resource, value: int64) -> result: int64",
    attrs=f"request: {{{_KINDS}}}, {_NUMBERS}",
    shape=lambda op: [()],
    host=_request,
    effects=BLOCKS,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)

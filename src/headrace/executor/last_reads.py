"""Variables change in place where XLA knows that whoever reads them has done so before.

XLA orders operations by their data alone, and copies a variable that something may read after a
change in place. A layer reads its weights forwards and again for the gradient of its input, which
no update depends on. So the old value passes a barrier together with what was made of it, and the
update takes what comes out of that.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import jax

from headrace.executor.resources import StateKey
from headrace.ops.core.barrier import barrier
from headrace.passes.ir import Node


class LastReads:
    """What a program that is traced has made of the large variables that it changes.

    Attributes:
        changed_in_part: variables of which a part is changed. What reads one passes a barrier with
            it, then and there: to copy a table takes far longer than anything that this may keep
            apart.
        changed_whole: variables that are changed as a whole. What was made of one passes a barrier
            with it where it is changed, and XLA may still join that with what is made of it in
            turn.
    """

    def __init__(
        self,
        changed_in_part: Collection[StateKey] = (),
        changed_whole: Collection[StateKey] = (),
    ) -> None:
        self.changed_in_part = frozenset(changed_in_part)
        self.changed_whole = frozenset(changed_whole)
        #: By the identity of a traced value: variables whose elements it consists of, such that
        #: who takes it reads those; and the value, so that nothing else gets its identity.
        self._elements: dict[int, tuple[list[StateKey], Any]] = {}
        self._made: dict[StateKey, list[Any]] = {}

    def __bool__(self) -> bool:
        return bool(self.changed_in_part or self.changed_whole)

    def scratch(self) -> LastReads:
        """For what is traced apart, as the body of a loop is: values of here mean nothing there."""
        return LastReads(self.changed_in_part)

    def read(
        self,
        node: Node,
        args: Sequence[Any],
        outputs: Sequence[Any],
        state: dict[StateKey, Any],
    ) -> Sequence[Any]:
        """Take down what ``node`` has made of ``args``, handles among them.

        Returns:
            The outputs, to be used in place of those given.
        """
        keys = list(dict.fromkeys(key for arg in args for key in self._read_by(arg)))
        if not keys:
            return outputs
        traced = [i for i, value in enumerate(outputs) if isinstance(value, jax.core.Tracer)]
        values = [outputs[i] for i in traced]
        traits = node.op_def.traits
        in_part = [key for key in keys if key in self.changed_in_part]
        # A view costs nothing by itself: whoever takes from it reads the variable. Nor does what
        # XLA makes of single elements where they are used.
        if traits.is_view or (not in_part and (traits.elementwise or traits.elements_of)):
            self._elements.update((id(v), (keys, v)) for v in values)
            return outputs
        for key in keys:
            if key in self.changed_whole:
                self._made.setdefault(key, []).extend(values)
        if not in_part:
            return outputs
        values, held = barrier((values, [state[key] for key in in_part]))
        state.update(zip(in_part, held, strict=True))
        found = dict(zip(traced, values, strict=True))
        return [found.get(i, value) for i, value in enumerate(outputs)]

    def _read_by(self, arg: Any) -> Sequence[StateKey]:
        if isinstance(arg, jax.core.Tracer):
            found = self._elements.get(id(arg))
            return found[0] if found is not None else ()
        if not isinstance(arg, StateKey):
            return ()
        return (arg,) if arg in self.changed_in_part or arg in self.changed_whole else ()

    def before_change(self, keys: Sequence[StateKey], state: dict[StateKey, Any]) -> None:
        """Have variables change after all has been made of them that was taken down."""
        for key in keys:
            made = self._made.pop(key, None)
            if made and key in state:
                _, (state[key],) = barrier((made, [state[key]]))


__all__ = ["LastReads"]

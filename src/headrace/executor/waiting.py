"""Which runs of a region are interpreted, before its programs are compiled.

What is decided depends on the graph, on sizes and on how often things have run, never on a clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headrace.executor.beside import may_compile_beside
from headrace.executor.interpreting import Interpreting
from headrace.executor.policy import (
    NEVER,
    most_evaluations,
    runs_to_pay,
    runs_to_pay_beside_loops,
)
from headrace.graph.dtypes import variant
from headrace.graph.func_graph import FuncGraph
from headrace.placement.cost import assumed_elements

if TYPE_CHECKING:
    from headrace.executor.region import Region

#: A region that has met more kinds of input than this, and each of them less often than that, is
#: interpreted when it meets another one, even if its ops have no NumPy forms.
_FEW_KINDS, _RUNS_EACH = 3, 3

#: So many programs of a session are compiled when they run for the second time; those after them
#: wait until interpreting has cost as much.
_PROMPT_PROGRAMS = 3


class Turn:
    """How one program waits to be compiled.

    Attributes:
        interpretations: how many more times to interpret it.
        extended: whether it has been asked whether to wait longer than the first time.
        beside_loops: whether it has been asked again, since its loops had become programs.
        in_background: whether another thread compiles it, or has done so.
        evaluations: nodes of function bodies that were interpreted for it.
    """

    __slots__ = (
        "beside_loops",
        "evaluations",
        "extended",
        "in_background",
        "interpretations",
        "started",
    )

    def __init__(self, interpretations: int) -> None:
        self.interpretations = interpretations
        self.extended = False
        self.beside_loops = False
        self.in_background = False
        self.started = False
        self.evaluations = 0

    @property
    def is_open(self) -> bool:
        """Whether it is to be compiled some time."""
        return self.interpretations < NEVER // 2


class Waiting:
    """How the programs of one region wait to be compiled."""

    def __init__(self, region: Region) -> None:
        self._region = region
        self._options = region.options
        runs = region.options.runs_before_compiling(region.nodes, region.outputs)
        #: How often the first is interpreted while another thread compiles it.
        self._meanwhile = runs.meanwhile if may_compile_beside(region) else 0
        #: How often to interpret each before it is compiled.
        self.first = 1 if self._meanwhile else runs.alone
        #: How often the region has run.
        self.runs = 0
        #: For how many kinds of input a program was wanted.
        self.kinds = 0
        #: Whether its programs could be interpreted at all: those of large initialisers cannot.
        self._has_choice = self.first > 0

    def new_turn(self) -> Turn:
        self.kinds += 1
        return Turn(self.first)

    def interprets(self, turn: Turn, dynamic: Sequence[Any]) -> bool:
        """Whether the run that begins is to be interpreted; it counts."""
        if turn.interpretations == 0 and not turn.extended:
            turn.extended = True
            turn.interpretations = self._more(dynamic)
        elif turn.interpretations == 0 and not turn.started and not turn.beside_loops:
            turn.beside_loops = True
            turn.interpretations = self._more_beside_loops(dynamic)
        if turn.interpretations == 0 and self._meanwhile and not turn.started:
            turn.in_background = True
            turn.interpretations, self._meanwhile = self._meanwhile, 0
        self.runs += 1
        if turn.interpretations > 0:
            turn.interpretations -= 1
            return True
        if not turn.started:
            turn.started = True
            self._options.programs += self._has_choice
        return False

    def _more(self, dynamic: Sequence[Any]) -> int:
        """How many more times to interpret a program that would be compiled now."""
        options = self._options
        if options.host is None:
            return 0
        many = self.kinds > 1 or (options.programs >= _PROMPT_PROGRAMS and not options.passes_on)
        rare = self.kinds > _FEW_KINDS and self.runs < _RUNS_EACH * self.kinds
        if not (rare or (many and self.first)):
            return 0
        region = self._region
        runs = runs_to_pay(region.nodes, region.outputs, self._scale(dynamic))
        return max(0, runs - self.first)

    def _more_beside_loops(self, dynamic: Sequence[Any]) -> int:
        """The same for one of many programs, where loops have meanwhile become programs."""
        region = self._region
        if self.kinds < 2 or not region.loop_programs:
            return 0
        return runs_to_pay_beside_loops(region.nodes, region.outputs, self._scale(dynamic))

    def _scale(self, dynamic: Sequence[Any]) -> float:
        """How many times larger the largest input is than the graph lets one think."""
        scale = 1.0
        for (node, i), value in zip(self._region.dynamic, dynamic, strict=True):
            dims = node.dims[i]
            if node.dtypes[i] is not variant and (dims is None or None in dims):
                scale = max(scale, math.prod(value.shape) / max(1.0, assumed_elements(dims)))
        return scale

    @cached_property
    def _allowance(self) -> int | None:
        """How many nodes of function bodies may be interpreted; None if there are none."""
        region = self._region
        values = [v for n in region.nodes for v in n.attrs.values()]
        flat = [x for v in values for x in (v if isinstance(v, (list, tuple)) else (v,))]
        if not any(isinstance(v, FuncGraph) for v in flat):
            return None
        return most_evaluations(region.nodes, region.outputs)

    def begin(self, turn: Turn, evaluation: Interpreting) -> None:
        """Let an interpreted run end early that would take longer than to compile."""
        if turn.is_open:
            evaluation.allowance = self._allowance

    def end(self, turn: Turn, evaluation: Interpreting) -> None:
        """Count what an interpreted run has cost beyond what the graph tells."""
        if turn.is_open and evaluation.allowance is not None and self._allowance is not None:
            turn.evaluations += self._allowance - evaluation.allowance
            if turn.evaluations > self._allowance:
                turn.interpretations = self._meanwhile = 0

    def need_not_wait(self, turn: Turn) -> None:
        """The program is compiled already."""
        turn.interpretations = 0
        turn.extended = turn.beside_loops = turn.started = True

    def give_up(self, turn: Turn) -> None:
        """The region has long loops: none of its programs waits any longer."""
        self.first = self._meanwhile = turn.interpretations = 0
        turn.extended = True


__all__ = ["Turn", "Waiting"]

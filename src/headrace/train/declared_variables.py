"""Which variables the chief of a cluster has, so that workers with other graphs can tell.

A worker waits until all its variables have values, which the chief gives them. If the chief's graph
has not all of them, that is for ever; and in synchronous training the chief waits for gradients of
its own variables from everybody. So the chief writes down what it has, on the task of its first
variable, and a worker that waits compares.
"""

from __future__ import annotations

import json
from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.ops.control import basic
from headrace.ops.core.build import raw

__all__ = ["DeclaredVariables"]

_KEY = "variables of the chief"
_NAME = "variables_of_the_chief"


class DeclaredVariables:
    """What one graph has, and what the chief has told of its own.

    Attributes:
        own: name -> dtype and shape, as text, and whether it is trained.
    """

    stays_in_process = True  # no file has it

    def __init__(self) -> None:
        graph = get_default_graph()
        trained = set(graph.get_collection(GraphKeys.TRAINABLE_VARIABLES))
        variables = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        self.own: dict[str, list[Any]] = {
            v.op.name: [f"{v.dtype.base_dtype.name} {v.shape}", v in trained] for v in variables
        }
        first = min(variables, key=lambda v: str(v.op.name))
        with (
            basic.init_scope(),
            graph.name_scope(None),
            graph.device(None),
            graph.colocate_with(first, ignore_existing=True),
        ):
            self._text = raw.Placeholder(dtype=dtypes.string, shape=(), name=f"{_NAME}_text")
            # No tf.Variable: strategies and other creators would make something else of it.
            told = raw.VarHandleOp(
                container=graph._container,
                shared_name=_NAME,
                dtype=dtypes.string,
                shape=(),
                name=_NAME,
            )
            self._tell = raw.AssignVariableOp(told, self._text)
            self._is_told = raw.VarIsInitializedOp(told)
            self._read = raw.ReadVariableOp(told, dtype=dtypes.string)

    @classmethod
    def of_default_graph(cls) -> DeclaredVariables | None:
        """Those of the default graph; None if it has no variables, or is finalized without."""
        graph = get_default_graph()
        found: list[DeclaredVariables] = graph.get_collection(_KEY)
        if found:
            return found[0]
        if graph.finalized or not graph.get_collection(GraphKeys.GLOBAL_VARIABLES):
            return None
        made = cls()
        graph.add_to_collection(_KEY, made)
        return made

    def tell(self, session: Any) -> None:
        """The chief says what it has."""
        session.run(self._tell, {self._text: json.dumps(self.own)})

    def _of_chief(self, session: Any) -> dict[str, list[Any]] | None:
        if not session.run(self._is_told):
            return None
        found: dict[str, list[Any]] = json.loads(session.run(self._read))
        return found

    def is_same(self, session: Any) -> bool:
        """Whether the chief, if there was one, had the variables of this graph and no others."""
        chief = self._of_chief(session)
        return chief is None or chief == self.own

    def check_waiting(self, session: Any) -> None:
        """For a worker whose variables have no values yet.

        Raises:
            ValueError: if the chief has not all of them.
        """
        chief = self._of_chief(session)
        if chief is None:
            return
        missing = [name for name in self.own if name not in chief]
        other = [n for n, (what, _) in self.own.items() if n in chief and chief[n][0] != what]
        if missing or other:
            raise ValueError(
                "The graph of this worker is another one than the chief's, which gives variables "
                "their first values: "
                + "; ".join(
                    [f"the chief has no {name} ({self.own[name][0]})" for name in missing]
                    + [f"{n} is {self.own[n][0]} here, {chief[n][0]} there" for n in other]
                )
                + ". All workers must build the same model; if the servers still hold variables of "
                "another program, start its new chief, or the servers, first."
            )

    def check_trained(self, session: Any) -> None:
        """For a worker that trains in step with the chief.

        Raises:
            ValueError: if it trains other variables.
        """
        chief = self._of_chief(session)
        if chief is None:
            return
        here, there = (
            {name for name, (_, trained) in found.items() if trained} for found in (self.own, chief)
        )
        if here != there:
            raise ValueError(
                "Replicas that train together train the same variables, but the graphs differ: "
                f"only this worker trains {sorted(here - there)}, only the chief trains "
                f"{sorted(there - here)}. Each would wait for gradients that nobody makes."
            )


def declared_in(graph: Any) -> DeclaredVariables | None:
    """What was made in a graph by `DeclaredVariables.of_default_graph`, or None."""
    found: list[DeclaredVariables] = graph.get_collection(_KEY)
    return found[0] if found else None

"""Where sessions run: an engine for each scheme of targets.

A session knows no network. A package that can run steps elsewhere registers a factory for the
scheme of its targets, as a path that is imported when the first such session is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from headrace.errors import suggest
from headrace.executor.errands import Limit
from headrace.ops.state import share
from headrace.step.engine import ProcessEngine
from headrace.step.request import PlanRequest


class SessionEngine(Protocol):
    """What a session needs. Plans have ``run(feeds) -> values``, ``describe()``, ``is_proven``
    (whether a step that took no time takes none the next time) and ``own``: which of the values
    only the caller has, by position."""

    def plan(self, request: PlanRequest) -> Any:
        """The plan for one kind of step."""

    #: Seconds after which a step whose deadline is over is left, although it may still answer.
    grace: float

    def run_with_options(
        self, plan: Any, feeds: Any, options: Any, run_metadata: Any, limit: Limit | None
    ) -> Any: ...

    def leave(self) -> None:
        """The caller of a step has gone."""

    def waits_for(self) -> str:
        """A sentence on tasks that do not answer, "" where there are none."""

    def partial_run(self, request: PlanRequest) -> Any: ...

    def list_devices(self) -> list[Any]: ...

    def close(self) -> None: ...


#: Scheme -> "module:function"; ``function(target, graph, config)`` makes an engine and
#: ``reset(target, containers, config)`` of the same module clears state.
_ENGINES: dict[str, str] = {}
#: Targets of this process.
_HERE = ("", "local")


def register_engine(scheme: str, factory: str) -> None:
    """Let targets ``scheme://...`` be run by the engine of a factory, "module:function"."""
    _ENGINES[scheme] = factory


def open_engine(target: str, graph: Any, config: Any) -> SessionEngine:
    """The engine for a target; the empty one, or "local", is this process.

    In a worker of a plain script the empty one is the cluster.

    Raises:
        ValueError: if the target has no scheme that is known.
    """
    own = share.of(graph)
    if target == "" and own is not None:
        target = own.target
    if target in _HERE:
        return ProcessEngine(config, graph=graph)
    module, function = _factory(target)
    result: SessionEngine = getattr(import_module(module), function)(target, graph, config)
    return result


def reset(target: str, containers: list[str] | None, config: Any) -> None:
    """Clear resource containers of the servers behind a target.

    Raises:
        ValueError: for the in-process target, whose state lives in each session.
    """
    if target in _HERE:
        raise ValueError(
            f"Session.reset works on servers; target {target!r} is in this process, where "
            "each session owns its state: close the session and make a new one."
        )
    module, _ = _factory(target)
    import_module(module).reset(target, containers, config)


def _factory(target: str) -> tuple[str, str]:
    scheme, mark, _ = target.partition("://")
    factory = _ENGINES.get(scheme) if mark else None
    if factory is None:
        known = [f"{s}://host:port" for s in sorted(_ENGINES)]
        raise ValueError(
            f"Session target {target!r} names no engine: use '' for this process or "
            f"{' or '.join(known)}.{suggest(target, known)}"
        )
    module, _, function = factory.partition(":")
    return module, function

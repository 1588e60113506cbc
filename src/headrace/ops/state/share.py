"""The share that this process has in a program that several workers run.

A plain script that `headrace launch` spreads over workers says nothing of them. Where it comes by
anyway (a session is opened, gradients are applied, a checkpoint is saved), stages ask here whether
there are others. `headrace.data_parallel` knows what is to be done, and registers itself here.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, Protocol

from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.tensor import Operation, Tensor

__all__ = [
    "WorkerShare",
    "current",
    "graph_apart",
    "is_left_to_chief",
    "leads",
    "left_to_chief",
    "of",
    "on_duty",
    "outermost_creators",
    "refuse",
    "refuse_own",
    "set_current",
    "suspended",
    "trainers",
    "writes",
]


class WorkerShare(Protocol):
    """What a worker does in place of a program that is alone.

    Attributes:
        graphs: those that are spread over workers: all but what was made in `suspended`.
        worker, workers: which one this is, of how many.
        averages: whether an update has the average of workers' gradients.
        is_chief: whether it does what is done once: initialise, restore, save, write summaries.
        target: where sessions without a target run.
        managed_target: the same for those of whom a session manager or a chief's lease says who
            initialises.
        has_servers: whether variables are on servers, which all workers share.
        is_following: whether it makes no steps of the default graph, as the chief does.
    """

    target: str
    managed_target: str
    worker: int
    workers: int

    @property
    def averages(self) -> bool: ...

    @property
    def graphs(self) -> Container[Any]: ...

    @property
    def is_chief(self) -> bool: ...

    @property
    def has_servers(self) -> bool: ...

    @property
    def is_following(self) -> bool: ...

    def find_chief(self) -> bool:
        """Whether the chief was lost in a training, and another worker has its duties."""

    def gradients(
        self, losses: Sequence[Tensor], make: Callable[[list[Tensor]], list[Any]]
    ) -> list[Any]:
        """The gradients that ``make`` gives of losses: those of this worker's examples."""

    def apply(self, optimizer: Any, pairs: Any, global_step: Any, name: str | None) -> Operation:
        """The op that applies gradients of all workers."""

    def feeds_own(self, tensors: Iterable[Tensor]) -> None:
        """Say that what is fed there in a step is this worker's own: gradients of its rows."""

    def share_of(self, dataset: Any) -> Any:
        """A dataset with this worker's elements."""

    def begin_training(self, session: Any) -> None:
        """Take part in updates again, and wait until all workers do."""

    def end_training(self, session: Any, is_even: bool) -> None:
        """Wait until all workers have come to this; ``is_even``: they have made as many steps."""

    def common_folder(self) -> str:
        """A new folder for temporary files that all workers of this machine have."""

    def tell(self, what: str, value: str) -> None:
        """Tell all workers a value by a name, also those that are started again."""

    def hear(self, what: str, seconds: float = 0.0) -> str | None:
        """What a worker has told by a name; None if nothing is told for so many seconds."""

    def name_graph(self, graph: Any, name: str) -> None:
        """Have a new graph share its variables with that of the same name in other workers."""

    def make_way(self, waits: Callable[[], bool]) -> None:
        """Leave updates if others lack this worker's gradients; ``waits``: it waits for others."""

    def give_way(self, what: str) -> None:
        """Be alone from now on: ``what`` shows that the script distributes itself."""

    def leave_to_chief(self, what: str) -> None:
        """Have the chief alone train in the default graph; ``what`` cannot be shared out."""

    def run_apart(self, session: Any, fetches: Any, feed_dict: Any) -> Any:
        """Run a step as it stands, of this worker's own: not once for all."""

    def refuse(self, what: str, instead: str, site: Any = None) -> None:
        """Raise a RuntimeError: the script does what is not spread over workers in this way."""

    def hooks(self) -> list[Any]:
        """The hooks that a monitored session of the default graph needs."""


_share: WorkerShare | None = None
_suspended = threading.local()
#: Make the variables of all graphs; those of `replica_scope` come before them.
outermost_creators: list[Callable[..., Any]] = []


def set_current(share: WorkerShare | None) -> None:
    """Let stages know this process's share, or that it has none."""
    global _share
    _share = share


def current() -> WorkerShare | None:
    """This process's share; None where the program is alone, or in `suspended`."""
    return None if getattr(_suspended, "depth", 0) else _share


def of(graph: Any) -> WorkerShare | None:
    """This process's share in what a graph does; None if that is its own affair."""
    own = current()
    return own if own is not None and graph.outermost in own.graphs else None


def refuse(what: str, instead: str) -> None:
    """Refuse what a worker of a plain script cannot do.

    Args:
        what: it does; instead: what to do, a sentence.

    Raises:
        RuntimeError: if the default graph is spread over workers.
    """
    own = of(get_default_graph())
    if own is not None:
        own.refuse(what, instead)


def refuse_own(what: str, option: str = "") -> None:
    """Refuse that a worker of a plain script distributes itself.

    Args:
        what: by which it does; option: of `headrace launch`, for the same.

    Raises:
        RuntimeError: if the default graph is spread over workers.
    """
    same = f", which `headrace launch {option}` stands for" if option else ""
    refuse(
        f"it distributes itself by {what}",
        f"Take that out{same}. Or make a tf.train.Server of this task before, or take "
        "HEADRACE_DATA_PARALLEL out of os.environ before the import: such a script is left alone.",
    )


def trainers() -> int:
    """How many workers change the same variables of the default graph, this one among them."""
    own = of(get_default_graph())
    return own.workers if own is not None and own.has_servers else 1


def leads(is_chief: bool) -> bool:
    """Whether this worker does what one does for all who change the same variables.

    Args:
        is_chief: whether it would, by what the script knows of workers.
    """
    own = of(get_default_graph())
    return is_chief and (own is None or own.is_chief or not own.has_servers)


def left_to_chief(what: str) -> None:
    """Have the chief alone train in the default graph, while other workers wait, if there are any.

    Args:
        what: cannot be shared out, for the notice.
    """
    own = of(get_default_graph())
    if own is not None:
        own.leave_to_chief(what)


def is_left_to_chief() -> bool:
    """Whether this worker makes no steps of the default graph: the chief does."""
    own = of(get_default_graph())
    return own is not None and own.is_following


def writes() -> bool:
    """Whether this process writes what one worker writes for all: checkpoints, summaries."""
    return _share is None or _share.is_chief or getattr(_suspended, "on_duty", False)


@contextlib.contextmanager
def on_duty() -> Iterator[None]:
    """What is made in this block writes: this worker has taken over the chief's duties."""
    before, _suspended.on_duty = writes(), True
    try:
        yield
    finally:
        _suspended.on_duty = before


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """What happens in this block happens as in a program that is alone.

    A graph that is made in it stays alone: that of an evaluation, say.
    """
    _suspended.depth = getattr(_suspended, "depth", 0) + 1
    try:
        yield
    finally:
        _suspended.depth -= 1


def graph_apart() -> Graph:
    """A new graph that is not spread over workers."""
    with suspended():
        return Graph()

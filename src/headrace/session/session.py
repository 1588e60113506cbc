"""Sessions: run any part of a graph."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import jax
import numpy as np

from headrace.errors import CancelledError, InvalidArgumentError
from headrace.executor.borrowed import take_over
from headrace.executor.errands import Limit, in_time
from headrace.executor.plan import WORTH_TAKING
from headrace.graph import nest
from headrace.graph.graph import Graph, default_session_stack, get_default_graph
from headrace.graph.recursion import levels_of, room_for
from headrace.graph.tensor import Operation, Tensor
from headrace.session import engines
from headrace.session.fetches import Feeds, Fetches
from headrace.session.rewrites import with_rewrites
from headrace.step.request import PlanRequest

#: A session keeps the plans of this many kinds of steps.
MAX_PLANS = 1024
#: A step that has taken no longer, in seconds, is run by the thread that waits for it. So many
#: kinds of feeds are known of a plan.
_PROMPT = 0.05
_MOST_PROMPT = 256


class _Compiled:
    """A fetch structure and feed list with its plan; ``last_run`` counts runs of the session."""

    __slots__ = ("feeds", "fetches", "last_run", "mutations", "plan", "prompt")

    def __init__(self, fetches: Fetches, feeds: Feeds, plan: Any, mutations: int) -> None:
        self.last_run = 0
        #: Kinds of feeds with which a step is known to take no time.
        self.prompt: set[Any] = set()
        self.fetches = fetches
        self.feeds = feeds
        self.plan = plan
        self.mutations = mutations


class BaseSession:
    """Owns the state of a graph (variable values, random streams) and runs its parts.

    Args:
        target: where to run; the empty string is this process.
        graph: the graph to run; the default graph when not given.
        config: a ConfigProto.
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        if graph is None:
            graph = get_default_graph()
        elif not isinstance(graph, Graph):
            raise TypeError(f"graph must be a tf.Graph, but got {type(graph)}")
        if isinstance(target, bytes):
            target = target.decode()
        if not isinstance(target, str):
            raise TypeError(f"target must be a string, but got {type(target)}")
        if config is not None and not hasattr(config, "device_count"):
            raise TypeError(f"config must be a tf.ConfigProto, but got {type(config)}")
        config = with_rewrites(config)
        self._graph = graph
        self._target = target
        self._config = config
        self._engine = engines.open_engine(target, graph, config)
        self._plans: dict[Any, _Compiled] = {}
        #: The same plans by what they compute: one serves every structure of the same elements.
        self._by_elements: WeakValueDictionary[Any, Any] = WeakValueDictionary()
        self._runs = 0
        self._plan_lock = threading.Lock()
        #: Held by the thread that makes the plan of a key.
        self._making: dict[Any, threading.Lock] = {}
        self._partial_runs: dict[str, Any] = {}
        #: Milliseconds for each step; 0 is no limit.
        self._timeout = max(0, config.operation_timeout_in_ms) if config is not None else 0
        #: How many steps were left before they had ended.
        self._left = 0
        self._closed = False

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def graph_def(self) -> Any:
        return self._graph.as_graph_def()

    @property
    def sess_str(self) -> str:
        return self._target

    def run(
        self,
        fetches: Any,
        feed_dict: dict[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """Run the part of the graph that ``fetches`` need, and return their values.

        Args:
            fetches: a graph element (tensor, operation, variable, name) or nested lists, tuples,
                dicts and namedtuples of them. Operations give None, tensors NumPy values; a
                variable gives its value at the end of the step.
            feed_dict: values to use in place of tensors' own.
            options: RunOptions (timeout, trace level).
            run_metadata: a RunMetadata message to fill with the step's trace.

        Raises:
            RuntimeError: if the session is closed.
            ValueError, TypeError: if fetches or feeds do not fit the graph.
            OpError: if an operation fails.
        """
        limit = None
        if options is not None or self._timeout:
            limit = limit_of(options, self._timeout)
        compiled, values = self._prepare(fetches, feed_dict, limit)
        if limit is None and options is None and run_metadata is None:
            results = compiled.plan.run(values)
        else:
            results = self._run_with_options(compiled, values, options, run_metadata, limit)
        return compiled.fetches.rebuild(_to_host(results, compiled.plan.own))

    def _run_with_options(
        self,
        compiled: _Compiled,
        values: list[Any],
        options: Any,
        run_metadata: Any,
        limit: Limit | None,
    ) -> list[Any]:
        """Run a step; one with a deadline in another thread unless it is known to take no time."""
        run = self._engine.run_with_options
        if limit is None:
            result: list[Any] = run(compiled.plan, values, options, run_metadata, None)
            return result
        # Once a step was left, others may have to wait for what it still does.
        kind = (self._left, *[getattr(value, "shape", None) for value in values])
        if kind in compiled.prompt:
            result = run(compiled.plan, values, options, run_metadata, limit)
            return result
        # If the caller leaves, the step may still write down what it did: not into his message.
        own = None if run_metadata is None else type(run_metadata)()

        def call() -> list[Any]:
            results: list[Any] = run(compiled.plan, values, options, own, limit)
            # The limit is for the step: XLA hands out arrays that it has not computed yet.
            jax.block_until_ready([r for r in results if isinstance(r, jax.Array)])  # type: ignore[no-untyped-call]
            return results

        began = limit.clock()
        results: list[Any] = self._in_time(call, limit)
        if limit.clock() - began < _PROMPT and compiled.plan.is_proven:
            if len(compiled.prompt) >= _MOST_PROMPT:
                compiled.prompt.clear()
            compiled.prompt.add(kind)
        if run_metadata is not None:
            run_metadata.CopyFrom(own)
        return results

    def _in_time(self, call: Callable[[], Any], limit: Limit) -> Any:
        engine = self._engine
        return in_time(call, limit, self._check_open, self._leave, engine.grace, engine.waits_for)

    def _check_open(self) -> None:
        if self._closed:
            raise CancelledError(None, None, "The session was closed while a step ran.")

    def _leave(self) -> None:
        self._left += 1
        self._engine.leave()

    def _prepare(
        self, fetches: Any, feed_dict: dict[Any, Any] | None, limit: Limit | None
    ) -> tuple[_Compiled, list[Any]]:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        keys, raw = _feeds_of(feed_dict)
        try:
            key = (_structure_key(fetches), keys)
            compiled = self._plans.get(key)
        except TypeError:  # something in the fetches has no hash: no plan can be kept
            key, compiled = None, None
        except RecursionError:
            raise nest.too_deep(fetches) from None
        # A graph that has only grown has the same steps; one of which a part was changed has not.
        if compiled is None or compiled.mutations != self._graph._mutations:
            if limit is None:
                compiled = self._new_plan(key, fetches, keys, None)
            else:
                make = partial(self._new_plan, key, fetches, keys, limit.remaining())
                compiled = self._in_time(make, limit)
        self._runs = compiled.last_run = self._runs + 1
        return compiled, compiled.feeds.convert(raw)

    def _new_plan(
        self, key: Any, fetches: Any, keys: Sequence[Any], timeout: float | None
    ) -> _Compiled:
        compiled = self._compile(fetches, keys, timeout)
        if key is not None:
            self._keep(key, compiled)
        return compiled

    def _keep(self, key: Any, compiled: _Compiled) -> None:
        with self._plan_lock:
            plans = self._plans
            if key not in plans and len(plans) >= MAX_PLANS:
                del plans[min(plans, key=lambda k: plans[k].last_run)]
            plans[key] = compiled

    def _compile(
        self, fetches: Any, keys: Sequence[Any], timeout: float | None = None
    ) -> _Compiled:
        if self._graph.version == 0:
            raise RuntimeError(
                "The Session graph is empty. Add operations to the graph before calling run()."
            )
        with self._plan_lock:
            structure = Fetches(self._graph, fetches, self)
            feeds = Feeds(self._graph, list(keys))
            mutations = self._graph._mutations
            tensors, targets = structure.tensors, structure.targets
            last = structure.last
            key = (mutations, tuple(tensors), tuple(feeds.tensors), tuple(targets), last)
            making = self._making.setdefault(key, threading.Lock())
        # A plan may wait for a task: only those wait with it who want the same.
        with making, room_for(levels_of(self._graph)):
            plan = self._by_elements.get(key)
            try:
                if plan is None:
                    plan = self._engine.plan(
                        PlanRequest(tensors, feeds.tensors, targets, timeout, last)
                    )
                    self._by_elements[key] = plan
            finally:
                self._making.pop(key, None)
        return _Compiled(structure, feeds, plan, mutations)

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function that runs one fixed step; its arguments are the values of ``feed_list``."""
        keys = list(feed_list or ())
        compiled = self._compile(fetches, keys)

        def step(*args: Any, options: Any = None, run_metadata: Any = None) -> Any:
            if self._closed:
                raise RuntimeError("Attempted to use a closed Session.")
            if len(args) != len(keys):
                raise TypeError(f"This step takes {len(keys)} values; {len(args)} were given.")
            if not accept_options:
                options = run_metadata = None
            limit = None
            if options is not None or self._timeout:
                limit = limit_of(options, self._timeout)
            values = compiled.feeds.convert(list(args))
            if limit is None and options is None and run_metadata is None:
                results = compiled.plan.run(values)
            else:
                results = self._run_with_options(compiled, values, options, run_metadata, limit)
            return compiled.fetches.rebuild(_to_host(results, compiled.plan.own))

        return step

    def partial_run_setup(self, fetches: Any, feeds: Sequence[Any] | None = None) -> str:
        """Start a step whose feeds and fetches come in several ``partial_run`` calls.

        Args:
            fetches: everything that will be fetched; ``feeds``: all that will be fed.

        Returns:
            A handle for ``partial_run``.

        Raises:
            InvalidArgumentError: if there is nothing to fetch.
        """
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        structure = Fetches(self._graph, list(fetches))
        if not structure.tensors and not structure.targets:
            raise InvalidArgumentError(None, None, "Must specify at least one target to fetch.")
        inputs = Feeds(self._graph, list(feeds or ()))
        request = PlanRequest(structure.tensors, inputs.tensors, structure.targets)
        run = self._engine.partial_run(request)
        handle = f"partial_run_{len(self._partial_runs)}"
        self._partial_runs[handle] = (structure, inputs, run)
        return handle

    def partial_run(
        self, handle: str, fetches: Any, feed_dict: dict[Any, Any] | None = None
    ) -> Any:
        """Go on with a step: feed some of its feeds and fetch some of its fetches.

        Raises:
            InvalidArgumentError: if ``handle`` is unknown, a feed or fetch was not declared or is
                repeated, or a fetch needs a feed that has not come yet.
        """
        if handle not in self._partial_runs:
            raise InvalidArgumentError(
                None, None, f"Must run 'setup' before performing partial runs! No run {handle!r}."
            )
        structure, inputs, run = self._partial_runs[handle]
        given = Feeds(self._graph, list(feed_dict or {}))
        values = given.convert(list((feed_dict or {}).values()))
        for tensor, value in zip(given.tensors, values, strict=True):
            run.feed(_declared(inputs.tensors, tensor, "feeds"), value)
        wanted = Fetches(self._graph, fetches)
        positions = [_declared(structure.tensors, t, "fetches") for t in wanted.tensors]
        targets = [_declared(structure.targets, t, "fetches") for t in wanted.targets]
        return wanted.rebuild(_to_host(run.fetch(positions, targets)))

    def describe(self, fetches: Any, feeds: Sequence[Any] = ()) -> str:
        """How the step that computes ``fetches`` from ``feeds`` runs, as text.

        What each stage of the pipeline did, then the parts of the tasks: the nodes of each by
        device and stage, and what crosses between them. In one process there is one part. Nothing
        runs; on a cluster the tasks that the step needs must be there.
        """
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        return str(self._compile(fetches, list(feeds)).plan.describe())

    def list_devices(self) -> list[Any]:
        """The devices this session can place operations on."""
        return self._engine.list_devices()

    def as_default(self) -> Any:
        """Make this session the default of the thread within a ``with`` block."""
        return default_session_stack.push(self)

    def close(self) -> None:
        """Free the session's state; it can run nothing afterwards."""
        self._closed = True
        self._plans.clear()
        self._engine.close()


class Session(BaseSession):
    """A session to use in a ``with`` block, in which it and its graph are the defaults.

    >>> x = tf.placeholder(tf.float32, [None])
    >>> y = 2 * x
    >>> with tf.Session() as sess:
    ...     sess.run(y, feed_dict={x: [1, 2]})
    ...     sess.run({"sum": tf.reduce_sum(y), "shape": tf.shape(y)}, {x: [1, 2]})
    array([2., 4.], dtype=float32)
    {'sum': np.float32(6.0), 'shape': array([2], dtype=int32)}
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._contexts: list[Any] = []

    def __enter__(self) -> Session:
        graph_context = self.graph.as_default()
        session_context = self.as_default()
        graph_context.__enter__()
        session_context.__enter__()
        self._contexts.append((graph_context, session_context))
        return self

    def __exit__(self, *exc: Any) -> None:
        graph_context, session_context = self._contexts.pop()
        session_context.__exit__(None, None, None)
        graph_context.__exit__(None, None, None)
        self.close()

    @staticmethod
    def reset(target: str, containers: list[str] | None = None, config: Any = None) -> None:
        """Clear the state of a server and of all tasks that it sees; its sessions end.

        Args:
            target: "grpc://host:port".
            containers: those to clear; by default that of resources without a container.
            config: a ConfigProto whose ``device_filters`` say which tasks are meant.

        Raises:
            ValueError: for the in-process target, whose state lives in each session.
        """
        engines.reset(target, containers, config)


class InteractiveSession(BaseSession):
    """A session that makes itself the default when it is made, until it is closed.

    >>> sess = tf.InteractiveSession()
    >>> (tf.constant(2) * 3).eval()  # in `sess`, without naming it
    np.int32(6)
    >>> sess.close()
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        default_session_stack.enforce_nesting = False
        self._default_session = self.as_default()
        self._default_session.__enter__()
        self._explicit_graph = graph
        self._default_graph = None
        if graph is not None:
            self._default_graph = graph.as_default()
            self._default_graph.__enter__()

    def close(self) -> None:
        """Close the session and stop being the default."""
        super().close()
        if self._default_graph is not None:
            self._default_graph.__exit__(None, None, None)
            self._default_graph = None
        if self._default_session is not None:
            self._default_session.__exit__(None, None, None)
            self._default_session = None


def limit_of(options: Any, default: int) -> Limit | None:
    """The limit of a step that begins: of its RunOptions, else of the session; milliseconds."""
    if options is not None and options.timeout_in_ms > 0:
        return Limit(options.timeout_in_ms)
    return Limit(default, "operation_timeout_in_ms") if default else None


def get_default_session() -> Session | Any:
    """The default session of the current thread, or None."""
    return default_session_stack.top()


def _declared(elements: Sequence[Any], element: Any, what: str) -> int:
    for i, known in enumerate(elements):
        if known is element:
            return i
    raise InvalidArgumentError(
        None, None, f"{element.name} is not among the {what} given to partial_run_setup."
    )


def _structure_key(fetch: Any) -> Any:
    """A hashable stand-in for a fetch structure; elements stand for themselves."""
    if isinstance(fetch, (Tensor, Operation, str)):
        return fetch
    if isinstance(fetch, (list, tuple)):
        return (type(fetch), *[_structure_key(f) for f in fetch])
    if isinstance(fetch, dict):
        return (type(fetch), *[(k, _structure_key(v)) for k, v in fetch.items()])
    return fetch


def _feeds_of(feed_dict: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """What is fed, and the values; an empty list or tuple feeds nothing, as in old programs."""
    if isinstance(feed_dict, Mapping):
        return tuple(feed_dict), list(feed_dict.values())
    if feed_dict is None or (isinstance(feed_dict, (list, tuple)) and not feed_dict):
        return (), []
    raise TypeError(
        "feed_dict must be a dictionary from tensors to values, but got "
        f"{type(feed_dict).__name__}: {feed_dict!r}"
    )


def _to_host(results: list[Any], own: frozenset[int] = frozenset()) -> list[Any]:
    """Fetched values as NumPy arrays of the caller's own, scalars as NumPy scalars.

    Args:
        results: large ones of `own` are taken out.
        own: positions of values that nobody else has; these are not copied.
    """
    out = []
    for position in range(len(results)):
        value = results[position]
        # The first look is the quick one: JAX takes its time to know arrays of others.
        if type(value) is not np.ndarray and not isinstance(value, (jax.Array, np.ndarray)):
            out.append(value)
        elif position in own and value.nbytes >= WORTH_TAKING:
            del value
            out.append(_taken(results, position))
        else:
            out.append(_copied(value))
    return out


def _copied(value: Any) -> Any:
    array = np.asarray(value)
    return array.copy() if array.ndim else array[()]


def _taken(results: list[Any], position: int) -> Any:
    """A large value itself, or a copy if somebody else turns out to have it."""
    value, references = _take_out(results, position)
    if references > _ALONE:
        return _copied(value)
    if isinstance(value, np.ndarray):
        flags = value.flags
        free = value.base is None and flags.owndata and flags.writeable and flags.c_contiguous
        return value if free else value.copy()
    # JAX remembers that an array was looked at as NumPy's.
    seen = getattr(value, "_npy_value", value) is not None
    on_cpu = [device.platform for device in value.devices()] == ["cpu"]
    return take_over(value) if on_cpu and not seen else _copied(value)


def _take_out(results: list[Any], position: int) -> tuple[Any, int]:
    """An element, and how many references there are to it once the list has none."""
    value = results[position]
    results[position] = None
    return value, sys.getrefcount(value)


#: References to an array that nobody else has: they differ between versions of Python.
_ALONE = _take_out([object()], 0)[1]

"""Profiles of graphs and steps: ``tf.profiler.profile``, ``Profiler`` and ``advise``."""

from __future__ import annotations

import sys
from typing import Any

from headrace.errors import InvalidArgumentError, NotFoundError, UnimplementedError, suggest
from headrace.files.system import join, write_bytes
from headrace.graph.given import given_graph
from headrace.graph.graph import Graph
from headrace.profiler import report, views
from headrace.profiler.advice import CHECKERS, advice
from headrace.profiler.nodes import ProfiledNode, add_times, nodes_of
from headrace.profiler.options import Options, ProfileOptionBuilder
from headrace.session.timeline import Timeline

_TREES = {"scope": views.scope_tree, "graph": views.graph_tree, "code": views.code_tree}
_COMMANDS = ("scope", "graph", "op", "code")


def _complete(options: Any) -> Options:
    """Options with what is not given filled in."""
    if not isinstance(options, dict):
        options = ProfileOptionBuilder.trainable_variables_parameter()
    defaults = {
        **ProfileOptionBuilder.trainable_variables_parameter(),
        "max_depth": 10,
        "account_type_regexes": [".*"],
        "account_displayed_op_only": False,
        "select": [],
    }
    return {**defaults, **options}


def _profile(
    nodes: dict[str, ProfiledNode], cmd: str, options: Options, steps: dict[int, Any]
) -> Any:
    """Make one view, write it where the options say, and answer its message."""
    if cmd not in _COMMANDS:
        message = f"unknown cmd: {cmd}.{suggest(str(cmd), _COMMANDS)}"
        raise InvalidArgumentError(None, None, message)
    kind, _, rest = str(options["output"]).partition(":")
    if kind not in ("none", "stdout", "file", "timeline"):
        raise UnimplementedError(
            None, None, f"Headrace does not write profiles as {kind!r}: use a file or a timeline."
        )
    if cmd == "op":
        entries = views.type_list(nodes, options)
        lines, answer = report.type_lines(entries, options), views.types_proto(entries)
    else:
        top = views.arrange(_TREES[cmd](nodes), options)
        lines = report.tree_lines(top, options)
        answer = views.lines_proto(top) if cmd == "code" else views.tree_proto(top)
    target = rest.removeprefix("outfile=")
    if kind == "stdout":
        sys.stdout.write("\n".join([*report.head(cmd, options), *lines, ""]) + "\n")
    elif kind == "file":
        write_bytes(target, "\n".join([*report.head(cmd, options), *lines, ""]).encode())
    elif kind == "timeline":
        for step, metadata in steps.items():
            text = Timeline(metadata.step_stats).generate_chrome_trace_format()
            write_bytes(f"{target}_{step}", text.encode())
    return answer


def profile(
    graph: Graph | None = None,
    run_meta: Any = None,
    op_log: Any = None,
    cmd: str = "scope",
    options: Any = None,
) -> Any:
    """Profile a graph: parameters, floating point operations, and times of a traced step.

    Args:
        graph: the default graph if None.
        run_meta: the RunMetadata of a step that ran with full tracing, for times and memory. It
            times compiled regions as a whole; under ``HEADRACE_TRACE_OPS=1`` it has a time for
            each op, from a step that was interpreted.
        op_log: an OpLogProto with types and float operations of ops to use instead.
        cmd: ``scope`` (by name scope), ``graph``, ``op`` (by type) or ``code`` (by line).
        options: made by `ProfileOptionBuilder`; by default the trained variables.

    Returns:
        A GraphNodeProto for ``scope`` and ``graph``, a MultiGraphNodeProto for ``op`` and
        ``code``; ``total_float_ops``, ``total_parameters`` and others are sums.

    Raises:
        InvalidArgumentError: for another ``cmd``, or options that make no sense.

    >>> import headrace as tf
    >>> with tf.Graph().as_default() as graph:
    ...     product = tf.matmul(tf.ones([2, 3]), tf.ones([3, 4]))
    ...     builder = tf.profiler.ProfileOptionBuilder
    ...     options = builder(builder.float_operation()).with_empty_output().build()
    ...     tf.profiler.profile(graph, options=options).total_float_ops
    48
    """
    nodes = nodes_of(given_graph(graph), op_log)
    steps = {} if run_meta is None else {0: run_meta}
    add_times(nodes, steps.values())
    return _profile(nodes, cmd, _complete(options), steps)


def advise(graph: Graph | None = None, run_meta: Any = None, options: Any = None) -> Any:
    """Say what stands out in the profile of a step, and print it.

    Args:
        options: a dictionary with the names of the checkers to run as keys; by default all.

    Returns:
        An AdviceProto with the reports of each checker.

    Raises:
        InvalidArgumentError: if there is no checker of a name.
    """
    nodes = nodes_of(given_graph(graph))
    add_times(nodes, [] if run_meta is None else [run_meta])
    return advice(nodes, options if isinstance(options, dict) else list(CHECKERS))


class Profiler:
    """Profiles several traced steps of one graph.

    >>> import headrace as tf
    >>> with tf.Graph().as_default() as graph, tf.Session() as session:
    ...     total = tf.reduce_sum(tf.ones([3]))
    ...     metadata = tf.RunMetadata()
    ...     trace = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    ...     value = session.run(total, options=trace, run_metadata=metadata)
    ...     profiler = tf.profiler.Profiler(graph)
    ...     profiler.add_step(0, metadata)
    ...     builder = tf.profiler.ProfileOptionBuilder
    ...     options = builder(builder.time_and_memory()).with_empty_output().build()
    ...     profiler.profile_name_scope(options).name
    '_TFProfRoot'

    Args:
        graph: the default graph if None.
        op_log: see `profile`.
    """

    def __init__(self, graph: Graph | None = None, op_log: Any = None) -> None:
        self._graph = given_graph(graph)
        self._op_log = op_log
        self._steps: dict[int, Any] = {}

    def add_step(self, step: int, run_meta: Any) -> None:
        """Add the RunMetadata of a step."""
        kept = type(run_meta)()
        kept.CopyFrom(run_meta)  # callers use one message for many steps
        self._steps[step] = kept

    def profile_name_scope(self, options: Options) -> Any:
        """The view by name scope, a GraphNodeProto."""
        return self._view("scope", options)

    def profile_graph(self, options: Options) -> Any:
        """The view by the edges of the graph, a GraphNodeProto."""
        return self._view("graph", options)

    def profile_operations(self, options: Options) -> Any:
        """The view by op type, a MultiGraphNodeProto."""
        return self._view("op", options)

    def profile_python(self, options: Options) -> Any:
        """The view by line of the program, a MultiGraphNodeProto."""
        return self._view("code", options)

    def advise(self, options: Any = None) -> Any:
        """Say what stands out; see `advise`."""
        nodes = self._nodes(-1)[0]
        return advice(nodes, options if isinstance(options, dict) else list(CHECKERS))

    def serialize_to_string(self) -> bytes:
        """The op log of the graph (types, float operations) as bytes of an OpLogProto."""
        data: bytes = _op_log(nodes_of(self._graph, self._op_log)).SerializeToString()
        return data

    def _view(self, cmd: str, options: Options) -> Any:
        options = _complete(options)
        nodes, steps = self._nodes(options["step"])
        return _profile(nodes, cmd, options, steps)

    def _nodes(self, step: int) -> tuple[dict[str, ProfiledNode], dict[int, Any]]:
        steps = self._steps
        if step >= 0:
            if step not in steps:
                known = sorted(steps)
                raise NotFoundError(None, None, f"There is no step {step}; added were {known}.")
            steps = {step: steps[step]}
        nodes = nodes_of(self._graph, self._op_log)
        add_times(nodes, steps.values())
        return nodes, steps


def _op_log(nodes: dict[str, ProfiledNode]) -> Any:
    from headrace.graph.proto import OpLogProto

    log = OpLogProto()
    for node in nodes.values():
        op_type = node.op.type if node.op is not None else ""
        types = sorted(node.types - {op_type})
        if node.own.float_ops or types:
            log.log_entries.add(name=node.name, float_ops=node.own.float_ops, types=types)
    return log


def write_op_log(
    graph: Graph | None,
    log_dir: str,
    op_log: Any = None,
    run_meta: Any = None,
    add_trace: bool = True,
) -> None:
    """Write the types and float operations of all ops to ``tfprof_log`` in a directory.

    Args:
        op_log: an OpLogProto whose entries count first.
        run_meta, add_trace: taken for compatibility; shapes and traces are those of the graph.

    Raises:
        NotFoundError: if there is no such directory.
    """
    log = _op_log(nodes_of(given_graph(graph), op_log))
    write_bytes(join(log_dir, "tfprof_log"), log.SerializeToString())

"""Reading graph files into a graph: `tf.import_graph_def`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from headrace.graph.func_graph import FuncGraph
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.graph_files.import_calls import name_calls
from headrace.graph_files.import_functions import FunctionLibrary
from headrace.ops.core.build import convert_to_tensor

__all__ = ["import_graph_def"]


def import_graph_def(
    graph_def: Any,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Iterable[str] | None = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> list[Tensor | Operation] | None:
    """Add the operations of a graph file to the default graph.

    Args:
        graph_def: a GraphDef message (ours or TensorFlow's), or its bytes.
        input_map: tensors of the default graph to use in the place of tensors of the file, by
            their names there (``"x"``, ``"x:1"``, ``"^x"`` for control inputs). Their dtypes must
            be those of the file; shapes are inferred anew from theirs.
        return_elements: names of tensors and operations of the file to return.
        name: the prefix of all names, ``"import"`` by default; ``""`` for none.
        op_dict: ignored, as in TensorFlow.
        producer_op_list: an OpList of the program that wrote the file: attributes that we do not
            know are left out where they have its default values.

    Returns:
        The elements asked for, or None.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if the file does not describe a graph that can be added, or does not have what
            ``input_map`` and ``return_elements`` name. The graph is as before then.
        DataLossError: if bytes are given that are cut off or no GraphDef.
    """
    del op_dict
    message = _as_graph_def(graph_def)
    inputs = _checked_input_map(input_map)
    wanted = _checked_return_elements(return_elements)
    graph = get_default_graph()
    with unchanged_on_failure(graph):
        importer = _Importer(graph, message, inputs, producer_op_list, wanted)
        return importer.add_to_graph(
            "import" if name is None else name, return_elements is not None
        )


def _as_graph_def(graph_def: Any) -> Any:
    from headrace.graph.graph_def import parse_graph_def
    from headrace.graph.proto import GraphDef

    if isinstance(graph_def, (bytes, bytearray)):
        return parse_graph_def(bytes(graph_def))
    if isinstance(graph_def, GraphDef):
        return graph_def
    descriptor = getattr(graph_def, "DESCRIPTOR", None)
    if getattr(descriptor, "name", "") == "GraphDef":  # TensorFlow's own class
        return parse_graph_def(graph_def.SerializeToString())
    raise TypeError("graph_def must be a GraphDef proto.")


def _checked_input_map(input_map: Any) -> dict[str, Any]:
    if input_map is None:
        return {}
    if not isinstance(input_map, Mapping):
        raise TypeError(f"input_map must be a dictionary. Obtained {type(input_map).__name__}")
    keys = [k.decode() if isinstance(k, bytes) else k for k in input_map]
    if not all(isinstance(k, str) for k in keys):
        raise TypeError(
            f"All keys for argument `input_map` must be strings. Obtained keys: {list(input_map)}"
        )
    return dict(zip(keys, input_map.values(), strict=True))


def _checked_return_elements(return_elements: Any) -> list[str]:
    if return_elements is None:
        return []
    if isinstance(return_elements, (str, bytes)):
        raise TypeError(f"return_elements must be a list of strings. Obtained {return_elements!r}.")
    names = tuple(return_elements)
    if not all(isinstance(n, (str, bytes)) for n in names):
        raise TypeError(f"return_elements must be a list of strings. Obtained {return_elements}.")
    return [n.decode() if isinstance(n, bytes) else n for n in names]


@contextmanager
def unchanged_on_failure(graph: Graph) -> Iterator[None]:
    """Take back every operation, name and function added inside if the block raises."""
    with graph._lock:
        count = len(graph._ops)
        uses, functions = dict(graph._names._uses), dict(graph.outermost._functions)
        captures = dict(graph.captures) if isinstance(graph, FuncGraph) else None
        try:
            yield
        except BaseException:
            for op in reversed(graph._ops[count:]):
                _remove(graph, op)
            del graph._ops[count:]
            graph._names._uses = uses
            graph.outermost._functions = functions
            if isinstance(graph, FuncGraph) and captures is not None:
                graph.captures = captures
            raise


def _remove(graph: Graph, op: Operation) -> None:
    del graph._by_name[op.name]
    for tensor in op.inputs:
        tensor._consumers = [c for c in tensor._consumers if c is not op]
    for control in op.control_inputs:
        control.control_outputs = [c for c in control.control_outputs if c is not op]
    for scope in graph._control.scopes:
        scope.made_inside.discard(op)
    graph.__dict__.get("_static_cache", {}).pop(op, None)
    graph._variable_of.pop(op, None)


class _Importer:
    """One call of import_graph_def."""

    def __init__(
        self,
        graph: Graph,
        message: Any,
        input_map: dict[str, Any],
        producer_op_list: Any,
        wanted: list[str],
    ) -> None:
        from headrace.graph_files import import_nodes, import_refs
        from headrace.graph_files.import_control import raise_control_flow

        self._nodes = import_nodes
        self.graph = graph
        self.input_map = input_map
        self.wanted = wanted
        _check_versions(message)
        nodes, library = name_calls(message.node, message.library)
        rewritten = import_refs.rewrite(nodes)
        self.reads = rewritten.reads
        mapped = {
            k if k.startswith("^") else "{}:{}".format(*import_nodes.parse_tensor_name(k))
            for k in input_map
        }
        nodes, cut_out = raise_control_flow(rewritten.nodes, [f.signature.name for f in library])
        producer = message.versions.producer if message.HasField("versions") else None
        self.plans = import_nodes.plan(
            nodes, _defaults(producer_op_list), mapped=mapped, producer=producer
        )
        self.by_name = {p.name: p for p in self.plans}
        self.functions = FunctionLibrary(graph, [*library, *cut_out])
        self.tensors: dict[tuple[str, int], Tensor] = {}
        self.mapped: dict[tuple[str, int], Tensor] = {}
        self.mapped_controls: dict[str, Operation] = {}
        self.ops: dict[str, Operation] = {}
        self._check_names()

    def _check_names(self) -> None:
        """Refuse names in ``input_map`` and ``return_elements`` that the file does not have."""
        missing = []
        used = {s for p in self.plans for s in (*p.inputs, *[f"^{c}" for c in p.controls])}
        for key in self.input_map:
            node, index = (
                (key[1:], 0) if key.startswith("^") else self._nodes.parse_tensor_name(key)
            )
            plan = self.by_name.get(node)
            if (key if key.startswith("^") else (node, index)) in used:
                continue
            if plan is None or (not key.startswith("^") and index >= len(plan.output_types)):
                missing.append(key)
        if missing:
            raise ValueError(
                f"Attempted to map inputs that were not found in graph_def: [{', '.join(missing)}]"
            )
        for name in self.wanted:
            node, index = self._nodes.parse_tensor_name(name)
            plan = self.by_name.get(node)
            if plan is None:
                kind = "tensor" if ":" in name else "node"
                raise ValueError(f"Requested return {kind} '{name}' not found in graph def")
            outputs = 1 if node in self.reads else len(plan.output_types)
            if ":" in name and index >= outputs:
                raise ValueError(
                    f"Invalid return output {index} of node '{node}', which has {outputs} output(s)"
                )

    def add_to_graph(self, name: str, returns: bool) -> list[Tensor | Operation] | None:
        with self.graph.name_scope(name) as scope:
            self._convert_input_map(name, scope)
            for plan in self.plans:
                self._add(plan, scope)
        for op in self.ops.values():
            op.colocation = tuple(self._colocated(n) for n in op.colocation)
        self._make_variables()
        return [self._element(n) for n in self.wanted] if returns else None

    def _convert_input_map(self, name: str, scope: str) -> None:
        values = self.input_map
        if not all(isinstance(v, (Tensor, Operation)) for v in values.values()):
            if name == "":
                raise ValueError(
                    "tf.import_graph_def() requires a non-empty `name` if `input_map` contains "
                    "non-Tensor values. Try calling tf.convert_to_tensor() on `input_map` values "
                    "before calling tf.import_graph_def()."
                )
            with self.graph.name_scope("_inputs"):
                values = {
                    k: v if isinstance(v, (Tensor, Operation)) else convert_to_tensor(v)
                    for k, v in values.items()
                }
        for key, value in values.items():
            if key.startswith("^"):
                self.mapped_controls[key[1:]] = value.op if isinstance(value, Tensor) else value
            elif isinstance(value, Operation):
                raise TypeError(
                    f"input_map['{key}'] must be a tensor, not the operation {value!r}."
                )
            else:
                self.mapped[self._nodes.parse_tensor_name(key)] = value

    def _add(self, plan: Any, scope: str) -> None:
        inputs = [self._tensor(source) for source in plan.inputs]
        controls = list(dict.fromkeys(self._control(c) for c in plan.controls))
        attrs = self._nodes.resolve_functions(plan, inputs, self.functions)
        full = self._free_name(scope + plan.name)
        op = self._nodes.add_node(self.graph, plan, full, inputs, controls, attrs)
        if plan.colocation:
            op.colocation = plan.colocation
        self.ops[plan.name] = op

    def _tensor(self, source: tuple[str, int]) -> Tensor:
        found = self.mapped.get(source)
        return self.ops[source[0]].outputs[source[1]] if found is None else found

    def _control(self, name: str) -> Operation:
        return self.mapped_controls.get(name) or self.ops[name]

    def _free_name(self, name: str) -> str:
        taken = self.graph._by_name
        if name not in taken:
            return name
        count = 1
        while f"{name}_{count}" in taken or f"{name}_{count}" in self.by_name:
            count += 1
        return f"{name}_{count}"

    def _colocated(self, name: str) -> str:
        return self.ops[name].name if name in self.ops else name

    def _make_variables(self) -> None:
        """Variable objects for imported handles, so that ``tf.assign`` takes their values."""
        from headrace.graph.proto import VariableDef
        from headrace.ops.state.variables import Variable

        for op in self.ops.values():
            if op.op_def.makes_handle != "variable" or op in self.graph._variable_of:
                continue
            users = op.outputs[0]._consumers
            initializer = next((u for u in users if u.type == "AssignVariableOp"), None)
            value = self.graph._value_of(op)
            if value is not None and initializer is not None:
                Variable.from_proto(
                    VariableDef(
                        variable_name=op.outputs[0].name,
                        initializer_name=initializer.name,
                        snapshot_name=value.name,
                        is_resource=True,
                    )
                )

    def _element(self, name: str) -> Tensor | Operation:
        node, index = self._nodes.parse_tensor_name(name)
        if ":" not in name:
            return self.ops[node]
        if index == 0 and node in self.reads and (node, 0) not in self.mapped:
            return self.ops[self.reads[node]].outputs[0]
        return self._tensor((node, index))


def _check_versions(message: Any) -> None:
    from headrace.graph.graph_def import CONSUMER

    needed = message.versions.min_consumer
    if needed > CONSUMER or CONSUMER in message.versions.bad_consumers:
        raise ValueError(
            f"GraphDef min consumer version {needed} above current version {CONSUMER}: the file "
            "was written for programs that can read newer files."
        )


def _defaults(producer_op_list: Any) -> dict[str, dict[str, Any]]:
    """Default values of attributes by op, from an OpList (ours or TensorFlow's)."""
    if producer_op_list is None:
        return {}
    from headrace.graph.proto import OpList

    ops = OpList.FromString(producer_op_list.SerializeToString())
    return {
        op.name: {a.name: a.default_value for a in op.attr if a.HasField("default_value")}
        for op in ops.op
    }


def from_text(text: str) -> Graph:
    """The graph that `headrace.graph.text.to_text` wrote.

    Raises:
        ValueError: if the text is malformed or the graph cannot be made; says the line or node.
    """
    from headrace.graph.text import parse

    graph = Graph()
    with graph.as_default():
        import_graph_def(parse(text), name="")
    return graph

"""CTC losses in two parts: the host pads the labels, and the loss joins the compiled program.

In: a step graph. Out: `_CTCLabels` and `_CTCLossDense` for each CTCLoss (Graves et al.
2006, section 4). Invariant: losses and gradients are those of the one operation.

    >>> from headrace.passes.ir import build_step
    >>> with tf.Graph().as_default():
    ...     logits = tf.placeholder(tf.float32, [5, 1, 4], name="logits")
    ...     labels = tf.SparseTensor([[0, 0]], [1], [1, 1])
    ...     step = build_step([tf.nn.ctc_loss(labels, logits, [5])], [logits], [])
    >>> split_ctc(step), [n.type for n in step.nodes][-2:]
    (1, ['_CTCLabels', '_CTCLossDense'])
"""

from __future__ import annotations

from headrace.graph import dtypes
from headrace.graph.wire_precision import carry
from headrace.ops.nn.ctc import DENSE_LOSS, PAD_LABELS
from headrace.passes.ir import Edge, Node, StepGraph


def split_ctc(step: StepGraph) -> int:
    """Split the losses whose number of classes is known; returns how many."""
    mapping: dict[Edge, Edge] = {}
    replaced: dict[Node, Node] = {}
    for node in list(step.nodes):
        if node.type != "CTCLoss":
            continue
        source, index = node.inputs[0]
        classes = (source.dims[index] or (None,))[-1]
        if classes is not None:
            loss = _loss(node, _labels(node, classes))
            step.nodes += [loss.inputs[1][0], loss]
            mapping |= {(node, 0): (loss, 0), (node, 1): (loss, 1)}
            replaced[node] = loss
    if replaced:
        step.replace(mapping)
        for node in step.nodes:
            node.control = [replaced.get(n, n) for n in node.control]
        step.targets = [replaced.get(n, n) for n in step.targets]
        step.prune()
    return len(replaced)


def _labels(node: Node, classes: int) -> Node:
    attrs = carry(node.attrs, {n: node.attrs[n] for n in PAD_LABELS.host_params[1:]})
    attrs["num_classes"] = classes
    types = (dtypes.int32, dtypes.int32, dtypes.bool)
    shapes = ((None, None), (None,), (None,))
    made = Node(PAD_LABELS, node.name, node.inputs[1:], attrs, types, shapes, node.op)
    made.device, made.colocation = node.device, node.colocation
    made.control = list(node.control)
    return made


def _loss(node: Node, labels: Node) -> Node:
    logits, *_, lengths = node.inputs
    inputs = [logits, (labels, 0), (labels, 1), (labels, 2), lengths]
    attrs = carry(node.attrs, {"ctc_merge_repeated": node.attrs["ctc_merge_repeated"]})
    made = Node(DENSE_LOSS, node.name, inputs, attrs, node.dtypes, node.dims, node.op)
    made.device, made.colocation = node.device, node.colocation
    made.control = list(node.control)
    return made

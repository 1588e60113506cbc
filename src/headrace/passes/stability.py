"""Numerical stability: chains that overflow or lose all digits where the mathematics does not.

``log(softmax(x))`` of a saturated row is log(0), and its gradient 1/0 times 0; the same function
computed in one go is finite. The rules cover forward chains and the gradients that ``tf.gradients``
builds for them.

In: a step graph. Out: one without those chains. Invariant: where the chain was accurate the result
is the same up to rounding.

    >>> from headrace.passes.ir import build_step
    >>> with tf.Graph().as_default():
    ...     x = tf.placeholder(tf.float32, [2, 3], name="x")
    ...     step = build_step([tf.log(tf.nn.softmax(x, name="p"), name="y")], [x], [])
    >>> Rewriter(step).apply(RULES), step.nodes
    (1, [<x:0 = _Feed()>, <y = LogSoftmax(x:0:0)>])
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.passes.ir import Edge, Node
from headrace.passes.rewrite import (
    Bindings,
    Match,
    Rewriter,
    Rule,
    RuleSet,
    Scalar,
    Var,
    keeps_shape,
    match,
    op,
)

Build = Callable[[Rewriter, Node, Bindings], Edge | None]

_x, _g = Var("x"), Var("g")
_softmax = op("Softmax", _x, name="y")
_sigmoid = op("Sigmoid", _x, name="y")
_one = Scalar(1, name="one")
_one_minus = op("Sub", _one, _sigmoid, name="rest")


def _over(gradient: Var, value: Match) -> tuple[Match, ...]:
    """The ways in which the gradient of a logarithm is written: g / value."""
    return (
        op("Mul", gradient, op("Reciprocal|Inv", value), commutes=True),
        op("RealDiv|Div", gradient, value),
    )


def _log_softmax(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    return rewriter.make("LogSoftmax", [found["x"]], node)


def _log_softmax_gradient(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    return rewriter.make("LogSoftmaxGrad", [found["g"], found["y"]], node)


def _log_sigmoid(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    negative = rewriter.make("Neg", [found["x"]], node)
    return rewriter.make("Neg", [rewriter.make("Softplus", [negative], node)], node)


def _log_one_minus_sigmoid(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    if not _keeps_size(node, found):
        return None
    return rewriter.make("Neg", [rewriter.make("Softplus", [found["x"]], node)], node)


def _log_sigmoid_gradient(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    negative = rewriter.make("Neg", [found["x"]], node)
    rest = rewriter.make("Sigmoid", [negative], node)
    return rewriter.make("Mul", [found["g"], rest], node)


def _log_one_minus_sigmoid_gradient(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    if not _keeps_size(node, found):
        return None
    product = rewriter.make("Mul", [found["g"], found["y"]], node)
    return rewriter.make("Neg", [product], node)


def _spread_over_sum(position: int, patterns: tuple[Match, ...]) -> Build:
    """f'(g + h) = f'(g) + f'(h), where that lets a rule for f'(g) apply.

    The gradients of several logarithms of one value arrive as their sum, input ``position``.
    """

    def build(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
        total = found["g"][0]
        if total.type not in ("AddN", "AddV2", "Add") or total.control:
            return None
        if not any(match(p, e, {}) for e in total.inputs for p in patterns):
            return None
        # The same gradient op for each term, added up as the terms were.
        terms = []
        for edge in total.inputs:
            inputs = list(node.inputs)
            inputs[position] = edge
            terms.append(rewriter.make(node.type, inputs, node))
        return rewriter.make(total.type, terms, total, dict(total.attrs))

    return build


def _keeps_size(node: Node, found: Bindings) -> bool:
    """Whether the one that goes is no larger than ``x``, so that nothing is spread over it."""
    return found["one"][0].attrs["value"].ndim == 0 or keeps_shape(node, found["x"])


def _log1p(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    if not _keeps_size(node, found):
        return None
    return rewriter.make("Log1p", [found["x"]], node)


def _expm1(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    if not _keeps_size(node, found):
        return None
    return rewriter.make("Expm1", [found["x"]], node)


def _log_sum_exp(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    if _is_shifted(found["x"]):  # our own result has this form, too: without end otherwise
        return None
    return _stable_log_sum(rewriter, node, found["x"], found["total"][0])


def _is_shifted(x: Edge) -> bool:
    """Whether ``x`` has its maximum subtracted already, by this pass."""
    node = x[0]
    return node.type == "Sub" and node.inputs[1][0].type == "FiniteOrZero"


def _stable_log_sum(rewriter: Rewriter, like: Node, x: Edge, total: Node) -> Edge:
    """log(sum(exp(x))) as max + log(sum(exp(x - max))), shaped like ``total``."""
    axes, keep = total.inputs[1], total.attrs["keep_dims"]
    kept = rewriter.make("Max", [x, axes], like, {"keep_dims": True, **_types(total)})
    # An infinite maximum stays where it is: inf - inf would be NaN.
    finite = rewriter.make("FiniteOrZero", [kept], like)
    shifted = rewriter.make("Exp", [rewriter.make("Sub", [x, finite], like)], like)
    attrs = {"keep_dims": keep, **_types(total)}
    log = rewriter.make("Log", [rewriter.make("Sum", [shifted, axes], like, attrs)], like)
    # The maximum in the shape of the sum: the reduction of what is equal along the axes.
    back = finite if keep else rewriter.make("Max", [finite, axes], like, attrs)
    return rewriter.make("AddV2", [log, back], like)


def _types(total: Node) -> dict[str, object]:
    return {k: v for k, v in total.attrs.items() if k in ("T", "Tidx")}


_sum_exp = op("Sum", op("Exp", _x, name="e"), Var("axes"), name="total")


def _spreads(node: Node) -> bool:
    """Whether a node only moves a gradient about on its way back through a sum."""
    from_first = node.op_def.traits.elements_of == slice(1)
    return from_first and len(node.dtypes) == 1 and not node.control


def _log_sum_exp_gradient(rewriter: Rewriter, node: Node, found: Bindings) -> Edge | None:
    """spread(g / sum(exp(x))) * exp(x) = spread(g) * exp(x - spread(log(sum(exp(x)))))."""
    # Back from the product through what has spread the gradient of the sum to the shape of x.
    chain: list[Node] = []
    edge = found["spread"]
    while _spreads(edge[0]):
        chain.append(edge[0])
        edge = edge[0].inputs[0]
    for pattern in _over(_g, op("Sum", op("Exp", _x), Var("axes"), name="total")):
        inner: Bindings = {"x": found["x"]}
        if match(pattern, edge, inner):
            log = _stable_log_sum(rewriter, edge[0], found["x"], inner["total"][0])
            spread_log = _spread(rewriter, chain, log)
            spread_g = _spread(rewriter, chain, inner["g"])
            power = rewriter.make("Sub", [found["x"], spread_log], node)
            return rewriter.make("Mul", [spread_g, rewriter.make("Exp", [power], node)], node)
    return None


def _spread(rewriter: Rewriter, chain: list[Node], edge: Edge) -> Edge:
    for step in reversed(chain):
        edge = rewriter.make(step.type, [edge, *step.inputs[1:]], step, dict(step.attrs))
    return edge


_sigmoid_terms = (
    *_over(_g, _sigmoid),
    *[op("Neg", d) for d in _over(_g, _one_minus)],
)

RULES = RuleSet(
    (
        # Those that take a sum of gradients apart come first: the others then see one term each.
        Rule(
            "softmax'(g + h) = softmax'(g) + softmax'(h)",
            op("SoftmaxGrad", _g, _softmax),
            _spread_over_sum(0, _over(_g, _softmax)),
        ),
        Rule(
            "sigmoid'(g + h) = sigmoid'(g) + sigmoid'(h)",
            op("SigmoidGrad", _sigmoid, _g),
            _spread_over_sum(1, _sigmoid_terms),
        ),
        Rule("log(softmax(x)) = log_softmax(x)", op("Log", _softmax), _log_softmax),
        *[
            Rule("d log(softmax(x)) = g - softmax(x) sum(g)", op("SoftmaxGrad", d, _softmax), build)
            for d in _over(_g, _softmax)
            for build in (_log_softmax_gradient,)
        ],
        Rule("log(sigmoid(x)) = -softplus(-x)", op("Log", _sigmoid), _log_sigmoid),
        Rule("log(1 - sigmoid(x)) = -softplus(x)", op("Log", _one_minus), _log_one_minus_sigmoid),
        *[
            Rule(
                "d log(sigmoid(x)) = g sigmoid(-x)",
                op("SigmoidGrad", _sigmoid, d),
                _log_sigmoid_gradient,
            )
            for d in _over(_g, _sigmoid)
        ],
        *[
            Rule(
                "d log(1 - sigmoid(x)) = -g sigmoid(x)",
                op("SigmoidGrad", _sigmoid, op("Neg", d)),
                _log_one_minus_sigmoid_gradient,
            )
            for d in _over(_g, _one_minus)
        ],
        Rule("log(1 + x) = log1p(x)", op("Log", op("Add|AddV2", _x, _one, commutes=True)), _log1p),
        Rule("exp(x) - 1 = expm1(x)", op("Sub", op("Exp", _x), _one), _expm1),
        Rule(
            "log(sum(exp(x))) = max + log(sum(exp(x - max)))",
            op("Log", _sum_exp),
            _log_sum_exp,
        ),
        Rule(
            "d log(sum(exp(x))) = g exp(x - log(sum(exp(x))))",
            op("Mul", Var("spread"), op("Exp", _x), commutes=True),
            _log_sum_exp_gradient,
        ),
    )
)

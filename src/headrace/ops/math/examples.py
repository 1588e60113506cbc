"""Examples for the functions that are made from rows of the tables of elementwise ops."""

from __future__ import annotations

#: By op: a call, and what it gives.
_EXAMPLES = {
    "Add": ("tf.add([1, 2], [10, 20])", [11, 22]),
    "BitwiseAnd": ("tf.bitwise.bitwise_and([6], [3])", [2]),
    "Ceil": ("tf.ceil([1.2, -1.2])", [2.0, -1.0]),
    "Cos": ("tf.cos([0.0])", [1.0]),
    "DivNoNan": ("tf.div_no_nan([1.0, 2.0], [0.0, 4.0])", [0.0, 0.5]),
    "Equal": ("tf.equal([1, 2], [1, 3])", [True, False]),
    "Exp": ("tf.exp([0.0])", [1.0]),
    "Floor": ("tf.floor([1.8, -1.2])", [1.0, -2.0]),
    "FloorMod": ("tf.mod([7, -7], 3)", [1, 2]),
    "Greater": ("tf.greater([1, 3], [2, 2])", [False, True]),
    "GreaterEqual": ("tf.greater_equal([1, 2, 3], 2)", [False, True, True]),
    "IsFinite": ("tf.is_finite([1.0, float('inf'), float('nan')])", [True, False, False]),
    "IsInf": ("tf.is_inf([1.0, float('inf'), float('nan')])", [False, True, False]),
    "IsNan": ("tf.is_nan([1.0, float('inf'), float('nan')])", [False, False, True]),
    "Less": ("tf.less([1, 3], [2, 2])", [True, False]),
    "LessEqual": ("tf.less_equal([1, 2, 3], 2)", [True, True, False]),
    "Log": ("tf.log([1.0, 0.0])", [0.0, float("-inf")]),
    "LogicalAnd": ("tf.logical_and([True, True], [True, False])", [True, False]),
    "LogicalOr": ("tf.logical_or([True, False], [False, False])", [True, False]),
    "Maximum": ("tf.maximum([1, 5], 3)", [3, 5]),
    "Minimum": ("tf.minimum([1, 5], 3)", [1, 3]),
    "Mul": ("tf.multiply([[1, 2], [3, 4]], [10, 100])", [[10, 200], [30, 400]]),
    "Neg": ("tf.negative([1, -2])", [-1, 2]),
    "NotEqual": ("tf.not_equal([1, 2], [1, 3])", [False, True]),
    "Rint": ("tf.rint([1.5, 2.5])", [2.0, 2.0]),
    "Round": ("tf.round([0.5, 1.5, -1.7])", [0.0, 2.0, -2.0]),
    "Rsqrt": ("tf.rsqrt([4.0])", [0.5]),
    "Sigmoid": ("tf.sigmoid([0.0, 1000.0])", [0.5, 1.0]),
    "Sign": ("tf.sign([-3, 0, 5])", [-1, 0, 1]),
    "Sqrt": ("tf.sqrt([4.0, 9.0])", [2.0, 3.0]),
    "Square": ("tf.square([3, -4])", [9, 16]),
    "SquaredDifference": ("tf.squared_difference([1, 2], [4, 2])", [9, 0]),
    "Sub": ("tf.subtract([5, 6], [1, 2])", [4, 4]),
    "Tanh": ("tf.tanh([0.0])", [0.0]),
}


def example_of(op_name: str) -> str:
    """The end of a docstring: the example of an op, or nothing."""
    if op_name not in _EXAMPLES:
        return ""
    call, result = _EXAMPLES[op_name]
    return f"""
>>> with tf.Session() as session:
...     session.run({call}).tolist()
{result}
"""

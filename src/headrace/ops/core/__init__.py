"""What every family stands on: the registry of operations, building them, checks, static values.

In: the definition of an operation (`registry.OpDef`). Out: ways to make nodes of it. Invariant: all
that other stages know of an operation is a field of its definition.

    >>> from headrace.ops.core.registry import get_op_def
    >>> matmul = get_op_def("MatMul")
    >>> [argument.name for argument in matmul.inputs], matmul.effects.pure
    (['a', 'b'], True)
"""

"""Function bodies: what is captured, and the order inside."""

from __future__ import annotations

import headrace as tf


def test_a_capture_inside_a_control_scope_does_not_end_it():
    """The placeholder of a captured tensor is not made after what the scope waits for."""
    outer = tf.placeholder(tf.float32, [])
    v = tf.Variable(0.0)

    def body():
        first = v.assign(5.0, read_value=False)
        with tf.control_dependencies([first]):
            second = v.assign_add(outer, read_value=False)
        with tf.control_dependencies([second]):
            return v.read_value()

    result = tf.cond(tf.constant(True), body, lambda: 0.0)
    function = result.op.attrs["then_branch"]
    add = next(op for op in function.get_operations() if op.type == "AssignAddVariableOp")
    assert [c.type for c in add.control_inputs] == ["AssignVariableOp"]
    arguments = [t.op for t in function.all_inputs]
    assert all(not a.control_inputs for a in arguments)

"""Variable ops: reads, updates, counters, gathers and scatters, compiled and interpreted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.ops.core.build import raw

pytestmark = pytest.mark.usefixtures("interpret")


@pytest.fixture
def session() -> Iterator[Any]:
    with tf.Session() as opened:
        yield opened


def _ready(session: Any, value: Any, dtype: Any = None) -> Any:
    variable = tf.Variable(value, dtype=dtype, name="v")
    session.run(variable.initializer)
    return variable


def test_reading_before_initialising_names_the_variable_and_the_cure(session: Any) -> None:
    v = tf.Variable([1.0, 2.0], name="weights")
    with pytest.raises(tf.errors.FailedPreconditionError) as caught:
        session.run(v)
    assert "Attempting to use uninitialized value weights" in str(caught.value)
    assert "test_state.py" in str(caught.value)


def test_is_initialized_needs_no_value(session: Any) -> None:
    v = tf.Variable(1.0)
    ready = tf.is_variable_initialized(v)
    assert not session.run(ready)
    session.run(v.initializer)
    assert session.run(ready)
    session.run(raw.DestroyResourceOp(v.handle))
    assert not session.run(ready)


def test_destroying_what_is_not_there(session: Any) -> None:
    v = tf.Variable(1.0)
    session.run(raw.DestroyResourceOp(v.handle))
    with pytest.raises(tf.errors.NotFoundError, match="Resource localhost/Variable does not"):
        session.run(raw.DestroyResourceOp(v.handle, ignore_lookup_error=False))


def test_assignments_give_the_new_value(session: Any) -> None:
    v = _ready(session, [1.0, 2.0])
    assert session.run(v.assign([5.0, 6.0])).tolist() == [5.0, 6.0]
    assert session.run(tf.assign_add(v, [1.0, 1.0])).tolist() == [6.0, 7.0]
    assert session.run(v.assign_sub([2.0, 0.0])).tolist() == [4.0, 7.0]
    assert session.run(v).tolist() == [4.0, 7.0]
    assert v.assign([0.0, 0.0], read_value=False).type == "AssignVariableOp"


def test_assigning_another_shape_is_refused_when_building(session: Any) -> None:
    v = tf.Variable([1.0, 2.0], name="v")
    with pytest.raises(ValueError, match=r"variable 'v': Shape mismatch.*\(2,\).*\(3,\)"):
        v.assign([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"Cannot update variable with shape \(2,\) using"):
        v.assign_add([1.0])


def test_assigning_another_shape_is_refused_when_running(session: Any) -> None:
    v = _ready(session, [1.0, 2.0])
    x = tf.placeholder(tf.float32)
    for update in (v.assign(x), v.assign_add(x), v.assign_sub(x)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\(3,\)|\[3\]"):
            session.run(update, {x: [1.0, 2.0, 3.0]})
    assert session.run(v).tolist() == [1.0, 2.0]


def test_validate_shape_off_lets_the_shape_change(session: Any) -> None:
    v = tf.Variable([1.0, 2.0], validate_shape=False)
    session.run(v.initializer)
    assert v.shape.rank is None
    assert session.run(tf.assign(v, [[3.0]], validate_shape=False)).tolist() == [[3.0]]
    w = _ready(session, [1.0])
    session.run(raw.AssignVariableOp(w.handle, [1.0, 2.0]))
    assert session.run(w.read_value()).tolist() == [1.0, 2.0]


def test_variable_shape(session: Any) -> None:
    v = _ready(session, np.zeros([2, 3, 5]))
    shape = raw.VariableShape(v.handle, out_type=tf.int64)
    assert shape.dims == (3,)
    value = session.run(shape)
    assert value.dtype == np.int64
    assert value.tolist() == [2, 3, 5]


def test_count_up_to_stops_at_its_limit(session: Any) -> None:
    v = _ready(session, 0)
    count = v.count_up_to(2)
    assert [session.run(count), session.run(count)] == [0, 1]
    with pytest.raises(tf.errors.OutOfRangeError, match="Reached limit of 2"):
        session.run(count)
    assert session.run(v) == 2


def test_count_up_to_needs_an_integer_and_a_value(session: Any) -> None:
    with pytest.raises(TypeError, match="DataType float32 not in list of allowed values"):
        tf.count_up_to(tf.Variable(1.0), 3)
    with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value n"):
        session.run(tf.Variable(0, name="n").count_up_to(3))


def test_sparse_read(session: Any) -> None:
    table = np.arange(12.0).reshape(4, 3)
    v = _ready(session, table)
    rows = v.sparse_read([[3, 0], [1, 1]])
    assert rows.dims == (2, 2, 3)
    np.testing.assert_array_equal(session.run(rows), table[[[3, 0], [1, 1]]])


@pytest.mark.parametrize("fed", [False, True])
def test_sparse_read_out_of_range(session: Any, fed: bool) -> None:
    v = _ready(session, np.zeros([4, 3]))
    index = tf.placeholder_with_default([0, 7], [2]) if fed else [0, 7]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 7 is not in \[0, 4"):
        session.run(v.sparse_read(index))


def test_gather_with_batch_dimensions(session: Any) -> None:
    table = np.arange(2 * 4 * 3.0).reshape(2, 4, 3)
    v = _ready(session, table)
    rows = raw.ResourceGather(v.handle, [[3, 0], [1, 1]], dtype=tf.float64, batch_dims=1)
    assert rows.dims == (2, 2, 3)
    expected = np.stack([table[0][[3, 0]], table[1][[1, 1]]])
    np.testing.assert_array_equal(session.run(rows), expected)


def test_gather_nd(session: Any) -> None:
    table = np.arange(12.0).reshape(4, 3)
    v = _ready(session, table)
    elements = v.gather_nd([[1, 2], [3, 0]])
    assert elements.dims == (2,)
    assert session.run(elements).tolist() == [5.0, 9.0]
    assert session.run(v.gather_nd([[2]])).tolist() == [table[2].tolist()]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[1,3\] does not index into param"):
        session.run(v.gather_nd([[1, 3]]))
    with pytest.raises(ValueError, match=r"must be <= params rank; saw: 3 vs\. 2"):
        v.gather_nd([[1, 1, 1]])


_SCATTERS = {
    "update": lambda a, i, u: u,
    "add": lambda a, i, u: a + u,
    "sub": lambda a, i, u: a - u,
    "mul": lambda a, i, u: a * u,
    "div": lambda a, i, u: a / u,
    "min": lambda a, i, u: np.minimum(a, u),
    "max": lambda a, i, u: np.maximum(a, u),
}


@pytest.mark.parametrize("kind", _SCATTERS)
def test_scatter_rows(session: Any, kind: str) -> None:
    table = np.arange(1.0, 9.0).reshape(4, 2)
    v = _ready(session, table)
    indices, updates = [2, 0, 2], np.float64([[3, 7], [5, 2], [4, 8]])
    expected = table.copy()
    for i, u in zip(indices, updates, strict=True):
        expected[i] = _SCATTERS[kind](expected[i], i, u)
    got = session.run(getattr(tf, f"scatter_{kind}")(v, indices, updates))
    np.testing.assert_allclose(got, expected, rtol=1e-15)
    np.testing.assert_allclose(session.run(v), expected, rtol=1e-15)


def test_scatter_takes_indexed_slices_scalars_and_one_index(session: Any) -> None:
    v = _ready(session, np.zeros([3, 2]))
    session.run(v.scatter_add(tf.IndexedSlices(tf.constant([[1.0, 2.0]], tf.float64), [1])))
    session.run(v.scatter_add([0, 2], 5.0))
    session.run(tf.scatter_sub(v, 0, [1.0, 1.0]))
    assert session.run(v).tolist() == [[4.0, 4.0], [1.0, 2.0], [5.0, 5.0]]
    with pytest.raises(TypeError, match="sparse_delta is not IndexedSlices"):
        v.scatter_add([1.0])


def test_scatter_of_integers_divides_towards_zero(session: Any) -> None:
    v = _ready(session, [-7, 7, 9])
    assert session.run(tf.scatter_div(v, [0, 1], [2, -2])).tolist() == [-3, -3, 9]
    with pytest.raises(tf.errors.InvalidArgumentError, match="integer division by zero"):
        session.run(tf.scatter_div(v, [0], [0]))


def test_scatter_out_of_range_changes_nothing(session: Any) -> None:
    v = _ready(session, [1.0, 2.0, 3.0])
    index = tf.placeholder(tf.int32, [2])
    update = tf.scatter_add(v, index, [10.0, 10.0])
    for bad in (-1, 3):
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"= {bad} is not in \[0, 3\)"):
            session.run(update, {index: [0, bad]})
    assert session.run(v).tolist() == [1.0, 2.0, 3.0]


def test_scatter_with_updates_of_another_shape(session: Any) -> None:
    v = _ready(session, np.zeros([3, 2]))
    with pytest.raises(ValueError, match=r"updates.shape = indices.shape \+ params.shape\[1:\]"):
        tf.scatter_add(v, [0, 1], [[1.0, 2.0]])
    updates = tf.placeholder(tf.float64)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"got updates.shape \(1, 2\)"):
        session.run(tf.scatter_add(v, [0, 1], updates), {updates: [[1.0, 2.0]]})


def test_scatter_nd(session: Any) -> None:
    v = _ready(session, np.zeros([4, 2]))
    session.run(tf.scatter_nd_add(v, [[0, 1], [3, 0], [0, 1]], [1.0, 2.0, 3.0]))
    session.run(v.scatter_nd_sub([[1]], [[5.0, 6.0]]))
    session.run(v.scatter_nd_update([[2, 0], [2, 1]], [-1.0, -2.0]))
    expected = [[0.0, 4.0], [-5.0, -6.0], [-1.0, -2.0], [2.0, 0.0]]
    assert session.run(v).tolist() == expected
    session.run([v.scatter_nd_max([[0, 0]], [9.0]), v.scatter_nd_min([[3, 1]], [-9.0])])
    expected[0][0], expected[3][1] = 9.0, -9.0
    assert session.run(v).tolist() == expected
    with pytest.raises(ValueError, match="can be at most the rank of the variable"):
        tf.scatter_nd_add(v, [[0, 1, 0]], [1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"= \[4(,\d+)*\] does not index into"):
        session.run(tf.scatter_nd_add(v, [[4, 0]], [1.0]))


def test_batch_scatter_update(session: Any) -> None:
    v = _ready(session, np.zeros([2, 3]))
    got = session.run(tf.batch_scatter_update(v, [[0], [2]], [[1.0], [2.0]]))
    assert got.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]]


def test_control_edges_order_reads_and_writes(session: Any) -> None:
    v = _ready(session, 1.0)
    before = v.read_value()
    with tf.control_dependencies([before]):
        double = v.assign(v * 2.0)
    with tf.control_dependencies([double]):
        after = tf.identity(v)
    assert session.run([before, after]) == [1.0, 2.0]
    assert session.run([before, after]) == [2.0, 4.0]


def test_gradient_of_a_sparse_read_is_sparse(session: Any) -> None:
    v = _ready(session, np.float32([[1, 2], [3, 4], [5, 6]]))
    y = tf.reduce_sum(v.sparse_read([2, 0, 2]) * [[1.0], [10.0], [100.0]])
    (grad,) = tf.gradients(y, [v])
    assert isinstance(grad, tf.IndexedSlices)
    values, indices, shape = session.run([grad.values, grad.indices, grad.dense_shape])
    assert indices.tolist() == [2, 0, 2]
    assert shape.tolist() == [3, 2]
    assert values.tolist() == [[1.0, 1.0], [10.0, 10.0], [100.0, 100.0]]


def test_gradient_of_gather_nd(session: Any) -> None:
    v = _ready(session, np.float32([[1, 2], [3, 4], [5, 6]]))
    (grad,) = tf.gradients(v.gather_nd([[2, 1], [0, 0], [2, 1]]) * [1.0, 2.0, 3.0], [v])
    assert session.run(tf.convert_to_tensor(grad)).tolist() == [[2, 0], [0, 0], [0, 4]]
    (rows,) = tf.gradients(v.gather_nd([[1], [1]]), [v])
    assert isinstance(rows, tf.IndexedSlices)
    assert session.run(rows.indices).tolist() == [1, 1]


def test_group_runs_everything(session: Any) -> None:
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    session.run(tf.group(a.initializer, [b.initializer]))
    session.run(tf.group(a.assign_add(1.0), {"x": b.assign_add(1.0)}, name="both"))
    assert session.run([a, b]) == [2.0, 3.0]
    assert session.run(tf.no_op()) is None


def test_group_makes_one_no_op_per_device() -> None:
    with tf.device("/cpu:0"):
        a = tf.constant(1.0)
    with tf.device("/cpu:1"):
        b = tf.constant(2.0)
    op = tf.group(a, b, name="all")
    assert op.name == "all"
    assert [(c.name, c.device) for c in op.control_inputs] == [
        ("all/NoOp", "/device:CPU:0"),
        ("all/NoOp_1", "/device:CPU:1"),
    ]


def test_group_and_tuple_refuse_what_is_no_tensor() -> None:
    with pytest.raises(TypeError, match="'inputs' should be zero or more"):
        tf.group(3)
    with pytest.raises(ValueError, match="Unknown keyword arguments: a"):
        tf.group(a=2)
    with pytest.raises(ValueError, match="'tensors' must have at least one Tensor"):
        tf.tuple([])


def test_tuple_waits_for_all(session: Any) -> None:
    v = _ready(session, 1.0)
    update = v.assign_add(1.0)
    values = [tf.constant(3.0), None, tf.constant(4.0)]
    first, none, last = tf.tuple(values, control_inputs=[update])
    assert none is None
    assert session.run(first) == 3.0
    assert session.run(v) == 2.0
    assert session.run(last) == 4.0
    assert session.run(v) == 3.0


def test_a_step_may_assign_before_it_reads(session: Any) -> None:
    v = tf.Variable([1.0, 2.0])
    with tf.control_dependencies([v.initializer]):
        first = v.read_value() + 1.0
    assert session.run(first).tolist() == [2.0, 3.0]
    w = tf.Variable([1.0, 2.0])
    assert session.run(w.assign([3.0, 4.0])).tolist() == [3.0, 4.0]


def test_a_variable_may_hold_strings(session: Any) -> None:
    v = _ready(session, ["a", "b"])
    number = _ready(session, [1.0, 2.0])
    values = session.run([v, number + 1.0])
    assert values[0].tolist() == [b"a", b"b"]
    assert values[1].tolist() == [2.0, 3.0]
    assert session.run(v.assign(["c", "d"])).tolist() == [b"c", b"d"]
    assert session.run(v.sparse_read([1, 0])).tolist() == [b"d", b"c"]


def test_rows_of_a_boolean_variable_are_set(session: Any) -> None:
    v = _ready(session, np.array([True, False]))
    session.run([tf.scatter_update(v, 1, True), tf.scatter_update(v, tf.constant(0), False)])
    assert session.run(v).tolist() == [False, True]

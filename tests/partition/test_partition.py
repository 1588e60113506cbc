"""What each task gets of a step, as text."""

from __future__ import annotations

import numpy as np
from partition_cases import cut, text

import headrace as tf


def _ps(i):
    return tf.device(f"/job:ps/task:{i}")


def _worker(i):
    return tf.device(f"/job:worker/task:{i}")


def test_weights_on_servers_and_computation_on_a_worker():
    x = tf.placeholder(tf.float32, [5, 2], name="x")
    with _ps(0):
        w = tf.Variable(np.zeros((2, 3), np.float32), name="w")
    with _ps(1):
        b = tf.Variable(np.zeros(3, np.float32), name="b")
    with _worker(1):
        y = tf.add(tf.matmul(x, w, name="product"), b, name="y")
    assert (
        text(cut([y], [x]))
        == """
part ps0
  stage 0
    w = VarHandleOp()
    w/read = ReadVariableOp(w)
  send #0 worker1: w/read:0 float32[2, 3] 24 bytes
part ps1
  stage 0
    b = VarHandleOp()
    b/read = ReadVariableOp(b)
  send #1 worker1: b/read:0 float32[3] 12 bytes
part worker1
  feed 0: x:0
  recv #0 ps0: w/read:0 float32[2, 3] 24 bytes
  recv #1 ps1: b/read:0 float32[3] 12 bytes
  stage 1
    product = MatMul(x:0, recv_0)
    y = Add(product, recv_1)
  fetch 0: y:0
"""
    )


def test_one_send_for_each_tensor_and_destination():
    with _ps(0):
        a = tf.random_uniform([4], name="a")
    with _worker(0):
        uses = [tf.square(a, name="u0"), tf.exp(a, name="u1")]
    with _worker(1):
        uses += [tf.square(a, name="u2"), tf.exp(a, name="u3")]
    assert (
        text(cut(uses))
        == """
part ps0
  stage 0
    a/shape = Const()
    a = RandomUniform(a/shape)
  send #0 worker0: a:0 float32[4] 16 bytes
  send #1 worker1: a:0 float32[4] 16 bytes
part worker0
  recv #0 ps0: a:0 float32[4] 16 bytes
  stage 1
    u0 = Square(recv_0)
    u1 = Exp(recv_0)
  fetch 0: u0:0
  fetch 1: u1:0
part worker1
  recv #1 ps0: a:0 float32[4] 16 bytes
  stage 1
    u2 = Square(recv_1)
    u3 = Exp(recv_1)
  fetch 2: u2:0
  fetch 3: u3:0
"""
    )


def test_small_tensors_of_one_unit_share_a_transfer_and_large_ones_do_not():
    with _ps(0):
        small = [tf.random_uniform([4], name=f"s{i}") for i in range(2)]
        large = [tf.random_uniform([300, 300], name=f"l{i}") for i in range(2)]
    with _worker(0):
        sums = [tf.reduce_sum(t, name=f"sum_{t.op.name}") for t in [*small, *large]]
    assert (
        text(cut(sums))
        == """
part ps0
  stage 0
    s0/shape = Const()
    s0 = RandomUniform(s0/shape)
    s1/shape = Const()
    s1 = RandomUniform(s1/shape)
    l0/shape = Const()
    l0 = RandomUniform(l0/shape)
    l1/shape = Const()
    l1 = RandomUniform(l1/shape)
  send #0 worker0: s0:0 float32[4] 16 bytes
  send #0 worker0: s1:0 float32[4] 16 bytes
  send #1 worker0: l0:0 float32[300, 300] 360000 bytes
  send #2 worker0: l1:0 float32[300, 300] 360000 bytes
part worker0
  recv #0 ps0: s0:0 float32[4] 16 bytes
  recv #0 ps0: s1:0 float32[4] 16 bytes
  recv #1 ps0: l0:0 float32[300, 300] 360000 bytes
  recv #2 ps0: l1:0 float32[300, 300] 360000 bytes
  stage 0
    Const = Const()
    Const_1 = Const()
    Const_2 = Const()
    Const_3 = Const()
  stage 1
    sum_s0 = Sum(recv_0, Const)
    sum_s1 = Sum(recv_0:1, Const_1)
  stage 1, component 1
    sum_l0 = Sum(recv_1, Const_2)
  stage 1, component 2
    sum_l1 = Sum(recv_2, Const_3)
  fetch 0: sum_s0:0
  fetch 1: sum_s1:0
  fetch 2: sum_l0:0
  fetch 3: sum_l1:0
"""
    )


def test_order_crosses_tasks_without_a_tensor():
    with _ps(0):
        v = tf.Variable(1.0, name="v")
    with _ps(1):
        w = tf.Variable(1.0, name="w")
    first = v.assign_add(2.0, read_value=False)
    with tf.control_dependencies([first]):
        second = w.assign_add(3.0, read_value=False)
    assert (
        text(cut([], targets=[second]))
        == """
part ps0
  stage 0
    v = VarHandleOp()
    value = Const()
    AssignAdd = AssignAddVariableOp(v, value)
    value_1 = Const(^AssignAdd)
  send #0 ps1: value_1:0 float32[] 4 bytes
part ps1
  recv #0 ps0: value_1:0 float32[] 4 bytes
  stage 0
    w = VarHandleOp()
  stage 1
    AssignAdd_1 = AssignAddVariableOp(w, recv_0)
"""
    )


def test_constants_and_handles_are_copied():
    with _ps(0):
        c = tf.constant(np.arange(3, dtype=np.float32), name="c")
    with _worker(1):
        y = tf.square(c, name="y")
    assert (
        text(cut([y, c]))
        == """
part worker1
  stage 0
    c = Const()
    y = Square(c)
  fetch 0: y:0
fetch 1 is constant
"""
    )


def test_a_fed_value_needs_no_transfer():
    x = tf.placeholder(tf.float32, [], name="x")
    with _worker(0):
        a = tf.square(x, name="a")
    with _worker(1):
        b = tf.exp(x, name="b")
    assert (
        text(cut([a, b, x], [x]))
        == """
part worker0
  feed 0: x:0
  stage 0
    a = Square(x:0)
  fetch 0: a:0
part worker1
  feed 0: x:0
  stage 0
    b = Exp(x:0)
  fetch 1: b:0
fetch 2 is feed 0
"""
    )


def test_a_loop_with_a_body_on_two_tasks():
    def body(i, value):
        with _worker(0):
            half = value / 2.0
        with _worker(1):
            return i + 1, tf.exp(half)

    x = tf.placeholder(tf.float32, [2], name="x")
    with _worker(1):
        y = tf.while_loop(lambda i, _: i < 3, body, [0, x], name="loop")[1]
    assert (
        text(cut([y], [x]))
        == """
part worker1
  feed 0: x:0
  stage 0
    loop/Const = Const()
    loop/While = StatelessWhile(loop/Const, x:0)
  fetch 0: loop/While:1
body loop_body_1 of loop/While
  part worker0
    feed 1: loop/body/x:0
    stage 0
      loop/body/truediv/y = Const()
      loop/body/truediv = RealDiv(loop/body/x:0, loop/body/truediv/y)
    send #0 worker1: loop/body/truediv:0 float32[2] 8 bytes
  part worker1
    feed 0: loop/body/Const:0
    recv #0 worker0: loop/body/truediv:0 float32[2] 8 bytes
    stage 0
      loop/body/add/y = Const()
      loop/body/add = AddV2(loop/body/Const:0, loop/body/add/y)
    stage 1
      loop/body/Exp = Exp(recv_0)
    fetch 0: loop/body/add:0
    fetch 1: loop/body/Exp:0
"""
    )


def test_branches_on_two_tasks():
    x = tf.placeholder(tf.float32, [2], name="x")
    p = tf.placeholder(tf.bool, [], name="p")
    with _ps(0):
        v = tf.Variable(np.zeros(2, np.float32), name="v")

    def there():
        with _worker(1):
            return tf.exp(x, name="exp")

    with _worker(0):
        y = tf.cond(p, there, lambda: v + x)
    assert (
        text(cut([y], [x, p]))
        == """
part worker0
  feed 0: x:0
  feed 1: p:0
  stage 0
    v/elsewhere = Const()
    cond/If = If(p:0, x:0, v/elsewhere)
  fetch 0: cond/If:0
body cond_true_0 of cond/If
  part worker1
    feed 0: cond/true/x:0
    stage 0
      cond/true/exp = Exp(cond/true/x:0)
    fetch 0: cond/true/exp:0
body cond_false_1 of cond/If
  part ps0
    stage 0
      v = VarHandleOp()
      cond/false/ReadVariableOp = ReadVariableOp(v)
    send #0 worker0: cond/false/ReadVariableOp:0 float32[2] 8 bytes
  part worker0
    feed 0: cond/false/x:0
    recv #0 ps0: cond/false/ReadVariableOp:0 float32[2] 8 bytes
    stage 1
      cond/false/add = AddV2(recv_0, cond/false/x:0)
    fetch 0: cond/false/add:0
"""
    )


def test_a_variable_that_a_loop_only_reads_is_read_before_it():
    with _ps(0):
        v = tf.Variable(2.0, name="v")
    with _worker(1):
        y = tf.while_loop(
            lambda i, _: i < 3,
            lambda i, a: (i + 1, tf.cond(a > 1.0, lambda: a * v, lambda: a)),
            [0, 1.0],
            name="loop",
        )[1]
    assert (
        text(cut([y]))
        == """
part ps0
  stage 0
    v = VarHandleOp()
    loop/While/v/read = ReadVariableOp(v)
  send #0 worker1: loop/While/v/read:0 float32[] 4 bytes
part worker1
  recv #0 ps0: loop/While/v/read:0 float32[] 4 bytes
  stage 0
    loop/Const = Const()
    loop/Const_1 = Const()
  stage 1
    loop/While = While(loop/Const, loop/Const_1, recv_0)
  fetch 0: loop/While:1
"""
    )


def test_a_variable_that_a_loop_writes_stays_where_it_is():
    with _ps(0):
        v = tf.Variable(2.0, name="v")
    with _worker(1):
        y = tf.while_loop(lambda i: i < 3, lambda i: i + v.assign_add(1.0), [0.0], name="loop")
    assert (
        text(cut([y]))
        == """
part worker1
  stage 0
    v/elsewhere = Const()
    loop/Const = Const()
    loop/While = While(loop/Const, v/elsewhere)
  fetch 0: loop/While:0
body loop_body_1 of loop/While
  part ps0
    stage 0
      loop/body/value = Const()
      v = VarHandleOp()
      loop/body/AssignAdd = AssignAddVariableOp(v, loop/body/value)
      loop/body/AssignAdd/ReadVariableOp = ReadVariableOp(v, ^loop/body/AssignAdd)
    send #0 worker1: loop/body/AssignAdd/ReadVariableOp:0 float32[] 4 bytes
  part worker1
    feed 0: loop/body/Const:0
    recv #0 ps0: loop/body/AssignAdd/ReadVariableOp:0 float32[] 4 bytes
    stage 1
      loop/body/add = AddV2(loop/body/Const:0, recv_0)
    fetch 0: loop/body/add:0
  fetch 1 is feed 1
"""
    )


def test_a_loop_over_a_queue_in_a_loop():
    with _ps(1):
        queue = tf.FIFOQueue(4, tf.float32, shapes=[[]], name="queue")

    def dequeued():
        with tf.device(None):
            return queue.dequeue()

    def deep(value):
        return tf.while_loop(
            lambda j, _: j < 2, lambda j, a: (j + 1, a + dequeued()), [0, value], name="deep"
        )[1]

    with _worker(0):
        y = tf.while_loop(
            lambda i, _: i < 3, lambda i, a: (i + 1, deep(a)), [0, 0.0], name="outer"
        )[1]
    assert (
        text(cut([y]))
        == """
part worker0
  stage 0
    queue/elsewhere = Const()
    outer/Const = Const()
    outer/Const_1 = Const()
    outer/While = While(outer/Const, outer/Const_1, queue/elsewhere)
  fetch 0: outer/While:1
body outer_body_1 of outer/While
  part worker0
    feed 0: outer/body/Const:0
    feed 1: outer/body/Const_1:0
    stage 0
      queue/elsewhere = Const()
      outer/body/add/y = Const()
      outer/body/add = AddV2(outer/body/Const:0, outer/body/add/y)
      outer/body/deep/Const = Const()
      outer/body/deep/While = While(outer/body/deep/Const, outer/body/Const_1:0, queue/elsewhere)
    fetch 0: outer/body/add:0
    fetch 1: outer/body/deep/While:1
  body outer_body_deep_body_3 of outer/body/deep/While
    part ps1
      stage 0
        queue = FIFOQueueV2()
        outer/body/deep/body/queue_Dequeue = QueueDequeueV2(queue)
      send #0 worker0: outer/body/deep/body/queue_Dequeue:0 float32[] 4 bytes
    part worker0
      feed 0: outer/body/deep/body/Const:0
      feed 1: outer/body/deep/body/Const_1:0
      recv #0 ps1: outer/body/deep/body/queue_Dequeue:0 float32[] 4 bytes
      stage 0
        outer/body/deep/body/add/y = Const()
        outer/body/deep/body/add = AddV2(outer/body/deep/body/Const:0, outer/body/deep/body/add/y)
      stage 1
        outer/body/deep/body/add_1 = AddV2(outer/body/deep/body/Const_1:0, recv_0)
      fetch 0: outer/body/deep/body/add:0
      fetch 1: outer/body/deep/body/add_1:0
    fetch 2 is feed 2
  fetch 2 is feed 2
"""
    )


def test_segments_stay_apart_on_a_task_and_send_as_they_end():
    x = tf.placeholder(tf.float32, [2], name="x")
    results = []
    for i in range(2):
        with _worker(0), tf.parallel.segment(f"first_{i}"):
            a = tf.exp(x, name=f"a{i}")
        with _worker(1), tf.parallel.segment(f"second_{i}"):
            results.append(tf.square(a, name=f"b{i}"))
    assert (
        text(cut(results, [x]))
        == """
part worker0
  feed 0: x:0
  stage 0
    a0 = Exp(x:0)
  stage 0, component 1
    a1 = Exp(x:0)
  send #0 worker1: a0:0 float32[2] 8 bytes
  send #1 worker1: a1:0 float32[2] 8 bytes
part worker1
  recv #0 worker0: a0:0 float32[2] 8 bytes
  recv #1 worker0: a1:0 float32[2] 8 bytes
  stage 1, component 2
    b0 = Square(recv_0)
  stage 1, component 3
    b1 = Square(recv_1)
  fetch 0: b0:0
  fetch 1: b1:0
"""
    )

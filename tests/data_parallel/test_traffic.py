"""Where variables go, by size and by what crosses the links in a step."""

import pytest

import headrace as tf
from headrace.data_parallel.state import state_of
from headrace.data_parallel.traffic import Load, deal, settle

MB = 1e6


def shares(loads, where, servers):
    """The largest share of memory and of traffic that a server has."""
    return [
        max(
            sum(x[k] for x, at in zip(loads, where, strict=True) if at == s) for s in range(servers)
        )
        / sum(x[k] for x in loads)
        for k in (0, 1)
    ]


def test_a_large_table_does_not_drive_all_traffic_to_the_other_server():
    table, dense = Load(400 * MB, 0.2 * MB), Load(2 * MB, 4 * MB)
    loads = [table, *[dense] * 8]
    memory, traffic = shares(loads, deal(loads, 2), 2)
    assert traffic < 0.6  # by size alone: all of the dense variables on one server
    assert memory < 1.0


def test_variables_stay_where_that_is_as_good():
    loads = [Load(MB, MB)] * 4
    assert deal(loads, 2, now=[1, 0, 0, 1]) == [1, 0, 0, 1]
    assert deal([], 3) == []


def skewed():
    """A table of which a step reads some rows, and dense layers."""
    table = tf.get_variable("table", [100_000, 64])
    x = tf.nn.embedding_lookup(table, tf.placeholder(tf.int64, [None]))
    layers = [tf.get_variable(f"dense_{i}", [64, 64]) for i in range(8)]
    for layer in layers:
        x = tf.matmul(x, layer)
    return table, layers, tf.reduce_mean(x)


@pytest.mark.parametrize("worker", ["second", "second_in_step"])
def test_layers_beside_a_table_are_shared_out_with_their_slots(request, worker):
    request.getfixturevalue(worker)
    table, layers, loss = skewed()
    optimizer = tf.train.AdamOptimizer()
    step = tf.train.get_or_create_global_step()
    optimizer.minimize(loss, step)
    before = step.device
    assert {layer.device for layer in layers} == {"/job:ps/task:1"}
    state = state_of(tf.get_default_graph())
    settle(state, 2)
    on_first = [layer for layer in layers if layer.device == "/job:ps/task:0"]
    assert 3 <= len(on_first) <= 5
    for variable in (table, *layers):
        slot = optimizer.get_slot(variable, "m")
        beside = [variable.initializer, slot.op, slot.initializer]
        assert {op.device for op in beside} == {variable.device}, variable
    assert step.device == before
    places = [layer.device for layer in layers]
    settle(state, 2)  # once
    assert [layer.device for layer in layers] == places


def test_dense_variables_stay_as_they_were_made(second):
    layers = [tf.get_variable(f"dense_{i}", [64, 64]) for i in range(4)]
    before = [layer.device for layer in layers]
    x = tf.placeholder(tf.float32, [None, 64])
    for layer in layers:
        x = tf.matmul(x, layer)
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(x))
    settle(state_of(tf.get_default_graph()), 2)
    assert [layer.device for layer in layers] == before

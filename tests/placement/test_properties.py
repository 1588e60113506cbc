"""Random steps on random clusters: every placement keeps every rule."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from placement_cluster import step_of, task, tasks

import headrace as tf
from headrace.errors import InvalidArgumentError
from headrace.graph import devices as names
from headrace.placement.constraints import is_anchored
from headrace.placement.placer import place

DEFAULT = "/job:master/replica:0/task:0/device:CPU:0"
CLUSTER = [
    *task("master", cpus=2),
    *tasks("worker", 3, cpus=2, gpus=2, gpu_memory=8 << 20),
    *tasks("ps", 2),
]
NAMES = {d.name for d in CLUSTER}
CONSTRAINTS = [
    "",
    "",
    "",
    "/job:worker",
    "/job:worker/task:1",
    "/job:worker/task:2/device:GPU:1",
    "/job:ps/task:0",
    "/job:ps",
    "/cpu:0",
    "/cpu:*",
    "/job:master/cpu:1",
    "/gpu:*",
    "/task:1",
]
SIZES = [1, 8, 600]

seeds = st.integers(0, 1 << 30)
some = settings(max_examples=60, deadline=None, derandomize=True)


def _program(seed, count=25):
    """Fetches of a random program over square matrices, with variables and colocation."""
    rng = random.Random(seed)
    size = rng.choice(SIZES)
    shape = [size, size]
    pool = []
    variables = []
    for _ in range(rng.randrange(1, 4)):
        with tf.device(rng.choice(CONSTRAINTS)):
            variables.append(tf.Variable(tf.zeros(shape)))
        pool.append(variables[-1].read_value())
    pool.append(tf.constant(0.5, shape=shape))
    targets = []
    for _ in range(count):
        anchor = rng.choice(pool) if rng.random() < 0.2 else None
        with tf.device(rng.choice(CONSTRAINTS)), tf.colocate_with(anchor):
            kind = rng.random()
            a, b = rng.choice(pool), rng.choice(pool)
            if kind < 0.3:
                pool.append(tf.matmul(a, b))
            elif kind < 0.6:
                pool.append(a + b)
            elif kind < 0.7:
                pool.append(tf.random_uniform(shape))
            elif kind < 0.8:
                with tf.control_dependencies([b]):
                    pool.append(tf.identity(a))
            elif kind < 0.9:
                targets.append(rng.choice(variables).assign_add(a).op)
            else:
                pool.append(tf.tanh(a))
    return [*rng.sample(pool, 4), *targets]


def _place(step, soft=False, **kwargs):
    """The decisions, or None where the program asks for what no device can give."""
    try:
        return place(
            step.nodes, CLUSTER, default_device=DEFAULT, allow_soft_placement=soft, **kwargs
        )
    except InvalidArgumentError as error:
        if error.message.startswith(("Cannot colocate nodes", "Cannot assign a device")):
            return None
        raise


def _check_groups(step, pinned=()):
    """Groups are together, but for colocated nodes that were pinned before."""
    where = {n.name: n.device for n in step.nodes}
    for node in step.nodes:
        assert node.device in NAMES
        for name in node.colocation if not pinned else ():
            assert where.get(name, node.device) == node.device
        for source, index in node.inputs:
            if source.dtypes[index] is tf.resource:
                assert source.device == node.device


@some
@given(seeds)
def test_constraints_hold_and_groups_stay_together(seed):
    with tf.Graph().as_default():
        step = step_of(_program(seed))
        asked = {n: n.device for n in step.nodes}
        decided = _place(step)
        if decided is None:
            return
        _check_groups(step)
        for node, constraint in asked.items():
            assert not constraint or names.matches(constraint, node.device)
        assert decided == {n.name: n.device for n in step.nodes if is_anchored(n)}


@some
@given(seeds)
def test_soft_placement_never_fails_and_keeps_groups_together(seed):
    with tf.Graph().as_default():
        step = step_of(_program(seed))
        asked = {n: n.device for n in step.nodes}
        strict = step_of(_program(seed))
        assert _place(step, soft=True) is not None
        _check_groups(step)
        alone = [n for n in step.nodes if not n.colocation and n.op_def.effects.pure]
        if _place(strict) is not None:
            for node in alone:
                assert names.matches(asked[node], node.device)


@some
@given(seeds)
def test_the_same_step_is_placed_the_same_way(seed):
    results = []
    for _ in range(2):
        with tf.Graph().as_default():
            step = step_of(_program(seed))
            decided = _place(step)
            results.append((decided, [(n.name, n.device) for n in step.nodes]))
    if results[0][0] is None:
        return
    assert results[0] == results[1]


@some
@given(seeds, seeds)
def test_later_plans_leave_state_where_it_is(seed, other):
    """Steps of one program in any order, with ops added between: what was pinned stays."""
    with tf.Graph().as_default():
        fetches = _program(seed)
        rng = random.Random(other)
        pinned: dict[str, str] = {}
        for _ in range(3):
            step = step_of(rng.sample(fetches, rng.randrange(1, len(fetches))))
            before = dict(pinned)
            decided = _place(step, soft=True, pinned=pinned)
            assert decided is not None
            assert not decided.keys() & before.keys()
            pinned.update(decided)
            for node in step.nodes:
                if is_anchored(node):
                    assert node.device == pinned[node.name]
            _check_groups(step, before)
            with tf.device(rng.choice(CONSTRAINTS)):
                fetches.append(tf.tanh(fetches[rng.randrange(4)]))


@some
@given(seeds)
def test_every_variable_is_found_again_without_its_constraint(seed):
    with tf.Graph().as_default():
        fetches = _program(seed)
        pinned = _place(step_of(fetches), soft=True)
        again = step_of(fetches)
        for node in again.nodes:
            node.device = ""
        assert _place(again, soft=True, pinned=pinned) == {}
        for node in again.nodes:
            assert pinned.get(node.name, node.device) == node.device

"""Which operations compute in half precision, and that nobody outside sees it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.passes.ir import build_step
from headrace.passes.mixed_precision import half_types, reduce_precision
from headrace.passes.verify import verify_step
from headrace.settings import flags

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import mixed_types  # noqa: E402

NARROW = json.loads((ROOT / "tests" / "golden" / "mixed_types.json").read_text())


def narrowed(graph, fetch, dtype):
    """Names of the operations that have the type after the pass, once each."""
    feeds = [op.outputs[0] for op in graph.get_operations() if op.type == "Placeholder"]
    step = build_step([fetch], feeds, [])
    reduce_precision(step, lambda device: dtype)
    verify_step(step, "mixed precision")
    # Casts that were put in are called as what they take.
    nodes = [n for n in step.nodes if n.name not in [source.name for source, _ in n.inputs]]
    return {n.name for n in nodes if any(value is dtype for value in n.attrs.values())}


@pytest.mark.parametrize("seed", range(mixed_types.GRAPHS))
def test_the_same_operations_are_narrow_as_in_tensorflow(seed):
    graph, fetch, names = mixed_types.build(tf, seed)
    found = narrowed(graph, fetch, tf.bfloat16)
    assert [n for n in names if n in found] == NARROW[seed]


def test_in_float16_sums_and_what_follows_them_stay_wide():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [4, 4])
        y = tf.matmul(x, x, name="first")
        y = tf.tanh(y + tf.reduce_sum(y, name="sum"), name="tanh")
        fetch = tf.identity(tf.matmul(y, y, name="last"), name="fetch")
    assert narrowed(graph, fetch, tf.float16) == {"first", "last"}
    assert narrowed(graph, fetch, tf.bfloat16) == {"first", "sum", "add", "tanh", "last"}


def test_each_value_is_cast_once():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [4, 4], name="x")
        products = [tf.matmul(x, x) for _ in range(3)]
        wide = [tf.exp(products[0]), tf.sin(products[0])]
        step = build_step([*wide, tf.exp(products[1]), tf.exp(products[2])], [x], [])
    reduce_precision(step, lambda device: tf.float16)
    casts = [n for n in step.nodes if n.type == "Cast"]
    assert len(casts) == 4  # of x, and of each product


def test_fetches_and_feeds_keep_their_types():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [4, 4], name="x")
        y = tf.matmul(x, x, name="y")
        step = build_step([y], [x], [])
    assert reduce_precision(step, lambda device: tf.bfloat16) == 0
    assert [n.type for n in step.nodes] == ["_Feed", "MatMul"]


def test_statistics_of_batch_normalisation_stay_wide():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 4, 4, 3])
        ones = tf.ones([3])
        h = tf.nn.conv2d(x, tf.ones([1, 1, 3, 3]), padding="SAME")
        h, mean, _ = tf.nn.fused_batch_norm(h, ones, ones)
        y = tf.nn.conv2d(tf.nn.relu(h), tf.ones([1, 1, 3, 3]), padding="SAME")
        step = build_step([tf.identity(y), tf.identity(mean)], [x], [])
    reduce_precision(step, lambda device: tf.float16)
    verify_step(step, "mixed precision")
    (norm,) = [n for n in step.nodes if "BatchNorm" in n.type]
    assert norm.dtypes[:3] == (tf.float16, tf.float32, tf.float32)


@pytest.mark.parametrize(
    ("option", "on_cpu", "on_gpu", "on_tpu"),
    [
        ("auto_mixed_precision", tf.bfloat16, tf.float16, tf.bfloat16),
        ("auto_mixed_precision_cpu", tf.float16, None, None),
        ("auto_mixed_precision_mkl", tf.bfloat16, None, None),
        ("auto_mixed_precision_onednn_bfloat16", tf.bfloat16, None, None),
    ],
)
def test_rewrite_options_say_which_type_a_device_has(option, on_cpu, on_gpu, on_tpu):
    config = tf.ConfigProto()
    options = config.graph_options.rewrite_options
    assert half_types(config) is None
    setattr(options, option, options.ON)
    half_type = half_types(config)
    devices = [f"/job:worker/replica:0/task:0/device:{kind}:0" for kind in ("CPU", "GPU", "TPU")]
    assert [half_type(d) for d in devices] == [on_cpu, on_gpu, on_tpu]
    options.disable_meta_optimizer = True
    assert half_types(config) is None


def trained(config, mode, monkeypatch):
    """The losses of some steps of a small network, and the types of its variables."""
    monkeypatch.setattr(flags, "interpret", mode)
    random = np.random.RandomState(0)
    images, labels = random.rand(8, 6, 6, 1), random.randint(0, 3, 8)
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        x, y = tf.placeholder(tf.float32, [None, 6, 6, 1]), tf.placeholder(tf.int64, [None])
        h = tf.layers.conv2d(x, 4, 3, activation=tf.nn.relu)
        h = tf.layers.max_pooling2d(tf.layers.batch_normalization(h, training=True), 2, 2)
        logits = tf.layers.dense(tf.layers.flatten(h), 3)
        loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
        train = tf.train.AdamOptimizer(0.05).minimize(loss)
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            fed = {x: images, y: labels}
            losses = [session.run([loss, train], fed)[0] for _ in range(12)]
            values = session.run(tf.global_variables())
    return np.array(losses), {v.dtype for v in values}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["always", "never"])
@pytest.mark.parametrize("option", ["auto_mixed_precision", "auto_mixed_precision_cpu"])
def test_a_network_learns_in_half_precision_with_float32_variables(option, mode, monkeypatch):
    config = tf.ConfigProto()
    setattr(config.graph_options.rewrite_options, option, 1)
    wide, _ = trained(None, mode, monkeypatch)
    narrow, types = trained(config, mode, monkeypatch)
    assert types == {np.dtype(np.float32)}
    assert not np.array_equal(narrow, wide)
    np.testing.assert_allclose(narrow, wide, atol=0.05)
    assert narrow[-1] < 0.3 * narrow[0]

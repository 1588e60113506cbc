"""What programs do on a GPU. Skipped where JAX sees none; nothing is interpreted here."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import headrace as tf
from headrace.settings import flags

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
pytestmark = pytest.mark.device


@pytest.fixture(autouse=True)
def _on_a_gpu(monkeypatch):
    """Nothing is interpreted: that is done on NumPy, wherever the operations were placed."""
    if not tf.test.is_gpu_available():
        pytest.skip("JAX sees no GPU here")
    monkeypatch.setattr(flags, "interpret", "never")


def _normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _run(device, build, *arrays):
    """What ``build`` makes of the arrays on a device, and the gradients of its squares' sum."""
    with tf.Graph().as_default(), tf.device(device):
        inputs = [tf.placeholder(tf.float32, a.shape) for a in arrays]
        y = build(*inputs)
        fetches = [y, *tf.gradients(tf.reduce_sum(tf.square(y)), inputs)]
        with tf.Session() as sess:
            return sess.run(fetches, dict(zip(inputs, arrays, strict=True)))


def _variables(session):
    """The arrays of a session's variables by name."""
    store = session._engine.store
    return {k.name: v for k, v in store.items() if getattr(k, "kind", "") == "variable"}


def _platform(array):
    (device,) = array.devices()
    return device.platform


def _places(session, fetches, feeds=None):
    """The devices that a traced step used."""
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    session.run(fetches, feeds, options=options, run_metadata=metadata)
    return {d.device for d in metadata.step_stats.dev_stats}


def test_the_devices_of_the_process():
    assert tf.test.gpu_device_name() == GPU
    assert tf.test.is_gpu_available(cuda_only=True, min_cuda_compute_capability=(3, 5))
    assert not tf.test.is_gpu_available(cuda_only=True, min_cuda_compute_capability=(99, 0))
    assert tf.config.list_physical_devices("GPU")[0].name == "/physical_device:GPU:0"
    with tf.Session() as sess:
        listed = {d.name: d for d in sess.list_devices()}
    assert listed[GPU].device_type == "GPU"
    assert listed[GPU].memory_limit_bytes > 1 << 30


def test_local_devices_as_old_programs_list_them():
    from headrace.compat.internals import list_local_devices

    found = {d.name: d for d in list_local_devices()}
    assert found[GPU].device_type == "GPU"
    assert found[GPU].memory_limit > 1 << 30
    without = list_local_devices(tf.ConfigProto(device_count={"GPU": 0}))
    assert all(d.device_type != "GPU" for d in without)


def test_operations_run_where_their_device_says():
    x = tf.placeholder(tf.float32, [4])
    with tf.device("/gpu:0"):
        on_gpu = x * 2.0
    with tf.device("/cpu:0"):
        on_cpu = on_gpu + 1.0
    nowhere = on_cpu - x
    with tf.Session() as sess:
        feeds = {x: np.arange(4.0)}
        np.testing.assert_array_equal(sess.run(nowhere, feeds), [1.0, 2.0, 3.0, 4.0])
        text = sess.describe(nowhere, feeds)
        assert GPU in text
        assert GPU.replace("GPU", "CPU") in text
        places = _places(sess, on_gpu, feeds)
    assert any("GPU:0" in place for place in places)


def test_a_gpu_that_is_not_there():
    with tf.device("/gpu:99"):
        y = tf.constant([1.0, 2.0]) * 2.0
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        sess.run(y)
    assert GPU in caught.value.message
    soft = tf.ConfigProto(allow_soft_placement=True)
    with tf.Session(config=soft) as sess:
        np.testing.assert_array_equal(sess.run(y), [2.0, 4.0])


def test_what_only_a_host_can_do_is_placed_there():
    with tf.device("/gpu:0"):
        words = tf.strings.join([tf.constant(["a", "b"]), tf.as_string(tf.constant([1, 2]))])
        doubled = tf.py_func(lambda v: v * 2.0, [tf.constant([1.0, 2.0]) + 1.0], tf.float32)
        total = tf.reduce_sum(doubled)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        joined, summed = sess.run([words, total])
    assert list(joined) == [b"a1", b"b2"]
    assert summed == 10.0


def test_log_device_placement(caplog):
    with tf.device("/gpu:0"):
        y = tf.matmul(tf.ones([2, 3]), tf.ones([3, 2]), name="product")
    with (
        tf.Session(config=tf.ConfigProto(log_device_placement=True)) as sess,
        caplog.at_level(logging.WARNING, logger="headrace.placement"),
    ):
        sess.run(y)
    assert f"product: (MatMul): {GPU}" in [r.getMessage() for r in caplog.records]


@pytest.mark.parametrize(
    ("build", "shapes"),
    [
        pytest.param(tf.matmul, [(64, 512), (512, 48)], id="matmul"),
        pytest.param(tf.matmul, [(4, 33, 65), (4, 65, 17)], id="batches"),
        pytest.param(
            lambda x, w: tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME"),
            [(2, 16, 16, 32), (3, 3, 32, 24)],
            id="conv2d",
        ),
        pytest.param(
            lambda x, w: tf.nn.conv2d(x, w, strides=[1, 2, 2, 1], padding="VALID"),
            [(2, 17, 17, 8), (5, 5, 8, 16)],
            id="strided",
        ),
        pytest.param(
            lambda x: tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
            [(2, 15, 15, 8)],
            id="max_pool",
        ),
        pytest.param(lambda x: tf.reduce_mean(x, axis=1), [(32, 4097)], id="mean"),
        pytest.param(lambda x: tf.reduce_logsumexp(x, axis=0), [(300, 40)], id="logsumexp"),
        pytest.param(lambda x: tf.reduce_max(x, axis=1), [(32, 100)], id="max"),
        pytest.param(lambda x: tf.cumsum(x, axis=1), [(8, 200)], id="cumsum"),
        pytest.param(tf.nn.softmax, [(16, 1000)], id="softmax"),
        pytest.param(lambda x: tf.gather(tf.sin(x), [3, 0, 3, 7]), [(8, 5)], id="gather"),
        pytest.param(lambda x: tf.nn.top_k(x, 3).values, [(8, 50)], id="top_k"),
    ],
)
def test_values_and_gradients_are_those_of_the_cpu(build, shapes):
    arrays = [_normal(i, *shape) for i, shape in enumerate(shapes)]
    here, there = _run("/gpu:0", build, *arrays), _run("/cpu:0", build, *arrays)
    for got, expected in zip(here, there, strict=True):
        assert got.dtype == expected.dtype
        scale = np.abs(expected).max()
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-5 * scale)


def _worst(product, a, b):
    """The largest error of a product, as a share of its largest element."""
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return float(np.abs(product - exact).max() / np.abs(exact).max())


def test_products_of_floats_keep_all_their_bits(monkeypatch):
    a, b = _normal(1, 256, 1024), _normal(2, 1024, 256)
    exact = _run("/gpu:0", tf.matmul, a, b)[0]
    assert _worst(exact, a, b) < 2e-6
    monkeypatch.setattr(flags, "tf32", True)
    assert _worst(_run("/gpu:0", tf.matmul, a, b)[0], a, b) < 2e-3


def test_convolutions_of_floats_keep_all_their_bits():
    x, w = _normal(1, 4, 16, 16, 256), _normal(2, 1, 1, 256, 128)
    got = _run("/gpu:0", lambda x, w: tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), x, w)[0]
    assert _worst(got.reshape(-1, 128), x.reshape(-1, 256), w.reshape(256, 128)) < 2e-6


@pytest.mark.parametrize("dtype", [tf.float64, tf.float16, tf.bfloat16], ids=lambda d: d.name)
def test_products_of_other_floats(dtype):
    a, b = _normal(1, 32, 64), _normal(2, 64, 16)
    with tf.device("/gpu:0"):
        y = tf.matmul(tf.cast(a, dtype), tf.cast(b, dtype))
    with tf.Session() as sess:
        got = sess.run(y)
    limit = {tf.float64: 1e-14, tf.float16: 2e-3, tf.bfloat16: 2e-2}[dtype]
    a, b = (v.astype(dtype.as_numpy_dtype).astype(np.float64) for v in (a, b))
    assert got.dtype == dtype.as_numpy_dtype
    assert _worst(got.astype(np.float64), a, b) < limit


def test_integers_of_64_bits():
    with tf.device("/gpu:0"):
        x = tf.placeholder(tf.int64, [3])
        y = x * 3 + tf.constant(1 << 40, tf.int64)
    with tf.Session() as sess:
        got = sess.run(y, {x: [1 << 50, -1, 7]})
    assert got.tolist() == [(3 << 50) + (1 << 40), (1 << 40) - 3, (1 << 40) + 21]


OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.05),
}


def _train(device, make, steps=60):
    """Losses of least squares trained on a device, and the variables' platforms."""
    x, true = _normal(3, 64, 8), _normal(4, 8, 1)
    with tf.Graph().as_default(), tf.device(device):
        weights = tf.get_variable("weights", [8, 1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.constant(x), weights) - x @ true))
        train = make().minimize(loss)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            losses = []
            for _ in range(steps):
                sess.run(train)
                losses.append(sess.run(loss))
            platforms = {k: _platform(v) for k, v in _variables(sess).items()}
            return losses, sess.run(weights), platforms


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_variables_are_trained_on_the_gpu(name):
    losses, weights, platforms = _train("/gpu:0", OPTIMIZERS[name])
    assert platforms["weights"] == "gpu"
    assert losses[-1] < 0.2 * losses[0]
    expected, on_cpu, _ = _train("/cpu:0", OPTIMIZERS[name])
    np.testing.assert_allclose(losses, expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(weights, on_cpu, rtol=1e-3, atol=1e-4)


def test_a_variable_goes_to_a_file_and_comes_back(tmp_path):
    with tf.device("/gpu:0"):
        v = tf.get_variable("v", initializer=_normal(5, 100, 20))
    double = v.assign(v * 2.0)
    saver = tf.train.Saver()
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(v.initializer)
        sess.run(double)
        path = saver.save(sess, str(tmp_path / "model"))
        saved = sess.run(v)
        sess.run(double)
        saver.restore(sess, path)
        np.testing.assert_array_equal(sess.run(v), saved)
        sess.run(double)
        np.testing.assert_array_equal(sess.run(v), saved * 2)
        assert _platform(_variables(sess)["v"]) == "gpu"


def test_values_cross_between_host_and_gpu():
    x = _normal(6, 1000, 1000)
    fed = tf.placeholder(tf.float32, [1000, 1000])
    with tf.device("/cpu:0"):
        on_host = tf.get_variable("on_host", initializer=x)
        first = fed + on_host
    with tf.device("/gpu:0"):
        on_gpu = tf.get_variable("on_gpu", initializer=x)
        second = first - on_gpu
    with tf.device("/cpu:0"):
        third = on_host.assign_add(second)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(1, 4):
            got = sess.run(third, {fed: np.zeros_like(x)})
            np.testing.assert_allclose(got, x, atol=1e-6 * step)
        places = {k: _platform(v) for k, v in _variables(sess).items() if hasattr(v, "devices")}
    assert places.get("on_host", "cpu") == "cpu"
    assert places.get("on_gpu", "gpu") == "gpu"


def test_sparse_updates_of_embeddings():
    start = _normal(7, 50, 4)
    ids = tf.placeholder(tf.int32, [None])
    with tf.device("/gpu:0"):
        table = tf.get_variable("table", initializer=start)
        rows = tf.nn.embedding_lookup(table, ids)
        train = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(rows))
    expected = start.copy()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for chosen in ([3, 7, 3], [0], [49, 49, 49, 1]):
            np.testing.assert_allclose(sess.run(rows, {ids: chosen}), expected[chosen], rtol=1e-6)
            sess.run(train, {ids: chosen})
            np.subtract.at(expected, chosen, np.float32(0.5))
        np.testing.assert_allclose(sess.run(table), expected, rtol=1e-6)
        assert _platform(_variables(sess)["table"]) == "gpu"


def test_an_index_out_of_range_is_the_same_error():
    ids = tf.placeholder(tf.int32, [2])
    with tf.device("/gpu:0"):
        table = tf.get_variable("table", initializer=_normal(7, 5, 4))
        rows = tf.gather(table, ids)
    with tf.Session() as sess:
        sess.run(table.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"9 is not in \[0, 5\)"):
            sess.run(rows, {ids: [1, 9]})


def test_loops_and_their_gradients():
    x = tf.placeholder(tf.float32, [])
    n = tf.placeholder(tf.int32, [])
    with tf.device("/gpu:0"):
        _, power = tf.while_loop(lambda i, _: i < n, lambda i, p: (i + 1, p * x), [0, tf.ones([])])
        (slope,) = tf.gradients(power, x)
        chosen = tf.cond(power > 10.0, lambda: power, lambda: -power)
    with tf.Session() as sess:
        for times in (5, 2, 5):
            got = sess.run([power, slope, chosen], {x: 2.0, n: times})
            value = 2.0**times
            assert got == [value, times * value / 2, value if value > 10 else -value]


def _draws(device):
    with tf.Graph().as_default(), tf.device(device):
        tf.set_random_seed(11)
        drawn = [
            tf.random_normal([200], seed=1),
            tf.random_uniform([200], seed=2),
            tf.truncated_normal([200], seed=3),
            tf.random_shuffle(tf.range(50), seed=4),
            tf.random_uniform([200], maxval=1 << 30, dtype=tf.int32, seed=5),
        ]
        with tf.Session() as sess:
            return [sess.run(drawn) for _ in range(3)]


def test_random_numbers_follow_from_their_seeds():
    first, again, on_cpu = _draws("/gpu:0"), _draws("/gpu:0"), _draws("/cpu:0")
    for run in range(3):
        for a, b, c in zip(first[run], again[run], on_cpu[run], strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c, rtol=1e-4, atol=1e-6)
    assert not np.array_equal(first[0][0], first[1][0])


def test_what_a_gpu_has_no_room_for_is_an_error_and_the_session_goes_on():
    side = tf.placeholder(tf.int32, [])
    with tf.device("/gpu:0"):
        y = tf.random_uniform([side, side], seed=1) + 1.0
    with tf.Session() as sess:
        with pytest.raises(tf.errors.ResourceExhaustedError):
            sess.run(y, {side: 1 << 20})  # 4 TiB
        assert sess.run(y, {side: 8}).min() >= 1.0


def test_a_deep_net_learns_on_the_gpu():
    images = _normal(8, 64, 12, 12, 1)
    labels = (images.mean(axis=(1, 2, 3)) > 0).astype(np.int32)
    x = tf.placeholder(tf.float32, [None, 12, 12, 1])
    y = tf.placeholder(tf.int32, [None])
    with tf.device("/gpu:0"):
        net = tf.layers.conv2d(x, 8, 3, activation=tf.nn.relu)
        net = tf.layers.flatten(tf.layers.max_pooling2d(net, 2, 2))
        logits = tf.layers.dense(tf.layers.dense(net, 32, activation=tf.nn.relu), 2)
        loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
        train = tf.train.AdamOptimizer(0.01).minimize(loss)
    feeds = {x: images, y: labels}
    with tf.Session() as sess:
        tf.set_random_seed(1)
        sess.run(tf.global_variables_initializer())
        before = sess.run(loss, feeds)
        for _ in range(60):
            sess.run(train, feeds)
        assert sess.run(loss, feeds) < 0.3 * before
        assert {_platform(v) for k, v in _variables(sess).items()} == {"gpu"}

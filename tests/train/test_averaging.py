"""Workers with copies of their own: elastic averaging, model averaging, normalized gradients."""

import pathlib
import threading

import averaging_scenario
import numpy as np
import pytest

import headrace as tf
from headrace.contrib import opt as contrib_opt
from headrace.harness.cluster import with_cluster

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "averaging.npz"


@pytest.mark.parametrize("inner", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("kind", ["elastic", "agn"])
def test_two_workers_are_those_of_tensorflow(kind, inner):
    """Step by step: copies, centers, the global step, and which variables are whose."""
    with with_cluster(ps=1, worker=2) as cluster:
        targets = [cluster.target("worker", i) for i in range(2)]
        found = averaging_scenario.trace(tf, targets, kind, inner)
    with np.load(GOLDEN) as golden:
        for key, value in found.items():
            expected = golden[f"{kind}/{inner}/{key}"]
            if value.dtype.kind == "U":
                assert value.tolist() == expected.tolist()
            else:
                np.testing.assert_allclose(value, expected, rtol=2e-5, atol=2e-6, err_msg=key)


def test_model_averaging_makes_all_copies_their_average():
    copies, found, ready = {}, {}, threading.Barrier(2, timeout=30)

    def work(cluster, task):
        getter = contrib_opt.ModelAverageCustomGetter(f"/job:worker/task:{task}")
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                step = tf.train.get_or_create_global_step()
                with tf.variable_scope("", custom_getter=getter):
                    w = tf.get_variable("w", initializer=[4.0, 8.0])
            with tf.device(f"/job:worker/task:{task}"):
                momentum = tf.train.MomentumOptimizer(1.0, 0.5)
                opt = contrib_opt.ModelAverageOptimizer(momentum, 2, task == 0, getter, 2)
                train = opt.minimize(tf.reduce_sum(w) * (1.0 + task), global_step=step)
            hook = opt.make_session_run_hook()
            hook.begin()
            with tf.Session(cluster.target("worker", task)) as sess:
                if task == 0:
                    sess.run(tf.global_variables_initializer())
                ready.wait()
                sess.run(tf.local_variables_initializer())
                hook.after_create_session(sess, None)
                ready.wait()
                copies[task] = []
                for _ in range(5):
                    sess.run(train)
                    copies[task].append(sess.run(w)[0])
                ready.wait()
                found[task] = sess.run([step, tf.global_variables()[1]])

    with with_cluster(ps=1, worker=2) as cluster:
        threads = [threading.Thread(target=work, args=(cluster, i)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    # Momentum moves a copy by 1, 1.5, 1.75, 1.875, 1.9375 times the gradient.
    first = 4 - 1.5 * 2.5
    second = first - 1.5 * (1.75 + 1.875)
    assert copies[0] == [3.0, first, first - 1.75, second, second - 1.9375]
    assert copies[1] == [2.0, first, first - 3.5, second, second - 3.875]
    for step, center in found.values():
        assert step == 2
        np.testing.assert_array_equal(center, [second, second + 4])


KINDS = {
    "elastic": (
        contrib_opt.ElasticAverageCustomGetter,
        lambda sgd, getter: contrib_opt.ElasticAverageOptimizer(sgd, 1, getter, 1, 0.25, rho=0.0),
    ),
    "model": (
        contrib_opt.ModelAverageCustomGetter,
        lambda sgd, getter: contrib_opt.ModelAverageOptimizer(sgd, 1, True, getter, 1),
    ),
    "agn": (
        contrib_opt.AGNCustomGetter,
        lambda sgd, getter: contrib_opt.AGNOptimizer(sgd, 1, getter, 1),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_gradients_and_parts(kind):
    """Rows move as a dense gradient moves them; variables in parts have centers in parts."""
    make_getter, make = KINDS[kind]
    values = []
    for parts, sparse in [(1, False), (3, True)]:
        with tf.Graph().as_default():
            getter = make_getter("/cpu:0")
            parted = tf.fixed_size_partitioner(parts) if parts > 1 else None
            step = tf.train.get_or_create_global_step()
            with tf.variable_scope("", custom_getter=getter, partitioner=parted):
                w = tf.get_variable("w", [6, 2], initializer=tf.ones_initializer())
            rows = (tf.nn.embedding_lookup if sparse else tf.gather)(
                w, [1, 4, 4], **({"partition_strategy": "div"} if sparse else {})
            )
            with tf.variable_scope("", partitioner=None):
                opt = make(tf.train.GradientDescentOptimizer(0.5), getter)
            train = opt.minimize(tf.reduce_sum(rows), global_step=step)
            init = opt.get_init_op() if kind == "model" else opt.get_init_op(0)
            with tf.Session() as sess:
                sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
                sess.run(init)
                sess.run(train)
                sess.run(train)
                values.append(sess.run(tf.convert_to_tensor(w)))
                assert sess.run(step) == 2
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)
    assert values[0][1, 0] < 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_reuse_makes_nothing_anew(kind):
    getter = KINDS[kind][0]("/cpu:0")
    for _ in range(2):
        with tf.variable_scope("a", custom_getter=getter, reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", [2])
            tf.get_variable("count", [], trainable=False)
            tf.get_variable("own", [], trainable=False, collections=["local_variables"])
    assert tf.trainable_variables() == [w]
    names = [v.op.name for v in tf.global_variables()]
    assert names == ["global_center_variable/a/w", "a/count"]


def test_the_swapping_saver_saves_centers(tmp_path):
    getter = contrib_opt.ElasticAverageCustomGetter("/cpu:0")
    sgd = tf.train.GradientDescentOptimizer(1.0)
    make = KINDS["elastic"][1]
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="variable is empty"):
        make(sgd, getter).swapping_saver()
    with tf.variable_scope("m", custom_getter=getter):
        w = tf.get_variable("w", initializer=4.0)
    saver = make(sgd, getter).swapping_saver()
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        sess.run(w.assign(1.0))
        path = saver.save(sess, str(tmp_path / "centers"))
    assert tf.train.load_checkpoint(path).get_tensor("m/w") == 4.0


@pytest.mark.parametrize("kind", KINDS)
def test_bad_arguments(kind):
    make_getter, make = KINDS[kind]
    getter = make_getter("/cpu:0")
    sgd = tf.train.GradientDescentOptimizer(1.0)
    with pytest.raises(TypeError, match="CustomGetter that made its variables, not None"):
        make(sgd, None)
    with pytest.raises(TypeError, match=r"must be a tf.train.Optimizer, not None"):
        make(None, getter)
    plain = tf.get_variable("plain", [2])
    opt = make(sgd, getter)
    step = tf.train.get_or_create_global_step()
    with pytest.raises(ValueError, match=r"plain:0 is no copy of a worker\. Make it by"):
        opt.minimize(tf.reduce_sum(plain), global_step=step)
    with pytest.raises(ValueError, match="Must supply at least one variable"):
        opt.apply_gradients([(None, plain)], global_step=step)


def test_bad_numbers():
    getter = contrib_opt.ElasticAverageCustomGetter("/cpu:0")
    with pytest.raises(ValueError, match="every so many steps, at least 1, not 0"):
        contrib_opt.ElasticAverageOptimizer(tf.train.AdamOptimizer(), 1, getter, 0)
    rule = tf.train.AdamOptimizer(learning_rate=lambda: 0.1)
    with pytest.raises(ValueError, match="AdamOptimizer has no learning rate that is a number"):
        contrib_opt.ElasticAverageOptimizer(rule, 1, getter)

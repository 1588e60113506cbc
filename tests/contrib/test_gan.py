"""tf.contrib.gan: loops, hooks, pools and errors. The values are in the goldens."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

gan = tf.contrib.gan


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    from headrace.settings import flags

    monkeypatch.setattr(flags, "interpret", "always")


def generator(inputs):
    return tf.matmul(inputs, tf.get_variable("w", [3, 2], initializer=tf.ones_initializer()))


def discriminator(data, _):
    return tf.matmul(data, tf.get_variable("w", [2, 1], initializer=tf.ones_initializer()))


def model(**options):
    return gan.gan_model(generator, discriminator, tf.ones([4, 2]), tf.ones([4, 3]), **options)


def ops_of(m, loss=None):
    optimizer = tf.train.GradientDescentOptimizer
    return gan.gan_train_ops(m, loss or gan.gan_loss(m), optimizer(0.1), optimizer(0.1))


def test_training_until_a_hook_stops_it(tmp_path):
    ops = ops_of(model())
    hooks = [tf.train.StopAtStepHook(num_steps=3)]
    for get_hooks in (None, gan.get_joint_train_hooks(gan.GANTrainSteps(2, 1))):
        step = gan.gan_train(ops, str(tmp_path / str(get_hooks is None)), get_hooks, hooks=hooks)
        assert step == 3


def test_hooks_train_each_as_often_as_was_asked():
    ran = []

    class Session:
        def run(self, ops):
            ran.append(ops)

    class Context:
        session = Session()

    ops = gan.GANTrainOps("g", "d", "step", ["own"])
    hooks = gan.get_sequential_train_hooks(gan.GANTrainSteps(2, 1))(ops)
    assert hooks[2:] == ["own"]
    for hook in hooks[:2]:
        hook.before_run(Context())
    assert ran == [["g"], ["g"], ["d"]]
    del ran[:]
    for hook in gan.get_joint_train_hooks(gan.GANTrainSteps(3, 2))(ops)[:3]:
        hook.before_run(Context())
    assert ran == [["g", "d"], ["g", "d"], ["g"]]


def test_steps_of_slim_learning():
    m = model()
    ops = ops_of(m)
    step = gan.get_sequential_train_steps(gan.GANTrainSteps(1, 2))
    loss = gan.GANLoss(*[t for t in (ops.generator_train_op, ops.discriminator_train_op)])
    assert len(loss) == 2
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        global_step = tf.train.get_global_step()
        stop = {"should_stop": tf.constant(True)}
        total, ended = step(session, ops, global_step, stop)
        assert np.isfinite(total)
        assert ended
        assert session.run(global_step) == 1


def test_pools_give_values_of_earlier_steps():
    x = tf.placeholder(tf.float32, [])
    pair = gan.features.tensor_pool((x, x * 10.0), pool_size=3, pooling_probability=1.0)
    assert gan.features.tensor_pool(x, pool_size=0) is x
    with tf.Session() as session:
        found = [session.run(pair, {x: i}) for i in range(8)]
    assert [f[0] for f in found[:3]] == [0, 1, 2]
    assert all(second == 10 * first for first, second in found)
    assert all(first < i for i, (first, _) in enumerate(found) if i >= 3)
    with pytest.raises(ValueError, match="negative"):
        gan.features.tensor_pool(x, pool_size=-1)


def test_a_discriminator_sees_pooled_data():
    m = model()
    loss = gan.gan_loss(m, tensor_pool_fn=lambda values: gan.features.tensor_pool(values, 2))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert np.isfinite(session.run(list(loss))).all()
    cycle = gan.cyclegan_model(
        lambda x: tf.matmul(x, tf.get_variable("w", [2, 2])),
        discriminator,
        tf.ones([4, 2]),
        tf.ones([4, 2]),
    )
    with pytest.raises(ValueError, match="Tensor pool does not support"):
        gan.gan_loss(cycle, tensor_pool_fn=lambda v: v)


def test_models_of_domains():
    labels = tf.one_hot([0, 1, 1, 2], 3)

    def change(data, target):
        both = tf.concat([data, target], 1)
        return tf.matmul(both, tf.get_variable("w", [5, 2], initializer=tf.ones_initializer()))

    def judge(data, domains):
        source = tf.matmul(data, tf.get_variable("s", [2, 1], initializer=tf.ones_initializer()))
        return source, tf.matmul(data, tf.get_variable("d", [2, domains]))

    m = gan.stargan_model(change, judge, [tf.ones([2, 2]), tf.zeros([2, 2])], labels)
    assert m.reconstructed_data.shape.as_list() == [4, 2]
    loss = gan.stargan_loss(m)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert np.isfinite(session.run(list(loss))).all()
    assert [v.op.name for v in m.discriminator_variables] == ["Discriminator/s", "Discriminator/d"]


def test_updates_that_belong_to_nobody():
    m = model()
    loss = gan.gan_loss(m)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.no_op(name="stray"))
    with pytest.raises(ValueError, match="There are unused update ops"):
        ops_of(m, loss)
    sgd = tf.train.GradientDescentOptimizer(0.1)
    gan.gan_train_ops(m, loss, sgd, sgd, check_for_unused_update_ops=False)


def test_what_does_not_go_together():
    with pytest.raises(ValueError, match="must be the same shape as real data"):
        gan.gan_model(generator, lambda x, _: x, tf.ones([4, 5]), tf.ones([4, 3]))
    m = model(generator_scope="G", discriminator_scope="D")
    with pytest.raises(ValueError, match="must be an `InfoGANModel`"):
        gan.gan_loss(m, mutual_information_penalty_weight=1.0)
    with pytest.raises(ValueError, match="must be an `ACGANModel`"):
        gan.gan_loss(m, aux_cond_generator_weight=1.0)
    with pytest.raises(ValueError, match="must be greater than 0"):
        gan.gan_loss(m, gradient_penalty_weight=-1.0)
    with pytest.raises(ValueError, match="must be a `CycleGANModel`"):
        gan.cyclegan_loss(m)
    with pytest.raises(TypeError, match="must output a tuple"):
        gan.acgan_model(
            generator, lambda *_: tf.ones([4, 3]), tf.ones([4, 2]), tf.ones([4, 3]), None, "A", "B"
        )
    with pytest.raises(ValueError, match=r"`one_hot_labels` must be supplied"):
        gan.losses.acgan_generator_loss(m, discriminator_gen_classification_logits=tf.ones([4, 3]))
    with pytest.raises(ValueError, match="present in both the tuple and keyword args"):
        gan.losses.wasserstein_generator_loss(m, discriminator_gen_outputs=m.generated_data)
    with pytest.raises(ValueError, match="cannot both be `None"):
        gan.losses.wargs.combine_adversarial_loss(tf.constant(1.0), tf.constant(1.0))
    with pytest.raises(ValueError, match="must be positive"):
        gan.features.clip_discriminator_weights(tf.train.AdamOptimizer(), m, -1.0)


def test_spectral_norms_of_variables_that_a_getter_finds():
    getter = gan.features.spectral_normalization_custom_getter(power_iteration_rounds=20)
    with tf.variable_scope("net", custom_getter=getter):
        w = tf.get_variable("kernel", initializer=tf.constant(np.diag([3.0, 1.0]).astype("f")))
        b = tf.get_variable("bias", [2])
    assert isinstance(b, tf.Variable)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(w), np.diag([1.0, 1.0 / 3.0]), rtol=1e-5)
    with pytest.raises(ValueError, match="scale cannot be an integer"):
        gan.features.spectral_norm_regularizer(1)


def test_what_needs_the_inception_network_says_so():
    for name in (
        "inception_score",
        "frechet_inception_distance",
        "kernel_inception_distance",
        "kernel_inception_distance_and_std",
        "run_inception",
    ):
        with pytest.raises(NotImplementedError, match="frozen Inception network"):
            getattr(gan.eval, name)(tf.ones([2, 299, 299, 3]))


def test_summaries_of_a_model():
    m = model()
    gan.eval.add_gan_model_summaries(m)
    gan.eval.add_regularization_loss_summaries(m)
    assert len(tf.get_collection("summaries")) == 4
    with pytest.raises(ValueError, match="must be images of four dimensions"):
        gan.eval.add_gan_model_image_summaries(m)

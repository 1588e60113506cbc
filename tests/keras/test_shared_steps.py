"""The step of a model that has its own, up to its gradients."""

import jax
import numpy as np
import pytest

import headrace as tf
from headrace.keras.shared_steps import gradients_of

X, Y = np.ones((6, 2), "f"), np.ones((6, 1), "f")


def loss_of(model, state, data):
    """The mean of squares, and its gradients."""

    def loss(trainable):
        found, _ = model.stateless_call(trainable, state[1], data[0])
        return jax.numpy.mean(jax.numpy.square(found - data[1]))

    return jax.value_and_grad(loss)(state[0])


def well(model, state, data):
    loss, grads = loss_of(model, state, data)
    trainable, optimizer = model.optimizer.stateless_apply(state[2], grads, state[0])
    return {"loss": loss}, (trainable, state[1], optimizer, state[3])


def never(model, state, data):
    loss, grads = loss_of(model, state, data)
    trainable = [v - 0.1 * g for v, g in zip(state[0], grads, strict=True)]
    return {"loss": loss}, (trainable, *state[1:])


def twice(model, state, data):
    _, state = well(model, state, data)
    return well(model, state, data)


def other_optimizer(model, state, data):
    _, grads = loss_of(model, state, data)
    other = tf.keras.optimizers.SGD(0.1)
    other.build(model.trainable_variables)
    trainable, _ = other.stateless_apply([v.value for v in other.variables], grads, state[0])
    return {}, (trainable, *state[1:])


def in_place(model, state, data):
    _, grads = loss_of(model, state, data)
    model.optimizer.apply(grads, model.trainable_variables)
    return {}, state


def changed_after(model, state, data):
    logs, (trainable, *rest) = well(model, state, data)
    return logs, ([v * 0.9 for v in trainable], *rest)


def looked_after(model, state, data):
    _, after = well(model, state, data)
    return {"loss": loss_of(model, after, data)[0]}, after


REFUSED = {
    never: "never calls `self.optimizer.stateless_apply`",
    twice: "applies gradients more than once",
    other_optimizer: r"trains by another optimizer \(sgd.*\) than that of `compile`",
    in_place: "applies gradients by `apply`",
    changed_after: "does not return the variables as `self.optimizer.stateless_apply` does",
    looked_after: "computes logs, metrics or other state with the values after the update",
}


def made(step, optimizer):
    class Own(tf.keras.Sequential):
        train_step = step

    model = Own([tf.keras.layers.Input((2,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile(optimizer)
    model.optimizer.build(model.trainable_variables)
    parts = model.trainable_variables, model.non_trainable_variables, model.optimizer.variables
    return model, tuple([v.value for v in part] for part in (*parts, model.metrics_variables))


def refuse(what, instead):
    raise RuntimeError(what)


@pytest.mark.parametrize("scaled", [False, True])
def test_gradients_are_those_that_the_optimizer_gets_without_the_scale_of_losses(scaled):
    optimizer = tf.keras.optimizers.SGD(0.1)
    if scaled:
        optimizer = tf.keras.optimizers.LossScaleOptimizer(optimizer, 4.0)
    model, state = made(well, optimizer)
    logs, grads, _, _ = gradients_of(model, refuse)(state, (X, Y), 1.0)
    assert float(logs["loss"]) == 1.0
    whole = 0.25 * 2 if scaled else 2
    np.testing.assert_allclose(np.ravel(grads[0]), [whole, whole])


@pytest.mark.parametrize(
    ("step", "what"), REFUSED.items(), ids=lambda v: getattr(v, "__name__", "")
)
def test_steps_that_cannot_be_spread_are_refused(step, what):
    model, state = made(step, tf.keras.optimizers.SGD(0.1))
    with pytest.raises(RuntimeError, match=rf"`train_step` of a model of Keras \(Own\) {what}"):
        gradients_of(model, refuse)(state, (X, Y), 1.0)
    # Steps of others are what they were.
    assert model.optimizer.stateless_apply(state[2], [v * 0 for v in state[0]], state[0])

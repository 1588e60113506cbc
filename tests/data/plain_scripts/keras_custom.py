"""`fit` of a model of Keras by an optimiser, or a step, that looks at all gradients together."""

import sys

import jax
import numpy as np

import headrace as tf

keras = tf.keras
kind, epochs = sys.argv[1], int(sys.argv[2])
random = np.random.RandomState(1)
xs = random.randn(100, 4).astype(np.float32)
ys = xs @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32)


class OwnStep(keras.Sequential):
    """Its gradients are of two losses, by its own function; its metric is its own, too."""

    def train_step(self, state, data):
        trainable, other, optimizer, metrics = state
        x, y = data[:2]

        def loss(trainable):
            found, changed = self.stateless_call(trainable, other, x, training=True)
            error = jax.numpy.mean(jax.numpy.square(found - y))
            return error + 0.1 * jax.numpy.mean(jax.numpy.abs(found)), (changed, error, found)

        (_, (other, error, found)), grads = jax.value_and_grad(loss, has_aux=True)(trainable)
        trainable, optimizer = self.optimizer.stateless_apply(optimizer, grads, trainable)
        logs, metrics = self._update_metrics_variables(metrics, error, x, y, found, None)
        return logs, (trainable, other, optimizer, metrics)


class FailsOnce(keras.callbacks.Callback):
    """The second epoch ends the program."""

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 1:
            sys.exit(3)


if kind == "scale":  # the second batch of an epoch has gradients that overflow with that scale
    ys[25] = 1e12
layers = [keras.layers.Input((4,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)]
if kind == "moving":
    layers.insert(1, keras.layers.BatchNormalization(momentum=0.9))
model = (OwnStep if kind == "step" else keras.Sequential)(layers)
model.set_weights([0.5 * random.randn(*w.shape) for w in model.get_weights()])
optimizers = {
    "global_clipnorm": lambda: keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=0.5),
    "accumulation": lambda: keras.optimizers.Adam(
        0.05, gradient_accumulation_steps=3, global_clipnorm=1.0
    ),
    "scale": lambda: keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.05, momentum=0.9, global_clipnorm=1.0), 2.0**100, 4
    ),
}
model.compile(optimizers.get(kind, lambda: keras.optimizers.Adam(0.05))(), "mse", metrics=["mae"])
callbacks = []
if kind == "backup":
    callbacks = [keras.callbacks.BackupAndRestore("backup")]
    if "fails" in sys.argv:
        callbacks.append(FailsOnce())
found = model.fit(
    xs, ys, batch_size=20, epochs=epochs, verbose=0, shuffle=False, callbacks=callbacks
)
print("epochs", *found.epoch)
for name in sorted(found.history):
    for value in found.history[name]:
        print(name, value)
if kind == "moving":
    mean, variance = (v.numpy() for v in model.non_trainable_variables)
    print("mean", float(np.sum(np.square(mean))))
    print("variance", *variance)
    sys.exit()
print("norm", sum(float(np.sum(np.square(w))) for w in model.get_weights()))
print("steps", int(model.optimizer.iterations))
if kind == "scale":
    print("scale", np.log2(float(model.optimizer.dynamic_scale.value)))

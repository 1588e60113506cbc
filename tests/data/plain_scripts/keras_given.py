"""`fit` of a model of Keras that gets other values in between: by a callback, by the script."""

import sys

import numpy as np

import headrace as tf

keras = tf.keras
xs = np.random.RandomState(1).rand(60, 4).astype(np.float32)
ys = xs.sum(1, keepdims=True)


class WorseLater(keras.callbacks.Callback):
    """From the third epoch on steps are too long."""

    def on_epoch_begin(self, epoch, logs=None):
        self.model.optimizer.learning_rate = 0.05 if epoch < 2 else 2.0


model = keras.Sequential(
    [keras.layers.Input((4,)), keras.layers.Dense(1, kernel_initializer="zeros")]
)
model.compile(keras.optimizers.SGD(0.05, momentum=0.5), "mse")
best = keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True)
found = model.fit(
    xs,
    ys,
    batch_size=20,
    epochs=6,
    shuffle=False,
    verbose=0,
    validation_data=(xs, ys),
    callbacks=[best, WorseLater()],
)
print("best", min(found.history["val_loss"]))
print("restored", model.evaluate(xs, ys, verbose=0))
model.compile(keras.optimizers.SGD(0.05), "mse")
model.fit(xs, ys, batch_size=20, shuffle=False, verbose=0)
print("further", model.evaluate(xs, ys, verbose=0))
model.set_weights([0.5 * w for w in model.get_weights()])
model.fit(xs, ys, batch_size=20, shuffle=False, verbose=0)
print("set", model.evaluate(xs, ys, verbose=0))
print("norm", sum(float(np.sum(np.square(w))) for w in model.get_weights()))
if "async" in sys.argv:
    print("weights", *np.concatenate([w.ravel() for w in model.get_weights()]))

"""Averages of weights over steps (`use_ema`), which the model has after `fit`."""

import numpy as np

import headrace as tf

keras = tf.keras
xs = np.random.RandomState(1).randn(64, 4).astype(np.float32)
ys = xs @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32)
model = keras.Sequential(
    [keras.layers.Input((4,)), keras.layers.Dense(1, kernel_initializer="zeros")]
)
optimizer = keras.optimizers.SGD(0.05, use_ema=True, ema_momentum=0.8)
model.compile(optimizer, "mse")
model.fit(xs, ys, batch_size=16, epochs=2, shuffle=False, verbose=0)
print("weights", *np.concatenate([w.ravel() for w in model.get_weights()]))
print("averages", *np.concatenate([np.ravel(a) for a in optimizer.variables[2:]]))

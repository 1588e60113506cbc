"""`fit` of a model of Keras: validation, callbacks that write, a last batch that is not full."""

import sys

import numpy as np

import headrace as tf

random = np.random.RandomState(1)
xs = random.randn(101, 4).astype(np.float32)
ys = xs @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32)
model = tf.keras.Sequential(
    [tf.keras.layers.Input((4,)), tf.keras.layers.Dense(8, "tanh"), tf.keras.layers.Dense(1)]
)
model.set_weights([0.5 * random.randn(*w.shape) for w in model.get_weights()])
loss = tf.keras.losses.MeanSquaredError(reduction="sum" if "sum" in sys.argv else "mean")
model.compile(tf.keras.optimizers.Adam(0.02), loss, metrics=["mae"])
callbacks = [
    tf.keras.callbacks.ModelCheckpoint("saved.weights.h5", save_weights_only=True),
    tf.keras.callbacks.CSVLogger("log.csv"),
    tf.keras.callbacks.TensorBoard("events"),
    tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / (1 + epoch)),
]
epochs = 20 if "long" in sys.argv else 3
data = (xs, ys)
if "dataset" in sys.argv:
    data = (tf.data.Dataset.from_tensor_slices((xs[:100], ys[:100])).batch(20),)
found = model.fit(
    *data,
    batch_size=None if "dataset" in sys.argv else 20,
    epochs=epochs,
    verbose=0,
    shuffle=False,
    validation_data=(xs[:30], ys[:30]),
    callbacks=callbacks,
)
for name in sorted(found.history):
    for value in found.history[name]:
        print(name, value)
again = model.fit(xs[:40], ys[:40], batch_size=20, verbose=0, shuffle=False)
print("again", again.history["loss"][0])
print("on a batch", model.train_on_batch(xs[:20], ys[:20])[0] * 0)
print("evaluated", model.evaluate(xs, ys, verbose=0)[0])
print("predicted", model.predict(xs[:1], verbose=0)[0, 0])
print("norm", sum(float(np.sum(np.square(w))) for w in model.get_weights()))
print("rate", float(model.optimizer.learning_rate))
model.save("model.keras")

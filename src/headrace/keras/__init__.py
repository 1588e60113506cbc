"""`tf.keras`: the real Keras 3 on its JAX backend, under the names of tf.keras 1.x.

What goes in: layers, models, losses and initialisers of Keras, called on tensors of a graph. What
comes out: tensors; the variables are those of the graph. What holds: Keras is imported when a name
of it is first asked for, and does not change for who uses it without our tensors (`keras.hooks`).

Modules, lowest first: `loading` (imports Keras), `arrays` (our operations on JAX arrays inside
layers), `variables` (Keras variables as those of a graph), `calls` (a layer called on tensors),
`names` (what 1.x called otherwise), `backend` (`tf.keras.backend`), `training` (fit and its kin),
`log_names` (names of metrics), `metric_objects` (metrics on tensors), `hooks`, `modules`
(namespaces).

>>> x = tf.placeholder(tf.float32, [None, 3])
>>> y = tf.keras.layers.Dense(2, name="head")(x)
>>> [v.name for v in tf.trainable_variables()]
['head/kernel:0', 'head/bias:0']
"""

from __future__ import annotations

from typing import Any

from headrace.keras.modules import make_modules, member, names_of

make_modules()


def __getattr__(name: str) -> Any:
    return member("", name)


def __dir__() -> list[str]:
    return names_of("")

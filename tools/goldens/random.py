"""Random family: the numbers of TensorFlow's CPU kernels for given graph and op seeds.

Every generator is run twice in one session: the second step must continue the stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import golden


def _two_steps(tf: Any, session: Any, graph_seed: int | None, make: Callable[[], Any]) -> Any:
    if graph_seed is not None:
        tf.set_random_seed(graph_seed)
    fetches = make()
    first, second = session.run(fetches), session.run(fetches)
    results = {f"{name}_first": value for name, value in first.items()}
    return results | {f"{name}_second": value for name, value in second.items()}


@golden(with_session=True)
def op_seed(tf: Any, session: Any) -> dict[str, Any]:
    return _two_steps(
        tf,
        session,
        None,
        lambda: {
            "uniform": tf.random_uniform([7], seed=42),
            "normal": tf.random_normal([7], seed=42),
            "truncated_normal": tf.truncated_normal([9], seed=42),
            "uniform_range": tf.random_uniform([2, 3], -2.0, 3.0, seed=7),
            "normal_range": tf.random_normal([2, 3], 5.0, 0.1, seed=7),
        },
    )


@golden(with_session=True)
def graph_and_op_seed(tf: Any, session: Any) -> dict[str, Any]:
    return _two_steps(
        tf,
        session,
        1234,
        lambda: {
            "uniform": tf.random_uniform([11], seed=5),
            "normal": tf.random_normal([3, 5], seed=5),
            "truncated_normal": tf.truncated_normal([10], 1.0, 2.0, seed=5),
            "uniform_double": tf.random_uniform([5], dtype=tf.float64, seed=9),
            "normal_double": tf.random_normal([5], dtype=tf.float64, seed=9),
            "uniform_half": tf.random_uniform([5], dtype=tf.float16, seed=9),
        },
    )


@golden(with_session=True)
def graph_seed_only(tf: Any, session: Any) -> dict[str, Any]:
    """The op seed is the number of ops made before: so this also pins how many ops are made."""
    return _two_steps(tf, session, 99, lambda: {"uniform": tf.random_uniform([6])})


@golden(with_session=True)
def zero_seeds(tf: Any, session: Any) -> dict[str, Any]:
    return _two_steps(tf, session, 0, lambda: {"uniform": tf.random_uniform([6], seed=0)})


@golden(with_session=True)
def integers(tf: Any, session: Any) -> dict[str, Any]:
    return _two_steps(
        tf,
        session,
        3,
        lambda: {
            "int32": tf.random_uniform([9], 0, 10, dtype=tf.int32, seed=1),
            "int32_negative": tf.random_uniform([4], -5, 2**30, dtype=tf.int32, seed=2),
            "int64": tf.random_uniform([9], -100, 10**12, dtype=tf.int64, seed=3),
        },
    )


@golden(with_session=True)
def shuffle(tf: Any, session: Any) -> dict[str, Any]:
    return _two_steps(
        tf,
        session,
        3,
        lambda: {
            "vector": tf.random_shuffle(tf.range(10), seed=1),
            "rows": tf.random_shuffle(tf.reshape(tf.range(12), [6, 2]), seed=2),
            "crop": tf.random_crop(tf.reshape(tf.range(30), [5, 6]), [2, 3], seed=3),
        },
    )


@golden(with_session=True)
def multinomial(tf: Any, session: Any) -> dict[str, Any]:
    logits = np.log(np.float32([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]]))
    return _two_steps(
        tf, session, 8, lambda: {"samples": tf.multinomial(tf.constant(logits), 8, seed=2)}
    )


@golden(with_session=True)
def gamma(tf: Any, session: Any) -> dict[str, Any]:
    return _two_steps(
        tf,
        session,
        8,
        lambda: {
            "above_one": tf.random_gamma([5], 2.5, seed=2),
            "below_one": tf.random_gamma([5], 0.5, beta=2.0, seed=3),
            "vector": tf.random_gamma([2], [0.5, 1.0, 5.0], seed=4),
        },
    )


@golden(with_session=True)
def poisson(tf: Any, session: Any) -> dict[str, Any]:
    return _two_steps(
        tf,
        session,
        8,
        lambda: {
            "small": tf.random_poisson(2.5, [6], seed=2),
            "large": tf.random_poisson(50.0, [6], seed=3),
            "vector": tf.random_poisson([0.5, 4.0], [3], seed=4),
        },
    )


@golden(with_session=True)
def initializers(tf: Any, session: Any) -> dict[str, Any]:
    tf.set_random_seed(17)
    makers = {
        "uniform": tf.random_uniform_initializer(-1.0, 1.0, seed=1),
        "normal": tf.random_normal_initializer(0.0, 0.5, seed=2),
        "truncated": tf.truncated_normal_initializer(stddev=0.1, seed=3),
        "glorot_uniform": tf.glorot_uniform_initializer(seed=4),
        "glorot_normal": tf.glorot_normal_initializer(seed=5),
        "variance_scaling": tf.variance_scaling_initializer(2.0, "fan_in", seed=6),
        "unit_scaling": tf.uniform_unit_scaling_initializer(1.5, seed=7),
    }
    made = {k: tf.get_variable(k, [3, 4], initializer=maker) for k, maker in makers.items()}
    session.run(tf.global_variables_initializer())
    return dict(session.run(made))


@golden(with_session=True)
def dropout(tf: Any, session: Any) -> dict[str, Any]:
    return _two_steps(
        tf,
        session,
        21,
        lambda: {"half": tf.nn.dropout(tf.ones([4, 5]), keep_prob=0.5, seed=3)},
    )

"""Optimisers step by step with dense and sparse gradients, their slots, schedules and averages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import golden

STEPS = 10
IDS = ([0, 2, 2], [1, 1, 1], [4, 0, 2], [3, 4, 3], [2, 2, 2])


def _dense_and_sparse(
    tf: Any, session: Any, make: Callable[[], Any], slots: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Ten steps on a dense variable and on rows of a table; the values after each, and the slots.

    The gradients come from the loss, so they change as the variables move. Rows repeat within a
    step: duplicates must be summed before the update.
    """
    rng = np.random.RandomState(3)
    dense = tf.get_variable("dense", initializer=rng.standard_normal((2, 3)).astype(np.float32))
    table = tf.get_variable("table", initializer=rng.standard_normal((5, 2)).astype(np.float32))
    ids = tf.placeholder(tf.int32, [3])
    scale = tf.constant(rng.standard_normal((2, 3)).astype(np.float32))
    rows = tf.nn.embedding_lookup(table, ids)
    loss = tf.reduce_sum(tf.square(dense * scale - 1)) + tf.reduce_sum(
        tf.square(rows + np.array([0.5, -2], np.float32))
    )
    optimizer = make()
    step = optimizer.minimize(loss)
    session.run(tf.global_variables_initializer())
    track: dict[str, list[np.ndarray]] = {"dense": [], "table": []}
    for i in range(STEPS):
        session.run(step, {ids: IDS[i % len(IDS)]})
        values = session.run([dense, table])
        track["dense"].append(values[0])
        track["table"].append(values[1])
    results: dict[str, Any] = {name: np.stack(values) for name, values in track.items()}
    for slot in slots:
        results[f"dense_{slot}"] = session.run(optimizer.get_slot(dense, slot))
        results[f"table_{slot}"] = session.run(optimizer.get_slot(table, slot))
    results["slot_names"] = sorted(optimizer.get_slot_names())
    return results


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def gradient_descent(tf: Any, session: Any) -> dict[str, Any]:
    return _dense_and_sparse(tf, session, lambda: tf.train.GradientDescentOptimizer(0.05))


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def momentum(tf: Any, session: Any) -> dict[str, Any]:
    return _dense_and_sparse(
        tf, session, lambda: tf.train.MomentumOptimizer(0.02, 0.9), ("momentum",)
    )


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def nesterov(tf: Any, session: Any) -> dict[str, Any]:
    return _dense_and_sparse(
        tf,
        session,
        lambda: tf.train.MomentumOptimizer(0.02, 0.9, use_nesterov=True),
        ("momentum",),
    )


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def adagrad(tf: Any, session: Any) -> dict[str, Any]:
    return _dense_and_sparse(
        tf, session, lambda: tf.train.AdagradOptimizer(0.3, 0.2), ("accumulator",)
    )


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def adagrad_da(tf: Any, session: Any) -> dict[str, Any]:
    def make() -> Any:
        step = tf.train.get_or_create_global_step()
        return _WithGlobalStep(
            tf.train.AdagradDAOptimizer(
                0.3, step, 0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02
            ),
            step,
        )

    return _dense_and_sparse(
        tf, session, make, ("gradient_accumulator", "gradient_squared_accumulator")
    )


class _WithGlobalStep:
    """An optimiser whose `minimize` counts steps, as dual averaging needs."""

    def __init__(self, optimizer: Any, step: Any) -> None:
        self._optimizer, self._step = optimizer, step

    def minimize(self, loss: Any) -> Any:
        return self._optimizer.minimize(loss, global_step=self._step)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def adadelta(tf: Any, session: Any) -> dict[str, Any]:
    return _dense_and_sparse(
        tf,
        session,
        lambda: tf.train.AdadeltaOptimizer(0.5, rho=0.9, epsilon=1e-3),
        ("accum", "accum_update"),
    )


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def adam(tf: Any, session: Any) -> dict[str, Any]:
    return _dense_and_sparse(tf, session, lambda: tf.train.AdamOptimizer(0.1), ("m", "v"))


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def adam_large_epsilon(tf: Any, session: Any) -> dict[str, Any]:
    return _dense_and_sparse(
        tf, session, lambda: tf.train.AdamOptimizer(0.1, 0.8, 0.9, epsilon=0.1), ("m", "v")
    )


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def rmsprop(tf: Any, session: Any) -> dict[str, Any]:
    return _dense_and_sparse(
        tf,
        session,
        lambda: tf.train.RMSPropOptimizer(0.05, decay=0.8, momentum=0.5, epsilon=1e-3),
        ("rms", "momentum"),
    )


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def rmsprop_centered(tf: Any, session: Any) -> dict[str, Any]:
    return _dense_and_sparse(
        tf,
        session,
        lambda: tf.train.RMSPropOptimizer(0.05, 0.8, 0.5, 1e-2, centered=True),
        ("rms", "mg", "momentum"),
    )


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def ftrl(tf: Any, session: Any) -> dict[str, Any]:
    return _dense_and_sparse(tf, session, lambda: tf.train.FtrlOptimizer(0.5), ("accum", "linear"))


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def ftrl_regularised(tf: Any, session: Any) -> dict[str, Any]:
    return _dense_and_sparse(
        tf,
        session,
        lambda: tf.train.FtrlOptimizer(
            0.5,
            learning_rate_power=-0.7,
            initial_accumulator_value=0.2,
            l1_regularization_strength=0.05,
            l2_regularization_strength=0.1,
        ),
        ("accum", "linear"),
    )


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def ftrl_shrinkage(tf: Any, session: Any) -> dict[str, Any]:
    return _dense_and_sparse(
        tf,
        session,
        lambda: tf.train.FtrlOptimizer(
            0.5, l1_regularization_strength=0.01, l2_shrinkage_regularization_strength=0.1
        ),
        ("accum", "linear"),
    )


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def proximal_gradient_descent(tf: Any, session: Any) -> dict[str, Any]:
    return _dense_and_sparse(
        tf,
        session,
        lambda: tf.train.ProximalGradientDescentOptimizer(
            0.05, l1_regularization_strength=0.2, l2_regularization_strength=0.1
        ),
    )


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def proximal_adagrad(tf: Any, session: Any) -> dict[str, Any]:
    return _dense_and_sparse(
        tf,
        session,
        lambda: tf.train.ProximalAdagradOptimizer(
            0.3, 0.2, l1_regularization_strength=0.1, l2_regularization_strength=0.05
        ),
        ("accumulator",),
    )


@golden(with_session=True, rtol=1e-6)
def adam_details(tf: Any, session: Any) -> dict[str, Any]:
    """Powers of beta, a learning rate that is a tensor, float64, and the global step."""
    v = tf.get_variable("v", initializer=np.float64([1.0, -2.0]))
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.1, step, 2, 0.5)
    optimizer = tf.train.AdamOptimizer(rate)
    pairs = optimizer.compute_gradients(tf.reduce_sum(v**2))
    train = optimizer.apply_gradients(
        [(tf.clip_by_norm(g, 1.5), variable) for g, variable in pairs], global_step=step
    )
    session.run(tf.global_variables_initializer())
    values = []
    for _ in range(5):
        session.run(train)
        values.append(session.run(v))
    powers = [p for p in tf.global_variables() if "beta" in p.op.name]
    return {
        "values": np.stack(values),
        "global_step": session.run(step),
        "beta_powers": session.run(sorted(powers, key=lambda p: p.op.name)),
    }


@golden(with_session=True)
def gradients_and_variables(tf: Any, session: Any) -> dict[str, Any]:
    a = tf.get_variable("a", initializer=2.0)
    b = tf.get_variable("b", initializer=3.0)
    unused = tf.get_variable("unused", initializer=5.0)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    pairs = optimizer.compute_gradients(
        a * a * b, [a, b, unused], gate_gradients=optimizer.GATE_GRAPH
    )
    train = optimizer.apply_gradients(pairs)
    session.run(tf.global_variables_initializer())
    gradients = session.run([g for g, _ in pairs if g is not None])
    session.run(train)
    return {
        "gradients": gradients,
        "unused_has_none": pairs[2][0] is None,
        "after": session.run([a, b, unused]),
        "names": [v.op.name for _, v in pairs],
    }


@golden
def schedules(tf: Any) -> dict[str, Any]:
    step = tf.placeholder(tf.int64, [])
    train = tf.train
    made = {
        "exponential": train.exponential_decay(0.1, step, 7, 0.8),
        "exponential_staircase": train.exponential_decay(0.1, step, 7, 0.8, staircase=True),
        "natural_exp": train.natural_exp_decay(0.1, step, 7, 0.8),
        "natural_exp_staircase": train.natural_exp_decay(0.1, step, 7, 0.8, staircase=True),
        "inverse_time": train.inverse_time_decay(0.1, step, 7, 0.8),
        "inverse_time_staircase": train.inverse_time_decay(0.1, step, 7, 0.8, staircase=True),
        "polynomial": train.polynomial_decay(0.1, step, 20, 0.01, power=2.0),
        "polynomial_cycle": train.polynomial_decay(0.1, step, 20, 0.01, power=0.5, cycle=True),
        "piecewise": train.piecewise_constant(step, [5, 14], [1.0, 0.5, 0.1]),
        "cosine": train.cosine_decay(0.1, step, 20, alpha=0.1),
        "cosine_restarts": train.cosine_decay_restarts(0.1, step, 10),
        "linear_cosine": train.linear_cosine_decay(0.1, step, 20),
    }
    results: dict[str, Any] = {}
    for value in (0, 5, 14, 33):
        feed = {step: value}
        results |= {f"{name}_{value}": (rate, feed) for name, rate in made.items()}
    return results


@golden(with_session=True, rtol=1e-6)
def moving_average(tf: Any, session: Any) -> dict[str, Any]:
    results: dict[str, Any] = {}
    num_updates = tf.placeholder(tf.float32, [])
    kinds = {
        "plain": {},
        "num_updates": {"num_updates": num_updates},
        "zero_debias": {"zero_debias": True},
    }
    for kind, options in kinds.items():
        v = tf.get_variable(kind, initializer=np.float32([1.0, 10.0]))
        ema = tf.train.ExponentialMovingAverage(0.9, name=f"ema_{kind}", **options)
        update = ema.apply([v])
        average = ema.average(v)
        session.run(tf.global_variables_initializer())
        track = []
        for i in range(5):
            session.run(tf.assign_add(v, [1.0, -2.0]))
            session.run(update, {num_updates: float(i)})
            track.append(session.run(average))
        results[kind] = np.stack(track)
        results[f"{kind}_name"] = ema.average_name(v)
    t = tf.reduce_sum(v) * 2
    of_tensor = tf.train.ExponentialMovingAverage(0.5)
    update = of_tensor.apply([t])
    session.run(tf.global_variables_initializer())
    session.run(update)
    session.run(update)
    results["tensor"] = session.run(of_tensor.average(t))
    return results


@golden(with_session=True, rtol=1e-6)
def clipped_training(tf: Any, session: Any) -> dict[str, Any]:
    """Clipping by global norm with one sparse and one dense gradient."""
    table = tf.get_variable("table", initializer=np.float32([[3.0, 4.0], [1.0, 2.0], [0.0, 1.0]]))
    w = tf.get_variable("w", initializer=np.float32([1.0, -1.0]))
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, [0, 0, 2]) * w))
    gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, [table, w]), 2.0)
    train = tf.train.GradientDescentOptimizer(0.5).apply_gradients(
        list(zip(gradients, [table, w], strict=True))
    )
    session.run(tf.global_variables_initializer())
    before = session.run(norm)
    session.run(train)
    return {"norm": before, "table": session.run(table), "w": session.run(w)}

"""Sums over devices of one process: an addition on one of them in turns, and XLA's collectives.

    python benchmarks/devices.py [--devices 4]

(Accelerators have collectives in both: `CrossDeviceOps` adds in turns on CPU devices only.)
The median step, in milliseconds, of replicas that update variables of so many bytes by the sum of
their gradients. On a machine without accelerators XLA divides the processor into devices.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any

WARM, STEPS = 8, 16
#: Elements of a variable, and how many variables.
MODELS = ((256, 4), (1 << 16, 4), (1 << 20, 4), (1 << 22, 6))


def _step(names: list[str], ops: Any, size: int, count: int) -> Any:
    import headrace as tf

    with tf.Graph().as_default():
        strategy = tf.distribute.MirroredStrategy(names, ops)

        def model() -> Any:
            zeros = tf.zeros_initializer()
            values = [tf.get_variable(f"v{i}", [size], initializer=zeros) for i in range(count)]
            loss = tf.add_n([tf.reduce_sum(v * v + v) for v in values])
            return tf.train.GradientDescentOptimizer(0.01).minimize(loss)

        with strategy.scope():
            train = strategy.group(strategy.experimental_run_v2(model))
        session = tf.Session(config=strategy.update_config_proto(tf.ConfigProto()))
        session.run(tf.global_variables_initializer())
    return session, train


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=4, help="CPU devices, without accelerators")
    options = parser.parse_args()
    flag = f"--xla_force_host_platform_device_count={options.devices}"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}"

    import headrace as tf

    with tf.Session() as session:
        found = [d.name.partition("/task:0")[2] for d in session.list_devices()]
    names = [n for n in found if "CPU" not in n] or found
    ways = {
        "in turns": tf.distribute.CrossDeviceOps(),
        "collectives": tf.distribute.NcclAllReduce(),
    }
    print(f"{len(names)} devices: {', '.join(names)}")
    for size, count in MODELS:
        steps = {way: _step(names, ops, size, count) for way, ops in ways.items()}
        times: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(WARM + STEPS):
            for way, (session, train) in steps.items():
                began = time.perf_counter()
                session.run(train)
                times[way].append(time.perf_counter() - began)
        medians = {way: 1e3 * statistics.median(t[WARM:]) for way, t in times.items()}
        line = ", ".join(f"{way} {taken:.2f} ms" for way, taken in medians.items())
        print(f"{size * count * 4 / 1e6:8.3f} MB: {line}")
        for session, _ in steps.values():
            session.close()


if __name__ == "__main__":
    main()

"""Tables of embeddings: new keys in a stream, lookups beside a variable, tables beyond memory.

    python benchmarks/embedding_tables.py stream
    python benchmarks/embedding_tables.py lookup
    python benchmarks/embedding_tables.py saves --repeat 5
    python benchmarks/embedding_tables.py large --size 16 --limit 4     # GiB; takes an hour

Targets: a million new keys a second on two cores, and half of the speed of a variable of 10^6 rows.
Figures are medians of ``--repeat`` runs in this process; `taskset -c 0,1` gives it two cores.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import headrace as tf

BATCH, WIDTH = 50_000, 64


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def stream(repeat: int) -> None:
    """10^6 distinct keys, each new to the table, in batches: rows are made and read."""
    keys = np.random.default_rng(0).permutation(10**6) * 7919
    fed = tf.placeholder(tf.int64, [BATCH])
    for name in ("looked up", "looked up and trained by Adagrad"):
        taken = []
        for _ in range(repeat):
            with tf.Graph().as_default():
                fed = tf.placeholder(tf.int64, [BATCH])
                rows = tf.EmbeddingTable(WIDTH, seed=1).lookup(fed)
                loss = tf.reduce_sum(rows * rows)
                step = loss.op
                if "trained" in name:
                    step = tf.train.AdagradOptimizer(0.1).minimize(loss)
                with tf.Session() as sess:
                    sess.run(step, {fed: -1 - keys[:BATCH]})  # the programs are compiled
                    taken.append(
                        seconds(
                            lambda: [
                                sess.run(step, {fed: keys[i : i + BATCH]})  # noqa: B023
                                for i in range(0, len(keys), BATCH)
                            ]
                        )
                    )
        report(f"10^6 new keys, {name}", len(keys), taken)


def lookup(repeat: int) -> None:
    """Batches of keys that are there, beside rows of a variable of as many; then training steps."""
    rng = np.random.default_rng(0)
    ids = [rng.integers(0, 10**6, BATCH) for _ in range(8)]
    fed = tf.placeholder(tf.int64, [BATCH])
    weights = tf.constant(rng.standard_normal((BATCH, WIDTH)), tf.float32)
    table = tf.EmbeddingTable(WIDTH, seed=1)
    variable = tf.Variable(tf.random_normal([10**6, WIDTH], seed=1))
    steps = {}
    for name, params in (("table", table), ("variable", variable)):
        rows = tf.nn.embedding_lookup(params, fed)
        optimizer = tf.train.AdagradOptimizer(0.1)
        loss = tf.reduce_sum(rows * weights)
        steps[f"{name}, rows"] = rows
        steps[f"{name}, used in a step"] = loss
        steps[f"{name}, trained by Adagrad"] = optimizer.minimize(loss, var_list=[params])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for begin in range(0, 10**6, BATCH):
            sess.run(steps["table, rows"], {fed: np.arange(begin, begin + BATCH)})
        taken: dict[str, list[float]] = {name: [] for name in steps}
        for i in range(repeat + 3):
            for name, step in steps.items():
                once = seconds(lambda: sess.run(step, {fed: ids[i % 8]}))  # noqa: B023
                if i >= 3:
                    taken[name].append(once)
    for name, times in taken.items():
        report(f"{BATCH} keys of {WIDTH} floats, {name}", BATCH, times)
    for what in ("rows", "used in a step", "trained by Adagrad"):
        table_taken, beside = (
            statistics.median(taken[f"{p}, {what}"]) for p in ("table", "variable")
        )
        print(f"{what}: the table has {beside / table_taken:.2f} of the variable's speed (0.5)")


def large(size: float, limit: float, directory: str) -> None:
    """A table of ``size`` GiB, rows and sums of Adagrad, trained with a limit of memory."""
    rows = int(size * 2**30 / (2 * 4 * WIDTH)) // BATCH * BATCH
    fed = tf.placeholder(tf.int64, [BATCH])
    table = tf.EmbeddingTable(WIDTH, seed=1, memory_limit=int(limit * 2**30), directory=directory)
    found = table.lookup(fed)
    train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(found * found))
    rng = np.random.default_rng(0)
    with tf.Session() as sess:
        made = seconds(
            lambda: [sess.run(train, {fed: np.arange(i, i + BATCH)}) for i in range(0, rows, BATCH)]
        )
        report(f"{rows} new keys ({size} GiB), trained", rows, [made])
        hot = [rng.zipf(1.2, BATCH) % rows for _ in range(20)]
        report(
            "keys by Zipf's law, trained",
            BATCH,
            [seconds(lambda keys=keys: sess.run(train, {fed: keys})) for keys in hot],
        )
        anywhere = [rng.integers(0, rows, BATCH) for _ in range(5)]
        report(
            "keys from anywhere, trained",
            BATCH,
            [seconds(lambda keys=keys: sess.run(train, {fed: keys})) for keys in anywhere],
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"most memory of the process: {peak:.2f} GiB (with pages of files)")


def saves(repeat: int) -> None:
    """10^6 rows with sums of Adagrad, of which one in a hundred changes between two checkpoints."""
    rows, rng = 10**6, np.random.default_rng(0)
    keys = rng.permutation(rows) * 7919
    fed = tf.placeholder(tf.int64, [None])
    table = tf.EmbeddingTable(WIDTH, seed=1)
    found = table.lookup(fed)
    train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(found * found))
    savers = {
        "all rows": tf.train.Saver([table], max_to_keep=2),
        "an increment": tf.train.Saver([table], max_to_keep=2, incremental_tables=True),
    }
    taken: dict[str, list[float]] = {name: [] for name in savers}
    size: dict[str, int] = {}
    with tf.Session() as sess, tempfile.TemporaryDirectory() as directory:
        for begin in range(0, rows, BATCH):
            sess.run(train, {fed: keys[begin : begin + BATCH]})
        for i in range(repeat + 1):
            for name, saver in savers.items():
                prefix = f"{directory}/{name[:3]}"
                path = f"{prefix}-{i}"
                once = seconds(lambda: saver.save(sess, prefix, i, write_meta_graph=False))  # noqa: B023
                if i:  # the first has all rows
                    taken[name].append(once)
                    files = Path(directory).glob(f"{Path(path).name}.table-*")
                    size[name] = sum(f.stat().st_size for f in files)
            sess.run(train, {fed: rng.choice(keys, rows // 100, replace=False)})
    for name, times in taken.items():
        print(
            f"a checkpoint with {name}: {statistics.median(times) * 1e3:.0f} ms, "
            f"{size[name] / 1e6:.1f} MB"
        )


def report(what: str, keys: int, times: list[float]) -> None:
    """One line."""
    median = statistics.median(times)
    print(f"{what}: {median * 1e3:.1f} ms, {keys / median / 1e6:.2f} million keys/s", flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["stream", "lookup", "saves", "large"])
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--size", type=float, default=16.0, help="GiB of rows and sums")
    parser.add_argument("--limit", type=float, default=4.0, help="GiB of them in memory")
    parser.add_argument("--directory", default="", help="where files are")
    args = parser.parse_args()
    if args.what == "large":
        large(args.size, args.limit, args.directory)
    else:
        {"stream": stream, "lookup": lookup, "saves": saves}[args.what](args.repeat)


if __name__ == "__main__":
    main()

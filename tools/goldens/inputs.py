"""Input queues and readers: what comes out, in which order.

Each queue has one thread, and what is shuffled waits until its queue is full and closed: only then
does the order not depend on the speed of threads.
"""

from __future__ import annotations

import gzip
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from . import golden


def _filled(tf: Any, session: Any) -> None:
    """Run all queue runners to their end: the queues must have room for everything."""
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    for thread in tf.train.start_queue_runners(sess=session):
        thread.join()


def _all(tf: Any, session: Any, fetch: Any) -> list[Any]:
    """Values until the input ends."""
    values = []
    while True:
        try:
            values.append(session.run(fetch))
        except tf.errors.OutOfRangeError:
            return values


@golden(with_session=True)
def producers(tf: Any, session: Any) -> dict[str, Any]:
    words = ["a", "b", "c", "d", "e", "f", "g"]
    tf.set_random_seed(11)
    takes = {
        "strings": tf.train.string_input_producer(words, num_epochs=3, seed=5).dequeue(),
        "in_order": tf.train.string_input_producer(words, num_epochs=2, shuffle=False).dequeue(),
        "graph_seed": tf.train.string_input_producer(words, num_epochs=2).dequeue(),
        "numbers": tf.train.range_input_producer(6, num_epochs=4, seed=9).dequeue(),
        "rows": tf.train.input_producer(
            tf.reshape(tf.range(10), [5, 2]), num_epochs=2, seed=3
        ).dequeue(),
        "slices": tf.train.slice_input_producer(
            [np.arange(12).reshape(4, 3), words[:4]], num_epochs=2, seed=7
        )[0],
    }
    _filled(tf, session)
    return {name: np.array(_all(tf, session, take)) for name, take in takes.items()}


@golden(with_session=True)
def batches(tf: Any, session: Any) -> dict[str, Any]:
    x, y = tf.train.slice_input_producer(
        [np.float32(np.arange(22).reshape(11, 2)), np.arange(11)], num_epochs=1, shuffle=False
    )
    whole = tf.train.batch([x, y], 3)
    rest = tf.train.batch({"x": x * 2, "y": y}, 4, allow_smaller_final_batch=True)
    many = tf.train.batch([tf.stack([y, -y])], 5, enqueue_many=True)
    padded = tf.train.batch([tf.range(y % 4)], 4, dynamic_pad=True, allow_smaller_final_batch=True)
    session.run(tf.local_variables_initializer())
    # They take their inputs from one producer, so each has its turn.
    runners = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
    results: dict[str, Any] = {}
    for name, fetch, runner in (
        ("whole", whole, 1),
        ("rest", rest, 2),
        ("many", many, 3),
        ("padded", padded, 4),
    ):
        with tf.Session() as own:
            own.run(tf.local_variables_initializer())
            for index in (0, runner):
                for thread in runners[index].create_threads(own, start=True):
                    thread.join()
            for i, value in enumerate(_all(tf, own, fetch)):
                if isinstance(value, dict):
                    value = [value[k] for k in sorted(value)]
                for j, part in enumerate(value if isinstance(value, list) else [value]):
                    results[f"{name}_{i}_{j}"] = part
    return results


@golden(with_session=True)
def shuffled(tf: Any, session: Any) -> dict[str, Any]:
    tf.set_random_seed(2)
    number = tf.train.range_input_producer(20, num_epochs=1, shuffle=False).dequeue()
    taken = tf.train.shuffle_batch([number, number * 10], 6, 40, 0, seed=8)
    _filled(tf, session)
    return {f"{i}": np.array(v) for i, v in enumerate(_all(tf, session, taken))}


@golden(with_session=True)
def sparse(tf: Any, session: Any) -> dict[str, Any]:
    number = tf.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
    wide = tf.cast(number, tf.int64)
    row = tf.SparseTensor(tf.stack([[wide], [wide + 2]]), tf.stack([number, -number]), [9])
    block = tf.SparseTensor(
        tf.stack([[wide * 0, wide], [wide * 0 + 2, wide]]), [1.5, 2.5], tf.stack([3, wide + 1])
    )
    keep = tf.less(tf.range(3), 2)
    one = tf.train.batch([row, number], 4)
    many = tf.train.batch([block], 5, enqueue_many=True)
    some = tf.train.maybe_batch([block], keep, 3, enqueue_many=True)
    runners = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
    results: dict[str, Any] = {}
    for name, fetch, runner in (
        ("one", one, 1),
        ("many", many, 2),
        ("some", some, 3),
    ):
        with tf.Session() as own:
            own.run(tf.local_variables_initializer())
            for index in (0, runner):
                for thread in runners[index].create_threads(own, start=True):
                    thread.join()
            for i, value in enumerate(_all(tf, own, fetch)):
                found = value[0] if isinstance(value, list) else value
                results[f"{name}_{i}_indices"] = found.indices
                results[f"{name}_{i}_values"] = found.values
                results[f"{name}_{i}_shape"] = found.dense_shape
    return results


def _records(tf: Any, session: Any, reader: Any, files: list[Any], count: int = 0) -> Any:
    """All that a reader gives: keys without directories, values and the counts after each."""
    queue = tf.FIFOQueue(10, tf.string)
    session.run(queue.enqueue_many([[str(f) for f in files]]))
    session.run(queue.close())
    take = reader.read_up_to(queue, count) if count else reader.read(queue)
    counts = [reader.num_records_produced(), reader.num_work_units_completed()]
    lines = []
    while True:
        try:
            key, value = session.run(take)
        except tf.errors.OutOfRangeError:
            return [*lines, b"%d %d" % tuple(session.run(counts))]
        for k, v in zip(np.atleast_1d(key), np.atleast_1d(value), strict=True):
            name = k.rpartition(b"/")[2]
            v = v.rpartition(b"/")[2] if v == k else v
            lines.append(b"%b|%b|" % (name, v))
        lines.append(b"%d %d" % tuple(session.run(counts)))


@golden(with_session=True)
def readers(tf: Any, session: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        fixed = b"HHabcdefghijF"
        contents = {
            "a.txt": b"h1\nl1\r\nl2\n\nlast",
            "empty": b"",
            "b.txt": b"h2\nm1\n",
            "a.bin": fixed,
            "b.bin": b"HHabcdF",
            "a.z": zlib.compress(fixed),
            "a.gz": gzip.compress(fixed),
        }
        for name, content in contents.items():
            (here / name).write_bytes(content)
        texts = [here / n for n in ("a.txt", "empty", "b.txt")]
        fixes = [here / n for n in ("a.bin", "b.bin")]
        fixed_reader = tf.FixedLengthRecordReader
        runs = {
            "lines": (tf.TextLineReader(), texts, 0),
            "headers": (tf.TextLineReader(skip_header_lines=1), texts, 0),
            "lines_up_to": (tf.TextLineReader(), texts, 4),
            "whole": (tf.WholeFileReader(), texts, 0),
            "identity": (tf.IdentityReader(), texts, 2),
            "fixed": (fixed_reader(3, 2, 1), fixes, 0),
            "hop": (fixed_reader(2, 2, 1, 4), fixes, 0),
            "short_hop": (fixed_reader(3, 2, 1, hop_bytes=1), fixes, 0),
            "zlib": (fixed_reader(2, 2, 1, encoding="ZLIB"), [here / "a.z"], 0),
            "gzip": (fixed_reader(2, 2, 1, encoding="GZIP"), [here / "a.gz"], 3),
        }
        return {
            name: np.array(_records(tf, session, *run), dtype="S") for name, run in runs.items()
        }


@golden(with_session=True, needs=("python_io",))
def record_files(tf: Any, session: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/a.tfrecord", f"{folder}/b.tfrecord"]
        for file, records in zip(files, ([b"one", b"", b"three"], [b"four", b"5"]), strict=True):
            with tf.python_io.TFRecordWriter(file) as writer:
                for record in records:
                    writer.write(record)
        runs = {"single": 0, "up_to": 2}
        return {
            name: np.array(_records(tf, session, tf.TFRecordReader(), files, n), dtype="S")
            for name, n in runs.items()
        }


@golden(with_session=True)
def reader_state(tf: Any, session: Any) -> dict[str, Any]:
    reader = tf.IdentityReader()
    queue = tf.FIFOQueue(9, tf.string)
    session.run(queue.enqueue_many([["x", "y", "z"]]))
    read = reader.read(queue)
    counts = [reader.num_records_produced(), reader.num_work_units_completed()]
    state = reader.serialize_state()
    session.run(read)
    saved = session.run(state)
    session.run(read)
    later = session.run(counts)
    session.run(reader.restore_state(saved))
    restored = session.run([*counts, state])
    session.run(reader.reset())
    return {
        "saved": saved,
        "later": np.array(later),
        "restored": np.array(restored[:2]),
        "state": restored[2],
        "reset": np.array(session.run(counts)),
        "next": session.run(read)[1],
    }


@golden(with_session=True)
def accumulators(tf: Any, session: Any) -> dict[str, Any]:
    dense = tf.ConditionalAccumulator(tf.float32, shape=[2])
    total = tf.ConditionalAccumulator(tf.float64, reduction_type="SUM")
    sparse = tf.SparseConditionalAccumulator(tf.float32, shape=[5, 2])
    summed = tf.SparseConditionalAccumulator(tf.float64, reduction_type="SUM")
    for i in range(4):
        session.run(dense.apply_grad([1.5 * i, -1.0 * i], local_step=i % 2))
        session.run(total.apply_grad([[float(i), 7.0]]))
        rows = np.float32([[i, 1], [2, i]])
        session.run(sparse.apply_grad([i % 3, 4], rows, [5, 2]))
        session.run(summed.apply_grad([i, i + 1], np.float64(rows)))
    results = {"dense": session.run(dense.take_grad(3)), "total": session.run(total.take_grad(1))}
    # Global step 1 now: of these two the first is stale.
    session.run(dense.apply_grad([9.0, 9.0], local_step=0))
    session.run(dense.apply_grad([5.0, 6.0], local_step=1))
    results["later"] = session.run(dense.take_grad(1))
    for name, accumulator in (("sparse", sparse), ("summed", summed)):
        taken = session.run(accumulator.take_indexed_slices_grad(2))
        results |= {
            f"{name}_count": session.run(accumulator.num_accumulated()),
            f"{name}_indices": taken.indices,
            f"{name}_values": taken.values,
            f"{name}_shape": taken.dense_shape,
        }
    return results

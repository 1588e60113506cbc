"""Queue and reader pipelines: records per second of Headrace and TensorFlow on the same files.

    python benchmarks/pipelines.py [--quick] [--only NAME ...]

TensorFlow is that of `HEADRACE_PEER_PYTHON` or `.peer-venv`. Each side has a process of its own,
and they take turns; the medians over the repetitions are compared. A side takes batches from a
pipeline whose queue runners work all the time, first unmeasured until the queue has been emptied
once. The target is half of TensorFlow's records per second.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from side import load

HERE = Path(__file__).resolve().parent
TARGET = 0.5
RECORDS = 20_000
BATCH = 128


# -- the pipelines ------------------------------------------------------------------------------


def _files(tf: Any, folder: str, name: str) -> Any:
    return tf.train.string_input_producer([f"{folder}/{name}"], shuffle=False)


def _parsed(tf: Any, folder: str) -> Any:
    _, value = tf.TFRecordReader().read(_files(tf, folder, "examples.tfrecord"))
    features = {
        "label": tf.FixedLenFeature([], tf.int64),
        "image": tf.FixedLenFeature([], tf.string),
        "weights": tf.FixedLenFeature([8], tf.float32),
    }
    example = tf.parse_single_example(value, features)
    return [example["image"], example["label"], example["weights"]]


def shuffle_examples(tf: Any, folder: str) -> Any:
    """TFRecordReader, parse_single_example, shuffle_batch, one thread."""
    return tf.train.shuffle_batch(_parsed(tf, folder), BATCH, 4000, 2000)


def shuffle_examples_threads(tf: Any, folder: str) -> Any:
    """The same with four threads."""
    return tf.train.shuffle_batch(_parsed(tf, folder), BATCH, 4000, 2000, num_threads=4)


def shuffle_images(tf: Any, folder: str) -> Any:
    """The same with decode_raw, as for MNIST: pixels are made floats in the pipeline."""
    image, label, _ = _parsed(tf, folder)
    pixels = tf.cast(tf.decode_raw(image, tf.uint8), tf.float32) * (1 / 255.0) - 0.5
    pixels.set_shape([784])
    return tf.train.shuffle_batch([pixels, label], BATCH, 4000, 2000)


def batch_records(tf: Any, folder: str) -> Any:
    """TFRecordReader and batch: the records as they are."""
    _, value = tf.TFRecordReader().read(_files(tf, folder, "examples.tfrecord"))
    return tf.train.batch([value], BATCH, capacity=1000)


def read_up_to(tf: Any, folder: str) -> Any:
    """read_up_to 500 records and batch them with enqueue_many."""
    reader = tf.TFRecordReader()
    _, values = reader.read_up_to(_files(tf, folder, "examples.tfrecord"), 500)
    return tf.train.batch([values], BATCH, capacity=4000, enqueue_many=True)


def fixed_records(tf: Any, folder: str) -> Any:
    """FixedLengthRecordReader and decode_raw, as for CIFAR-10."""
    reader = tf.FixedLengthRecordReader(record_bytes=3073)
    _, value = reader.read(_files(tf, folder, "cifar.bin"))
    record = tf.decode_raw(value, tf.uint8)
    label = tf.cast(record[0], tf.int32)
    image = tf.transpose(tf.reshape(record[1:3073], [3, 32, 32]), [1, 2, 0])
    image = tf.cast(image, tf.float32)
    return tf.train.shuffle_batch([image, label], BATCH, 2000, 1000)


def csv_lines(tf: Any, folder: str) -> Any:
    """TextLineReader, decode_csv, batch."""
    _, line = tf.TextLineReader(skip_header_lines=1).read(_files(tf, folder, "lines.csv"))
    columns = tf.decode_csv(line, [[0.0]] * 5)
    return tf.train.batch([tf.stack(columns[:4]), columns[4]], BATCH, capacity=1000)


PIPELINES: dict[str, Callable[[Any, str], Any]] = {
    f.__name__: f
    for f in (
        shuffle_examples,
        shuffle_examples_threads,
        shuffle_images,
        batch_records,
        read_up_to,
        fixed_records,
        csv_lines,
    )
}


def write_files(tf: Any, folder: str) -> None:
    """The files that all pipelines read."""
    rng = np.random.default_rng(0)
    path = f"{folder}/examples.tfrecord"
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(RECORDS):
            image = tf.train.BytesList(value=[rng.bytes(784)])
            weights = tf.train.FloatList(value=rng.random(8, np.float32).tolist())
            feature = {
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 10])),
                "image": tf.train.Feature(bytes_list=image),
                "weights": tf.train.Feature(float_list=weights),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())
    Path(folder, "cifar.bin").write_bytes(rng.bytes(3073 * 5000))
    rows = ["a,b,c,d,label", *(",".join(f"{v:.4f}" for v in r) for r in rng.random((RECORDS, 5)))]
    Path(folder, "lines.csv").write_text("\n".join(rows) + "\n")


# -- one side, in a process of its own ------------------------------------------------------------


def measure(tf: Any, name: str, folder: str, seconds: float) -> float:
    """Records per second of a pipeline."""
    with tf.Graph().as_default(), tf.Session() as session:
        batch = PIPELINES[name](tf, folder)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            step = session.make_callable(batch)
            for _ in range(4000 // BATCH + 1):
                step()
            count = 0
            start = time.perf_counter()
            while time.perf_counter() < start + seconds:
                step()
                count += BATCH
            return count / (time.perf_counter() - start)
        finally:
            coordinator.request_stop()
            coordinator.join(threads)


def serve(
    side: str,
    folder: str,
    write: Callable[[Any, str], None] = write_files,
    measured: Callable[[Any, str, str, float], float] = measure,
) -> None:
    """Answer requests on standard input, one line each."""
    tf = load(side)
    if side == "headrace":
        write(tf, folder)
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        name, seconds = json.loads(line)
        try:
            answer: Any = measured(tf, name, folder, seconds)
        except Exception as error:
            answer = f"{type(error).__name__}: {error}".splitlines()[0]
        print(json.dumps(answer), flush=True)


# -- side by side ---------------------------------------------------------------------------------


class _Side:
    def __init__(self, python: str, script: str, name: str, folder: str) -> None:
        command = [python, script, "--side", name, "--folder", folder]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.answer()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, name: str, seconds: float) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([name, seconds]) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(
    names: list[str],
    repeat: int,
    seconds: float,
    out: Path,
    script: str = __file__,
    target: float = TARGET,
) -> None:
    """Print a row for each pipeline of ``script``, and write all to ``out``."""
    from run import peer_python

    pythons = {"headrace": sys.executable, "tensorflow": peer_python()}
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        sides = {n: _Side(python, script, n, folder) for n, python in pythons.items() if python}
        print(f"{'records per second':26}" + "".join(f"{n:>12}" for n in sides) + "       ratio")
        for name in names:
            found: dict[str, list[Any]] = {side: [] for side in sides}
            for _ in range(repeat):
                for side, process in sides.items():
                    found[side].append(process.ask(name, seconds))
            failed = {s: v for s, values in found.items() for v in values if isinstance(v, str)}
            if failed:
                print(f"{name:26}{failed}")
                continue
            rates = {side: statistics.median(values) for side, values in found.items()}
            results[name] = rates
            row = f"{name:26}" + "".join(f"{rates[side]:12,.0f}" for side in sides)
            if len(rates) == 2:
                ratio = rates["headrace"] / rates["tensorflow"]
                row += f"{ratio:11.2f} {'ok' if ratio >= target else 'MISSED'}"
            print(row, flush=True)
        for process in sides.values():
            process.close()
    out.write_text(json.dumps(results, indent=1) + "\n")


def arguments(description: str, names: list[str], out: str) -> argparse.Namespace:
    """The command line of a program that compares pipelines."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--quick", action="store_true", help="one repetition of 0.5 s")
    parser.add_argument("--json", type=Path, default=HERE / "results" / out)
    parser.add_argument("--side", choices=("headrace", "tensorflow"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.repeat, options.seconds = 1, 0.5
    return options


def main() -> None:
    options = arguments(__doc__ or "", list(PIPELINES), "pipelines.json")
    if options.side:
        serve(options.side, options.folder)
        return
    compare(options.only, options.repeat, options.seconds, options.json)


if __name__ == "__main__":
    main()

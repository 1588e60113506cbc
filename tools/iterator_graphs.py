"""Graph files with iterators, by TensorFlow and by Headrace, and what they give.

    PYTHON tools/iterator_graphs.py write FOLDER NAME      write every case as NAME_<case>
    PYTHON tools/iterator_graphs.py run FILE.pb OUT.npz    run a graph file of a case

The first writes the goldens in tests/golden/iterators: with TensorFlow 1.15.5 (NAME tf1) and 2.21
(tf2). Each file has an operation ``begin`` that initialises an iterator, and ``element_0``,
``element_1`` ... that are an element of its dataset. ``MODULE=headrace`` takes Headrace.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

MODULE = os.environ.get("MODULE", "tensorflow.compat.v1")


def numbers(tf: Any) -> Any:
    dataset = tf.data.Dataset.range(1, 40, 3).map(lambda x: x * x, num_parallel_calls=2)
    return dataset.filter(lambda x: x % 2 > 0).shuffle(5, seed=7).repeat(2).batch(4).prefetch(1)


def slices(tf: Any) -> Any:
    rows = {"x": np.arange(24, dtype=np.float32).reshape(12, 2), "y": np.arange(12)}
    dataset = tf.data.Dataset.from_tensor_slices(rows).map(lambda row: (row["x"] / 2.0, row["y"]))
    return dataset.cache().skip(1).batch(5, drop_remainder=True)


def nested(tf: Any) -> Any:
    dataset = tf.data.Dataset.range(3)
    inner = dataset.flat_map(lambda x: tf.data.Dataset.range(x, x + 2))
    mixed = dataset.interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(3), cycle_length=2, block_length=2
    )
    return tf.data.Dataset.zip((inner.concatenate(mixed), mixed))


def texts(tf: Any) -> Any:
    lines = tf.data.Dataset.from_tensor_slices(["to be or", "not", "to be that is"])
    words = lines.map(lambda line: tf.string_split([line]).values)
    return words.map(tf.strings.length).padded_batch(2, [None], padding_values=-1)


def windows(tf: Any) -> Any:
    dataset = tf.data.Dataset.range(9).window(3, shift=2, drop_remainder=True)
    return dataset.flat_map(lambda window: window.batch(3))


def examples(tf: Any) -> Any:
    def message(i: int) -> bytes:
        feature = {"a": tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))}
        made = tf.train.Example(features=tf.train.Features(feature=feature))
        found: bytes = made.SerializeToString()
        return found

    records = tf.data.Dataset.from_tensor_slices([message(i) for i in range(20)])
    features = {"a": tf.FixedLenFeature([], tf.int64)}
    parsed = records.map(lambda r: tf.parse_single_example(r, features)["a"])
    return parsed.shuffle(6, seed=3).batch(8)


CASES = {f.__name__: f for f in (numbers, slices, nested, texts, windows, examples)}


def write(tf: Any, folder: Path, name: str) -> None:
    """Write the graph of each case, and what it gives."""
    for case, make in CASES.items():
        with tf.Graph().as_default() as graph:
            iterator = tf.data.make_initializable_iterator(make(tf))
            tf.group(iterator.initializer, name="begin")
            element = iterator.get_next()
            parts = element if isinstance(element, tuple) else (element,)
            for i, part in enumerate(parts):
                tf.identity(part, name=f"element_{i}")
            path = folder / f"{name}_{case}.pb"
            tf.train.write_graph(graph, str(folder), path.name, as_text=False)
        np.savez_compressed(folder / f"{name}_{case}.npz", **results(tf, path))


def results(tf: Any, path: Path) -> dict[str, Any]:
    """``<number>/<component>`` of all elements that the graph in a file gives, twice over."""
    found: dict[str, Any] = {}
    message = tf.GraphDef.FromString(path.read_bytes())
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.import_graph_def(message, name="")
        names = [op.name for op in graph.get_operations() if op.name.startswith("element_")]
        fetches = [f"{name}:0" for name in sorted(names)]
        for _ in range(2):
            session.run("begin")
            try:
                while True:
                    element = session.run(fetches)
                    at = len(found)
                    found.update({f"{at}/{i}": value for i, value in enumerate(element)})
            except tf.errors.OutOfRangeError:
                pass
    return found


def main() -> None:
    tf = importlib.import_module(MODULE)
    if MODULE != "headrace":
        tf.disable_v2_behavior()
    if sys.argv[1] == "write":
        Path(sys.argv[2]).mkdir(parents=True, exist_ok=True)
        write(tf, Path(sys.argv[2]), sys.argv[3])
    else:
        np.savez_compressed(sys.argv[3], **results(tf, Path(sys.argv[2])))


if __name__ == "__main__":
    main()

"""Golden programs of Example parsing, CSV lines, raw bytes and serialized tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldens import golden


def _feature(tf: Any, values: list[Any]) -> Any:
    train = tf.train
    if values and isinstance(values[0], bytes):
        return train.Feature(bytes_list=train.BytesList(value=values))
    if values and isinstance(values[0], float):
        return train.Feature(float_list=train.FloatList(value=values))
    return train.Feature(int64_list=train.Int64List(value=values))


def _example(tf: Any, **features: list[Any]) -> bytes:
    named = {key: _feature(tf, values) for key, values in features.items() if values}
    return tf.train.Example(features=tf.train.Features(feature=named)).SerializeToString()


def _sequence(tf: Any, context: dict[str, list[Any]], **lists: list[list[Any]]) -> bytes:
    train = tf.train
    named = {
        key: train.FeatureList(feature=[_feature(tf, step) for step in steps])
        for key, steps in lists.items()
    }
    context = {key: _feature(tf, values) for key, values in context.items()}
    return train.SequenceExample(
        context=train.Features(feature=context),
        feature_lists=train.FeatureLists(feature_list=named),
    ).SerializeToString()


def _examples(tf: Any) -> list[bytes]:
    rng = np.random.default_rng(0)
    messages = []
    for i in range(7):
        count = int(rng.integers(0, 5))
        messages.append(
            _example(
                tf,
                id=[i],
                big=[int(v) for v in rng.integers(-(2**62), 2**62, 3)],
                x=[float(np.float32(v)) for v in rng.normal(size=6)],
                name=[b"n%d" % i, b"\x00\xff"],
                tags=[b"t" * int(v) for v in rng.integers(0, 200, count)],
                ids=[int(v) for v in rng.integers(0, 1000, count)],
                weights=[float(v) for v in range(count)],
                **({"sometimes": [i + 100]} if i % 2 else {}),
            )
        )
    return messages


def _named(prefix: str, values: dict[str, Any]) -> dict[str, Any]:
    """Dense and sparse values as arrays by name."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        if hasattr(value, "dense_shape"):
            result[f"{prefix}{key}_indices"] = value.indices
            result[f"{prefix}{key}_values"] = value.values
            result[f"{prefix}{key}_shape"] = value.dense_shape
        else:
            result[f"{prefix}{key}"] = value
    return result


def _features(tf: Any) -> dict[str, Any]:
    return {
        "id": tf.FixedLenFeature([], tf.int64),
        "big": tf.FixedLenFeature([3], tf.int64),
        "x": tf.FixedLenFeature([2, 3], tf.float32),
        "name": tf.FixedLenFeature([2], tf.string),
        "tags": tf.VarLenFeature(tf.string),
        "sometimes": tf.FixedLenFeature([1], tf.int64, default_value=-1),
        "never": tf.FixedLenFeature([], tf.string, default_value="none"),
        "absent": tf.VarLenFeature(tf.float32),
    }


@golden
def example_batch(tf: Any) -> dict[str, Any]:
    return _named("", tf.parse_example(_examples(tf), _features(tf)))


@golden
def example_single(tf: Any) -> dict[str, Any]:
    messages = _examples(tf)
    result = {}
    for i in (0, 3):
        result.update(_named(f"{i}_", tf.parse_single_example(messages[i], _features(tf))))
    return result


@golden
def example_sequences(tf: Any) -> dict[str, Any]:
    features = {
        "ids": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
        "tags": tf.FixedLenSequenceFeature([], tf.string, True, default_value="-"),
        "x": tf.FixedLenSequenceFeature([3], tf.float32, True),
        "absent": tf.FixedLenSequenceFeature([2], tf.float32, True),
    }
    result = _named("", tf.parse_example(_examples(tf), features))
    result.update(_named("single_", tf.parse_single_example(_examples(tf)[3], features)))
    return result


@golden
def example_sparse_features(tf: Any) -> dict[str, Any]:
    features = {
        "s": tf.SparseFeature("ids", "weights", tf.float32, 1000),
        "t": tf.SparseFeature("ids", "weights", tf.float32, 1000, already_sorted=True),
        "ids": tf.VarLenFeature(tf.int64),
    }
    return _named("", tf.parse_example(_examples(tf), features))


@golden
def sequence_examples(tf: Any) -> dict[str, Any]:
    messages = [
        _sequence(
            tf,
            {"id": [7], "tags": [b"p", b"q"]},
            t=[[1, 2], [3, 4], [5, 6]],
            w=[[b"a"], [b""], [b"c", b"d"]],
            f=[[0.5], [1.5]],
        ),
        _sequence(tf, {"id": [8]}, t=[[9, 9]], w=[[b"z"]]),
        _sequence(tf, {"id": [9]}, t=[], f=[[2.5], [3.5], [4.5], [5.5]]),
    ]
    context = {"id": tf.FixedLenFeature([], tf.int64), "tags": tf.VarLenFeature(tf.string)}
    lists = {
        "t": tf.FixedLenSequenceFeature([2], tf.int64),
        "f": tf.FixedLenSequenceFeature([1], tf.float32, allow_missing=True),
        "w": tf.VarLenFeature(tf.string),
    }
    parsed = tf.io.parse_sequence_example(messages, context, lists)
    result: dict[str, Any] = {}
    for name, values in zip(("context_", "list_", "length_"), parsed, strict=True):
        result.update(_named(name, values))
    for i, message in enumerate(messages):
        single = tf.parse_single_sequence_example(message, context, lists)
        result.update(_named(f"{i}_context_", single[0]))
        result.update(_named(f"{i}_list_", single[1]))
    return result


@golden
def csv_lines(tf: Any) -> dict[str, Any]:
    lines = [
        "1,2.5,plain,-7,1e-300",
        ' 2 ,0x1p3,"quoted, with ""quotes""",,',
        ",-inf,,123456789012,3.4e38",
        "-2147483648,1e40,é,0,0.1",
    ]
    int64 = tf.constant([5], tf.int64)
    double = tf.constant([0.25], tf.float64)
    fields = tf.decode_csv(lines, [[9], [0.5], ["none"], int64, double])
    result = {f"field{i}": field for i, field in enumerate(fields)}
    some = tf.decode_csv(lines, [["x"], int64], select_cols=[2, 3], na_value="plain")
    result.update({f"some{i}": field for i, field in enumerate(some)})
    other = tf.decode_csv(['a|"b|c'], [[""], [""], [""]], field_delim="|", use_quote_delim=False)
    result.update({f"other{i}": field for i, field in enumerate(other)})
    return result


@golden
def raw_bytes(tf: Any) -> dict[str, Any]:
    data = [bytes(range(16)), bytes(range(200, 216))]
    result = {}
    types = ("uint8", "int8", "int16", "uint16", "int32", "int64", "float32", "float64", "float16")
    for name in types:
        result[name] = tf.decode_raw(data, getattr(tf, name))
        result[f"{name}_big"] = tf.decode_raw(data, getattr(tf, name), little_endian=False)
    result["bool"] = tf.decode_raw(b"\x00\x01\x01", tf.bool)
    return result


@golden
def serialized_tensors(tf: Any) -> dict[str, Any]:
    result = {}
    values = (
        np.float32([[1, 2], [3, 4]]),
        np.int64(7),
        np.array([[True, False]]),
        np.array([b"a", b"bb"], object),
        np.complex64([1 + 2j]),
        np.float16([1.5]),
    )
    for value in values:
        tensor = tf.constant(value)
        text = tf.io.serialize_tensor(tensor)
        result[f"{tensor.dtype.name}_bytes"] = tf.decode_raw(text, tf.uint8)
        result[tensor.dtype.name] = tf.parse_tensor(text, tensor.dtype)
    return result

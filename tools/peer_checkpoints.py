"""What the peer does with checkpoints: run by a Python with TensorFlow, 1.15 or 2.

python peer_checkpoints.py read PREFIX OUT        all tensors, into OUT.npz and OUT.json
python peer_checkpoints.py restore PREFIX OUT     the same, by a Saver, into variables
python peer_checkpoints.py inspect PREFIX OUT     what inspect_checkpoint prints, into OUT
python peer_checkpoints.py write FOLDER IN        the tensors of IN.npz and IN.json, and others
"""

import contextlib
import json
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

#: Types that variables of TensorFlow, or of 1.15, do not take.
UNASSIGNABLE = (tf.uint32, tf.uint64, tf.qint16)


def plain(value):
    """An array that npz files hold without pickle: bytes as numbers, strings as one row each."""
    value = np.asarray(value, object if isinstance(value, bytes) else None)
    if value.dtype != object:
        return np.frombuffer(value.tobytes(), np.uint8)
    return np.frombuffer(b"".join(b"%d:%s," % (len(v), v) for v in value.ravel()), np.uint8)


def store(out, values, types):
    np.savez(out + ".npz", **{f"t{i}": plain(values[n]) for i, n in enumerate(sorted(values))})
    with open(out + ".json", "w") as file:
        json.dump([[n, types[n], list(np.shape(values[n]))] for n in sorted(values)], file)


def read(prefix, out):
    reader = tf.train.load_checkpoint(prefix)
    listed = dict(tf.train.list_variables(prefix))
    types = {n: t.name for n, t in reader.get_variable_to_dtype_map().items()}
    values = {n: reader.get_tensor(n) for n in listed}
    assert {n: list(np.shape(v)) for n, v in values.items()} == listed
    store(out, values, types)


def restore(prefix, out):
    reader = tf.train.load_checkpoint(prefix)
    types = reader.get_variable_to_dtype_map()
    shapes = reader.get_variable_to_shape_map()
    with tf.Graph().as_default(), tf.Session() as session:
        variables = {}
        for name in shapes:
            if types[name] in UNASSIGNABLE:
                continue
            empty = np.zeros(shapes[name], types[name].as_numpy_dtype)
            if types[name] == tf.string:
                empty = np.full(shapes[name], b"", object)
            initial = tf.constant(empty, types[name], shapes[name])
            variables[name] = tf.Variable(initial, name="v", use_resource=False)
        tf.train.Saver(variables).restore(session, prefix)
        store(out, session.run(variables), {n: t.name for n, t in types.items()})


def inspect(prefix, out):
    from tensorflow.python.tools import inspect_checkpoint

    with open(out, "w") as file, contextlib.redirect_stdout(file):
        inspect_checkpoint.print_tensors_in_checkpoint_file(prefix, None, True, True)


def write(folder, given):
    with open(given + ".json") as file:
        listed = json.load(file)
    with np.load(given + ".npz") as arrays, tf.Graph().as_default(), tf.Session() as session:
        for i, (name, kind, shape) in enumerate(listed):
            data = arrays[f"t{i}"].tobytes()
            if kind == "string":
                initial = strings(data, shape)
            else:
                initial = np.frombuffer(data, tf.as_dtype(kind).as_numpy_dtype).reshape(shape)
            tf.Variable(tf.constant(initial, kind, shape), name=name, use_resource=False)
        table = np.arange(60, dtype=np.float32).reshape(12, 5)
        tf.get_variable(
            "parts", initializer=tf.constant(table), partitioner=tf.fixed_size_partitioner(5)
        )
        session.run(tf.global_variables_initializer())
        for sharded in (False, True):
            saver = tf.train.Saver(sharded=sharded)
            saver.save(session, folder + ("/sharded" if sharded else "/plain"))


def strings(data, shape):
    found = []
    while data:
        size, _, data = data.partition(b":")
        found.append(data[: int(size)])
        data = data[int(size) + 1 :]
    array = np.empty(len(found), object)
    array[:] = found
    return array.reshape(shape)


if __name__ == "__main__":
    {"read": read, "restore": restore, "inspect": inspect, "write": write}[sys.argv[1]](
        *sys.argv[2:]
    )

"""Messages of boosted trees as bytes, without protobuf: its releases fit one TensorFlow each."""

import struct


def _varint(number):
    number &= (1 << 64) - 1
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def message(*fields):
    """The bytes of a message: its fields as (number, value), packed lists as lists."""
    data = b""
    for number, value in fields:
        if isinstance(value, list):
            parts = [struct.pack("<f", v) if isinstance(v, float) else _varint(v) for v in value]
            value = b"".join(parts)
        if isinstance(value, bytes):
            data += _varint(number << 3 | 2) + _varint(len(value)) + value
        elif isinstance(value, float):
            data += _varint(number << 3 | 5) + struct.pack("<f", value)
        elif value:  # proto3 leaves zeros out
            data += _varint(number << 3) + _varint(value)
    return data


def leaf(*values):
    """A TreeNode: a leaf with a value for each output."""
    return message((1, message((1, message((1, list(values)))))))


def sparse_leaf(indices, values):
    return message((1, message((2, message((1, indices), (2, values))))))


def split(column, threshold, left, right, dimension=0):
    """A DenseFloatBinarySplit."""
    return message((1, column), (5, dimension), (2, threshold), (3, left), (4, right))


def dense(*args):
    return message((2, split(*args)))


def sparse(default_left, *args):
    return message((3 if default_left else 4, message((1, split(*args)))))


def categorical(column, feature_id, left, right):
    return message((5, message((1, column), (2, feature_id), (3, left), (4, right))))


def categorical_set(column, feature_ids, left, right):
    return message((6, message((1, column), (2, feature_ids), (3, left), (4, right))))


def oblivious(column, threshold):
    return message((7, message((1, column), (2, threshold))))


def oblivious_id(column, feature_id):
    return message((8, message((1, column), (2, feature_id))))


def tree(*nodes):
    return message(*[(1, node) for node in nodes])


def ensemble(trees, weights, metadata=(), growing=None):
    """A DecisionTreeEnsembleConfig; metadata are (weight updates, layers, is finalized)."""
    fields = [(1, t) for t in trees] + [(2, weights)]
    fields += [(3, message(*[(i + 1, int(v)) for i, v in enumerate(m)])) for m in metadata]
    return message(*(fields if growing is None else [*fields, (4, growing)]))


def learner(classes=2, growing_mode=0, dropout=None, averaging=None):
    """A LearnerConfig; dropout is (probability, of skipping it), averaging a field."""
    fields = [(1, classes), (9, growing_mode)]
    if dropout is not None:
        probability, skipping = dropout
        settings = message((1, probability), (2, skipping), (3, 1.0))
        fields.append((6, message((2, settings))))
    if averaging is not None:
        fields.append((11, message(averaging)))
    return message(*fields)

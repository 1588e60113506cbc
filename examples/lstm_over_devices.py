"""A language model of characters whose LSTM layers are on a device each.

As in "Sequence to sequence learning with neural networks" (Sutskever et al., 2014, section 3.5),
each layer has a device of its own and works on a piece of the text as soon as the layer below has
read it; the softmax is split over all of them. `tf.parallel.segment` makes a piece a unit of work:
layer 1 reads piece 2 while layer 2 reads piece 1.

The devices are those of this process, or with --target tasks of a running cluster:

    python examples/lstm_over_devices.py --devices 3
"""

import argparse

import numpy as np

import headrace as tf

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--devices", type=int, default=3, help="over so many the model is spread")
parser.add_argument("--layers", type=int, default=3)
parser.add_argument("--size", type=int, default=48, help="units of a layer")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--target", default="", help="grpc://HOST:PORT of a task of the job 'worker'")
args = parser.parse_args()

TEXT = (
    "the channel that brings the water to the wheel is where flow becomes work. "
    "a graph of operations brings tensors to the devices, and devices do the work. "
) * 20
CHARACTERS = sorted(set(TEXT))
CODES = np.array([CHARACTERS.index(c) for c in TEXT], np.int32)
BATCH, LENGTH, PIECE = 8, 24, 8

if args.target:
    devices = [f"/job:worker/task:{i}" for i in range(args.devices)]
else:
    devices = [f"/cpu:{i}" for i in range(args.devices)]


def device_of(layer):
    """Neighbouring layers share a device where there are more layers than devices."""
    return devices[layer * len(devices) // args.layers]


def language_model(codes, targets):
    """The mean cross entropy of the next characters. ``codes``, ``targets``: [batch, length]."""
    pieces = range(0, LENGTH, PIECE)
    with tf.device(devices[0]):
        embedding = tf.get_variable("embedding", [len(CHARACTERS), args.size])
        values = [tf.nn.embedding_lookup(embedding, codes[:, t : t + PIECE]) for t in pieces]
    for layer in range(args.layers):
        with tf.device(device_of(layer)):
            cell = tf.nn.rnn_cell.LSTMCell(args.size, name=f"lstm_{layer}")
            state = cell.zero_state(BATCH, tf.float32)
            for i, piece in enumerate(values):
                # The state leads from piece to piece, the output to the layer above.
                with tf.parallel.segment(f"layer_{layer}/piece_{i}"):
                    values[i], state = tf.nn.dynamic_rnn(cell, piece, initial_state=state)
    # Each device has some rows of the weights, and adds its term to all logits.
    rows = tf.fixed_size_partitioner(len(devices), axis=0)
    with tf.device(lambda op: devices[int(op.name.partition("part_")[2][:1] or 0)]):
        start = np.random.RandomState(1).uniform(-0.1, 0.1, [args.size, len(CHARACTERS)])
        weights = tf.get_variable("softmax", initializer=np.float32(start), partitioner=rows)
    flat = tf.reshape(tf.concat(values, 1), [-1, args.size])
    logits = tf.parallel.matmul(flat, weights)
    labels = tf.reshape(targets, [-1])
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )


def batches(random):
    while True:
        starts = random.randint(0, len(CODES) - LENGTH - 1, BATCH)
        rows = np.stack([CODES[s : s + LENGTH + 1] for s in starts])
        yield rows[:, :-1], rows[:, 1:]


tf.set_random_seed(1)
with tf.variable_scope("model", initializer=tf.random_uniform_initializer(-0.1, 0.1, seed=3)):
    codes = tf.placeholder(tf.int32, [BATCH, LENGTH])
    targets = tf.placeholder(tf.int32, [BATCH, LENGTH])
    loss = language_model(codes, targets)
gradients, _ = tf.clip_by_global_norm(
    tf.gradients(loss, tf.trainable_variables(), colocate_gradients_with_ops=True), 5.0
)
train = tf.train.AdamOptimizer(0.02).apply_gradients(zip(gradients, tf.trainable_variables()))

config = tf.ConfigProto(device_count={"CPU": args.devices})
with tf.Session(args.target, config=None if args.target else config) as session:
    session.run(tf.global_variables_initializer())
    losses = []
    for step, (x, y) in zip(range(args.steps), batches(np.random.RandomState(0))):
        losses.append(session.run([loss, train], {codes: x, targets: y})[0])
        if step % 40 == 0:
            print(f"step {step} loss {losses[-1]:.6f}")
print(f"loss {np.mean(losses[-5:]):.6f}")

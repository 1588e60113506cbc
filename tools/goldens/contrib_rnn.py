"""Cells, wrappers and networks of `tf.contrib.rnn`. Python 3.7: TensorFlow 1.15 runs this."""

import numpy as np

from . import golden


def _random(*shape, seed=0):
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


class Fixed:
    """An initialiser whose values depend on the shape alone."""

    def __init__(self, tf, scale=0.4):
        self.tf = tf
        self.scale = scale

    def __call__(self, shape, dtype=None, **_):
        dims = [int(d) for d in shape]
        values = np.random.RandomState(sum(dims) + len(dims)).standard_normal(dims)
        return self.tf.constant(values * self.scale, dtype=dtype or self.tf.float32)


def flat(value):
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


def report(tf, outputs, state, prefix=""):
    """Outputs, final state, gradients of a function of both, and the names of the variables."""
    results = {f"{prefix}output_{i}": o for i, o in enumerate(flat(outputs))}
    results.update({f"{prefix}state_{i}": s for i, s in enumerate(flat(state))})
    loss = tf.add_n([tf.reduce_sum(tf.sin(3 * v)) for v in results.values()])
    variables = tf.trainable_variables()
    names = [v.name for v in variables]
    for name, grad in zip(names, tf.gradients(loss, variables)):  # noqa: B905 (Python 3.7)
        if grad is not None:
            results[f"{prefix}grad_{name}"] = tf.convert_to_tensor(grad)
    results[prefix + "names"] = tf.constant(names)
    return results


def _cell(tf, cell, depth=4, **options):
    """Three steps of a cell in a loop. Kernels with values of their own would be random."""
    with tf.variable_scope("root", initializer=Fixed(tf)):
        outputs, state = tf.nn.dynamic_rnn(
            cell, tf.constant(_random(3, 4, depth)), dtype=tf.float32, **options
        )
    return report(tf, outputs, state)


@golden(rtol=1e-4, atol=1e-5)
def block_cells(tf):
    rnn = tf.contrib.rnn
    results = {}
    for name, make in (
        ("lstm", lambda: rnn.LSTMBlockCell(5)),
        ("peephole", lambda: rnn.LSTMBlockCell(5, forget_bias=0.5, use_peephole=True)),
        ("gru", lambda: rnn.GRUBlockCell(5)),
        ("gru2", lambda: rnn.GRUBlockCellV2(num_units=5)),
    ):
        with tf.variable_scope(name, initializer=Fixed(tf)):
            outputs, state = tf.nn.dynamic_rnn(
                make(), tf.constant(_random(3, 4, 2)), dtype=tf.float32
            )
        results.update(report(tf, outputs, state, name + "_"))
    return results


@golden(rtol=1e-4, atol=1e-5)
def fused(tf):
    rnn = tf.contrib.rnn
    x, lengths = tf.constant(_random(6, 3, 4)), tf.constant([2, 6, 4])
    results = {}
    with tf.variable_scope("root", initializer=Fixed(tf)):
        networks = {
            "block": rnn.LSTMBlockFusedCell(5),
            "peephole": rnn.LSTMBlockFusedCell(3, use_peephole=True, name="other"),
            "reversed": rnn.TimeReversedFusedRNN(rnn.LSTMBlockFusedCell(2, name="backwards")),
            "adaptor": rnn.FusedRNNCellAdaptor(rnn.GRUCell(2), use_dynamic_rnn=True),
        }
        for name, network in sorted(networks.items()):
            outputs, state = network(x, dtype=tf.float32, sequence_length=lengths)
            results.update(report(tf, outputs, state, name + "_"))
    return results


@golden(rtol=1e-4, atol=1e-5)
def layer_norm(tf):
    return _cell(tf, tf.contrib.rnn.LayerNormBasicLSTMCell(5, norm_gain=1.2, norm_shift=0.1))


@golden(rtol=1e-4, atol=1e-5)
def without_layer_norm(tf):
    return _cell(tf, tf.contrib.rnn.LayerNormBasicLSTMCell(5, layer_norm=False))


@golden(rtol=1e-4, atol=1e-5)
def nas(tf):
    return _cell(tf, tf.contrib.rnn.NASCell(5, num_proj=3, use_bias=True))


@golden(rtol=1e-4, atol=1e-5)
def update_gate(tf):
    return _cell(tf, tf.contrib.rnn.UGRNNCell(5))


@golden(rtol=1e-4, atol=1e-5)
def intersection(tf):
    return _cell(tf, tf.contrib.rnn.IntersectionRNNCell(5, num_in_proj=5))


@golden(rtol=1e-4, atol=1e-5)
def simple_recurrent_unit(tf):
    return _cell(tf, tf.contrib.rnn.SRUCell(4))


@golden(rtol=1e-4, atol=1e-5)
def coupled_gates(tf):
    cell = tf.contrib.rnn.CoupledInputForgetGateLSTMCell(
        5, use_peepholes=True, num_proj=3, proj_clip=0.2, num_unit_shards=2
    )
    return _cell(tf, cell)


@golden(rtol=1e-4, atol=1e-5)
def coupled_gates_normalised(tf):
    cell = tf.contrib.rnn.CoupledInputForgetGateLSTMCell(
        5, state_is_tuple=False, layer_norm=True, norm_gain=0.9
    )
    return _cell(tf, cell)


@golden(rtol=1e-4, atol=1e-5)
def groups(tf):
    return _cell(tf, tf.contrib.rnn.GLSTMCell(6, num_proj=4, number_of_groups=2))


@golden(rtol=1e-4, atol=1e-5)
def convolutional(tf):
    cell = tf.contrib.rnn.ConvLSTMCell(
        conv_ndims=2, input_shape=[5, 4, 2], output_channels=3, kernel_shape=[3, 2]
    )
    with tf.variable_scope("root", initializer=Fixed(tf)):
        outputs, state = tf.nn.dynamic_rnn(
            cell, tf.constant(_random(2, 3, 5, 4, 2)), dtype=tf.float32
        )
    return report(tf, outputs, state)


@golden(rtol=1e-4, atol=1e-5)
def attention_to_outputs(tf):
    rnn = tf.contrib.rnn
    return _cell(tf, rnn.AttentionCellWrapper(rnn.BasicLSTMCell(5), attn_length=3, attn_vec_size=2))


@golden(rtol=1e-4, atol=1e-5)
def attention_to_outputs_joined(tf):
    rnn = tf.contrib.rnn
    cell = rnn.AttentionCellWrapper(rnn.GRUCell(5), attn_length=2, state_is_tuple=False)
    return _cell(tf, cell)


@golden(rtol=1e-4, atol=1e-5)
def highway(tf):
    rnn = tf.contrib.rnn
    cell = rnn.MultiRNNCell(
        [
            rnn.HighwayWrapper(rnn.GRUCell(4)),
            rnn.HighwayWrapper(rnn.GRUCell(4), couple_carry_transform_gates=False),
        ]
    )
    return _cell(tf, cell)


@golden(rtol=1e-4, atol=1e-5)
def projections(tf):
    rnn = tf.contrib.rnn
    cell = rnn.OutputProjectionWrapper(
        rnn.InputProjectionWrapper(rnn.GRUCell(5), 3, activation=tf.tanh), 2
    )
    return _cell(tf, cell)


@golden(rtol=1e-4, atol=1e-5)
def embeddings(tf):
    rnn = tf.contrib.rnn
    cell = rnn.EmbeddingWrapper(rnn.GRUCell(5), embedding_classes=7, embedding_size=3)
    ids = [tf.constant(row) for row in ([1, 2, 6], [0, 3, 3])]
    with tf.variable_scope("root", initializer=Fixed(tf)):
        outputs, state = rnn.static_rnn(cell, ids, dtype=tf.float32)
    return report(tf, outputs, state)


@golden(rtol=1e-4, atol=1e-5)
def stack_bidirectional(tf):
    rnn = tf.contrib.rnn
    x, lengths = tf.constant(_random(3, 6, 4)), tf.constant([2, 6, 4])
    with tf.variable_scope("root", initializer=Fixed(tf)):
        outputs, fw, bw = rnn.stack_bidirectional_dynamic_rnn(
            [rnn.LSTMCell(3), rnn.GRUCell(2)],
            [rnn.LSTMCell(3), rnn.GRUCell(2)],
            x,
            dtype=tf.float32,
            sequence_length=lengths,
        )
        more, fw2, bw2 = rnn.stack_bidirectional_rnn(
            [rnn.GRUCell(3), rnn.GRUCell(2)],
            [rnn.GRUCell(3), rnn.GRUCell(2)],
            tf.unstack(x, 6, 1),
            dtype=tf.float32,
            sequence_length=lengths,
            scope="static",
        )
    return report(tf, [outputs, more], [fw, bw, fw2, bw2])


@golden(with_session=True, rtol=1e-4, atol=1e-5)
def independent(tf, session):
    """Their kernels for states start random: all variables get fixed values first."""
    results = {}
    rnn = tf.contrib.rnn
    for name, cell in (
        ("plain", rnn.IndRNNCell(3)),
        ("gru", rnn.IndyGRUCell(3)),
        ("lstm", rnn.IndyLSTMCell(3)),
    ):
        outputs, state = tf.nn.dynamic_rnn(
            cell, tf.constant(_random(2, 4, 3)), dtype=tf.float32, scope=name
        )
        results.update(report(tf, outputs, state, name + "_"))
    fixed = Fixed(tf)
    session.run([v.assign(fixed(v.shape.as_list())) for v in tf.trainable_variables()])
    return session.run(results)


@golden(with_session=True, rtol=1e-3, atol=1e-4)
def sequence_classifier(tf, session):
    """Ten steps of a classifier of sequences in the style of the era."""
    rng = np.random.RandomState(3)
    x = tf.placeholder(tf.float32, [None, 7, 3])
    y = tf.placeholder(tf.int32, [None])
    with tf.variable_scope("model", initializer=Fixed(tf, 0.3)):
        inputs = tf.unstack(x, 7, 1)
        fw = tf.contrib.rnn.BasicLSTMCell(6, forget_bias=1.0)
        bw = tf.contrib.rnn.BasicLSTMCell(6, forget_bias=1.0)
        outputs, _, _ = tf.contrib.rnn.static_bidirectional_rnn(fw, bw, inputs, dtype=tf.float32)
        logits = tf.matmul(outputs[-1], tf.get_variable("out", [12, 4]))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=y))
    train = tf.train.AdamOptimizer(0.02).minimize(loss)
    session.run(tf.global_variables_initializer())
    losses = []
    for _ in range(10):
        feed = {x: rng.randn(5, 7, 3), y: rng.randint(0, 4, 5)}
        losses.append(session.run([loss, train], feed)[0])
    return {"losses": np.array(losses)}

"""Models of `tf.contrib.legacy_seq2seq`. Python 3.7: TensorFlow 1.15 runs this."""

import numpy as np

from . import golden
from .contrib_rnn import Fixed, report

SYMBOLS, SIZE = 7, 4
ENCODER, DECODER = 3, 4


def _symbols(count, seed):
    values = np.random.RandomState(seed).randint(0, SYMBOLS, (count, 2))
    return [np.array(row, np.int32) for row in values]


def _inputs(tf):
    encoder = [tf.constant(row) for row in _symbols(ENCODER, 1)]
    decoder = [tf.constant(row) for row in _symbols(DECODER, 2)]
    return encoder, decoder


def _run(tf, build):
    encoder, decoder = _inputs(tf)
    with tf.variable_scope("root", initializer=Fixed(tf)):
        outputs, state = build(tf.contrib.legacy_seq2seq, tf.contrib.rnn, encoder, decoder)
    return report(tf, outputs, state)


@golden(rtol=1e-4, atol=1e-5)
def basic_and_tied(tf):
    def dense(symbols):
        return [tf.one_hot(s, SIZE) for s in symbols]

    def build(seq2seq, rnn, encoder, decoder):
        one, state = seq2seq.basic_rnn_seq2seq(dense(encoder), dense(decoder), rnn.GRUCell(SIZE))
        two, other = seq2seq.tied_rnn_seq2seq(dense(encoder), dense(decoder), rnn.GRUCell(SIZE))
        return [one, two], [state, other]

    return _run(tf, build)


@golden(rtol=1e-4, atol=1e-5)
def rnn_decoder_with_loop(tf):
    def build(seq2seq, rnn, encoder, decoder):
        cell = rnn.BasicLSTMCell(SIZE)
        inputs = [tf.one_hot(s, SIZE) for s in decoder]
        return seq2seq.rnn_decoder(
            inputs,
            cell.zero_state(2, tf.float32),
            cell,
            loop_function=lambda prev, i: tf.stop_gradient(prev) * i,
        )

    return _run(tf, build)


@golden(rtol=1e-4, atol=1e-5)
def embedding_rnn(tf):
    def build(seq2seq, rnn, encoder, decoder):
        return seq2seq.embedding_rnn_seq2seq(
            encoder, decoder, rnn.BasicLSTMCell(SIZE), SYMBOLS, SYMBOLS, 3
        )

    return _run(tf, build)


@golden(rtol=1e-4, atol=1e-5)
def embedding_rnn_feeding(tf):
    def build(seq2seq, rnn, encoder, decoder):
        return seq2seq.embedding_rnn_seq2seq(
            encoder, decoder, rnn.GRUCell(SIZE), SYMBOLS, SYMBOLS, 3, feed_previous=True
        )

    return _run(tf, build)


@golden(rtol=1e-4, atol=1e-5)
def embedding_rnn_choosing(tf):
    def build(seq2seq, rnn, encoder, decoder):
        return seq2seq.embedding_rnn_seq2seq(
            encoder,
            decoder,
            rnn.BasicLSTMCell(SIZE),
            SYMBOLS,
            SYMBOLS,
            3,
            feed_previous=tf.constant(True),
        )

    return _run(tf, build)


@golden(rtol=1e-4, atol=1e-5)
def embedding_tied(tf):
    def build(seq2seq, rnn, encoder, decoder):
        return seq2seq.embedding_tied_rnn_seq2seq(
            encoder, decoder, rnn.GRUCell(SIZE), SYMBOLS, 3, feed_previous=tf.constant(False)
        )

    return _run(tf, build)


@golden(rtol=1e-4, atol=1e-5)
def attention(tf):
    def build(seq2seq, rnn, encoder, decoder):
        cell = rnn.MultiRNNCell([rnn.BasicLSTMCell(SIZE), rnn.BasicLSTMCell(SIZE)])
        return seq2seq.embedding_attention_seq2seq(
            encoder, decoder, cell, SYMBOLS, SYMBOLS, 3, num_heads=2
        )

    return _run(tf, build)


@golden(rtol=1e-4, atol=1e-5)
def attention_with_projection(tf):
    def build(seq2seq, rnn, encoder, decoder):
        weights = tf.get_variable("w", [SIZE, SYMBOLS])
        biases = tf.get_variable("b", [SYMBOLS])
        return seq2seq.embedding_attention_seq2seq(
            encoder,
            decoder,
            rnn.GRUCell(SIZE),
            SYMBOLS,
            SYMBOLS,
            3,
            output_projection=(weights, biases),
            feed_previous=True,
            initial_state_attention=True,
        )

    return _run(tf, build)


@golden(rtol=1e-4, atol=1e-5)
def one_to_many(tf):
    def build(seq2seq, rnn, encoder, decoder):
        outputs, states = seq2seq.one2many_rnn_seq2seq(
            encoder,
            {"a": decoder, "b": decoder[:2]},
            rnn.GRUCell(SIZE),
            {"a": rnn.GRUCell(SIZE), "b": rnn.GRUCell(SIZE)},
            SYMBOLS,
            {"a": SYMBOLS, "b": SYMBOLS + 1},
            3,
        )
        return [outputs["a"], outputs["b"]], [states["a"], states["b"]]

    return _run(tf, build)


@golden(rtol=1e-4, atol=1e-5)
def losses(tf):
    seq2seq = tf.contrib.legacy_seq2seq
    rng = np.random.RandomState(4)
    logits = [tf.constant(rng.randn(2, SYMBOLS).astype(np.float32)) for _ in range(3)]
    targets = [tf.constant(row) for row in _symbols(3, 5)]
    weights = [tf.constant(row, tf.float32) for row in ([1.0, 1.0], [1.0, 0.5], [0.0, 1.0])]
    return {
        "by_example": seq2seq.sequence_loss_by_example(logits, targets, weights),
        "summed": seq2seq.sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps=False
        ),
        "mean": seq2seq.sequence_loss(logits, targets, weights),
        "total": seq2seq.sequence_loss(logits, targets, weights, average_across_batch=False),
        "own": seq2seq.sequence_loss(
            logits,
            targets,
            weights,
            softmax_loss_function=lambda labels, logits: (
                tf.reduce_sum(logits, 1) * tf.cast(labels, tf.float32)
            ),
        ),
    }


@golden(with_session=True, rtol=1e-3, atol=1e-4)
def buckets(tf, session):
    """Ten steps of a translation model with two buckets, gradients clipped, as in the tutorial."""
    seq2seq, rnn = tf.contrib.legacy_seq2seq, tf.contrib.rnn
    sizes = [(2, 3), (3, 4)]
    encoder = [tf.placeholder(tf.int32, [None]) for _ in range(3)]
    decoder = [tf.placeholder(tf.int32, [None]) for _ in range(5)]
    weights = [tf.placeholder(tf.float32, [None]) for _ in range(5)]

    def model(x, y):
        cell = rnn.GRUCell(SIZE)
        return seq2seq.embedding_attention_seq2seq(x, y, cell, SYMBOLS, SYMBOLS, SIZE)

    with tf.variable_scope("root", initializer=Fixed(tf)):
        _, losses_of = seq2seq.model_with_buckets(
            encoder, decoder, decoder[1:], weights, sizes, model
        )
    variables = tf.trainable_variables()
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    updates = []
    for loss in losses_of:
        grads, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
        updates.append(optimizer.apply_gradients(list(zip(grads, variables))))  # noqa: B905
    session.run(tf.global_variables_initializer())
    rng, found = np.random.RandomState(6), []
    for step in range(10):
        feed = {p: rng.randint(0, SYMBOLS, 3) for p in encoder + decoder}
        feed.update({w: rng.randint(0, 2, 3) for w in weights})
        found.append(session.run([losses_of[step % 2], updates[step % 2]], feed)[0])
    return {"losses": np.array(found)}

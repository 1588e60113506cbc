"""Decoders, attention and beam search of `tf.contrib.seq2seq`. Python 3.7: TensorFlow 1.15 runs
this."""

import numpy as np

from . import golden
from .contrib_rnn import Fixed, flat

SYMBOLS, SIZE, START, END = 7, 4, 1, 2


def _random(*shape, seed=0):
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def _loss_and_names(tf, values):
    """Gradients of a function of all floating values, and the names of the variables."""
    parts = [tf.reduce_sum(tf.sin(3 * v)) for v in flat(values) if v.dtype.is_floating]
    variables = tf.trainable_variables()
    names = [v.name for v in variables]
    results = {"names": tf.constant(names)}
    for name, grad in zip(names, tf.gradients(tf.add_n(parts), variables)):  # noqa: B905
        if grad is not None:
            results["grad_" + name] = tf.convert_to_tensor(grad)
    return results


def _attend(tf, make, output_attention=True, **options):
    """A decoder over given inputs, whose cell attends to a memory."""
    memory, lengths = tf.constant(_random(3, 5, 6)), tf.constant([5, 2, 3])
    with tf.variable_scope("root", initializer=Fixed(tf)):
        mechanism = make(tf.contrib.seq2seq, memory, lengths)
        cell = tf.contrib.seq2seq.AttentionWrapper(
            tf.contrib.rnn.GRUCell(SIZE), mechanism, output_attention=output_attention, **options
        )
        helper = tf.contrib.seq2seq.TrainingHelper(
            tf.constant(_random(3, 6, 2, seed=1)), tf.constant([4, 5, 2])
        )
        decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32))
        outputs, state, found = tf.contrib.seq2seq.dynamic_decode(decoder, impute_finished=True)
    results = {
        "outputs": outputs.rnn_output,
        "ids": outputs.sample_id,
        "lengths": found,
        "attention": state.attention,
        "cell_state": state.cell_state,
    }
    for i, alignment in enumerate(flat(state.alignments)):
        results[f"alignments_{i}"] = alignment
    results.update(_loss_and_names(tf, [outputs.rnn_output, state.cell_state]))
    return results


@golden(rtol=1e-4, atol=1e-5)
def bahdanau(tf):
    return _attend(
        tf,
        lambda s, memory, n: s.BahdanauAttention(3, memory, memory_sequence_length=n),
        attention_layer_size=5,
    )


@golden(rtol=1e-4, atol=1e-5)
def bahdanau_normalised(tf):
    return _attend(
        tf,
        lambda s, memory, n: s.BahdanauAttention(3, memory, normalize=True),
        output_attention=False,
    )


@golden(rtol=1e-4, atol=1e-5)
def luong(tf):
    return _attend(
        tf,
        lambda s, memory, n: s.LuongAttention(SIZE, memory, n, scale=True),
        attention_layer_size=SIZE,
    )


@golden(rtol=1e-4, atol=1e-5)
def several_mechanisms(tf):
    return _attend(
        tf,
        lambda s, memory, n: [
            s.BahdanauAttention(3, memory, n),
            s.LuongAttention(SIZE, memory, probability_fn=s.hardmax),
        ],
        attention_layer_size=[2, 3],
    )


@golden(rtol=1e-4, atol=1e-5)
def monotonic(tf):
    return _attend(tf, lambda s, memory, n: s.BahdanauMonotonicAttention(3, memory, n))


@golden(rtol=1e-4, atol=1e-5)
def monotonic_hard(tf):
    return _attend(
        tf,
        lambda s, memory, n: s.LuongMonotonicAttention(SIZE, memory, n, scale=True, mode="hard"),
    )


@golden
def monotonic_functions(tf):
    s = tf.contrib.seq2seq
    rng = np.random.RandomState(1)
    p = rng.uniform(0.1, 0.9, (2, 5)).astype(np.float32)
    before = rng.dirichlet(np.ones(5), 2).astype(np.float32)
    results = {m: s.monotonic_attention(p, before, m) for m in ("recursive", "parallel")}
    results["hard"] = s.monotonic_attention(np.round(p), before, "hard")
    results["cumprod"] = s.safe_cumprod(p, axis=1, exclusive=True)
    results["hardmax"] = s.hardmax(tf.constant(p))
    return results


def _decode(tf, make, **options):
    """A decoder that feeds on its own symbols."""
    s = tf.contrib.seq2seq
    with tf.variable_scope("root", initializer=Fixed(tf, 0.9)):
        embedding = tf.get_variable("embedding", [SYMBOLS, 3])
        cell = tf.contrib.rnn.BasicLSTMCell(SIZE)
        helper = make(s, embedding, tf.fill([3], START), END)
        layer = tf.layers.Dense(SYMBOLS, use_bias=False, name="out")
        start = cell.zero_state(3, tf.float32)._replace(h=tf.constant(_random(3, SIZE)))
        decoder = s.BasicDecoder(cell, helper, start, output_layer=layer)
        outputs, state, lengths = s.dynamic_decode(decoder, maximum_iterations=8, **options)
    return {
        "outputs": outputs.rnn_output,
        "ids": outputs.sample_id,
        "state": state.h,
        "lengths": lengths,
        "names": tf.constant([v.name for v in tf.trainable_variables()]),
    }


@golden(rtol=1e-4, atol=1e-5)
def greedy(tf):
    return _decode(tf, lambda s, *args: s.GreedyEmbeddingHelper(*args))


@golden(rtol=1e-4, atol=1e-5)
def greedy_imputed(tf):
    return _decode(
        tf,
        lambda s, *args: s.GreedyEmbeddingHelper(*args),
        impute_finished=True,
        output_time_major=True,
    )


@golden(rtol=1e-4, atol=1e-5)
def own_helpers(tf):
    s = tf.contrib.seq2seq
    cell = tf.contrib.rnn.GRUCell(SIZE)
    x = tf.constant(_random(3, SIZE))

    def initialize():
        return tf.tile([False], [3]), x

    def sample(time, outputs, state):
        return tf.cast(tf.argmax(outputs, -1), tf.int32)

    def next_inputs(time, outputs, state, sample_ids):
        return time >= tf.constant([1, 3, 2]), outputs * 0.5, state

    custom = s.CustomHelper(initialize, sample, next_inputs)
    inference = s.InferenceHelper(
        lambda outputs: outputs, [SIZE], tf.float32, x, lambda ids: tf.reduce_max(ids, 1) > 0.5
    )
    results = {}
    with tf.variable_scope("root", initializer=Fixed(tf, 0.9)):
        start = cell.zero_state(3, tf.float32)
        for name, helper in (("custom", custom), ("inference", inference)):
            decoder = s.BasicDecoder(cell, helper, start)
            outputs, state, lengths = s.dynamic_decode(decoder, maximum_iterations=5)
            results[name + "_outputs"] = outputs.rnn_output
            results[name + "_ids"] = outputs.sample_id
            results[name + "_state"] = state
            results[name + "_lengths"] = lengths
    return results


@golden(rtol=1e-4, atol=1e-5)
def scheduled_certainly(tf):
    """Sampling with probability 0 and 1 does not depend on random numbers (but for the ids)."""
    s = tf.contrib.seq2seq
    x, lengths = tf.constant(_random(3, 5, SIZE)), tf.constant([5, 3, 4])
    more = tf.constant(_random(3, 5, 2, seed=2))
    results = {}
    with tf.variable_scope("root", initializer=Fixed(tf, 0.9)):
        embedding = tf.constant(_random(SIZE, SIZE))
        helpers = {
            "given": s.ScheduledEmbeddingTrainingHelper(x, lengths, embedding, 0.0),
            "outputs": s.ScheduledOutputTrainingHelper(x, lengths, 1.0),
            "function": s.ScheduledOutputTrainingHelper(
                x, lengths, 1.0, next_inputs_fn=lambda y: 2 * y
            ),
            "more": s.ScheduledOutputTrainingHelper(x, lengths, 1.0, auxiliary_inputs=more),
        }
        for name, helper in sorted(helpers.items()):
            cell = tf.contrib.rnn.GRUCell(SIZE, name=name)
            decoder = s.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32))
            outputs, _, found = s.dynamic_decode(decoder)
            results[name + "_outputs"] = outputs.rnn_output
            results[name + "_ids"] = outputs.sample_id
            results[name + "_lengths"] = found
    return results


def _beams(tf, attends=False, **options):
    s = tf.contrib.seq2seq
    width, batch = 3, 2
    with tf.variable_scope("root", initializer=Fixed(tf, 0.9)):
        embedding = tf.get_variable("embedding", [SYMBOLS, 3])
        cell = tf.contrib.rnn.BasicLSTMCell(SIZE)
        layer = tf.layers.Dense(SYMBOLS, use_bias=False, name="out")
        if attends:
            memory = s.tile_batch(tf.constant(_random(batch, 5, 6)), width)
            lengths = s.tile_batch(tf.constant([5, 3]), width)
            mechanism = s.BahdanauAttention(3, memory, memory_sequence_length=lengths)
            cell = s.AttentionWrapper(cell, mechanism, SIZE, alignment_history=True)
        start = cell.zero_state(batch * width, tf.float32)
        decoder = s.BeamSearchDecoder(
            cell, embedding, tf.fill([batch], START), END, start, width, layer, **options
        )
        outputs, state, lengths = s.dynamic_decode(decoder, maximum_iterations=6)
    results = {
        "predicted": outputs.predicted_ids,
        "scores": outputs.beam_search_decoder_output.scores,
        "parents": outputs.beam_search_decoder_output.parent_ids,
        "ids": outputs.beam_search_decoder_output.predicted_ids,
        "log_probs": state.log_probs,
        "finished": state.finished,
        "beam_lengths": state.lengths,
        "lengths": lengths,
    }
    if attends:
        results["attention"] = state.cell_state.attention
    return results


@golden(rtol=1e-4, atol=1e-5)
def beam_search(tf):
    return _beams(tf)


@golden(rtol=1e-4, atol=1e-5)
def beam_search_with_attention(tf):
    return _beams(tf, attends=True, length_penalty_weight=0.7)


@golden(rtol=1e-4, atol=1e-5)
def beam_search_with_coverage(tf):
    return _beams(tf, attends=True, length_penalty_weight=0.5, coverage_penalty_weight=0.3)


@golden
def trees(tf):
    rng = np.random.RandomState(3)
    ids = rng.randint(0, 9, (5, 2, 3)).astype(np.int32)
    parents = rng.randint(0, 3, (5, 2, 3)).astype(np.int32)
    s = tf.contrib.seq2seq
    return {
        "whole": s.gather_tree(ids, parents, [5, 5], 10),
        "shorter": s.gather_tree(ids, parents, [3, 0], 10),
        "ended": s.gather_tree(ids, parents, [5, 9], int(ids[1, 0, 0])),
        "tiled": s.tile_batch(tf.constant(ids), 2),
    }


@golden
def losses(tf):
    s = tf.contrib.seq2seq
    logits = tf.constant(_random(2, 3, SYMBOLS))
    targets = tf.constant([[1, 0, 6], [3, 3, 2]])
    weights = tf.constant([[1.0, 0.5, 0.0], [2.0, 1.0, 1.0]])
    results = {}
    for name, flags in (
        ("mean", (True, True)),
        ("by_time", (False, True)),
        ("by_batch", (True, False)),
        ("none", (False, False)),
        ("summed", (False, False, True, True)),
        ("summed_time", (False, False, True, False)),
        ("summed_batch", (False, False, False, True)),
    ):
        results[name] = s.sequence_loss(logits, targets, weights, *flags)
    results["own"] = s.sequence_loss(
        logits, targets, weights, softmax_loss_function=lambda labels, logits: logits[:, 0]
    )
    return results


@golden(with_session=True, rtol=2e-3, atol=2e-4)
def translation(tf, session):
    """Ten steps of a model with attention, as its authors' tutorial trains it."""
    s, rnn = tf.contrib.seq2seq, tf.contrib.rnn
    source = tf.placeholder(tf.int32, [None, None])
    source_lengths = tf.placeholder(tf.int32, [None])
    target = tf.placeholder(tf.int32, [None, None])
    target_lengths = tf.placeholder(tf.int32, [None])
    with tf.variable_scope("model", initializer=Fixed(tf, 0.3)):
        embedding = tf.get_variable("embedding", [SYMBOLS, 5])
        encoder_outputs, state = tf.nn.dynamic_rnn(
            rnn.BasicLSTMCell(6),
            tf.nn.embedding_lookup(embedding, source),
            source_lengths,
            dtype=tf.float32,
        )
        mechanism = s.LuongAttention(6, encoder_outputs, source_lengths)
        cell = s.AttentionWrapper(rnn.BasicLSTMCell(6), mechanism, attention_layer_size=6)
        batch = tf.shape(target)[0]
        inputs = tf.concat([tf.fill([batch, 1], START), target[:, :-1]], 1)
        helper = s.TrainingHelper(tf.nn.embedding_lookup(embedding, inputs), target_lengths)
        start = cell.zero_state(batch, tf.float32).clone(cell_state=state)
        layer = tf.layers.Dense(SYMBOLS, use_bias=False)
        outputs, _, _ = s.dynamic_decode(s.BasicDecoder(cell, helper, start, layer))
    mask = tf.sequence_mask(target_lengths, tf.shape(target)[1], dtype=tf.float32)
    loss = s.sequence_loss(outputs.rnn_output, target, mask)
    variables = tf.trainable_variables()
    grads, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
    train = tf.train.AdamOptimizer(0.02).apply_gradients(list(zip(grads, variables)))  # noqa: B905
    session.run(tf.global_variables_initializer())
    rng, found = np.random.RandomState(8), []
    for _ in range(10):
        n, m = rng.randint(2, 6, 4), rng.randint(2, 5, 4)
        feed = {
            source: rng.randint(3, SYMBOLS, (4, n.max())),
            source_lengths: n,
            target: rng.randint(3, SYMBOLS, (4, m.max())),
            target_lengths: m,
        }
        found.append(session.run([loss, train], feed)[0])
    return {"losses": np.array(found), "names": np.array([v.name for v in variables])}

"""tf.contrib.seq2seq: a model that learns to reverse digits, orders of beams, and bad arguments."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

START, END, SYMBOLS = 8, 9, 10


class _Translator:
    """An encoder and an attending decoder, for training, greedy decoding and beam search."""

    def __init__(self, width, length):
        self.source = tf.placeholder(tf.int32, [None, None])
        self.lengths = tf.placeholder(tf.int32, [None])
        self.target = tf.placeholder(tf.int32, [None, None])
        self.target_lengths = tf.placeholder(tf.int32, [None])
        self.length = length
        self.embedding = tf.get_variable("embedding", [SYMBOLS, 12])
        encoder = tf.nn.rnn_cell.GRUCell(24)
        inputs = tf.nn.embedding_lookup(self.embedding, self.source)
        self.encoded = tf.nn.dynamic_rnn(encoder, inputs, self.lengths, dtype=tf.float32)
        self.layer = tf.layers.Dense(SYMBOLS, use_bias=False, name="symbols")
        self.batch = tf.shape(self.source)[0]
        self.loss = self._training()
        self.greedy = self._decode(1, None)
        self.beams = self._decode(width, width)

    def _cell(self, multiple):
        tile = tf.contrib.seq2seq.tile_batch
        memory, state = self.encoded
        memory, state, lengths = (tile(x, multiple) for x in (memory, state, self.lengths))
        attention = tf.contrib.seq2seq.BahdanauAttention(16, memory, lengths)
        cell = tf.contrib.seq2seq.AttentionWrapper(
            tf.nn.rnn_cell.GRUCell(24, name="decoder"), attention, 20
        )
        start = cell.zero_state(self.batch * multiple, tf.float32)
        return cell, start.clone(cell_state=state)

    def _training(self):
        seq2seq = tf.contrib.seq2seq
        with tf.variable_scope("decode"):
            cell, start = self._cell(1)
            begin = tf.fill([self.batch, 1], START)
            inputs = tf.concat([begin, self.target[:, :-1]], 1)
            fed = tf.nn.embedding_lookup(self.embedding, inputs)
            helper = seq2seq.TrainingHelper(fed, self.target_lengths)
            decoder = seq2seq.BasicDecoder(cell, helper, start, self.layer)
            outputs, _, self.found_lengths = seq2seq.dynamic_decode(decoder)
        mask = tf.sequence_mask(self.target_lengths, tf.shape(self.target)[1], dtype=tf.float32)
        return seq2seq.sequence_loss(outputs.rnn_output, self.target, mask)

    def _decode(self, multiple, beams):
        seq2seq = tf.contrib.seq2seq
        with tf.variable_scope("decode", reuse=True):
            cell, start = self._cell(multiple)
            begin = tf.fill([self.batch], START)
            if beams is None:
                helper = seq2seq.GreedyEmbeddingHelper(self.embedding, begin, END)
                decoder = seq2seq.BasicDecoder(cell, helper, start, self.layer)
            else:
                decoder = seq2seq.BeamSearchDecoder(
                    cell, self.embedding, begin, END, start, beams, self.layer
                )
            outputs, _, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=self.length)
        return outputs.sample_id if beams is None else outputs.predicted_ids

    def feed(self, rng, batch, length):
        digits = rng.randint(0, 8, (batch, length))
        ends = np.full((batch, 1), END)
        return {
            self.source: digits,
            self.lengths: np.full(batch, length),
            self.target: np.concatenate([digits[:, ::-1], ends], 1),
            self.target_lengths: np.full(batch, length + 1),
        }


@pytest.mark.slow
def test_model_with_attention_learns_to_reverse_digits():
    tf.set_random_seed(4)
    rng = np.random.RandomState(0)
    model = _Translator(width=3, length=6)
    names = {v.name for v in tf.trainable_variables()}
    assert "decode/decoder/attention_wrapper/attention_layer/kernel:0" in names
    assert "decode/decoder/attention_wrapper/bahdanau_attention/query_layer/kernel:0" in names
    assert "decode/memory_layer/kernel:0" in names
    train = tf.train.AdamOptimizer(0.01).minimize(model.loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(200):
            session.run(train, model.feed(rng, 32, 4))
        feed = model.feed(rng, 16, 4)
        loss, n, greedy, beams = session.run(
            [model.loss, model.found_lengths, model.greedy, model.beams], feed
        )
    assert loss < 0.2
    assert n.tolist() == [5] * 16
    assert (greedy[:, :5] == feed[model.target]).all(1).mean() > 0.8
    assert beams.shape[2] == 3
    assert (beams[:, :5, 0] == feed[model.target]).all(1).mean() > 0.8


def test_training_loop_of_known_length_is_compiled(monkeypatch):
    """It takes as many steps as the longest sequence, and nothing in it needs the host."""
    from headrace.executor import evaluate

    reasons = []
    monkeypatch.setattr(
        evaluate.NeedsHost,
        "__init__",
        lambda self, node, why: (reasons.append(why), setattr(self, "node", node))[0],
    )
    seq2seq = tf.contrib.seq2seq
    x = tf.placeholder(tf.float32, [None, None, 2])
    lengths = tf.placeholder(tf.int32, [None])
    cell = seq2seq.AttentionWrapper(
        tf.nn.rnn_cell.GRUCell(3), seq2seq.LuongAttention(3, x, lengths), 4
    )
    start = cell.zero_state(tf.shape(x)[0], tf.float32)
    decoder = seq2seq.BasicDecoder(cell, seq2seq.TrainingHelper(x, lengths), start)
    outputs, _, found = seq2seq.dynamic_decode(decoder)
    loss = tf.reduce_sum(outputs.rnn_output**2)
    grads = tf.gradients(loss, tf.trainable_variables())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feed = {x: np.ones((3, 7, 2)), lengths: [2, 5, 1]}
        out, n, _ = session.run([outputs.rnn_output, found, grads], feed)
    assert out.shape == (3, 5, 4)
    assert n.tolist() == [2, 5, 1]
    assert reasons == []


def test_alignment_history_follows_the_beams():
    """With all beams but one dead at first, the history of each final beam is its own."""
    seq2seq = tf.contrib.seq2seq
    memory = tf.constant(np.random.RandomState(0).randn(2, 4, 3).astype(np.float32))
    cell = seq2seq.AttentionWrapper(
        tf.nn.rnn_cell.GRUCell(5),
        seq2seq.BahdanauAttention(3, seq2seq.tile_batch(memory, 3)),
        alignment_history=True,
    )
    layer = tf.layers.Dense(6)
    start = cell.zero_state(6, tf.float32)
    embedding = tf.get_variable("embedding", [6, 2])
    decoder = seq2seq.BeamSearchDecoder(cell, embedding, [1, 1], 5, start, 3, layer)
    outputs, state, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=4)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        ids, history, n = session.run(
            [outputs.predicted_ids, state.cell_state.alignment_history, lengths]
        )
    assert ids.shape[2] == 3
    assert history.shape == (ids.shape[1], 6, 4)
    np.testing.assert_allclose(history[0].sum(1), 1, rtol=1e-5)
    assert (n <= ids.shape[1]).all()


def test_tiling_repeats_each_row():
    nest = tf.contrib.seq2seq.tile_batch((tf.constant([1, 2]), tf.constant([[3.0], [4.0]])), 2)
    assert nest[1].shape.as_list() == [4, 1]
    with tf.Session() as session:
        a, b = session.run(nest)
    assert a.tolist() == [1, 1, 2, 2]
    assert b.tolist() == [[3], [3], [4], [4]]
    with pytest.raises(ValueError, match="statically known rank"):
        tf.contrib.seq2seq.tile_batch(tf.constant(1), 2)


def test_batch_sizes_that_do_not_fit():
    seq2seq = tf.contrib.seq2seq
    memory = tf.placeholder(tf.float32, [None, 4, 3])
    cell = seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(3), seq2seq.LuongAttention(3, memory))
    state = cell.zero_state(6, tf.float32)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="tile_batch"):
        session.run(state.cell_state, {memory: np.zeros((2, 4, 3))})
    with pytest.raises(ValueError, match="tile_batch"):
        seq2seq.AttentionWrapper(
            tf.nn.rnn_cell.GRUCell(3), seq2seq.LuongAttention(3, tf.zeros([2, 4, 3]))
        ).zero_state(6, tf.float32)


def test_lengths_must_be_positive():
    seq2seq = tf.contrib.seq2seq
    lengths = tf.placeholder(tf.int32, [None])
    attention = seq2seq.LuongAttention(3, tf.zeros([2, 4, 3]), lengths)
    with tf.variable_scope("query"):
        alignments, _ = attention(tf.zeros([2, 3]), None)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(alignments, {lengths: [1, 2]}).tolist() == [
            [1, 0, 0, 0],
            [0.5, 0.5, 0, 0],
        ]
        with pytest.raises(tf.errors.InvalidArgumentError, match="greater than zero"):
            session.run(alignments, {lengths: [0, 2]})


def test_arguments_of_wrong_kinds():
    seq2seq = tf.contrib.seq2seq
    cell = tf.nn.rnn_cell.GRUCell(3)
    with pytest.raises(TypeError, match="helper must be a Helper"):
        seq2seq.BasicDecoder(cell, None, None)
    with pytest.raises(TypeError, match="type Decoder"):
        seq2seq.dynamic_decode(cell)
    with pytest.raises(TypeError, match="AttentionMechanism"):
        seq2seq.AttentionWrapper(cell, cell)
    with pytest.raises(ValueError, match="to be a vector"):
        seq2seq.TrainingHelper(tf.zeros([2, 3, 4]), 3)
    with pytest.raises(ValueError, match="end_token must be a scalar"):
        seq2seq.GreedyEmbeddingHelper(tf.zeros([5, 2]), [1], [2])
    with pytest.raises(ValueError, match="Logits must be a"):
        seq2seq.sequence_loss(tf.zeros([2, 3]), tf.zeros([2, 3], tf.int32), tf.zeros([2, 3]))
    with pytest.raises(AttributeError, match="BasicDecoder"):
        seq2seq.BasicDecode  # noqa: B018


def test_sampling_helper_draws_by_the_scores():
    seq2seq = tf.contrib.seq2seq
    helper = seq2seq.SampleEmbeddingHelper(tf.zeros([3, 2]), [0] * 400, 2, 0.5, seed=3)
    scores = tf.log(tf.constant([[0.6, 0.3, 0.1]] * 400))
    ids = helper.sample(0, scores, None)
    with tf.Session() as session:
        counts = np.bincount(session.run(ids), minlength=3) / 400
    np.testing.assert_allclose(counts, [0.783, 0.196, 0.022], atol=0.05)


def test_beams_with_parents_known_while_compiling(monkeypatch):
    monkeypatch.setenv("HEADRACE_INTERPRET", "never")
    ids, lengths = tf.placeholder(tf.int32, [2, 1, 3]), tf.placeholder(tf.int32, [1])
    parents = tf.constant([[[0, 0, 0]], [[0, 1, 1]]])
    beams = tf.contrib.seq2seq.gather_tree(ids, parents, lengths, 9)
    with tf.Session() as sess:
        found = sess.run(beams, {ids: [[[1, 2, 3]], [[4, 5, 6]]], lengths: [2]})
    np.testing.assert_array_equal(found, [[[1, 2, 2]], [[4, 5, 6]]])

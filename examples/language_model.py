"""A language model of words, trained in one process or by many, in any of nine ways.

The model is that of "TensorFlow: a system for large-scale machine learning" (Abadi et al., 2016,
section 6.4): an LSTM over words whose embedding and softmax are too large to be copied about, so
that they lie in parts on parameter servers, where the logits are computed. `--softmax=sampled`
compares each word with a few drawn ones instead of all of them.

    python examples/language_model.py --mode=async --workers=4 --servers=2
    python examples/language_model.py --units=512 --vocabulary=40000 --docstrings jax numpy scipy

The same batches make the same model to rounding, whether one process sees them (`--mode=local`) or
several a part each (all-reduce, mirrored, sharded), or the model lies on several devices (split,
pipeline). With `--mode=sync` a word's row gets the mean over those workers that have seen the word,
as in TensorFlow; async updates with each worker's part of a batch, without waiting for the others.
"""

import argparse
import time

import numpy as np
from shared import modes, text

import headrace as tf

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--text", help="a file; the topics of Python's help() by default")
parser.add_argument("--docstrings", nargs="*", metavar="PACKAGE", help="or those of packages")
parser.add_argument("--softmax", choices=["full", "sampled"], default="full")
parser.add_argument("--vocabulary", type=int, default=40_000, help="at most; others are 'rare'")
parser.add_argument("--units", type=int, default=128, help="512 in the paper")
parser.add_argument("--layers", type=int, default=1, help="LSTMs on top of each other")
parser.add_argument("--sentences", type=int, default=32, help="of a batch, of all workers together")
parser.add_argument("--length", type=int, default=20, help="words of a sentence")
parser.add_argument("--sampled", type=int, default=512, help="classes of the sampled softmax")
parser.add_argument("--steps", type=int, help="batches: 1000, or 150 if small")
parser.add_argument("--rate", type=float, default=0.2, help="Adagrad's")
parser.add_argument("--small", action="store_true", help="a small model that is trained at once")
modes.add_arguments(
    parser,
    split="each LSTM, and each part of the softmax, is on a worker of its own",
    pipeline="the layers are on the workers, and work on parts of a batch in turn",
)


class LanguageModel:
    """Functions from one layer to the next. Each makes its variables when it is first called."""

    def __init__(self, args, vocabulary, task):
        self.args, self.vocabulary, self.task = args, vocabulary, task
        self.embed = tf.make_template("embedding", self._embed)
        self.lstms = [
            tf.make_template(f"lstm_{i}", self._lstm, seed=3 + i) for i in range(args.layers)
        ]
        self.loss = tf.make_template("softmax", self._loss)

    def _table(self, name, shape, seed):
        """A variable in as many parts as there are servers, or devices to split it over."""
        parts = len(self.task.devices) if self.task.mode == "split" else self.args.servers
        partitioner = tf.fixed_size_partitioner(parts)
        with self.task.parts_placed():
            return tf.get_variable(
                name, shape, initializer=modes.uniform(seed), partitioner=partitioner
            )

    def _embed(self, words):
        table = self._table("rows", [self.vocabulary, self.args.units], seed=1)
        return tf.nn.embedding_lookup(table, words, partition_strategy="div")

    def _lstm(self, values, seed):
        cell = tf.nn.rnn_cell.LSTMCell(self.args.units, initializer=modes.uniform(seed))
        return tf.nn.dynamic_rnn(cell, values, dtype=tf.float32)[0]

    def _loss(self, values, targets, sampled=None):
        """The mean cross entropy of the words that follow."""
        weights = self._table("weights", [self.vocabulary, self.args.units], seed=2)
        biases = self._table("biases", [self.vocabulary], seed=0)
        values = tf.reshape(values, [-1, self.args.units])
        labels = tf.reshape(targets, [-1])
        if sampled:
            losses = tf.nn.sampled_softmax_loss(
                list(weights),
                list(biases),
                labels[:, None],
                values,
                sampled,
                self.vocabulary,
                partition_strategy="div",
            )
        else:
            logits = []
            for part, bias in zip(weights, biases):
                with tf.colocate_with(part.op):  # the part stays where it is, its logits travel
                    logits.append(tf.matmul(values, part, transpose_b=True) + bias)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=labels, logits=tf.concat(logits, 1)
            )
        return tf.reduce_mean(losses)

    def training_loss(self, values, targets):
        sampled = self.args.sampled if self.args.softmax == "sampled" else None
        return self.loss(values, targets, sampled)

    def whole(self, words, targets, loss):
        """All layers: those of `--mode=split` on a device each."""
        values = self.embed(words)
        for i, lstm in enumerate(self.lstms):
            with self.task.layer_placed(i, len(self.lstms)):
                values = lstm(values)
        return loss(values, targets)

    def gradients(self, optimizer, words, targets):
        """The loss of a batch, and its gradients with the variables."""
        if self.task.mode == "pipeline":
            layers = [self.embed, *self.lstms]
            step = tf.parallel.pipeline_gradients(
                layers,
                self.task.devices[: len(layers)],
                words,
                loss=self.training_loss,
                labels=targets,
                micro_batches=4,
            )
            return step.loss, step.gradients
        loss = self.whole(words, targets, self.training_loss)
        pairs = optimizer.compute_gradients(loss, colocate_gradients_with_ops=True)
        return loss, self.task.trained(pairs)


def main():
    args = parser.parse_args()
    if args.small:
        args.units, args.vocabulary, args.sampled = 32, 1000, 100
    args.steps = args.steps or (150 if args.small else 1000)
    task = modes.start(args)
    if task is None:
        return
    corpus = text.Corpus(text.read(args.text, args.docstrings), args.vocabulary)
    with task.placed():
        words = tf.placeholder(tf.int32, [None, args.length])
        targets = tf.placeholder(tf.int64, [None, args.length])
        model = LanguageModel(args, corpus.vocabulary, task)
        step = tf.train.get_or_create_global_step()
        optimizer = task.wrapped(tf.train.AdagradOptimizer(args.rate))

        def train_step(words, targets):
            loss, pairs = model.gradients(optimizer, words, targets)
            return loss, optimizer.apply_gradients(pairs, step)

        loss, train = task.train_step(train_step, words, targets)
        held_out = model.whole(words, targets, model.loss)

    def batch(codes, seed):
        return corpus.batch(codes, seed, args.sentences, args.length)

    def evaluate(session):
        feeds = [batch(corpus.held_out, i) for i in range(8)]
        value = np.mean([session.run(held_out, {words: x, targets: y}) for x, y in feeds])
        print(f"updates {session.run(step)}")
        print(f"known frequencies alone {corpus.entropy:.4f}")
        print(f"perplexity {np.exp(value):.2f}")
        print(f"loss {value:.4f}")

    with task.session(args.steps, evaluate) as session:
        began, own = time.monotonic(), 0
        while not session.should_stop():
            x, y = task.share(batch(corpus.train, own))
            value, _ = session.run([loss, train], {words: x, targets: y})
            if own % 50 == 0:
                task.print(f"step {own} loss {value:.4f}")
            own += 1
        task.print(f"{own * args.sentences * args.length / (time.monotonic() - began):.0f} words/s")


if __name__ == "__main__":
    main()

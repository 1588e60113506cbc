"""A filter that learns which messages go to the trash, and goes on learning from corrections.

    headrace run message_filter.py train MESSAGES MODEL
    headrace run message_filter.py filter MODEL < lines
    headrace run message_filter.py correct MODEL trash < lines

MESSAGES has a line for each message: `ham` or `spam`, a tabulator, the text; it may be compressed
(.gz). `train` learns from four of five messages and tells how it does with the fifth. `filter`
reads messages, one a line, and writes before each `keep` or `trash`, and how sure it is that it is
trash. `correct` is told that messages were sorted wrongly, and learns that they are `trash` or
`keep`.

The model is a logistic regression on words and pairs of words, hashed into buckets, trained by
FTRL: McMahan et al., "Ad click prediction: a view from the trenches" (KDD 2013). Its L1 penalty
leaves most weights 0.
"""

from __future__ import absolute_import, division, print_function

import argparse
import os
import sys

import tensorflow as tf

BUCKETS = 1 << 18
THRESHOLD = 0.5


class Filter(object):
    """The graph: messages and labels come in, how likely each is trash goes out."""

    def __init__(self):
        self.messages = tf.placeholder(tf.string, [None])
        self.labels = tf.placeholder(tf.float32, [None])
        words = self._words(self.messages)
        ids = tf.SparseTensor(
            words.indices, tf.string_to_hash_bucket_fast(words.values, BUCKETS), words.dense_shape
        )
        weights = tf.get_variable("weights", [BUCKETS, 1], initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
        logits = tf.nn.embedding_lookup_sparse(weights, ids, None, combiner="sqrtn")[:, 0] + bias
        self.probability = tf.sigmoid(logits)
        self.loss = tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(labels=self.labels, logits=logits)
        )
        optimizer = tf.train.FtrlOptimizer(1.0, l1_regularization_strength=2e-4)
        self.step = tf.train.get_or_create_global_step()
        self.train = optimizer.minimize(self.loss, global_step=self.step)
        self.used = tf.count_nonzero(input=weights)
        self.saver = tf.train.Saver()

    @staticmethod
    def _words(messages):
        """A SparseTensor of words and pairs of neighbours; all digits are alike, as are cases."""
        text = tf.strings.lower(messages)
        text = tf.strings.regex_replace(text, "[0-9]", "0")
        text = tf.strings.regex_replace(text, "([^a-z0 ])", " \\1 ")
        # Each message begins with a mark, so that none is without a word.
        words = tf.string_split(tf.string_join(["^ ", text]))
        same = tf.equal(words.indices[1:, 0], words.indices[:-1, 0])
        pairs = tf.string_join([words.values[:-1], words.values[1:]], " ")
        longest = words.dense_shape[1]
        shape = tf.stack([words.dense_shape[0], 2 * longest])
        # Pairs stand behind the words of their message.
        behind = words.indices[:-1] + tf.stack([tf.constant(0, tf.int64), longest])
        return tf.sparse_reorder(
            tf.SparseTensor(
                tf.concat([words.indices, tf.boolean_mask(behind, same)], 0),
                tf.concat([words.values, tf.boolean_mask(pairs, same)], 0),
                shape,
            )
        )


def messages_in(path, session):
    """Labels (1.0 is trash) and texts of a file, in its order."""
    kind = "GZIP" if path.endswith(".gz") else ""
    dataset = tf.data.TextLineDataset(path, compression_type=kind).batch(1000)
    lines = tf.data.make_one_shot_iterator(dataset).get_next()
    labels, texts = [], []
    while True:
        try:
            found = session.run(lines)
        except tf.errors.OutOfRangeError:
            return labels, texts
        for line in found:
            label, tab, text = line.partition(b"\t")
            if label not in (b"ham", b"spam") or not tab:
                raise SystemExit("A line is not 'ham' or 'spam', a tabulator and a text: %r" % line)
            labels.append(float(label == b"spam"))
            texts.append(text)


def restored(model, session):
    """The filter with what it has learnt."""
    made = Filter()
    path = tf.train.latest_checkpoint(model)
    if path is None:
        raise SystemExit("There is no model in %s: train one first." % model)
    made.saver.restore(session, path)
    return made


def train(args):
    tf.set_random_seed(1)
    made = Filter()
    with tf.Session() as sess:
        labels, texts = messages_in(args.messages, sess)
        data = tf.data.Dataset.from_tensor_slices((texts, labels)).enumerate()
        learnt = data.filter(lambda number, _: number % 5 > 0).map(lambda _, message: message)
        learnt = learnt.shuffle(10000, seed=1).repeat(args.epochs).batch(32).prefetch(4)
        batch = tf.data.make_one_shot_iterator(learnt).get_next()
        sess.run(tf.global_variables_initializer())
        while True:
            try:
                text, label = sess.run(batch)
            except tf.errors.OutOfRangeError:
                break
            sess.run(made.train, {made.messages: text, made.labels: label})
        guesses = sess.run(made.probability, {made.messages: texts[::5]}) > THRESHOLD
        truth = [label > 0 for label in labels[::5]]
        right = sum(guess and true for guess, true in zip(guesses, truth))
        print("accuracy %.3f" % (sum(g == t for g, t in zip(guesses, truth)) / len(truth)))
        print("precision %.3f" % (right / max(1, sum(guesses))))
        print("recall %.3f" % (right / max(1, sum(truth))))
        print("weights %d of %d" % (sess.run(made.used), BUCKETS))
        tf.gfile.MakeDirs(args.model)
        made.saver.save(sess, os.path.join(args.model, "filter"), made.step)


def sort(args):
    with tf.Session() as sess:
        made = restored(args.model, sess)
        for line in sys.stdin:
            text = line.rstrip("\n")
            (sure,) = sess.run(made.probability, {made.messages: [text]})
            print("%s %.2f %s" % ("trash" if sure > THRESHOLD else "keep", sure, text), flush=True)


def correct(args):
    with tf.Session() as sess:
        made = restored(args.model, sess)
        texts = [line.rstrip("\n") for line in sys.stdin]
        if not texts:
            return
        wanted = float(args.verdict == "trash")
        feeds = {made.messages: texts, made.labels: [wanted] * len(texts)}
        # Until each is on the right side; what others have taught is weighed against it.
        for _ in range(args.most):
            sure = sess.run(made.probability, feeds)
            if all((s > THRESHOLD) == (wanted > 0) for s in sure):
                break
            sess.run(made.train, feeds)
        made.saver.save(sess, os.path.join(args.model, "filter"), made.step)
        print("learnt %d" % len(texts))


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
commands = parser.add_subparsers(dest="command", required=True)
command = commands.add_parser("train")
command.add_argument("messages")
command.add_argument("model")
command.add_argument("--epochs", type=int, default=5)
command.set_defaults(do=train)
command = commands.add_parser("filter")
command.add_argument("model")
command.set_defaults(do=sort)
command = commands.add_parser("correct")
command.add_argument("model")
command.add_argument("verdict", choices=("trash", "keep"))
command.add_argument("--most", type=int, default=50, help="steps of training at most")
command.set_defaults(do=correct)

if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.WARN)
    arguments = parser.parse_args()
    arguments.do(arguments)

"""A ranking model with ten million sparse features, trained in one process or by many.

A click on a search result is foretold from query, document, user, and the pair of query and
document, each of which is hashed into millions of buckets. The model is that of "Wide & deep
learning for recommender systems" (Cheng et al., 2016): a weight for each feature, and an embedding
of each that goes through a small network. A step touches few of its rows.

    python examples/ranking.py --mode=async --workers=4 --servers=2
    python examples/ranking.py --mode=growing      # nobody says how many features there are

The log of clicks is made by a known rule (`shared/click_log.py`), so that the least possible loss
is known, too. 10^7 features take 0.8 GB with Adagrad's sums, in the modes in which each worker has
all of them 0.8 GB a worker.
"""

import argparse
import time

import numpy as np
from shared import modes
from shared.click_log import ClickLog, area_under_curve, log_loss

import headrace as tf

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--features", type=int, default=10**7, help="of the tables, together")
parser.add_argument("--width", type=int, default=8, help="floats of an embedding")
parser.add_argument("--batch", type=int, default=512, help="lines, of all workers together")
parser.add_argument("--steps", type=int, help="batches: 4000, or 400 if small")
parser.add_argument("--rate", type=float, default=0.3, help="Adagrad's")
parser.add_argument("--small", action="store_true", help="a small model that is trained at once")
modes.add_arguments(
    parser, growing="as async, with tables that make a row when they first see a feature"
)


def feature_columns(log, args):
    """The wide and the deep columns of the model."""
    column = tf.feature_column
    if args.mode == "growing":
        sparse = [column.categorical_column_with_keys(name) for name in log.sizes]
        sparse.append(column.crossed_column(["query", "document"], 2**62))

        def rows(table, width, initializer):
            return [
                column.growing_embedding_column(
                    one, width, "sum", initializer, table_name=table, num_parts=args.servers
                )
                for one in sparse
            ]

        wide = rows("wide", 1, tf.zeros_initializer())
        return wide, rows("deep", args.width, tf.random_uniform_initializer(-0.1, 0.1))
    sparse = [
        column.categorical_column_with_hash_bucket(name, size, tf.int64)
        for name, size in log.sizes.items()
    ]
    sparse.append(column.crossed_column(["query", "document"], log.pairs))
    deep = [
        column.embedding_column(one, args.width, initializer=modes.uniform(seed))
        for seed, one in enumerate(sparse, 1)
    ]
    return sparse, deep


def log_odds(features, log, args):
    """Those of a click, ``[batch]``."""
    wide_columns, deep_columns = feature_columns(log, args)
    parts = tf.min_max_variable_partitioner(args.servers, min_slice_size=64 << 10)
    with tf.variable_scope("model", partitioner=parts):
        if args.mode == "growing":
            with tf.variable_scope("wide"):
                weights = tf.feature_column.input_layer(features, wide_columns)
            wide = tf.reduce_sum(weights, 1, keepdims=True)
        else:
            wide = tf.feature_column.linear_model(features, wide_columns)
        with tf.variable_scope("deep"):
            deep = tf.feature_column.input_layer(features, deep_columns)
    for layer, units in enumerate((64, 32, 1), 1):
        deep = tf.layers.dense(
            deep,
            units,
            tf.nn.relu if units > 1 else None,
            kernel_initializer=tf.glorot_uniform_initializer(layer),
        )
    return tf.squeeze(wide + deep, 1)


def main():
    args = parser.parse_args()
    if args.small:
        args.features = 20_000
    args.steps = args.steps or (400 if args.small else 4000)
    task = modes.start(args)
    if task is None:
        return
    log = ClickLog(args.features)
    with task.placed():
        features = {name: tf.placeholder(tf.int64, [None], name) for name in log.sizes}
        clicks = tf.placeholder(tf.float32, [None])
        model = tf.make_template("ranking", log_odds, log=log, args=args)
        step = tf.train.get_or_create_global_step()
        optimizer = task.wrapped(tf.train.AdagradOptimizer(args.rate))

        def train_step(clicks, *values):
            scores = model(dict(zip(features, values)))
            loss = tf.reduce_mean(
                tf.nn.sigmoid_cross_entropy_with_logits(labels=clicks, logits=scores)
            )
            pairs = optimizer.compute_gradients(loss)
            return loss, optimizer.apply_gradients(task.trained(pairs), step)

        loss, train = task.train_step(train_step, clicks, *features.values())
        foretold = tf.sigmoid(model(features))

    def feed(ids, clicked):
        return {**{features[name]: ids[name] for name in ids}, clicks: clicked}

    def evaluate(session):
        p, clicked, best = [], [], []
        for i in range(20):
            ids, y, known = log.batch(2**31 + i, 4096)
            p.append(session.run(foretold, feed(ids, y)))
            clicked.append(y)
            best.append(known)
        p, clicked, best = (np.concatenate(x) for x in (p, clicked, best))
        rate, least, found = clicked.mean(), log_loss(clicked, best), log_loss(clicked, p)
        constant = log_loss(clicked, np.full_like(best, rate))
        print(f"updates {session.run(step)}")
        print(f"auc {area_under_curve(clicked, p):.4f}")
        print(f"best_auc {area_under_curve(clicked, best):.4f}")
        print(f"loss {found:.4f}")
        print(f"best_loss {least:.4f}")
        print(f"learned {(constant - found) / (constant - least):.4f}")

    with task.session(args.steps, evaluate) as session:
        began, own = time.monotonic(), 0
        while not session.should_stop():
            ids, y, _ = log.batch(own, args.batch)
            y, *values = task.share([y, *ids.values()])
            value, _ = session.run([loss, train], feed(dict(zip(ids, values)), y))
            if own % 100 == 0:
                task.print(f"step {own} loss {value:.4f}")
            own += 1
        task.print(f"{own * args.batch / (time.monotonic() - began):.0f} lines/s")


if __name__ == "__main__":
    main()

"""Clicks on search results, made by a rule that is known: so is how well they can be foretold."""

import numpy as np


def hashed(values, salt):
    """A number in [0, 1) for each integer, always the same (the finaliser of SplitMix64)."""
    x = np.asarray(values, np.uint64) + np.uint64(salt * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


class ClickLog:
    """A user is shown a document for a query, and clicks or not.

    The log-odds of a click are the sum of what the query, the document, the user and the pair of
    query and document have to them, and of whether query and document are of one of four topics.
    A few queries, documents and users are in most lines, as in real logs.
    """

    def __init__(self, features):
        """``features``: how many there are in all, pairs of queries and documents included."""
        self.sizes = {
            "query": features // 10,
            "document": features // 5,
            "user": features // 5,
        }
        self.pairs = features - sum(self.sizes.values())

    def batch(self, seed, lines):
        """Features (int64), clicks (float32) and the true probabilities of ``lines`` lines."""
        random = np.random.RandomState(seed)
        ids = {
            name: (random.zipf(1.5, lines) - 1) % (size // 2) for name, size in self.sizes.items()
        }
        p = self.probability(**ids)
        return ids, (random.uniform(size=lines) < p).astype(np.float32), p

    @staticmethod
    def probability(query, document, user):
        effects = [hashed(ids, salt) - 0.5 for salt, ids in enumerate((query, document, user), 1)]
        effects.append(hashed(query * 1_000_003 + document, 4) - 0.5)
        same_topic = hashed(query, 5) * 4 // 1 == hashed(document, 6) * 4 // 1
        log_odds = -2.0 + 3.0 * sum(effects) + 2.5 * same_topic
        return 1 / (1 + np.exp(-log_odds))


def log_loss(clicks, p):
    """The mean cross entropy of clicks that were foretold with probabilities ``p``, in nats."""
    return -np.mean(np.log(np.where(clicks > 0, p, 1 - p)))


def area_under_curve(clicks, scores):
    """How often a line with a click has a higher score than one without."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores)] = np.arange(len(scores))
    clicked = clicks > 0
    above = ranks[clicked].sum() - clicked.sum() * (clicked.sum() - 1) / 2
    return above / (clicked.sum() * (~clicked).sum())

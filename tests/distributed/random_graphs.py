"""Random graphs of integers, with state and nested control flow, over the tasks of a cluster.

All values are int32 and wrap around, so every way to run such a graph gives the same bits. All that
touches state is in one chain of control edges, so every order that the graph allows is the same.
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

import headrace as tf

SHAPE = [2, 2]
_UNARY = [tf.negative, tf.abs, tf.transpose, tf.identity, lambda x: x % 1009]
_BINARY = [tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum, tf.matmul]


class RandomGraph:
    """A graph in the default graph, and how to run it.

    Args:
        rng: a random.Random, which decides everything.
        devices: to place operations on; "" leaves them free.
    """

    def __init__(self, rng, devices):
        self.rng = rng
        self.devices = devices
        self.x = tf.placeholder(tf.int32, SHAPE)
        self.variables = [self._variable(i) for i in range(rng.randint(1, 3))]
        with self._somewhere():
            self.queue = tf.FIFOQueue(100, tf.int32, shapes=[SHAPE])
        pool = [self.x, tf.constant(np.arange(4).reshape(SHAPE), tf.int32)]
        last = self._block(pool, [], rng.randint(4, 12), depth=2)
        self.fetches = [rng.choice(pool) for _ in range(3)] + [pool[-1]]
        self.targets = last

    def run(self, target="", steps=3):
        """The fetches of some steps in a session, and the variables at the end."""
        config = tf.ConfigProto(allow_soft_placement=not target, operation_timeout_in_ms=60_000)
        results = []
        with tf.Session(target, config=config) as session:
            session.run([v.initializer for v in self.variables])
            for i in range(steps):
                feed = {self.x: np.array([[i, 1], [2, -3]], np.int32)}
                results += session.run([*self.fetches, self.targets], feed)[:-1]
                results.append(session.run(self.queue.size()))
            results += session.run(self.variables)
        return results

    def _variable(self, i):
        with self._somewhere():
            return tf.Variable(np.full(SHAPE, i + 1, np.int32), name=f"v{i}")

    @contextmanager
    def _somewhere(self):
        device = self.rng.choice(self.devices)
        with tf.device(device or None):
            yield

    def _block(self, pool, last, count, depth):
        """Adds operations, whose values go into ``pool``; returns those that touch state last."""
        queued = 0
        for _ in range(count):
            with self._somewhere():
                kind = self.rng.randint(0, 14 if depth else 10)
                if kind <= 2:
                    pool.append(self.rng.choice(_UNARY)(self.rng.choice(pool)))
                elif kind <= 5:
                    pool.append(self.rng.choice(_BINARY)(*self._some(pool, 2)))
                else:
                    with tf.control_dependencies(last):
                        if kind == 10:
                            with tf.device(None):  # it belongs where the queue is
                                last = [self.queue.enqueue(self.rng.choice(pool))]
                            queued += 1
                        else:
                            pool.append(self._stateful(kind, pool, depth))
                            last = [pool[-1].op]
        for _ in range(queued):
            with tf.device(None), tf.control_dependencies(last):
                pool.append(self.queue.dequeue())
                last = [pool[-1].op]
        return last

    def _some(self, pool, count):
        return [self.rng.choice(pool) for _ in range(count)]

    def _stateful(self, kind, pool, depth):
        if kind == 6:
            seed = self.rng.randint(0, 99)
            return tf.random_uniform(SHAPE, 0, 100, dtype=tf.int32, seed=seed)
        if kind <= 9:
            variable = self.rng.choice(self.variables)
            change = self.rng.choice([tf.assign, tf.assign_add, None])
            if change is None:
                return variable.read_value()
            return tf.identity(change(variable, self.rng.choice(pool)))
        return (self._cond, self._while, self._scan, self._nested_read)[kind - 11](pool, depth)

    def _body(self, pool, depth):
        """A block in a function: one value, after all that it does."""
        inner = list(pool)
        last = self._block(inner, [], self.rng.randint(1, 4), depth - 1)
        with tf.control_dependencies(last):
            return tf.identity(inner[-1])

    def _cond(self, pool, depth):
        even = tf.equal(tf.reduce_sum(self.rng.choice(pool)) % 2, 0)
        return tf.cond(even, lambda: self._body(pool, depth), lambda: self._body(pool, depth))

    def _while(self, pool, depth):
        start, bound = self.rng.choice(pool), self.rng.choice(pool)
        limit = self.rng.randint(0, 3)

        def more(i, value):
            with self._somewhere():
                return tf.logical_and(i < limit, tf.reduce_sum(value) > tf.reduce_min(bound) - 50)

        def body(i, value):
            return i + 1, self._body([*pool, value], depth)

        return tf.while_loop(more, body, [0, start])[1]

    def _scan(self, pool, depth):
        rows = tf.stack(self._some(pool, 2))
        result = tf.scan(
            lambda value, row: self._body([*pool, value, row], depth),
            rows,
            initializer=self.rng.choice(pool),
        )
        return result[self.rng.randint(0, 1)]

    def _nested_read(self, pool, depth):
        """A loop that only reads a variable, in a branch of its body."""
        variable = self.rng.choice(self.variables)

        def body(i, value):
            return i + 1, tf.cond(i > 0, lambda: value + variable, lambda: value)

        return tf.while_loop(lambda i, _: i < 3, body, [0, self.rng.choice(pool)])[1]

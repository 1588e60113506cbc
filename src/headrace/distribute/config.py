"""`DistributeConfig`: which strategies an Estimator trains and evaluates by."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["DistributeConfig"]


class DistributeConfig(NamedTuple):
    """``RunConfig(experimental_distribute=...)``.

    Attributes:
        train_distribute: the strategy of training; eval_distribute: that of evaluations.
        remote_cluster: has to be None: each task of a cluster runs the program.

    >>> strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    >>> tf.contrib.distribute.DistributeConfig(train_distribute=strategy).eval_distribute is None
    True
    """

    train_distribute: Any = None
    eval_distribute: Any = None
    remote_cluster: Any = None

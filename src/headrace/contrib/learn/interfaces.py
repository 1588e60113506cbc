"""What Estimators of ``tf.contrib.learn`` are: things that are trained and evaluated."""

from __future__ import annotations

from typing import Any

__all__ = ["BaseEstimator", "Evaluable", "NotFittedError", "Trainable"]


class NotFittedError(ValueError, AttributeError):
    """What is asked of an Estimator needs a trained model, and there is no checkpoint.

    >>> issubclass(tf.contrib.learn.NotFittedError, ValueError)
    True
    """


class Trainable:
    """What has ``fit``.

    >>> issubclass(tf.contrib.learn.Estimator, tf.contrib.learn.Trainable)
    True
    """

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        """Train."""
        raise NotImplementedError(f"{type(self).__name__} has no fit.")


class Evaluable:
    """What has ``evaluate`` and a ``model_dir``.

    >>> issubclass(tf.contrib.learn.Estimator, tf.contrib.learn.Evaluable)
    True
    """

    @property
    def model_dir(self) -> str:
        """Where checkpoints and summaries are."""
        raise NotImplementedError(f"{type(self).__name__} has no model_dir.")

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """The metrics."""
        raise NotImplementedError(f"{type(self).__name__} has no evaluate.")


class BaseEstimator(Trainable, Evaluable):
    """What all Estimators of `tf.contrib.learn` are.

    >>> issubclass(tf.contrib.learn.DNNClassifier, tf.contrib.learn.BaseEstimator)
    True
    """

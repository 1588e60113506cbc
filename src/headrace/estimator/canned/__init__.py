"""Premade estimators: linear models, networks, both, baselines and boosted trees.

In: feature columns and what the labels are. Out: an Estimator. Invariant: variables have the names
that TensorFlow 1.15 gives them, so that checkpoints interchange.

    >>> x = tf.feature_column.numeric_column("x")
    >>> isinstance(tf.estimator.LinearRegressor([x]), tf.estimator.Estimator)
    True
"""

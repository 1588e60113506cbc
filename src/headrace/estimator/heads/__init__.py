"""Heads of estimators: from logits and labels to predictions, loss, metrics and signatures.

In: logits of a model, labels, features with weights. Out: an EstimatorSpec. Invariant: a head makes
no trainable variables; it can serve any number of graphs.

    >>> head = tf.estimator.RegressionHead()
    >>> spec = head.create_estimator_spec({}, "infer", tf.constant([[2.0]]))
    >>> sorted(spec.export_outputs)
    ['predict', 'regression', 'serving_default']
"""

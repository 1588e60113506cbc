"""``tf.estimator``: models that are trained, evaluated, asked and exported by one object.

In: a ``model_fn`` that builds a model for features and labels, and functions that give these. Out:
checkpoints, summaries, metrics, predictions and SavedModels in a ``model_dir``. Invariant: each
call builds a graph of its own, and all that lasts is in the ``model_dir``.

    >>> import tempfile
    >>> def model_fn(features, labels, mode):
    ...     w = tf.get_variable("w", [])
    ...     prediction = w * features
    ...     if mode == tf.estimator.ModeKeys.PREDICT:
    ...         return tf.estimator.EstimatorSpec(mode, prediction)
    ...     loss = tf.losses.mean_squared_error(labels, prediction)
    ...     optimizer = tf.train.GradientDescentOptimizer(0.1)
    ...     train = optimizer.minimize(loss, tf.train.get_global_step())
    ...     return tf.estimator.EstimatorSpec(mode, prediction, loss, train)
    >>> def twice():
    ...     x = tf.constant([1.0, 2.0, 3.0])
    ...     return tf.data.Dataset.from_tensor_slices((x, 2 * x)).repeat().batch(3)
    >>> folder = tempfile.TemporaryDirectory()
    >>> estimator = tf.estimator.Estimator(model_fn, folder.name)
    >>> trained = estimator.train(twice, steps=50)
    >>> round(float(estimator.get_variable_value("w")), 3)
    2.0
    >>> estimator.evaluate(twice, steps=1)["global_step"]
    np.int64(50)
    >>> tf.summary.FileWriterCache.clear()
    >>> folder.cleanup()
"""

from headrace.namespaces.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.estimator.canned.baseline": (
            "BaselineClassifier",
            "BaselineEstimator",
            "BaselineRegressor",
        ),
        "headrace.estimator.canned.boosted_trees": (
            "BoostedTreesClassifier",
            "BoostedTreesEstimator",
            "BoostedTreesRegressor",
        ),
        "headrace.estimator.canned.dnn": ("DNNClassifier", "DNNEstimator", "DNNRegressor"),
        "headrace.estimator.canned.dnn_linear_combined": (
            "DNNLinearCombinedClassifier",
            "DNNLinearCombinedEstimator",
            "DNNLinearCombinedRegressor",
        ),
        "headrace.estimator.canned.linear": (
            "LinearClassifier",
            "LinearEstimator",
            "LinearRegressor",
        ),
        "headrace.estimator.estimator": ("Estimator",),
        "headrace.estimator.exporters": (
            "BestExporter",
            "Exporter",
            "FinalExporter",
            "LatestExporter",
        ),
        "headrace.estimator.extenders": ("add_metrics",),
        "headrace.estimator.heads.binary": ("BinaryClassHead",),
        "headrace.estimator.heads.head": ("Head",),
        "headrace.estimator.heads.multi": ("MultiHead",),
        "headrace.estimator.heads.multi_class": ("MultiClassHead",),
        "headrace.estimator.heads.multi_label": ("MultiLabelHead",),
        "headrace.estimator.heads.regression": (
            "LogisticRegressionHead",
            "PoissonRegressionHead",
            "RegressionHead",
        ),
        "headrace.estimator.mode_keys": ("ModeKeys",),
        "headrace.estimator.parsing_specs": (
            "classifier_parse_example_spec",
            "regressor_parse_example_spec",
        ),
        "headrace.estimator.run_config": ("RunConfig",),
        "headrace.estimator.spec": ("EstimatorSpec",),
        "headrace.estimator.training": (
            "EvalSpec",
            "TrainSpec",
            "train_and_evaluate",
        ),
        "headrace.estimator.warm_start": ("VocabInfo", "WarmStartSettings"),
        "headrace.train.basic_session_run_hooks": (
            "FeedFnHook",
            "FinalOpsHook",
            "GlobalStepWaiterHook",
            "LoggingTensorHook",
            "NanLossDuringTrainingError",
            "NanTensorHook",
            "ProfilerHook",
            "SecondOrStepTimer",
            "StepCounterHook",
            "StopAtStepHook",
        ),
        "headrace.train.saving_hooks": (
            "CheckpointSaverHook",
            "CheckpointSaverListener",
            "SummarySaverHook",
        ),
        "headrace.train.session_run_hook": (
            "SessionRunArgs",
            "SessionRunContext",
            "SessionRunHook",
            "SessionRunValues",
        ),
    },
    modules=("experimental", "export", "inputs", "tpu"),
)

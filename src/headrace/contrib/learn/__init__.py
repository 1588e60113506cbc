"""``tf.contrib.learn``: Estimators with an earlier interface, texts as numbers, small data sets."""

from headrace.contrib.folders import Folder as _Folder
from headrace.namespaces.lazy import lazy as _lazy

_MODULES = (
    "base",
    "datasets",
    "graph_actions",
    "io",
    "learn_runner",
    "monitors",
    "preprocessing",
    "utils",
)


class ModeKeys:
    """What a model is used for.

    >>> tf.contrib.learn.ModeKeys.TRAIN, tf.contrib.learn.ModeKeys.EVAL
    ('train', 'eval')
    """

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"


#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")


__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.contrib.learn.columns": (
            "infer_real_valued_columns_from_input",
            "infer_real_valued_columns_from_input_fn",
        ),
        "headrace.contrib.learn.dnn": ("DNNClassifier", "DNNEstimator", "DNNRegressor"),
        "headrace.contrib.learn.dnn_linear_combined": (
            "DNNLinearCombinedClassifier",
            "DNNLinearCombinedEstimator",
            "DNNLinearCombinedRegressor",
        ),
        "headrace.contrib.learn.dynamic_rnn": ("DynamicRnnEstimator",),
        "headrace.contrib.learn.estimators": ("Estimator", "RunConfig", "SKCompat"),
        "headrace.contrib.learn.experiment": ("Experiment",),
        "headrace.contrib.learn.export": (
            "ExportStrategy",
            "InputFnOps",
            "build_parsing_serving_input_fn",
            "make_export_strategy",
        ),
        "headrace.contrib.learn.frames": (
            "extract_dask_data",
            "extract_dask_labels",
            "extract_pandas_data",
            "extract_pandas_labels",
            "extract_pandas_matrix",
        ),
        "headrace.contrib.learn.graph_actions": ("run_feeds", "run_n"),
        "headrace.contrib.learn.head": ("Head", "no_op_train_fn"),
        "headrace.contrib.learn.heads": (
            "binary_svm_head",
            "multi_class_head",
            "multi_head",
            "multi_label_head",
            "poisson_regression_head",
            "regression_head",
        ),
        "headrace.contrib.learn.interfaces": (
            "BaseEstimator",
            "Evaluable",
            "NotFittedError",
            "Trainable",
        ),
        "headrace.contrib.learn.io": (
            "read_batch_examples",
            "read_batch_features",
            "read_batch_record_features",
            "read_keyed_batch_examples",
            "read_keyed_batch_features",
        ),
        "headrace.contrib.learn.keys": ("PredictionKey", "ProblemType"),
        "headrace.contrib.learn.linear": (
            "LinearClassifier",
            "LinearEstimator",
            "LinearRegressor",
        ),
        "headrace.contrib.learn.metric_spec": ("MetricSpec",),
        "headrace.contrib.learn.model_fn": ("ModelFnOps",),
        "headrace.contrib.learn.svm": ("SVM",),
        "headrace.estimator.placement": ("TaskType",),
        "headrace.train.basic_session_run_hooks": ("NanLossDuringTrainingError",),
    },
    modules=_MODULES,
)

"""Sources of the inner modules of estimators and feature columns, by path below ``tensorflow``.

``tensorflow_estimator`` is another name of the same: it has been a package of its own since 1.13.
"""

from __future__ import annotations

__all__ = ["NAMES", "SOURCES"]

_E = "headrace.estimator"
_HEADS = f"{_E}.heads"
_LEARN = "headrace.contrib.learn"
_COLUMNS = "headrace.feature_column"

#: Below `python.estimator`: where names are looked for, after the module's own place.
_ESTIMATOR = {
    "": (),
    "early_stopping": (f"{_E}.early_stopping",),
    "estimator": (),
    "estimator_lib": (),
    "export": (f"{_E}.export",),
    "export.export": (f"{_E}.export",),
    "export.export_lib": (f"{_E}.export",),
    "export.export_output": (f"{_E}.export",),
    "exporter": (),
    "inputs": (f"{_E}.inputs",),
    "inputs.inputs": (f"{_E}.inputs",),
    "inputs.numpy_io": (f"{_E}.inputs",),
    "inputs.pandas_io": (f"{_E}.inputs",),
    "keras": ("headrace.keras.estimator",),
    "mode_keys": (),
    "model_fn": (f"{_E}.spec",),
    "run_config": (f"{_E}.run_config", f"{_E}.placement"),
    "training": (),
    "util": ("headrace.compat.util",),
    "warm_starting_util": ("headrace.train",),
    "canned": (),
    "canned.baseline": (f"{_E}.canned.baseline",),
    "canned.boosted_trees": (),
    "canned.dnn": (f"{_E}.canned.dnn",),
    "canned.dnn_linear_combined": (f"{_E}.canned.dnn_linear_combined",),
    "canned.head": ("headrace.compat.estimator_heads",),
    "canned.linear": (f"{_E}.canned.linear",),
    "canned.metric_keys": (f"{_HEADS}.keys",),
    "canned.optimizers": (f"{_E}.canned.optimizers",),
    "canned.parsing_utils": (),
    "canned.prediction_keys": (f"{_HEADS}.keys",),
    "canned.rnn": (f"{_E}.canned.rnn",),
    "head": (),
    "head.base_head": (f"{_HEADS}.head",),
    "head.binary_class_head": (f"{_HEADS}.binary",),
    "head.multi_class_head": (f"{_HEADS}.multi_class",),
    "head.multi_head": (f"{_HEADS}.multi",),
    "head.multi_label_head": (f"{_HEADS}.multi_label",),
    "head.regression_head": (f"{_HEADS}.regression",),
    "hooks": (),
    "hooks.basic_session_run_hooks": ("headrace.train",),
    "hooks.hooks": (f"{_E}.experimental",),
    "hooks.session_run_hook": ("headrace.train",),
    "tpu": (f"{_E}.tpu",),
    "tpu.tpu_config": (f"{_E}.tpu",),
    "tpu.tpu_estimator": (f"{_E}.tpu",),
}

#: Modules of `tf.contrib.learn` whose names are not those of the package.
_INNER_LEARN = {
    "estimators.constants": (f"{_LEARN}.keys",),
    "estimators.head": (f"{_LEARN}.heads", f"{_LEARN}.head"),
    "estimators.metric_key": (f"{_LEARN}.keys",),
    "estimators.model_fn": (f"{_LEARN}.model_fn",),
    "estimators.prediction_key": (f"{_LEARN}.keys",),
    "estimators.rnn_common": (f"{_LEARN}.dynamic_rnn",),
    "estimators.run_config": (),
    "learn_io": (f"{_LEARN}.io",),
    "learn_io.generator_io": (f"{_LEARN}.io",),
    "learn_io.graph_io": (f"{_LEARN}.io",),
    "learn_io.numpy_io": (f"{_LEARN}.io",),
    "learn_io.pandas_io": (f"{_LEARN}.io",),
    "utils.input_fn_utils": (f"{_LEARN}.export",),
    "utils.saved_model_export_utils": (f"{_LEARN}.export",),
}

#: Files of TensorFlow's sources.
_COLUMN_FILES = (
    "dense_features dense_features_v2 feature_column feature_column_lib feature_column_v2 "
    "sequence_feature_column serialization utils"
)
#: Those that have the same here.
_COLUMN_MODULES = (
    "columns numeric categorical derived dense shared sequence input_layers linear "
    "feature_layers features state"
)
_ALL_COLUMNS = (_COLUMNS, *(f"{_COLUMNS}.{name}" for name in _COLUMN_MODULES.split()))

SOURCES: dict[str, tuple[str, ...]] = {
    **{
        path: (f"headrace.{path}",)
        for path in ("estimator", *(f"estimator.{n}" for n in ("experimental", "export", "inputs")))
    },
    **{
        f"python.estimator.{path}".rstrip("."): (*own, _E, "headrace")
        for path, own in _ESTIMATOR.items()
    },
    **{
        f"contrib.learn.python.learn.{path}": (*own, _LEARN, "headrace")
        for path, own in _INNER_LEARN.items()
    },
    **{f"python.feature_column.{name}": _ALL_COLUMNS for name in _COLUMN_FILES.split()},
}

_CLASSES = {
    "columns": "FeatureColumn DenseColumn CategoricalColumn SequenceDenseColumn",
    "numeric": "NumericColumn BucketizedColumn",
    "categorical": "HashedCategoricalColumn IdentityCategoricalColumn "
    "VocabularyFileCategoricalColumn VocabularyListCategoricalColumn",
    "derived": "CrossedColumn SequenceCategoricalColumn WeightedCategoricalColumn",
    "dense": "EmbeddingColumn IndicatorColumn",
    "shared": "SharedEmbeddingColumn",
}

#: Names that are called differently here: first classes of columns, before all by programs that
#: look at what a column is.
NAMES: dict[str, dict[str, str]] = {
    "python.feature_column.feature_column": {
        "_LazyBuilder": f"{_COLUMNS}.features.FeatureTransformationCache",
        **{
            f"_{name}": f"{_COLUMNS}.{module}.{name}"
            for module, names in _CLASSES.items()
            for name in names.split()
        },
    },
    "python.estimator.canned.optimizers": {
        "get_optimizer_instance": f"{_E}.canned.optimizers.optimizer_instance",
    },
}

"""``tf.contrib``: what stood beside TensorFlow's core and programs use."""

from headrace.namespaces.lazy import lazy as _lazy

#: Parts that are imported when first asked for.
_MODULES = (
    "bayesflow",
    "boosted_trees",
    "crf",
    "cudnn_rnn",
    "data",
    "cluster_resolver",
    "compiler",
    "deprecated",
    "distribute",
    "distributions",
    "eager",
    "estimator",
    "factorization",
    "feature_column",
    "framework",
    "gan",
    "image",
    "layers",
    "learn",
    "legacy_seq2seq",
    "linear_optimizer",
    "lookup",
    "losses",
    "metrics",
    "mixed_precision",
    "nn",
    "opt",
    "predictor",
    "rnn",
    "seq2seq",
    "slim",
    "staging",
    "summary",
    "tensor_forest",
    "tensorboard",
    "testing",
    "tfprof",
    "tpu",
    "training",
    "util",
)


__getattr__, __dir__ = _lazy(__name__, modules=_MODULES)

"""``tf.contrib.layers``: layers as functions, with collections, scopes and default arguments."""

from headrace.contrib.folders import Folder as _Folder
from headrace.contrib.layers import initializers as initializers
from headrace.contrib.layers import regularizers as regularizers
from headrace.contrib.layers import utils as utils
from headrace.contrib.layers.convolution import *  # noqa: F403
from headrace.contrib.layers.core import *  # noqa: F403
from headrace.contrib.layers.embedding import *  # noqa: F403
from headrace.contrib.layers.initializers import *  # noqa: F403
from headrace.contrib.layers.normalization import *  # noqa: F403
from headrace.contrib.layers.regularizers import *  # noqa: F403
from headrace.namespaces.lazy import lazy as _lazy

#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")


#: What brings `tf.summary` is imported when first asked for.
__getattr__, __dir__ = _lazy(
    __name__,
    {
        "headrace.contrib.layers.feature_column_makers": (
            "bucketized_column",
            "crossed_column",
            "embedding_column",
            "one_hot_column",
            "real_valued_column",
            "shared_embedding_columns",
            "sparse_column_with_hash_bucket",
            "sparse_column_with_integerized_feature",
            "sparse_column_with_keys",
            "sparse_column_with_vocabulary_file",
            "weighted_sparse_column",
        ),
        "headrace.contrib.layers.feature_column_ops": (
            "check_feature_columns",
            "create_feature_spec_for_parsing",
            "infer_real_valued_columns",
            "input_from_feature_columns",
            "joint_weighted_sum_from_feature_columns",
            "make_place_holder_tensors_for_base_features",
            "parse_feature_columns_from_examples",
            "parse_feature_columns_from_sequence_examples",
            "sequence_input_from_feature_columns",
            "transform_features",
            "weighted_sum_from_feature_columns",
        ),
        "headrace.contrib.layers.optimizers": (
            "OPTIMIZER_CLS_NAMES",
            "OPTIMIZER_SUMMARIES",
            "adaptive_clipping_fn",
            "optimize_loss",
        ),
        "headrace.contrib.layers.scattered_column": (
            "SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY",
            "scattered_embedding_column",
        ),
        "headrace.contrib.layers.summaries": (
            "summarize_activation",
            "summarize_activations",
            "summarize_biases",
            "summarize_collection",
            "summarize_tensor",
            "summarize_tensors",
            "summarize_variables",
            "summarize_weights",
        ),
        "headrace.ops.nn.embedding_sparse": ("safe_embedding_lookup_sparse",),
    },
    modules=("feature_columns", "optimizers", "summaries"),
)

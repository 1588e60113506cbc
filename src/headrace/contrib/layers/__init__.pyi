# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.contrib.layers import initializers as initializers
from headrace.contrib.layers import regularizers as regularizers
from headrace.contrib.layers import utils as utils
from headrace.contrib.layers.convolution import *
from headrace.contrib.layers.core import *
from headrace.contrib.layers.embedding import *
from headrace.contrib.layers.initializers import *
from headrace.contrib.layers.normalization import *
from headrace.contrib.layers.regularizers import *
from headrace.contrib.layers import optimizers as optimizers
from headrace.contrib.layers.optimizers import OPTIMIZER_CLS_NAMES as OPTIMIZER_CLS_NAMES
from headrace.contrib.layers.optimizers import OPTIMIZER_SUMMARIES as OPTIMIZER_SUMMARIES
from headrace.contrib.layers.optimizers import adaptive_clipping_fn as adaptive_clipping_fn
from headrace.contrib.layers.optimizers import optimize_loss as optimize_loss
from headrace.contrib.layers import summaries as summaries
from headrace.contrib.layers.summaries import summarize_activation as summarize_activation
from headrace.contrib.layers.summaries import summarize_activations as summarize_activations
from headrace.contrib.layers.summaries import summarize_biases as summarize_biases
from headrace.contrib.layers.summaries import summarize_collection as summarize_collection
from headrace.contrib.layers.summaries import summarize_tensor as summarize_tensor
from headrace.contrib.layers.summaries import summarize_tensors as summarize_tensors
from headrace.contrib.layers.summaries import summarize_variables as summarize_variables
from headrace.contrib.layers.summaries import summarize_weights as summarize_weights
from headrace.ops.nn.embedding_sparse import safe_embedding_lookup_sparse as safe_embedding_lookup_sparse

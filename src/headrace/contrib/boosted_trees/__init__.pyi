# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.contrib.boosted_trees import base_split_handler as base_split_handler
from headrace.contrib.boosted_trees import batch_ops_utils as batch_ops_utils
from headrace.contrib.boosted_trees import categorical_split_handler as categorical_split_handler
from headrace.contrib.boosted_trees import losses as losses
from headrace.contrib.boosted_trees import model_ops as model_ops
from headrace.contrib.boosted_trees import ordinal_split_handler as ordinal_split_handler
from headrace.contrib.boosted_trees import prediction_ops as prediction_ops
from headrace.contrib.boosted_trees import proto as proto
from headrace.contrib.boosted_trees import quantile_ops as quantile_ops
from headrace.contrib.boosted_trees import split_handler_ops as split_handler_ops
from headrace.contrib.boosted_trees import stats_accumulator_ops as stats_accumulator_ops
from headrace.contrib.boosted_trees import training_ops as training_ops

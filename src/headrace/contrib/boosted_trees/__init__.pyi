# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.contrib.boosted_trees import batch_ops_utils as batch_ops_utils
from headrace.contrib.boosted_trees import losses as losses
from headrace.contrib.boosted_trees import model_ops as model_ops
from headrace.contrib.boosted_trees import prediction_ops as prediction_ops
from headrace.contrib.boosted_trees import proto as proto
from headrace.contrib.boosted_trees import stats_accumulator_ops as stats_accumulator_ops
from headrace.contrib.boosted_trees import training_ops as training_ops

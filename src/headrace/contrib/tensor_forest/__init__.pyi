# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.contrib.tensor_forest import client as client
from headrace.contrib.tensor_forest.client import eval_metrics as eval_metrics
from headrace.contrib.tensor_forest.client import random_forest as random_forest
from headrace.contrib.tensor_forest import graphs as _tensor_forest
tensor_forest = _tensor_forest
from headrace.contrib.tensor_forest.graphs import ForestHParams as ForestHParams
from headrace.contrib.tensor_forest.graphs import RandomForestGraphs as RandomForestGraphs

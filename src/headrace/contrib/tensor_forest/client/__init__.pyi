# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.contrib.tensor_forest.client import eval_metrics as eval_metrics
from headrace.contrib.tensor_forest.client import random_forest as random_forest

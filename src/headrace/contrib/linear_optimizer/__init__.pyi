# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.contrib.linear_optimizer.sdca_optimizer import SDCAOptimizer as SDCAOptimizer
from headrace.estimator.canned.sdca import SdcaModel as SdcaModel
from headrace.estimator.canned.sdca import SparseFeatureColumn as SparseFeatureColumn

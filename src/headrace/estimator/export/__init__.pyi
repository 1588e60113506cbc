# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.estimator.export.outputs import ClassificationOutput as ClassificationOutput
from headrace.estimator.export.outputs import ExportOutput as ExportOutput
from headrace.estimator.export.outputs import PredictOutput as PredictOutput
from headrace.estimator.export.outputs import RegressionOutput as RegressionOutput

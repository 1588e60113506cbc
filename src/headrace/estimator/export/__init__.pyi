# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.estimator.export.outputs import ClassificationOutput as ClassificationOutput
from headrace.estimator.export.outputs import ExportOutput as ExportOutput
from headrace.estimator.export.outputs import PredictOutput as PredictOutput
from headrace.estimator.export.outputs import RegressionOutput as RegressionOutput
from headrace.estimator.export.receivers import ServingInputReceiver as ServingInputReceiver
from headrace.estimator.export.receivers import TensorServingInputReceiver as TensorServingInputReceiver
from headrace.estimator.export.receivers import build_parsing_serving_input_receiver_fn as build_parsing_serving_input_receiver_fn
from headrace.estimator.export.receivers import build_raw_serving_input_receiver_fn as build_raw_serving_input_receiver_fn

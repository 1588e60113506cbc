# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.estimator.inputs.arrays import numpy_input_fn as numpy_input_fn
from headrace.estimator.inputs.frames import pandas_input_fn as pandas_input_fn

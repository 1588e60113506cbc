# Written by tools/make_stubs.py from dir(headrace.python_io); do not edit.
from headrace.api.python_io import TFRecordCompressionType as TFRecordCompressionType
from headrace.api.python_io import TFRecordOptions as TFRecordOptions
from headrace.api.python_io import TFRecordWriter as TFRecordWriter
from headrace.api.python_io import tf_record_iterator as tf_record_iterator

"""Files: the functions of ``tf.io``."""

from headrace import io_gfile as gfile
from headrace.files.tfrecord import (
    TFRecordCompressionType,
    TFRecordOptions,
    TFRecordWriter,
    tf_record_iterator,
)
from headrace.graph_util import write_graph

__all__ = [
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "gfile",
    "tf_record_iterator",
    "write_graph",
]

"""Files: the functions of ``tf.io``."""

from headrace import io_gfile as gfile
from headrace.files.tfrecord import (
    TFRecordCompressionType,
    TFRecordOptions,
    TFRecordWriter,
    tf_record_iterator,
)
from headrace.graph_util import write_graph
from headrace.ops.strings_api import decode_base64, encode_base64

__all__ = [
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "decode_base64",
    "encode_base64",
    "gfile",
    "tf_record_iterator",
    "write_graph",
]

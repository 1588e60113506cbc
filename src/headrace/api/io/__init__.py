"""Files, records and their contents: the functions of ``tf.io``."""

from headrace.files.tfrecord import (
    TFRecordCompressionType,
    TFRecordOptions,
    TFRecordWriter,
    tf_record_iterator,
)
from headrace.graph_files.graph_util import write_graph
from headrace.io import gfile
from headrace.namespaces.lazy import lazy as _lazy
from headrace.ops.every import fill as _fill

__all__ = [
    *_fill(__name__),
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "gfile",
    "tf_record_iterator",
    "write_graph",
]

__getattr__, __dir__ = _lazy(__name__, {"headrace.train": ("match_filenames_once",)})

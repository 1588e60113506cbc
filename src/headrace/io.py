"""Files: the functions of ``tf.io``."""

from headrace import io_gfile as gfile
from headrace.files.tfrecord import (
    TFRecordCompressionType,
    TFRecordOptions,
    TFRecordWriter,
    tf_record_iterator,
)
from headrace.graph_util import write_graph
from headrace.ops.decoding_api import (
    decode_compressed,
    decode_csv,
    decode_json_example,
    decode_raw,
    matching_files,
    parse_tensor,
    read_file,
    serialize_tensor,
    write_file,
)
from headrace.ops.parsing_api import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    SparseFeature,
    VarLenFeature,
    parse_example,
    parse_sequence_example,
    parse_single_example,
    parse_single_sequence_example,
)
from headrace.ops.strings_api import decode_base64, encode_base64

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "SparseFeature",
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_base64",
    "decode_compressed",
    "decode_csv",
    "decode_json_example",
    "decode_raw",
    "encode_base64",
    "gfile",
    "matching_files",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "read_file",
    "serialize_tensor",
    "tf_record_iterator",
    "write_file",
    "write_graph",
]

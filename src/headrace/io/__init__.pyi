# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.files.tfrecord import TFRecordCompressionType as TFRecordCompressionType
from headrace.files.tfrecord import TFRecordOptions as TFRecordOptions
from headrace.files.tfrecord import TFRecordWriter as TFRecordWriter
from headrace.files.tfrecord import tf_record_iterator as tf_record_iterator
from headrace.graph_files.graph_util import write_graph as write_graph
from headrace.io import gfile as gfile
__all__ = ['FixedLenFeature', 'FixedLenSequenceFeature', 'PaddingFIFOQueue', 'PriorityQueue', 'QueueBase', 'RandomShuffleQueue', 'SparseFeature', 'VarLenFeature', 'decode_and_crop_jpeg', 'decode_base64', 'decode_bmp', 'decode_compressed', 'decode_csv', 'decode_gif', 'decode_image', 'decode_jpeg', 'decode_json_example', 'decode_png', 'decode_raw', 'deserialize_many_sparse', 'encode_base64', 'encode_jpeg', 'extract_jpeg_shape', 'is_jpeg', 'matching_files', 'parse_example', 'parse_sequence_example', 'parse_single_example', 'parse_single_sequence_example', 'parse_tensor', 'read_file', 'serialize_many_sparse', 'serialize_sparse', 'serialize_tensor', 'write_file', 'TFRecordCompressionType', 'TFRecordOptions', 'TFRecordWriter', 'gfile', 'tf_record_iterator', 'write_graph']
from headrace.ops.image.files_api import decode_and_crop_jpeg as decode_and_crop_jpeg
from headrace.ops.image.files_api import decode_bmp as decode_bmp
from headrace.ops.image.files_api import decode_gif as decode_gif
from headrace.ops.image.files_api import decode_image as decode_image
from headrace.ops.image.files_api import decode_jpeg as decode_jpeg
from headrace.ops.image.files_api import decode_png as decode_png
from headrace.ops.image.files_api import encode_jpeg as encode_jpeg
from headrace.ops.image.files_api import extract_jpeg_shape as extract_jpeg_shape
from headrace.ops.image.files_api import is_jpeg as is_jpeg
from headrace.ops.io.queues_api import PaddingFIFOQueue as PaddingFIFOQueue
from headrace.ops.io.queues_api import PriorityQueue as PriorityQueue
from headrace.ops.io.queues_api import QueueBase as QueueBase
from headrace.ops.io.queues_api import RandomShuffleQueue as RandomShuffleQueue
from headrace.ops.parsing.api import parse_example as parse_example
from headrace.ops.parsing.api import parse_sequence_example as parse_sequence_example
from headrace.ops.parsing.api import parse_single_example as parse_single_example
from headrace.ops.parsing.api import parse_single_sequence_example as parse_single_sequence_example
from headrace.ops.parsing.decoding_api import decode_compressed as decode_compressed
from headrace.ops.parsing.decoding_api import decode_csv as decode_csv
from headrace.ops.parsing.decoding_api import decode_json_example as decode_json_example
from headrace.ops.parsing.decoding_api import decode_raw as decode_raw
from headrace.ops.parsing.decoding_api import matching_files as matching_files
from headrace.ops.parsing.decoding_api import parse_tensor as parse_tensor
from headrace.ops.parsing.decoding_api import read_file as read_file
from headrace.ops.parsing.decoding_api import serialize_tensor as serialize_tensor
from headrace.ops.parsing.decoding_api import write_file as write_file
from headrace.ops.parsing.features import FixedLenFeature as FixedLenFeature
from headrace.ops.parsing.features import FixedLenSequenceFeature as FixedLenSequenceFeature
from headrace.ops.parsing.features import SparseFeature as SparseFeature
from headrace.ops.parsing.features import VarLenFeature as VarLenFeature
from headrace.ops.sparse.serial import deserialize_many_sparse as deserialize_many_sparse
from typing import Any as _Any
from builtins import str as _str
from headrace.graph.tensor import Tensor as _Tensor
def serialize_many_sparse(
    sp_input: _Any,
    name: _str | None = None,
    out_type: _Any = ...,
) -> _Tensor: ...
def serialize_sparse(sp_input: _Any, name: _str | None = None, out_type: _Any = ...) -> _Tensor: ...
from headrace.ops.strings.api import decode_base64 as decode_base64
from headrace.ops.strings.api import encode_base64 as encode_base64
from headrace.train import match_filenames_once as match_filenames_once

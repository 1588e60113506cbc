"""``tf.strings``: operations on strings."""

from headrace.ops.strings.api import (
    as_string,
    format,
    lower,
    reduce_join,
    regex_full_match,
    regex_replace,
    split,
    substr,
    unicode_transcode,
    unsorted_segment_join,
    upper,
)
from headrace.ops.strings.api import string_join as join
from headrace.ops.strings.api import string_length as length
from headrace.ops.strings.api import string_strip as strip
from headrace.ops.strings.api import string_to_hash_bucket as to_hash_bucket
from headrace.ops.strings.api import string_to_hash_bucket_fast as to_hash_bucket_fast
from headrace.ops.strings.api import string_to_hash_bucket_strong as to_hash_bucket_strong
from headrace.ops.strings.api import string_to_number as to_number
from headrace.ops.strings.ragged import (
    bytes_split,
    ngrams,
    unicode_decode,
    unicode_decode_with_offsets,
    unicode_encode,
    unicode_split,
    unicode_split_with_offsets,
)

__all__ = [
    "as_string",
    "bytes_split",
    "format",
    "join",
    "length",
    "lower",
    "ngrams",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "split",
    "strip",
    "substr",
    "to_hash_bucket",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
    "unicode_decode",
    "unicode_decode_with_offsets",
    "unicode_encode",
    "unicode_split",
    "unicode_split_with_offsets",
    "unicode_transcode",
    "unsorted_segment_join",
    "upper",
]

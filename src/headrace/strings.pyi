# Written by tools/make_stubs.py from strings.py; do not edit.
__all__ = ['as_string', 'bytes_split', 'format', 'join', 'length', 'lower', 'ngrams', 'reduce_join', 'regex_full_match', 'regex_replace', 'split', 'strip', 'substr', 'to_hash_bucket', 'to_hash_bucket_fast', 'to_hash_bucket_strong', 'to_number', 'unicode_decode', 'unicode_decode_with_offsets', 'unicode_encode', 'unicode_split', 'unicode_split_with_offsets', 'unicode_transcode', 'unsorted_segment_join', 'upper']
from headrace.ops.strings.api import as_string as as_string
from headrace.ops.strings.api import format as format
from headrace.ops.strings.api import string_join as _join
join = _join
from headrace.ops.strings.api import string_length as _length
length = _length
from headrace.ops.strings.api import lower as lower
from headrace.ops.strings.api import reduce_join as reduce_join
from headrace.ops.strings.api import regex_full_match as regex_full_match
from headrace.ops.strings.api import regex_replace as regex_replace
from headrace.ops.strings.api import split as split
from headrace.ops.strings.api import string_strip as _strip
strip = _strip
from headrace.ops.strings.api import substr as substr
from headrace.ops.strings.api import string_to_hash_bucket as _to_hash_bucket
to_hash_bucket = _to_hash_bucket
from headrace.ops.strings.api import string_to_hash_bucket_fast as _to_hash_bucket_fast
to_hash_bucket_fast = _to_hash_bucket_fast
from headrace.ops.strings.api import string_to_hash_bucket_strong as _to_hash_bucket_strong
to_hash_bucket_strong = _to_hash_bucket_strong
from headrace.ops.strings.api import string_to_number as _to_number
to_number = _to_number
from headrace.ops.strings.api import unicode_transcode as unicode_transcode
from headrace.ops.strings.api import unsorted_segment_join as unsorted_segment_join
from headrace.ops.strings.api import upper as upper
from headrace.ops.strings.ragged import bytes_split as bytes_split
from headrace.ops.strings.ragged import ngrams as ngrams
from headrace.ops.strings.ragged import unicode_decode as unicode_decode
from headrace.ops.strings.ragged import unicode_decode_with_offsets as unicode_decode_with_offsets
from headrace.ops.strings.ragged import unicode_encode as unicode_encode
from headrace.ops.strings.ragged import unicode_split as unicode_split
from headrace.ops.strings.ragged import unicode_split_with_offsets as unicode_split_with_offsets

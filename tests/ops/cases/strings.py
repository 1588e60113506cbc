"""String ops run on the host; their values are goldens and tests of their own."""

from __future__ import annotations

_EACH = (
    *("StringJoin", "StringLength", "StringStrip", "StringLower", "StringUpper", "Substr"),
    *("EncodeBase64", "DecodeBase64"),
)
_PATTERNS = ("RegexFullMatch", "RegexReplace", "StaticRegexFullMatch", "StaticRegexReplace")
_CONVERT = (
    *("AsString", "StringToNumber"),
    *("StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong"),
    *("UnicodeDecode", "UnicodeDecodeWithOffsets", "UnicodeEncode", "UnicodeTranscode"),
)
_SHAPES = (
    *("StringSplit", "StringSplitV2", "ReduceJoin", "UnsortedSegmentJoin", "EditDistance"),
    "StringNGrams",
)

COVERED = {
    **dict.fromkeys(_EACH, "tests/ops/strings/test_strings.py"),
    **dict.fromkeys(_PATTERNS, "tests/ops/strings/test_strings_patterns.py"),
    **dict.fromkeys(_CONVERT, "tests/ops/strings/test_strings_convert.py"),
    **dict.fromkeys(_SHAPES, "tests/ops/strings/test_strings_split.py"),
}

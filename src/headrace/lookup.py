"""``tf.lookup``: tables from keys to values. ``tf.contrib.lookup`` has more of them."""

from types import SimpleNamespace as _SimpleNamespace

from headrace.lookup_initializers import (
    KeyValueTensorInitializer,
    TextFileIndex,
    TextFileInitializer,
)
from headrace.lookup_tables import MutableDenseHashTable as _MutableDenseHashTable
from headrace.lookup_tables import StaticHashTable
from headrace.lookup_vocabulary import StaticVocabularyTable

experimental = _SimpleNamespace(DenseHashTable=_MutableDenseHashTable)

__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
    "experimental",
]

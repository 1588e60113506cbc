"""``tf.lookup``: tables from keys to values. ``tf.contrib.lookup`` has more of them."""

from types import SimpleNamespace as _SimpleNamespace

from headrace.lookup.frozen_tables import FrozenEmbeddingTable
from headrace.lookup.initializers import (
    KeyValueTensorInitializer,
    TextFileIndex,
    TextFileInitializer,
)
from headrace.lookup.tables import MutableDenseHashTable as _MutableDenseHashTable
from headrace.lookup.tables import StaticHashTable
from headrace.lookup.vocabulary import StaticVocabularyTable

experimental = _SimpleNamespace(DenseHashTable=_MutableDenseHashTable)

__all__ = [
    "FrozenEmbeddingTable",
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
    "experimental",
]

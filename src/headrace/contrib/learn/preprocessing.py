"""``tf.contrib.learn.preprocessing``: texts and categories as numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from headrace import gfile, logging
from headrace.errors import DataLossError

#: Runs of capitals, words inside CamelCase, and words.
_TOKEN = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)
_FORMAT = "headrace.VocabularyProcessor"


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each text.

    Raises:
        TypeError: if it is no list of texts.
    """
    for text in iterator:
        yield _TOKEN.findall(text)


class CategoricalVocabulary:
    """Numbers of categories, from 1 on; 0 stands for all that are not known.

    Args:
        unknown_token: name of category 0.
        support_reverse: whether `reverse` can be asked.

    >>> vocabulary = tf.contrib.learn.preprocessing.CategoricalVocabulary()
    >>> vocabulary.get("red"), vocabulary.get("blue"), vocabulary.get("red")
    (1, 2, 1)
    >>> vocabulary.reverse(2)
    'blue'
    """

    def __init__(self, unknown_token: Any = "<UNK>", support_reverse: bool = True) -> None:
        self._unknown_token = unknown_token
        self._mapping: dict[Any, int] = {unknown_token: 0}
        self._support_reverse = support_reverse
        self._reverse_mapping: list[Any] = [unknown_token]
        self._freq: dict[Any, int] = {}
        self._freeze = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """From now on new categories are not known; or they are again."""
        self._freeze = freeze

    def get(self, category: Any) -> int:
        """The number of a category; a new one gets the next, unless frozen."""
        if category not in self._mapping:
            if self._freeze:
                return 0
            self._mapping[category] = len(self._mapping)
            if self._support_reverse:
                self._reverse_mapping.append(category)
        return self._mapping[category]

    def add(self, category: Any, count: int = 1) -> None:
        """Count a category ``count`` times more."""
        if self.get(category) > 0:
            self._freq[category] = self._freq.get(category, 0) + count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Keep what was counted more than ``min_frequency`` (less than ``max_frequency``) times.

        Numbers are given anew, the most frequent first, then by name.
        """
        by_name = sorted(self._freq.items(), key=lambda x: (isinstance(x[0], str), x[0]))
        kept = [
            (category, count)
            for category, count in sorted(by_name, key=lambda x: -x[1])
            if count > min_frequency and not 0 < max_frequency <= count
        ]
        names = [self._unknown_token, *(category for category, _ in kept)]
        self._mapping = {category: i for i, category in enumerate(names)}
        self._reverse_mapping = names if self._support_reverse else [self._unknown_token]
        self._freq = dict(kept)

    def reverse(self, class_id: int) -> Any:
        """The category of a number. Raises ValueError if the vocabulary does not keep names."""
        if not self._support_reverse:
            raise ValueError(
                "This vocabulary wasn't initialized with support_reverse to support reverse() "
                "function."
            )
        return self._reverse_mapping[class_id]


class VocabularyProcessor:
    """Texts as word numbers ``[max_document_length]``; what is too short is filled with 0.

    Args:
        min_frequency: words that are not more frequent are not known.
        vocabulary: one to start from.
        tokenizer_fn: function of an iterator of texts that gives the words of each.

    >>> processor = tf.contrib.learn.preprocessing.VocabularyProcessor(max_document_length=4)
    >>> [row.tolist() for row in processor.fit_transform(["a cat", "the cat sat on a mat"])]
    [[1, 2, 0, 0], [3, 2, 4, 5]]
    >>> len(processor.vocabulary_)
    7
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[Any]], Iterable[Any]] | None = None,
    ) -> None:
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = CategoricalVocabulary() if vocabulary is None else vocabulary
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[Any], unused_y: Any = None) -> VocabularyProcessor:
        """Learn the words of all texts, and no more after that; returns itself."""
        for tokens in self._tokenizer(raw_documents):
            for token in tokens:
                self.vocabulary_.add(token)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents: Any, unused_y: Any = None) -> Iterator[Any]:
        """`fit`, then `transform`."""
        self.fit(raw_documents)
        return self.transform(raw_documents)

    def transform(self, raw_documents: Iterable[Any]) -> Iterator[Any]:
        """Gives int64 ``[max_document_length]`` for each text."""
        for tokens in self._tokenizer(raw_documents):
            numbers = np.zeros(self.max_document_length, np.int64)
            for i, token in enumerate(list(tokens)[: self.max_document_length]):
                numbers[i] = self.vocabulary_.get(token)
            yield numbers

    def reverse(self, documents: Iterable[Any]) -> Iterator[str]:
        """Gives the words of each row of numbers."""
        for numbers in documents:
            yield " ".join(str(self.vocabulary_.reverse(int(n))) for n in numbers)

    def save(self, filename: str) -> None:
        """Write the vocabulary as JSON; a tokenizer of your own is not written."""
        if self._tokenizer is not tokenizer:
            logging.warning("The tokenizer of a VocabularyProcessor is not saved with it.")
        words = self.vocabulary_
        content = {
            "format": _FORMAT,
            "max_document_length": self.max_document_length,
            "min_frequency": self.min_frequency,
            "words": sorted(words._mapping, key=words._mapping.__getitem__),
            "frequencies": list(words._freq.items()),
            "support_reverse": words._support_reverse,
            "frozen": words._freeze,
        }
        with gfile.Open(filename, "wb") as file:
            file.write(json.dumps(content).encode())

    @classmethod
    def restore(cls, filename: str) -> VocabularyProcessor:
        """Read what `save` wrote.

        Raises:
            ValueError: if it is something else, such as a pickle that TensorFlow wrote: reading
                those could run any code.
            DataLossError: if it is damaged.
        """
        with gfile.Open(filename, "rb") as file:
            data = file.read()
        try:
            content = json.loads(data)
        except (ValueError, RecursionError):
            content = {}
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ValueError(
                f"{filename} is not a vocabulary that Headrace saved. Vocabularies of TensorFlow "
                "are pickles, which Headrace does not read because they may run any code: fit the "
                "VocabularyProcessor again and save it."
            )
        try:
            length, least = int(content["max_document_length"]), int(content["min_frequency"])
            first, *rest = map(str, content["words"])
            words = CategoricalVocabulary(first, bool(content["support_reverse"]))
            for word in rest:
                words.get(word)
            words._freq = {str(word): int(count) for word, count in content["frequencies"]}
            words.freeze(bool(content["frozen"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataLossError(
                None, None, f"{filename} is damaged: it holds no whole vocabulary ({error!r})."
            ) from error
        return cls(length, least, words)


class ByteProcessor:
    """Texts as their bytes ``[max_document_length]``; what is too short is filled with 0.

    >>> processor = tf.contrib.learn.preprocessing.ByteProcessor(max_document_length=4)
    >>> [row.tolist() for row in processor.transform(["ab", "hello"])]
    [[97, 98, 0, 0], [104, 101, 108, 108]]
    """

    def __init__(self, max_document_length: int) -> None:
        self.max_document_length = max_document_length

    def fit(self, x: Any) -> ByteProcessor:
        """Nothing is to be learnt; returns itself."""
        return self

    def fit_transform(self, x: Iterable[Any]) -> Iterator[Any]:
        """`transform`."""
        return self.transform(x)

    def transform(self, x: Iterable[Any]) -> Iterator[Any]:
        """Gives uint8 ``[max_document_length]`` for each text (or bytes)."""
        for document in x:
            data = document.encode() if isinstance(document, str) else bytes(document)
            found = np.zeros(self.max_document_length, np.uint8)
            cut = np.frombuffer(data[: self.max_document_length], np.uint8)
            found[: len(cut)] = cut
            yield found

    def reverse(self, x: Iterable[Any]) -> Iterator[str]:
        """Gives the text of each row of bytes; "" if it is no UTF-8."""
        for row in x:
            data = np.trim_zeros(np.asarray(row).astype(np.uint8), trim="b").tobytes()
            try:
                yield data.decode()
            except UnicodeDecodeError:
                yield ""


class CategoricalProcessor:
    """Rows of categories as numbers, with a vocabulary for each column.

    Args:
        min_frequency: categories that are not more frequent are not known.
        share: one vocabulary for all columns.
        vocabularies: those to start from.

    >>> processor = tf.contrib.learn.preprocessing.CategoricalProcessor()
    >>> [row.tolist() for row in processor.fit_transform([["red", "big"], ["blue", "big"]])]
    [[1, 1], [2, 1]]
    """

    def __init__(
        self,
        min_frequency: int = 0,
        share: bool = False,
        vocabularies: list[CategoricalVocabulary] | None = None,
    ) -> None:
        self.min_frequency = min_frequency
        self.share = share
        self.vocabularies_ = list(vocabularies or ())

    def freeze(self, freeze: bool = True) -> None:
        """From now on new categories are not known; or they are again."""
        for vocabulary in self.vocabularies_:
            vocabulary.freeze(freeze)

    def fit(self, x: Any, unused_y: Any = None) -> CategoricalProcessor:
        """Learn the categories of all rows, and no more after that; returns itself."""
        rows = [list(row) if hasattr(row, "__iter__") else [row] for row in x]
        if not self.vocabularies_ and rows:
            columns = len(rows[0])
            one = CategoricalVocabulary()
            self.vocabularies_ = [
                one if self.share else CategoricalVocabulary() for _ in range(columns)
            ]
        for row in rows:
            for vocabulary, value in zip(self.vocabularies_, row, strict=True):
                if not (isinstance(value, float) and np.isnan(value)):
                    vocabulary.add(value)
        if self.min_frequency > 0:
            for vocabulary in self.vocabularies_:
                vocabulary.trim(self.min_frequency)
        self.freeze()
        return self

    def fit_transform(self, x: Any, unused_y: Any = None) -> Iterator[Any]:
        """`fit`, then `transform`."""
        self.fit(x)
        return self.transform(x)

    def transform(self, x: Any) -> Iterator[Any]:
        """Gives int64 numbers for each row."""
        self.freeze()
        for row in x:
            values = list(row) if hasattr(row, "__iter__") else [row]
            found = np.zeros(len(values), np.int64)
            for i, (vocabulary, value) in enumerate(zip(self.vocabularies_, values, strict=True)):
                if not (isinstance(value, float) and np.isnan(value)):
                    found[i] = vocabulary.get(value)
            yield found


__all__ = [
    "ByteProcessor",
    "CategoricalProcessor",
    "CategoricalVocabulary",
    "VocabularyProcessor",
    "tokenizer",
]

"""`tf.keras.preprocessing.text`: words of texts as numbers. Keras 3 has it no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

__all__ = ["Tokenizer", "text_to_word_sequence"]

_FILTERS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'


def text_to_word_sequence(
    text: str, filters: str = _FILTERS, lower: bool = True, split: str = " "
) -> list[str]:
    """The words of a text, of one scalar string.

    Args:
        text: a string.
        filters: characters that stand for ``split``.
        lower: make all letters small.
        split: what stands between words.

    Raises:
        TypeError: if ``text`` is no string.

    >>> tf.keras.preprocessing.text.text_to_word_sequence("Well, well!")
    ['well', 'well']
    """
    if not isinstance(text, str):
        raise TypeError(f"text_to_word_sequence: text must be a string, not {text!r:.100}.")
    if lower:
        text = text.lower()
    words = text.translate(dict.fromkeys(map(ord, filters), split)).split(split)
    return [word for word in words if word]


class Tokenizer:
    """Numbers the words of texts: the most frequent is 1, 0 stands for no word.

    Args:
        num_words: numbers from this on are left out of sequences; the vocabulary keeps them.
        filters, lower, split: as for `text_to_word_sequence`.
        char_level: every character is a word.
        oov_token: what takes the place of words that are not known; it has the number 1.

    >>> tokenizer = tf.keras.preprocessing.text.Tokenizer()
    >>> tokenizer.fit_on_texts(["a cat", "a dog"])
    >>> tokenizer.texts_to_sequences(["dog a bird"])
    [[3, 1]]
    """

    def __init__(
        self,
        num_words: int | None = None,
        filters: str = _FILTERS,
        lower: bool = True,
        split: str = " ",
        char_level: bool = False,
        oov_token: str | None = None,
        document_count: int = 0,
    ) -> None:
        self.num_words = num_words
        self.filters, self.lower, self.split = filters, lower, split
        self.char_level, self.oov_token = char_level, oov_token
        self.document_count = document_count
        self.word_counts: Counter[str] = Counter()
        self.word_docs: Counter[str] = Counter()
        self.word_index: dict[str, int] = {}
        self.index_word: dict[int, str] = {}

    def _words(self, text: Any) -> list[str]:
        if self.char_level or not isinstance(text, str):
            return [str(w).lower() if self.lower else str(w) for w in text]
        return text_to_word_sequence(text, self.filters, self.lower, self.split)

    def fit_on_texts(self, texts: Iterable[Any]) -> None:
        """Count the words of texts, which are strings or lists of words, and number them."""
        for text in texts:
            words = self._words(text)
            self.document_count += 1
            self.word_counts.update(words)
            self.word_docs.update(set(words))
        # A stable sort: of words that are equally frequent, the one that came first.
        ordered = sorted(self.word_counts, key=self.word_counts.__getitem__, reverse=True)
        known = ([self.oov_token] if self.oov_token is not None else []) + ordered
        self.word_index = {word: i for i, word in enumerate(known, 1)}
        self.index_word = {i: word for word, i in self.word_index.items()}

    def texts_to_sequences(self, texts: Iterable[Any]) -> list[list[int]]:
        """The numbers of the words of each text."""
        return [self._numbers(self._words(text)) for text in texts]

    def _numbers(self, words: Sequence[str]) -> list[int]:
        unknown = None if self.oov_token is None else self.word_index.get(self.oov_token)
        found = []
        for word in words:
            number = self.word_index.get(word)
            if number is None or (self.num_words is not None and number >= self.num_words):
                number = unknown
            if number is not None:
                found.append(number)
        return found

    def sequences_to_texts(self, sequences: Iterable[Sequence[int]]) -> list[str]:
        """The words of numbers, with spaces between them."""
        return [" ".join(self._known(sequence)) for sequence in sequences]

    def _known(self, sequence: Sequence[int]) -> Iterable[str]:
        for number in sequence:
            word = self.index_word.get(int(number))
            if word is None or (self.num_words is not None and number >= self.num_words):
                word = self.oov_token
            if word is not None:
                yield word

    def texts_to_matrix(self, texts: Iterable[Any], mode: str = "binary") -> Any:
        """`sequences_to_matrix` of the texts' numbers."""
        return self.sequences_to_matrix(self.texts_to_sequences(texts), mode)

    def sequences_to_matrix(self, sequences: Sequence[Sequence[int]], mode: str = "binary") -> Any:
        """How often each word comes, float64 [texts, words].

        Args:
            mode: "binary" (0 or 1), "count", "freq" (the share of the text's words) or "tfidf".

        Raises:
            ValueError: if the mode is another, or without ``num_words`` nothing was fitted.
        """
        if mode not in ("binary", "count", "freq", "tfidf"):
            raise ValueError(f"Tokenizer: unknown mode {mode!r}: binary, count, freq or tfidf.")
        if self.num_words is None and not self.word_index:
            raise ValueError("Tokenizer: give num_words, or call fit_on_texts before.")
        width = self.num_words or len(self.word_index) + 1
        matrix = np.zeros((len(sequences), width))
        for row, sequence in zip(matrix, sequences, strict=True):
            for number, count in Counter(n for n in sequence if n < width).items():
                row[number] = self._weight(number, count, len(sequence), mode)
        return matrix

    def _weight(self, number: int, count: int, length: int, mode: str) -> float:
        if mode == "binary":
            return 1.0
        if mode == "count":
            return float(count)
        if mode == "freq":
            return count / length
        documents = self.word_docs.get(self.index_word.get(number, ""), 0)
        rarity = np.log(1 + self.document_count / (1 + documents))
        return float((1 + np.log(count)) * rarity)

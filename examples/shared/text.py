"""Real English text that is on every machine with Python, as numbers of words."""

import ast
import collections
import importlib.util
import pathlib
import re

import numpy as np


def words_of(text):
    """Lower-case words, numbers and punctuation marks, in order."""
    return re.findall(r"[a-z']+|[0-9]+|[^\sa-z0-9]", text.lower())


def read(path=None, packages=()):
    """A file, or the docstrings of installed packages, or else the topics of Python's help().

    The topics have 120,000 words, 3,200 different ones; with packages there is more than enough for
    a vocabulary of 40,000.
    """
    if path:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    if packages:
        return "\n\n".join(text for package in packages for text in docstrings(package))
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name] for name in sorted(topics))


def docstrings(package):
    """Those of all modules of a package, which are read but not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(f"There is no package {package!r} here.")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for folder in spec.submodule_search_locations:
        for path in sorted(pathlib.Path(folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8", errors="replace"))):
                if isinstance(node, documented):
                    yield ast.get_docstring(node) or ""


class Corpus:
    """A text as numbers: 0 is a rare word, 1 the most frequent one, and so on.

    Attributes:
        train, held_out: int32 arrays; every tenth thousand of words is held out.
        vocabulary: how many numbers there are.
        entropy: the mean loss, in nats, of a model that knows how frequent each word is, no more.
    """

    def __init__(self, text, most_words):
        words = words_of(text)
        frequent = collections.Counter(words).most_common(most_words - 1)
        number = {word: i for i, (word, _) in enumerate(frequent, 1)}
        self.vocabulary = len(number) + 1
        codes = np.array([number.get(word, 0) for word in words], np.int32)
        if len(codes) < 10_000:
            raise ValueError(f"The text has {len(codes)} words, too few to learn from: 10,000 are.")
        held_out = np.arange(len(codes)) // 1000 % 10 == 9
        self.train, self.held_out = codes[~held_out], codes[held_out]
        counts = np.bincount(self.train, minlength=self.vocabulary) + 1.0
        self.entropy = -np.mean(np.log(counts / counts.sum())[self.held_out])

    @staticmethod
    def batch(codes, seed, sentences, length):
        """``sentences`` pieces from anywhere, and the words that follow each word of theirs."""
        starts = np.random.RandomState(seed).randint(0, len(codes) - length - 1, sentences)
        pieces = np.stack([codes[s : s + length + 1] for s in starts])
        return pieces[:, :-1], pieces[:, 1:]

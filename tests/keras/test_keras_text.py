"""Words of texts as numbers: those of TensorFlow 1.15."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import headrace as tf

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from make_keras_text_goldens import results  # noqa: E402

text = tf.keras.preprocessing.text


def test_numbers_sequences_and_matrices_are_tensorflows():
    stored = json.loads((ROOT / "tests" / "golden" / "keras_text.json").read_text())
    assert results(text) == stored


def test_what_is_wrong_is_said():
    with pytest.raises(TypeError, match="text must be a string, not 3"):
        text.text_to_word_sequence(3)
    with pytest.raises(ValueError, match="unknown mode 'squares': binary, count, freq or tfidf"):
        text.Tokenizer(num_words=3).texts_to_matrix(["a"], "squares")
    with pytest.raises(ValueError, match="give num_words, or call fit_on_texts"):
        text.Tokenizer().texts_to_matrix(["a"])
    with pytest.raises(ValueError, match="period=3 is not there"):
        tf.keras.callbacks.ModelCheckpoint("m.keras", period=3)

"""Write ``tests/golden/keras_text.json``: what the Tokenizer of TensorFlow 1.15 gives.

OLD_PEER_PYTHON tools/make_keras_text_goldens.py
"""

import json
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "tests" / "golden" / "keras_text.json"
TEXTS = ["The cat, the dog!", "a DOG\tran; the cat", "", "bird"]
OPTIONS = [
    {},
    {"num_words": 3},
    {"num_words": 4, "oov_token": "?"},
    {"lower": False, "filters": "!"},
    {"char_level": True},
]


def results(text):
    """Numbers, sequences, texts and matrices for each of the options."""
    found = [text.text_to_word_sequence("It's (a) test--ok", lower=False)]
    for options in OPTIONS:
        tokenizer = text.Tokenizer(**options)
        tokenizer.fit_on_texts(TEXTS)
        sequences = tokenizer.texts_to_sequences([*TEXTS, "the unknown bird ran"])
        found.append(tokenizer.word_index)
        found.append([sequences, tokenizer.sequences_to_texts(sequences)])
        for mode in ("binary", "count", "freq", "tfidf"):
            matrix = tokenizer.texts_to_matrix(["the cat the", "dog bird"], mode)
            found.append(matrix.round(9).tolist())
    return found


if __name__ == "__main__":
    import tensorflow as tf  # type: ignore[import-not-found,unused-ignore]

    OUT.write_text(json.dumps(results(tf.keras.preprocessing.text), indent=None) + "\n")

"""How the programs of `examples/` run in the tests, and what they have to reach.

This module needs nothing but Python 3.7: `tools/make_example_goldens.py` uses it under TensorFlow.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
MNIST = ["--data_dir", str(ROOT / "tests" / "data" / "mnist5k")]
#: So many losses are compared with TensorFlow's.
FIRST = 10


class Case:
    """One program.

    Attributes:
        arguments: of the shortened run.
        measure: the name in the output of what it has learnt; ``least`` or ``most`` bounds it.
        golden: whether TensorFlow gives the same losses; else why not.
        rtol: how far the losses may be from TensorFlow's.
    """

    def __init__(
        self, arguments, measure, least=None, most=None, golden=True, rtol=1e-4, requires=()
    ):
        self.arguments = arguments
        self.measure = measure
        self.least = least
        self.most = most
        self.golden = golden
        self.rtol = rtol
        self.requires = requires


CASES = {
    "autoencoder": Case([*MNIST, "--steps=250"], "error", most=0.07),
    "bidirectional_rnn": Case(["--steps=200"], "accuracy", least=0.93),
    "boosted_trees": Case(
        [], "accuracy", least=0.9, golden="prints no losses; 1.15 gives the same accuracy, 0.905"
    ),
    "cifar_estimator": Case([], "accuracy", least=0.97, rtol=1e-3),
    "char_rnn": Case(["--steps=150", "--keep_prob=1"], "final", most=0.6),
    "csv_input": Case(["--steps=200"], "error", most=0.15),
    "ctc_sequence": Case(["--steps=150"], "greedy", most=0.02),
    "deepfm_estimator": Case([], "auc", least=0.82),
    "dqn_gridworld": Case([], "return", least=0.7),
    "gan": Case(["--steps=1000"], "error", most=0.15),
    "gru_static": Case(["--steps=400"], "accuracy", least=0.95),
    "image_augmentation": Case(
        ["--steps=30"],
        "accuracy",
        least=0.9,
        golden="JPEG files are written and read by other code, a grey level apart",
    ),
    "matrix_factorization": Case(["--steps=400"], "ratio", most=0.1),
    "mnist_estimator": Case([*MNIST], "accuracy", least=0.93),
    "monitored_training": Case([], "accuracy", least=0.9),
    "padded_batches": Case(["--steps=150"], "accuracy", least=0.97),
    "policy_gradient": Case(["--steps=150"], "reached", least=0.95),
    "records_input": Case(
        [],
        "accuracy",
        least=0.93,
        golden="which records a batch has depends on threads, in TensorFlow too",
    ),
    "ratings_estimator": Case(
        [],
        "error",
        most=0.25,
        golden="shuffle_and_repeat draws in the order of TensorFlow 2.21, not of 1.15",
    ),
    "records_dataset": Case([*MNIST, "--epochs=2"], "accuracy", least=0.83),
    "saved_model_export": Case([], "difference", most=1e-5),
    "seq2seq_attention": Case(["--steps=100"], "accuracy", least=0.9),
    "slim_convnet": Case([*MNIST, "--steps=100"], "accuracy", least=0.9),
    "text_estimator": Case(
        [], "accuracy", least=0.88, golden="prints no losses; 1.15 gives the same accuracy, 0.9133"
    ),
    "text_classifier": Case(["--steps=60"], "accuracy", least=0.97),
    "train_and_evaluate": Case(
        [], "accuracy", least=0.95, golden="prints no losses: it runs under every TF_CONFIG"
    ),
    "vae": Case([*MNIST, "--steps=200"], "bound", most=165),
    "wide_and_deep": Case(["--steps=300"], "auc", least=0.7),
    "wide_deep_estimator": Case(
        [], "auc", least=0.8, golden="prints no losses; 1.15 gives an AUC of 0.828"
    ),
    "word2vec_nce": Case([], "neighbours", least=0.8),
    "convnet": Case([*MNIST, "--steps=100"], "accuracy", least=0.85, rtol=1e-3),
    "frozen_graph": Case([], "accuracy", least=0.95),
    "graph_convolution": Case(["--steps=60"], "accuracy", least=0.9),
    "keras_functional": Case(
        ["--epochs=8"], "department", least=0.9, golden="initial weights are drawn by Keras 3"
    ),
    "keras_in_session": Case(
        [*MNIST], "accuracy", least=0.85, golden="initial weights are drawn by Keras 3"
    ),
    "keras_lstm_text": Case(
        [], "accuracy", least=0.9, golden="initial weights are drawn by Keras 3"
    ),
    "keras_sequential": Case(
        [*MNIST], "accuracy", least=0.88, golden="initial weights are drawn by Keras 3"
    ),
    "keras_subclass": Case(
        [], "accuracy", least=0.9, golden="initial weights are drawn by Keras 3"
    ),
    "keras_to_estimator": Case(
        [*MNIST], "accuracy", least=0.88, golden="initial weights are drawn by Keras 3"
    ),
    "kmeans": Case(["--steps=30"], "error", most=0.3),
    "linear_regression": Case(["--steps=100"], "error", most=0.1),
    "logistic_regression": Case([*MNIST, "--steps=200"], "accuracy", least=0.86),
    "housing_regressor": Case(
        [], "error", most=1.0, golden="prints no losses; pandas_input_fn shuffles by threads"
    ),
    "learn_experiment": Case(
        [], "accuracy", least=0.95, golden="prints no losses; 1.15 gives the same accuracy, 0.98"
    ),
    "linear_census": Case([], "auc", least=0.7),
    "language_model": Case(
        ["--small", "--steps=100"],
        "loss",
        most=5.1,
        golden="has modes that TensorFlow has not; test_worked_models.py compares them",
    ),
    "lstm_over_devices": Case(
        [], "loss", most=1.0, golden="TensorFlow has no segments; test_split_models.py compares"
    ),
    "lstm_classifier": Case([*MNIST, "--steps=120"], "accuracy", least=0.8),
    "mlp": Case([*MNIST, "--steps=200"], "accuracy", least=0.9),
    "nearest_neighbor": Case([*MNIST, "--test=50"], "accuracy", least=0.85),
    "premade_iris": Case(
        ["--train_steps=400"], "accuracy", least=0.9, golden="prints no losses, as in the guide"
    ),
    "ragged_sentences": Case(["--steps=80"], "accuracy", least=0.95),
    "ranking": Case(
        ["--small", "--mode=async", "--steps=150"],
        "learned",
        least=0.55,
        golden="has modes that TensorFlow has not; test_worked_models.py compares them",
    ),
    "save_restore": Case([], "ratio", most=0.7),
}


def losses(output):
    """The losses of the first steps that a program printed."""
    found = re.findall(r"^step \d+ loss (\S+)", output, re.M)
    return [float(text) for text in found[:FIRST]]


def measured(output, name):
    """The last value of ``name`` that a program printed."""
    found = re.findall(rf"^{re.escape(name)} (\S+)", output, re.M)
    return float(found[-1]) if found else None


#: Those that take longest, of kinds that others of the programs or tests have, too.
LONG = {
    "bidirectional_rnn",
    "boosted_trees",
    "char_rnn",
    "cifar_estimator",
    "convnet",
    "ctc_sequence",
    "deepfm_estimator",
    "gan",
    "gru_static",
    "image_augmentation",
    "keras_functional",
    "keras_in_session",
    "keras_lstm_text",
    "keras_sequential",
    "keras_subclass",
    "keras_to_estimator",
    "language_model",
    "linear_census",
    "lstm_over_devices",
    "mnist_estimator",
    "padded_batches",
    "premade_iris",
    "ragged_sentences",
    "ranking",
    "ratings_estimator",
    "seq2seq_attention",
    "slim_convnet",
    "text_estimator",
    "vae",
    "wide_deep_estimator",
}

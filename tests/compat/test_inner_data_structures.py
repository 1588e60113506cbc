"""Tables and data structures of TensorFlow's inner modules."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import headrace.compat.tensorflow
import tensorflow as tf
from tensorflow.python.ops import data_flow_ops, lookup_ops
from tensorflow.contrib.staging import StagingArea

table = lookup_ops.index_table_from_tensor(vocabulary_list=["a", "b"], num_oov_buckets=1)
strings = lookup_ops.index_to_string_table_from_tensor(vocabulary_list=["a", "b"])
assert data_flow_ops.StagingArea is StagingArea
assert data_flow_ops.Barrier.__name__ == "Barrier"
assert data_flow_ops.RecordInput.__name__ == "RecordInput"
with tf.Session() as session:
    session.run(tf.tables_initializer())
    assert session.run(table.lookup(tf.constant(["b", "z"]))).tolist() == [1, 2]
    found = session.run(strings.lookup(tf.constant([1, 4], tf.int64)))
    assert found.tolist() == [b"b", b"UNK"]
"""


@pytest.mark.process
def test_what_programs_import_from_inner_modules() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)


GAN = """
import headrace.compat.tensorflow
import tensorflow as tf
import tensorflow.contrib.gan as tfgan
from tensorflow.contrib.gan.python import namedtuples
from tensorflow.contrib.gan.python.losses.python import losses_impl, tuple_losses
from tensorflow.contrib.gan.python.features.python.virtual_batchnorm import VBN
from tensorflow.contrib.gan.python.train import gan_model

assert tfgan.gan_model is tf.contrib.gan.gan_model is gan_model
assert namedtuples.GANLoss is tfgan.GANLoss
assert losses_impl.minimax_generator_loss is tfgan.losses.wargs.minimax_generator_loss
assert tuple_losses.minimax_generator_loss is tfgan.losses.minimax_generator_loss
assert VBN is tfgan.features.VBN
assert tfgan.eval.classifier_score
"""


@pytest.mark.process
def test_files_of_contrib_gan() -> None:
    subprocess.run([sys.executable, "-c", GAN], check=True, timeout=60)

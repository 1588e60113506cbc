"""``tf.models``: networks of the papers, each in one file of graph style to read and to change.

A network is a function from tensors to logits; what it is trained with, where that is not a usual
loss, stands beside it. Variables are made by ``tf.get_variable`` under the scope that is given.

    >>> images = tf.placeholder(tf.float32, [None, 224, 224, 3])
    >>> logits = tf.models.resnet_50(images, classes=5)
    >>> logits.shape.as_list()
    [None, 5]
"""

from headrace.models.images.alexnet import alexnet
from headrace.models.images.capsules import (
    capsule_loss,
    capsule_network,
    capsule_reconstruction,
)
from headrace.models.images.dcgan import dcgan_discriminator, dcgan_generator, dcgan_losses
from headrace.models.images.googlenet import googlenet
from headrace.models.images.inception_v3 import inception_v3
from headrace.models.images.lenet import lenet, lenet_loss
from headrace.models.images.mobilenet import mobilenet_v1
from headrace.models.images.nasnet import nasnet_a, nasnet_cell
from headrace.models.images.overfeat import overfeat
from headrace.models.images.oxfordnet import vgg_16, vgg_a
from headrace.models.images.resnet import resnet_50
from headrace.models.tables.wide_and_deep import (
    crossed,
    wide_and_deep,
    wide_and_deep_loss,
    wide_and_deep_step,
)
from headrace.models.words.transformer import transformer, transformer_loss
from headrace.models.words.word_lstm import word_loss, word_lstm

__all__ = [
    "alexnet",
    "capsule_loss",
    "capsule_network",
    "capsule_reconstruction",
    "crossed",
    "dcgan_discriminator",
    "dcgan_generator",
    "dcgan_losses",
    "googlenet",
    "inception_v3",
    "lenet",
    "lenet_loss",
    "mobilenet_v1",
    "nasnet_a",
    "nasnet_cell",
    "overfeat",
    "resnet_50",
    "transformer",
    "transformer_loss",
    "vgg_16",
    "vgg_a",
    "wide_and_deep",
    "wide_and_deep_loss",
    "wide_and_deep_step",
    "word_loss",
    "word_lstm",
]

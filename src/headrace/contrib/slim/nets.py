"""``slim.nets``: image networks of the papers."""

from headrace.contrib.slim import alexnet as alexnet
from headrace.contrib.slim import inception as inception
from headrace.contrib.slim import inception_v1 as inception_v1
from headrace.contrib.slim import inception_v2 as inception_v2
from headrace.contrib.slim import inception_v3 as inception_v3
from headrace.contrib.slim import overfeat as overfeat
from headrace.contrib.slim import resnet_utils as resnet_utils
from headrace.contrib.slim import resnet_v1 as resnet_v1
from headrace.contrib.slim import resnet_v2 as resnet_v2
from headrace.contrib.slim import vgg as vgg

__all__ = [
    "alexnet",
    "inception",
    "inception_v1",
    "inception_v2",
    "inception_v3",
    "overfeat",
    "resnet_utils",
    "resnet_v1",
    "resnet_v2",
    "vgg",
]

"""``slim.nets``: image networks of the papers; the Inception networks are not among them."""

from headrace.contrib.slim import alexnet as alexnet
from headrace.contrib.slim import resnet_utils as resnet_utils
from headrace.contrib.slim import resnet_v1 as resnet_v1
from headrace.contrib.slim import resnet_v2 as resnet_v2
from headrace.contrib.slim import vgg as vgg

__all__ = ["alexnet", "resnet_utils", "resnet_v1", "resnet_v2", "vgg"]

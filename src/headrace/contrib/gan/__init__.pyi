# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.contrib.gan.models import *
from headrace.contrib.gan.namedtuples import *
from headrace.contrib.gan.objectives import *
from headrace.contrib.gan.training import *
from headrace.contrib.gan import evaluation as _eval
eval = _eval
from headrace.contrib.gan import features as features
from headrace.contrib.gan import losses as losses
from headrace.contrib.gan import namedtuples as namedtuples

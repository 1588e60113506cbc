# Written by tools/make_stubs.py from dir(headrace.app); do not edit.
from headrace.api.app import flags as flags
from headrace.api.app import run as run

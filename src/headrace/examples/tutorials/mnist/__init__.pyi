# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.examples.tutorials.mnist import input_data as input_data
from headrace.namespaces.lazy import lazy as lazy
__all__ = ['input_data']
from headrace.examples.tutorials.mnist import mnist as mnist

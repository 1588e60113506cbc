# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.namespaces.lazy import lazy as lazy
from headrace.examples import tutorials as tutorials

# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.examples import tutorials as tutorials

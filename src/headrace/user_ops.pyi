# Written by tools/make_stubs.py from dir(headrace.user_ops); do not edit.
from headrace.api.user_ops import my_fact as my_fact

# Written by tools/make_stubs.py from dir(headrace.sets); do not edit.
from headrace.api.sets import difference as difference
from headrace.api.sets import intersection as intersection
from headrace.api.sets import set_difference as set_difference
from headrace.api.sets import set_intersection as set_intersection
from headrace.api.sets import set_size as set_size
from headrace.api.sets import set_union as set_union
from headrace.api.sets import size as size
from headrace.api.sets import union as union

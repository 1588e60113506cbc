# Written by tools/make_stubs.py from dir(headrace.version); do not edit.
from headrace.api.version import COMPILER_VERSION as COMPILER_VERSION
from headrace.api.version import GIT_VERSION as GIT_VERSION
from headrace.api.version import GRAPH_DEF_VERSION as GRAPH_DEF_VERSION
from headrace.api.version import GRAPH_DEF_VERSION_MIN_CONSUMER as GRAPH_DEF_VERSION_MIN_CONSUMER
from headrace.api.version import GRAPH_DEF_VERSION_MIN_PRODUCER as GRAPH_DEF_VERSION_MIN_PRODUCER
from headrace.api.version import VERSION as VERSION

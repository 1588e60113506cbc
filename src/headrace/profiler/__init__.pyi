# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.profiler.analyzer import Profiler as Profiler
from headrace.profiler.analyzer import advise as advise
from headrace.profiler.analyzer import profile as profile
from headrace.profiler.analyzer import write_op_log as write_op_log
from headrace.profiler.options import ProfileOptionBuilder as ProfileOptionBuilder
__all__ = ['ProfileOptionBuilder', 'Profiler', 'advise', 'profile', 'write_op_log']
from headrace.graph.proto import AdviceProto as AdviceProto
from headrace.graph.proto import GraphNodeProto as GraphNodeProto
from headrace.graph.proto import MultiGraphNodeProto as MultiGraphNodeProto
from headrace.graph.proto import OpLogProto as OpLogProto

# Written by tools/make_stubs.py from __init__.py; do not edit.
from headrace.summary.ops import audio as audio
from headrace.summary.ops import get_summary_description as get_summary_description
from headrace.summary.ops import histogram as histogram
from headrace.summary.ops import image as image
from headrace.summary.ops import merge as merge
from headrace.summary.ops import merge_all as merge_all
from headrace.summary.ops import scalar as scalar
from headrace.summary.ops import tensor_summary as tensor_summary
from headrace.summary.ops import text as text
from headrace.summary.writer import FileWriter as FileWriter
from headrace.summary.writer import FileWriterCache as FileWriterCache
__all__ = ['Event', 'FileWriter', 'FileWriterCache', 'SessionLog', 'Summary', 'SummaryDescription', 'TaggedRunMetadata', 'audio', 'get_summary_description', 'histogram', 'image', 'merge', 'merge_all', 'scalar', 'tensor_summary', 'text']
from headrace.graph.proto import Event as Event
from headrace.graph.proto import SessionLog as SessionLog
from headrace.graph.proto import Summary as Summary
from headrace.graph.proto import SummaryDescription as SummaryDescription
from headrace.graph.proto import TaggedRunMetadata as TaggedRunMetadata

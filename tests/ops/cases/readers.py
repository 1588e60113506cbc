"""Readers and maps of sparse tensors keep state between steps: no table row tests that."""

from __future__ import annotations

_READERS = "tests/ops/io/test_readers.py"
_BATCHES = "tests/train/test_input_batch.py"
COVERED = {
    "AddManySparseToTensorsMap": _BATCHES,
    "AddSparseToTensorsMap": _BATCHES,
    "FixedLengthRecordReaderV2": _READERS,
    "IdentityReaderV2": _READERS,
    "LMDBReader": _READERS,
    "ReaderNumRecordsProducedV2": _READERS,
    "ReaderNumWorkUnitsCompletedV2": _READERS,
    "ReaderReadUpToV2": _READERS,
    "ReaderReadV2": _READERS,
    "ReaderResetV2": _READERS,
    "ReaderRestoreStateV2": _READERS,
    "ReaderSerializeStateV2": _READERS,
    "RecordInput": "tests/ops/io/test_record_input.py",
    "TFRecordReaderV2": _READERS,
    "TakeManySparseFromTensorsMap": _BATCHES,
    "TextLineReaderV2": _READERS,
    "WholeFileReaderV2": _READERS,
}

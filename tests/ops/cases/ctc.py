"""CTC ops run on the host, with dynamic shapes: they have tests of their own."""

COVERED = {
    "CTCBeamSearchDecoder": "tests/ops/test_ctc.py",
    "CTCGreedyDecoder": "tests/ops/test_ctc.py",
    "CTCLoss": "tests/ops/test_ctc.py",
}

"""CTC ops run on the host, with dynamic shapes: they have tests of their own."""

COVERED = {
    "CTCBeamSearchDecoder": "tests/ops/nn/test_ctc.py",
    "CTCGreedyDecoder": "tests/ops/nn/test_ctc.py",
    "CTCLoss": "tests/ops/nn/test_ctc.py",
}

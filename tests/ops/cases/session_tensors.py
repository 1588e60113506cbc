"""Tensors that stay in the session between steps: no table row tests that."""

from __future__ import annotations

COVERED = dict.fromkeys(
    ("DeleteSessionTensor", "GetSessionHandle", "GetSessionTensor"),
    "tests/session/test_session_handles.py",
)

"""Optimisers, schedules, checkpoints."""

"""Rewrites of the pruned step graph."""

"""Gradients as graph operations."""

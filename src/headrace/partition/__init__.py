"""Cutting a placed step into one part for each task."""

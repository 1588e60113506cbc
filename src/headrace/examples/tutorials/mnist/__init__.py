"""Handwritten digits: `from headrace.examples.tutorials.mnist import input_data`."""

from headrace.examples.tutorials.mnist import input_data

__all__ = ["input_data"]

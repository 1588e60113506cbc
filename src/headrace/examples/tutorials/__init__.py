"""Tutorials, under the module names that published programs import."""

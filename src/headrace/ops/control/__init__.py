"""Branches, loops, calls, tensor lists, Python functions, and checks that steps make."""

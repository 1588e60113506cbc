"""Sparse tensors: the class, and the operations on them."""

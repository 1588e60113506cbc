"""Headrace: graphs of tensor operations, run on any mix of devices and machines."""

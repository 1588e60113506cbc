"""The messages of the distributed runtime."""

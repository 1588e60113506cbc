"""Random operations: TensorFlow's numbers for the same seeds."""

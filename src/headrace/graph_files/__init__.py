"""Graphs in files: reading TensorFlow's GraphDefs, old control flow in them, and writing."""

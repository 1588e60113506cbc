"""The distributed runtime: servers, masters, workers and what carries tensors between them."""

"""From serialised messages and text to tensors."""

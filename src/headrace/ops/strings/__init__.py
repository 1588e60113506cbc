"""Operations on tensors of strings."""

"""Operations that shape, join, cut, fill and pick from tensors."""

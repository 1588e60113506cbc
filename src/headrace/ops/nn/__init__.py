"""Operations of neural networks: convolutions, pooling, normalisation, losses, samplers."""

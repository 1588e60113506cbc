"""Arithmetic, reductions, segments, linear algebra, Fourier transforms, quantisation."""

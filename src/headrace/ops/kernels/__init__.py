"""Pure functions behind the heavier operations: JAX-traceable, without any graph code."""

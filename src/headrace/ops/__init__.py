"""Operation definitions: one record for each op, one module for each family."""

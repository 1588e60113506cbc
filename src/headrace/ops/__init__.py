"""Operation definitions: one record for each op, one room for each family."""

"""What every family stands on: the registry of operations, building them, checks, static values."""

"""Variables: their operations, scopes, initial values, and updates by optimisers."""

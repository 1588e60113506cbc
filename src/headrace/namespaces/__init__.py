"""How names of the interface are found: late, under old names; what is said of missing ones."""

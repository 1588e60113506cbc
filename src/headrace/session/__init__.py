"""Sessions: feeds, fetches, plans and traces."""

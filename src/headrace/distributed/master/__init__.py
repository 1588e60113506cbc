"""Masters: a client's graph, cut into parts that run on workers."""

"""Running a cluster: what it does now, traces of its steps, and what is wrong with its machines."""

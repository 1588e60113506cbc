"""What is wrong with a machine or a cluster, and how to mend it."""

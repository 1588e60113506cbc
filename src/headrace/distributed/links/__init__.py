"""The links of a process to others: which there are, who is alive, when one is given up."""

"""Workers: each task's share of the steps of all masters."""

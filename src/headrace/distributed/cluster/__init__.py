"""What a cluster is: its jobs, tasks and addresses, and how a process learns of them."""

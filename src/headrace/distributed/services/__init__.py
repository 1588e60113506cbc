"""Processes of a cluster: the server, its control plane, and the clients that talk to it."""

"""Standbys of servers: each update is on two tasks before it is acknowledged.

A server and its *standby* are primary and backup in the sense of Alsberg and Day, "A principle for
resilient sharing of distributed resources" (ICSE 1976). A third task, the *witness*, decides where
they lose each other, as in Liskov et al., "Replication in the Harp file system" (SOSP 1991).
`rules` says who may do what, without clocks or messages; `journal` knows what of a store has
changed and who waits for that; the two roles send and take copies.
"""

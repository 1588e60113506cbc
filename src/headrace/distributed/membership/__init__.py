"""Who is in the cluster: a small record that its tasks keep together.

A cluster begins as its `ClusterSpec` says, and needs no record. The first change (a task joins or
leaves, another size is asked for, a variable moves) makes one, and each later change a new one,
with an epoch that is higher by one. `record` says what is in it, `changes` what may happen to it,
`voting` how tasks agree on the next one while some of them are dead or were started again, and
`addresses` what the rest of a task sees.
"""

"""What tests of Headrace stand on: clusters in one process, faults, the forms of an operation.

For users there is `tf.test` (`headrace.test`).
"""

"""Recurrent networks: cells, and the functions that run them over sequences.

Users reach these names as ``tf.nn.dynamic_rnn``, ``tf.nn.rnn_cell.LSTMCell`` and so on.
"""

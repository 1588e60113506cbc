"""What crosses the network, as bytes: messages, values, shortened values and errors."""

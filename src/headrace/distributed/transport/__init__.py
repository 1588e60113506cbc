"""What carries frames between two tasks: pipes of several kinds, and the link above them."""

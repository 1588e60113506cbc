"""Where each operation runs."""

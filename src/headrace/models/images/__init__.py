"""Networks that read or draw pictures; each file stands by itself."""

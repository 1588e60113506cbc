"""Networks over words; each file stands by itself."""

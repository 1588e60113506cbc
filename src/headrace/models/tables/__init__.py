"""Networks over the columns of tables; each file stands by itself."""

"""Who may talk to a cluster: TLS, tokens, admission to control calls, and what strangers cause."""

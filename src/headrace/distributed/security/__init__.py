"""Who may talk to a cluster: TLS, tokens, admission to control calls, and what strangers cause.

In: certificates and a token, from files that the environment names. Out: whether a connection or a
call is let in. Invariant: nothing that a stranger sends is parsed, kept, or logged without limit.

    >>> from headrace.distributed.security.credentials import is_loopback
    >>> is_loopback("127.0.0.1"), is_loopback("10.1.2.3")
    (True, False)
"""

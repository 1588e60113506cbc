"""The distributed runtime: servers, masters, workers and what carries tensors between them."""

import os

# Before gRPC is imported: by default it writes a line to stderr for each connection whose TLS
# fails, and anybody can make connections.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

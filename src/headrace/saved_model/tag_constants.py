"""Tags that tell the graphs of a SavedModel apart."""

from typing import Final

SERVING: Final = "serve"
TRAINING: Final = "train"
GPU: Final = "gpu"
TPU: Final = "tpu"

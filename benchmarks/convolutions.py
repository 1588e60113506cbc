"""Convolutions by themselves against TensorFlow: forward and both gradients, of known networks.

    python benchmarks/convolutions.py [--only TEXT ...] [--cores N ...] [--repeat N] [--worst N]

With `--xla`, the same without the native library beside it; with `--strided`, the input gradients
of a grid of kernels, strides and channels. Prints each row, the worst ones, the median, and how
many are over the target of 2; all rows go to `results/convolutions.json`, and with `--markdown` to
a table. Options (`--check` among them), sides and medians are those of `operations.py`; cases are
in `convolution_cases.py`, those of PyTorch in `convolution_torch.py`.
"""

from __future__ import annotations

import sys

from convolution_cases import layers, strided
from operations import HERE, parser_of, sweep

TARGET = 2.0


def main() -> int:
    parser = parser_of(__doc__, HERE / "results" / "convolutions.json")
    parser.add_argument("--strided", action="store_true", help="a grid of input gradients")
    options = parser.parse_args()
    cases = strided() if options.strided else layers()
    titles = {case.name: f"{network}: {case.title}" for network, case in cases}
    return sweep(options, titles, TARGET)


if __name__ == "__main__":
    sys.exit(main())

"""``python -m headrace``: the command `headrace`."""

from headrace.cli import main

main(prog_name="headrace")

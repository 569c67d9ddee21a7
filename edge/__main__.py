"""Runs the command `edge` as `python -m edge`."""

from edge.cli import main

main()

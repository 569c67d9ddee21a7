"""Lets `python -m edge` do what the command `edge` does."""

from edge.cli import main

main()

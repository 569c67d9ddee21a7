"""Runs ISA-95 jobs and their SFC recipes on an industrial gateway."""

__version__ = "0.9.0"

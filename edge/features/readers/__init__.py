"""Readers of codes, over TCP and serial lines."""

"""Curves and images of results, as files."""

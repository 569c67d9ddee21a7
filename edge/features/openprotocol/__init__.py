"""Tightening controllers with Open Protocol."""

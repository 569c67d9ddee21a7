"""A simulated tightening controller with Open Protocol."""

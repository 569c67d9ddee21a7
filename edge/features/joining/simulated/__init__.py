"""A simulated tightening controller (OPC 40450-1)."""

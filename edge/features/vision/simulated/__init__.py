"""A simulated camera (OPC 40100-1)."""

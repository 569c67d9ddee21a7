"""Cameras with OPC UA (OPC 40100-1)."""

"""Tightening controllers with OPC UA (OPC 40451-1)."""

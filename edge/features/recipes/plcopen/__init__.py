"""Reads and writes charts as PLCopen TC6 XML 2.01."""

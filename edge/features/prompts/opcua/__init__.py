"""Prompts in OPC UA: conditions, and methods that answer them."""

"""Builds the gateway from every adapter, starts it in order, reports its health and stops it."""

"""Maintenance of a gateway: examine, back up, restore, record, collect data for support."""

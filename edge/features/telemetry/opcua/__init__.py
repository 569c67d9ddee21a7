"""Alarms as conditions, tags as variables, and their history in OPC UA."""

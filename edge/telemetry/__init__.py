"""Planned room of tags, samples and alarms: nothing is built yet."""
